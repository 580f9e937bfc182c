use serde_json::{Value, json};

use super::*;

const MODERN: &str = "2026-07-28";

/// A request as clients of 2026-07-28 send it.
fn modern(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        REVISION_KEY: MODERN,
        CAPABILITIES_KEY: { "extensions": { EXTENSION: {} } },
        "progressToken": 4,
    });
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
}

fn listen(filter: &Value) -> Value {
    modern(LISTEN, json!({ "notifications": { EXTENSION: filter, "resourceSubscriptions": [] } }))
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap())).collect()
}

/// Judged with the headers that fit.
fn judged(message: &Value) -> Option<Asked> {
    let method = message["method"].as_str().unwrap_or_default();
    judge(message.to_string().as_bytes(), &headers(&[(REVISION_HEADER, MODERN), (METHOD_HEADER, method)]))
}

fn what(message: &Value) -> Result<What, Refusal> {
    judged(message).unwrap_or_else(|| panic!("this is none: {message}")).what
}

fn check_refused(message: &Value, code: i32, status: u16, says: &str) {
    let refusal = what(message).unwrap_err();
    let (found, http, text, _) = refusal.parts();
    assert_eq!((found, http), (code, status), "{message}: {text}");
    assert!(text.contains(says), "{message}: {text}");
}

#[test]
fn what_is_asked_of_the_extension_is_known_and_nothing_else() {
    assert!(matches!(what(&modern(GET, json!({}))), Ok(What::Get(PAGE_EVENTS_MAX))));
    let acknowledged = what(&modern(ACK, json!({ "eventIds": ["a", "b", "a"] })));
    assert!(matches!(acknowledged, Ok(What::Acknowledge(ids)) if ids == ["a", "b", "a"]));
    assert!(matches!(what(&listen(&json!({}))), Ok(What::Listen(Some(token))) if token.get() == "4"));
    let hints = json!({ "notifications": { "resourceSubscriptions": ["switchbell://notifications"] } });
    let notification = json!({ "jsonrpc": "2.0", "method": GET });
    for other in [
        modern(LISTEN, hints),
        modern(LISTEN, json!({})),
        modern(LISTEN, json!({ "notifications": [EXTENSION] })),
        modern("tools/list", json!({ "notifications": { EXTENSION: {} } })),
        notification,
        json!({ "jsonrpc": "1.0", "id": 1, "method": GET }),
        json!({ "jsonrpc": "2.0", "id": 1, "result": { "method": GET } }),
        json!([modern(GET, json!({}))]),
        json!(["2.0", 1, GET, {}]),
        json!(GET),
    ] {
        assert!(judged(&other).is_none(), "{other}");
    }
    for body in [&b"{"[..], b"", b"\xff{}", br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}"#] {
        assert!(judge(body, &HeaderMap::new()).is_none());
    }
    let escaped = modern(GET, json!({})).to_string().replace('/', "\\/").replace("method", "m\\u0065thod");
    let asked = judge(escaped.as_bytes(), &headers(&[(REVISION_HEADER, MODERN), (METHOD_HEADER, GET)])).unwrap();
    assert!(asked.what.is_ok(), "however it is spelled: {asked:?}");
}

#[test]
fn a_limit_is_a_whole_number_from_one_and_a_page_has_its_most() {
    let limit = |limit: &str| {
        let message = modern(GET, json!({ "limit": "LIMIT", "other": [1] })).to_string().replace("\"LIMIT\"", limit);
        judge(message.as_bytes(), &headers(&[(REVISION_HEADER, MODERN), (METHOD_HEADER, GET)])).unwrap().what
    };
    for (json, expected) in
        [("1", 1), ("99", 99), ("100", 100), ("101", 100), ("9007199254740991", 100), ("2.0", 2), ("1e1", 10)]
    {
        assert!(matches!(limit(json), Ok(What::Get(found)) if found == expected), "{json}");
    }
    for json in [
        "0",
        "-1",
        "1.5",
        "9007199254740992",
        "1152921504606846976",
        "1e400",
        "-0",
        "\"1\"",
        "null",
        "true",
        "[1]",
        "{}",
    ] {
        let refusal = limit(json).unwrap_err();
        let (code, status, text, _) = refusal.parts();
        assert_eq!((code, status), (-32602, 200), "{json}");
        assert!(text.starts_with("limit: write a whole number from 1 on"), "{text}");
    }
}

#[test]
fn an_acknowledgement_names_one_id_at_least_and_so_many_at_most() {
    let ids = |count: usize| modern(ACK, json!({ "eventIds": vec!["x"; count] }));
    assert!(matches!(what(&ids(IDS_MAX)), Ok(What::Acknowledge(ids)) if ids.len() == IDS_MAX));
    check_refused(&ids(IDS_MAX + 1), -32602, 200, "1001 ids; send at most 1000");
    for wrong in [json!([]), json!("a"), json!([""]), json!(["a", 1]), json!([null]), json!({}), json!(null)] {
        check_refused(&modern(ACK, json!({ "eventIds": wrong })), -32602, 200, "eventIds: write an array of ids");
    }
    check_refused(&modern(ACK, json!({})), -32602, 200, "eventIds: write an array of ids");
}

#[test]
fn a_filter_chooses_nothing() {
    for filter in [json!({ "afterCursor": "1" }), json!([]), json!(null), json!(true), json!("{}")] {
        check_refused(&listen(&filter), -32602, 200, "write {}");
    }
}

#[test]
fn every_request_says_that_the_client_knows_the_extension() {
    let all = [modern(GET, json!({})), modern(ACK, json!({ "eventIds": ["a"] })), listen(&json!({}))];
    for capabilities in [
        json!({}),
        json!({ "extensions": {} }),
        json!({ "extensions": [] }),
        json!({ "extensions": { EXTENSION: null } }),
        json!({ "extensions": { EXTENSION: true } }),
        json!({ "extensions": { "io.stagewise/other": {} } }),
    ] {
        for message in &all {
            let mut message = message.clone();
            message["params"]["_meta"][CAPABILITIES_KEY] = capabilities.clone();
            check_refused(&message, -32021, 400, "Missing required client capability");
            let refusal = what(&message).unwrap_err();
            let required = json!({ "requiredCapabilities": { "extensions": { EXTENSION: {} } } });
            assert_eq!(refusal.parts().3, Some(&required));
        }
    }
}

#[test]
fn older_revisions_say_what_they_know_in_the_request_too() {
    let declared = json!({ CAPABILITIES_KEY: { "extensions": { EXTENSION: {} } } });
    let message =
        |meta: Value| json!({ "jsonrpc": "2.0", "id": 7, "method": GET, "params": { "_meta": meta } }).to_string();
    for revision in [None, Some("2025-11-25"), Some("2024-11-05")] {
        let headers = revision.map(|revision| headers(&[(REVISION_HEADER, revision)])).unwrap_or_default();
        let asked = |meta: Value| judge(message(meta).as_bytes(), &headers).unwrap().what;
        assert!(matches!(asked(declared.clone()), Ok(What::Get(_))), "{revision:?}");
        let refusal = asked(json!({})).unwrap_err();
        assert_eq!((refusal.parts().0, refusal.parts().1), (-32021, 200), "{revision:?}");
    }
    let bare = json!({ "jsonrpc": "2.0", "id": 7, "method": GET }).to_string();
    assert_eq!(judge(bare.as_bytes(), &HeaderMap::new()).unwrap().what.unwrap_err().parts().0, -32021);
}

#[test]
fn what_headers_and_request_say_of_the_revision_fits_together() {
    let check = |message: &Value, pairs: &[(&'static str, &str)], code: i32, says: &str| {
        let refusal = judge(message.to_string().as_bytes(), &headers(pairs)).unwrap().what.unwrap_err();
        let (found, status, text, _) = refusal.parts();
        assert_eq!((found, status), (code, 400), "{pairs:?}: {text}");
        assert!(text.contains(says), "{pairs:?}: {text}");
    };
    let get = modern(GET, json!({}));
    let method = (METHOD_HEADER, GET);
    check(&get, &[], -32020, "MCP-Protocol-Version: write \"2026-07-28\"");
    check(&get, &[(REVISION_HEADER, "2025-11-25")], -32020, "MCP-Protocol-Version: write");
    check(&get, &[(REVISION_HEADER, MODERN)], -32020, "Mcp-Method: missing");
    check(&get, &[(REVISION_HEADER, MODERN), (METHOD_HEADER, ACK)], -32020, "Mcp-Method: the method in the body is");
    let mut other = get.clone();
    other["params"]["_meta"][REVISION_KEY] = json!("2099-01-01");
    check(&other, &[(REVISION_HEADER, "2099-01-01"), method], -32022, "Unsupported protocol version");
    let mut bare = get.clone();
    bare["params"]["_meta"] = json!({});
    check(
        &bare,
        &[(REVISION_HEADER, MODERN), method],
        -32602,
        "protocolVersion, io.modelcontextprotocol/clientCapabilities",
    );
    check(&bare, &[(REVISION_HEADER, "1999-01-01")], -32022, "Unsupported protocol version");
    let mut without = get;
    without["params"]["_meta"][CAPABILITIES_KEY] = json!("all");
    check(&without, &[(REVISION_HEADER, MODERN), method], -32602, "clientCapabilities");
    without["params"]["_meta"] = json!([]);
    let refusal = judge(without.to_string().as_bytes(), &headers(&[(REVISION_HEADER, MODERN), method])).unwrap();
    assert_eq!(refusal.what.unwrap_err().parts().0, -32602);
    without["params"] = json!([]);
    let refusal = judge(without.to_string().as_bytes(), &headers(&[(REVISION_HEADER, MODERN), method])).unwrap();
    assert_eq!(refusal.what.unwrap_err().parts().0, -32602);
}

#[test]
fn an_answer_names_its_request_as_it_was_written() {
    let asked = |id: &str| {
        let message = modern(GET, json!({})).to_string().replace("\"id\":7", &format!("\"id\":{id}"));
        judge(message.as_bytes(), &headers(&[(REVISION_HEADER, MODERN), (METHOD_HEADER, GET)])).unwrap()
    };
    for id in ["0", "-1", "\"a\\u00e4\"", "1.50", "\"\""] {
        let asked = asked(id);
        assert_eq!((asked.id.get(), asked.what.is_ok()), (id, true));
    }
    let long = format!("\"{}\"", "x".repeat(ID_BYTES_MAX));
    for id in ["null", "true", "[1]", "{}", &long] {
        let asked = asked(id);
        assert_eq!(asked.id.get(), "null");
        let refusal = asked.what.unwrap_err();
        assert_eq!((refusal.parts().0, refusal.parts().1), (-32600, 400), "{id}");
    }
}
