//! What the headers of a request repeat of its message (MCP, "Streamable HTTP": revision 2026-07-28 for the names).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

/// The revision whose messages carry all that they mean, and whose headers name what they ask for.
const FIRST_WITHOUT_SESSIONS: &str = "2026-07-28";

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// What stands around a value that cannot stand in a header by itself.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// The headers of a message. `revision` is what was agreed on at the beginning, for messages that do not say theirs.
pub(super) fn of(message: &Value, revision: Option<&HeaderValue>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let params = message.get("params");
    let own = params.and_then(|params| params.get("_meta")?.get("io.modelcontextprotocol/protocolVersion")?.as_str());
    let revision = own.map(value).or_else(|| revision.cloned());
    // The first message of older revisions says in its own words which one it wants.
    if let Some(revision) = revision.filter(|_| method(message) != Some("initialize")) {
        headers.insert(PROTOCOL_VERSION, revision);
    }
    let Some(method) = method(message).filter(|_| own.is_some_and(|own| own >= FIRST_WITHOUT_SESSIONS)) else {
        return headers;
    };
    headers.insert(METHOD, value(method));
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return headers,
    };
    if let Some(name) = params.and_then(|params| params.get(key)?.as_str()) {
        headers.insert(NAME, value(name));
    }
    headers
}

/// The method of a message; none when it is an answer.
pub(super) fn method(message: &Value) -> Option<&str> {
    message.get("method")?.as_str()
}

fn value(text: &str) -> HeaderValue {
    let (before, after) = ENCODED;
    let is_plain = text.chars().all(|c| matches!(c, ' '..='~'))
        && text.trim_matches(' ') == text
        && !(text.starts_with(before) && text.ends_with(after));
    let text = if is_plain { text.to_owned() } else { format!("{before}{}{after}", STANDARD.encode(text)) };
    // Only what a header can hold is left.
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(message: &Value, agreed: Option<&'static str>, expected: &[(&str, &str)]) {
        let headers = of(message, agreed.map(HeaderValue::from_static).as_ref());
        let found: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(found, expected, "{message}");
    }

    fn modern(method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
    }

    #[test]
    fn a_message_that_says_its_revision_is_named_in_the_headers() {
        let version = ("mcp-protocol-version", "2026-07-28");
        check(&modern("server/discover", json!({})), None, &[version, ("mcp-method", "server/discover")]);
        let named = |method, name| [version, ("mcp-method", method), ("mcp-name", name)];
        let call = |name: &str| modern("tools/call", json!({ "name": name }));
        check(&call("notifications__list"), Some("2025-06-18"), &named("tools/call", "notifications__list"));
        check(&call(" a"), None, &named("tools/call", "=?base64?IGE=?="));
        check(&call("ä"), None, &named("tools/call", "=?base64?w6Q=?="));
        check(&call("a\nb"), None, &named("tools/call", "=?base64?YQpi?="));
        check(&call("=?base64?YQ==?="), None, &named("tools/call", "=?base64?PT9iYXNlNjQ/WVE9PT89?="));
        let uri = "switchbell://notifications?cursor=a&maxEvents=1&maxAgeMs=2";
        check(&modern("resources/read", json!({ "uri": uri })), None, &named("resources/read", uri));
    }

    #[test]
    fn older_revisions_are_named_as_agreed_and_by_nothing_more() {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "a" } });
        check(&call, Some("2025-06-18"), &[("mcp-protocol-version", "2025-06-18")]);
        check(&call, None, &[]);
        check(
            &json!({ "jsonrpc": "2.0", "id": 1, "result": {} }),
            Some("2025-06-18"),
            &[("mcp-protocol-version", "2025-06-18")],
        );
        check(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} }), Some("2025-06-18"), &[]);
    }
}
