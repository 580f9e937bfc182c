//! The body of a request: bytes as the plugin made them, but for at most one string of a JSON document.

use memchr::memmem;
use serde_json::Value;

use super::super::denied;
use super::super::secret::MISPLACED;
use super::filling::Filling;
use crate::config::SecretPlace;
use crate::wasm::Fault;

const HERE: &str = "the body";

/// Puts a value in where its JSON Pointer says; everything else stays byte for byte as it is. A placeholder that is spelled
/// with escapes is found by the parser and refused.
pub(super) fn filled(body: Vec<u8>, filling: &mut Filling<'_>) -> Result<Vec<u8>, Fault> {
    if !filling.seals.have(|place| matches!(place, SecretPlace::Body(_))) {
        filling.none_in(&body, HERE)?;
        return Ok(body);
    }
    let Ok(json) = serde_json::from_slice::<Value>(&body) else {
        filling.none_in(&body, "a body that is no JSON")?;
        return Ok(body);
    };
    let Some(placeholder) = only_one(&json, filling)? else {
        filling.none_in(&body, HERE)?;
        return Ok(body);
    };
    let Some((name, _)) = filling.seals.get(placeholder) else { return Ok(body) };
    let is_there = |place: &SecretPlace| match place {
        SecretPlace::Body(pointer) => json.pointer(pointer).and_then(Value::as_str) == Some(placeholder),
        _ => false,
    };
    let Some((value, _)) = filling.value(placeholder, HERE, is_there)? else { return Ok(body) };
    let token = format!("\"{placeholder}\"");
    let mut places = memmem::find_iter(&body, &token);
    let (Some(at), None) = (places.next(), places.next()) else { return Err(filling.misplaced(name, HERE)) };
    let (Some(before), Some(after)) = (body.get(..at), body.get(at + token.len()..)) else {
        return Err(filling.misplaced(name, HERE));
    };
    // Neither around the string nor in what a repeated key hides.
    filling.none_in(before, HERE)?;
    filling.none_in(after, HERE)?;
    Ok([before, Value::from(value).to_string().as_bytes(), after].concat())
}

/// The one string that is a placeholder. A second one, or one within a longer text or a key, is refused.
fn only_one<'j>(json: &'j Value, filling: &Filling<'_>) -> Result<Option<&'j str>, Fault> {
    let (mut found, mut left) = (None, vec![json]);
    while let Some(value) = left.pop() {
        match value {
            Value::String(text) if filling.seals.get(text).is_some() => {
                if found.replace(text.as_str()).is_some() {
                    return Err(denied(MISPLACED, "a body may hold one secret, and once".to_owned()));
                }
            }
            Value::String(text) => filling.none_in(text.as_bytes(), "a part of a text in the body")?,
            Value::Array(items) => left.extend(items),
            Value::Object(members) => {
                members.keys().try_for_each(|key| filling.none_in(key.as_bytes(), "a key of the body"))?;
                left.extend(members.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    Ok(found)
}
