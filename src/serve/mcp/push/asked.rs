//! What a message asks of the extension, judged by itself: nothing is looked up. In each type of what came, what is of no
//! interest may be anything.

use std::borrow::Cow;
use std::collections::HashMap;

use axum::http::HeaderMap;
use rmcp::model::ProtocolVersion;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::refusal::Refusal;
use super::{ACK, EXTENSION, GET, LISTEN};
use crate::inbox::PAGE_EVENTS_MAX;

/// Ids that one acknowledgement names: ten pages.
pub(super) const IDS_MAX: usize = 1_000;

/// Size of a request's id and of a token of progress, in bytes: each frame of a stream repeats them.
const ID_BYTES_MAX: usize = 1_024;

/// The largest whole number that every reader of JSON keeps (RFC 8259, section 6).
const WHOLE_MAX: u64 = (1 << 53) - 1;

const REVISION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";

const REVISION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// A request of the extension.
#[derive(Debug)]
pub(super) struct Asked {
    /// Its id as it was written; `null` where it has none that can be answered to.
    pub(super) id: Box<RawValue>,
    /// What is asked, or why it is refused.
    pub(super) what: Result<What, Refusal>,
}

/// What is asked.
#[derive(Debug)]
pub(super) enum What {
    /// A page of at most so many events.
    Get(u32),
    /// These events are the consumer's own now.
    Acknowledge(Vec<String>),
    /// Events as they come. With the token of progress that signs of life are to have, as it was written.
    Listen(Option<Box<RawValue>>),
}

#[derive(Deserialize)]
struct MessageJson<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct ParamsJson<'a> {
    #[serde(borrow, default, rename = "_meta", deserialize_with = "present")]
    meta: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    limit: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "eventIds", deserialize_with = "present")]
    event_ids: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    notifications: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct MetaJson<'a> {
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion", deserialize_with = "present")]
    revision: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientCapabilities", deserialize_with = "present")]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "progressToken", deserialize_with = "present")]
    progress_token: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct CapabilitiesJson<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    extensions: Option<&'a RawValue>,
}

/// A filter, and what a client can: both name the extension by its key.
#[derive(Deserialize)]
struct ByExtension<'a> {
    #[serde(borrow, default, rename = "io.stagewise/push-notifications", deserialize_with = "present")]
    extension: Option<&'a RawValue>,
}

/// What is there, be it `null`.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// The parts of an object; none where the JSON is no object, or has a part twice.
fn object<'a, T: Deserialize<'a>>(json: &'a str) -> Option<T> {
    // The library would take an array for an object whose parts have no names.
    json.trim_start().starts_with('{').then(|| serde_json::from_str(json).ok()).flatten()
}

fn value<T: DeserializeOwned>(json: &RawValue) -> Option<T> {
    serde_json::from_str(json.get()).ok()
}

/// What a message asks of the extension; none when it is no request of it.
pub(super) fn judge(body: &[u8], headers: &HeaderMap) -> Option<Asked> {
    let message: MessageJson<'_> = object(std::str::from_utf8(body).ok()?)?;
    // What expects no answer is no request.
    let id = message.id.filter(|_| message.jsonrpc == "2.0")?;
    let params = match message.params {
        Some(params) => object::<ParamsJson<'_>>(params.get()),
        None => Some(ParamsJson::default()),
    };
    let filter = params.as_ref().and_then(|params| params.notifications);
    let filter = filter.and_then(|filter| object::<ByExtension<'_>>(filter.get())?.extension);
    let is_ours = [GET, ACK].contains(&&*message.method) || (message.method == LISTEN && filter.is_some());
    if !is_ours {
        return None;
    }
    if let Err(refusal) = can_be_answered(id) {
        return Some(Asked { id: RawValue::NULL.to_owned(), what: Err(refusal) });
    }
    let what = match params {
        Some(params) => asked(&message.method, &params, filter, headers),
        None => Err(Refusal::invalid_params("params: this is no object, or has a part twice; write each part once")),
    };
    Some(Asked { id: id.to_owned(), what })
}

/// Whether an answer can say what it answers: a text or a number does (MCP, "Requests").
fn can_be_answered(id: &RawValue) -> Result<(), Refusal> {
    if id.get().len() > ID_BYTES_MAX {
        let why = format!("id: write at most {ID_BYTES_MAX} bytes, since every answer repeats it");
        return Err(Refusal::invalid_request(why));
    }
    match is_name(id) {
        true => Ok(()),
        false => Err(Refusal::invalid_request("id: write a text or a number, so that the answer can name it")),
    }
}

fn is_name(json: &RawValue) -> bool {
    json.get().starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit())
}

fn asked(
    method: &str,
    params: &ParamsJson<'_>,
    filter: Option<&RawValue>,
    headers: &HeaderMap,
) -> Result<What, Refusal> {
    let meta = match params.meta {
        Some(meta) => object::<MetaJson<'_>>(meta.get())
            .ok_or_else(|| Refusal::invalid_params("params._meta: this is no object; write one"))?,
        None => MetaJson::default(),
    };
    let is_inline = revision(method, &meta, headers)?;
    if !knows_the_extension(&meta) {
        return Err(Refusal::missing_capability(is_inline));
    }
    match method {
        GET => limit(params.limit).map(What::Get),
        ACK => event_ids(params.event_ids).map(What::Acknowledge),
        _ => {
            is_whole(filter)?;
            let token = meta.progress_token.filter(|token| is_name(token) && token.get().len() <= ID_BYTES_MAX);
            Ok(What::Listen(token.map(ToOwned::to_owned)))
        }
    }
}

/// Judges what a request says of its revision, as the rest of the server does; whether it says it in itself, as since 2026-07-28.
fn revision(method: &str, meta: &MetaJson<'_>, headers: &HeaderMap) -> Result<bool, Refusal> {
    let first_inline = ProtocolVersion::V_2026_07_28;
    let named = header(headers, REVISION_HEADER)?;
    let is_modern = |revision: &str| revision >= first_inline.as_str();
    if named.is_some_and(is_modern) {
        match header(headers, METHOD_HEADER)? {
            Some(value) if value == method => {}
            Some(_) => {
                return Err(Refusal::header_mismatch(format_args!("Mcp-Method: the method in the body is {method}")));
            }
            None => return Err(Refusal::header_mismatch(format_args!("Mcp-Method: missing; write {method}"))),
        }
    }
    let own: Option<String> = meta.revision.and_then(value);
    let has_capabilities = meta.capabilities.is_some_and(|json| object::<CapabilitiesJson<'_>>(json.get()).is_some());
    let missing = || {
        let keys = [(REVISION_KEY, own.is_some()), (CAPABILITIES_KEY, has_capabilities)];
        let missing: Vec<&str> = keys.iter().filter(|(_, is_there)| !is_there).map(|(key, _)| *key).collect();
        Refusal::missing_meta(&missing)
    };
    let supported: Vec<&str> = ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str).collect();
    let Some(own) = &own else {
        return match named {
            Some(named) if !supported.contains(&named) => Err(Refusal::unsupported_revision(named, &supported)),
            Some(named) if is_modern(named) => Err(missing()),
            _ => Ok(false),
        };
    };
    if named != Some(own.as_str()) {
        let why = format!("MCP-Protocol-Version: write {own:?}, which the request says in its _meta");
        return Err(Refusal::header_mismatch(why));
    }
    if !supported.contains(&own.as_str()) {
        return Err(Refusal::unsupported_revision(own, &supported));
    }
    if is_modern(own) && !has_capabilities {
        return Err(missing());
    }
    Ok(true)
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Refusal> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let text = value.to_str().map_err(|_| Refusal::header_mismatch(format_args!("{name}: this is no plain text")))?;
    Ok(Some(text))
}

/// Whether the client says in this very request that it knows the extension.
fn knows_the_extension(meta: &MetaJson<'_>) -> bool {
    let extensions = || object::<CapabilitiesJson<'_>>(meta.capabilities?.get())?.extensions;
    let settings = || object::<ByExtension<'_>>(extensions()?.get())?.extension;
    settings().is_some_and(|settings| settings.get().starts_with('{'))
}

fn limit(json: Option<&RawValue>) -> Result<u32, Refusal> {
    let Some(json) = json else { return Ok(PAGE_EVENTS_MAX) };
    let whole = whole(json.get()).filter(|limit| (1..=WHOLE_MAX).contains(limit)).ok_or_else(|| {
        Refusal::invalid_params(format_args!(
            "limit: write a whole number from 1 on, or leave it out; a page has at most {PAGE_EVENTS_MAX} events"
        ))
    })?;
    Ok(u32::try_from(whole).unwrap_or(u32::MAX).min(PAGE_EVENTS_MAX))
}

/// A number that is whole and not negative, however it is spelled.
fn whole(json: &str) -> Option<u64> {
    let spelled = |json: &str| {
        let number: f64 = json.parse().ok()?;
        let is_whole = number.fract() == 0.0 && (0.0..=WHOLE_MAX as f64).contains(&number);
        is_whole.then_some(number as u64)
    };
    json.parse().ok().or_else(|| spelled(json))
}

fn event_ids(json: Option<&RawValue>) -> Result<Vec<String>, Refusal> {
    let ids: Option<Vec<String>> = json.and_then(value);
    let ids = ids.filter(|ids| !ids.is_empty() && ids.iter().all(|id| !id.is_empty()));
    let ids = ids.ok_or_else(|| {
        Refusal::invalid_params("eventIds: write an array of ids, at least one, each a text that is not empty")
    })?;
    match ids.len() {
        count if count > IDS_MAX => {
            Err(Refusal::invalid_params(format_args!("eventIds: {count} ids; send at most {IDS_MAX} at once")))
        }
        _ => Ok(ids),
    }
}

/// A filter chooses nothing: all that waits for the consumer is told.
fn is_whole(filter: Option<&RawValue>) -> Result<(), Refusal> {
    let parts = filter.and_then(|filter| object::<HashMap<String, IgnoredAny>>(filter.get()));
    match parts.is_some_and(|parts| parts.is_empty()) {
        true => Ok(()),
        false => Err(Refusal::invalid_params(format_args!(
            "notifications[\"{EXTENSION}\"]: write {{}}; what joins a queue is chosen in the workspace's file"
        ))),
    }
}

#[cfg(test)]
mod tests;
