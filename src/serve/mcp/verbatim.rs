//! Payloads in structured content, byte for byte. The result types of MCP hold JSON as values, which forget the order of
//! keys and how numbers are spelled; so a mark that nobody can know goes through them, and the payload takes its place in
//! the finished answer.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use memchr::memmem;

use super::frame::{NoChance, drawn};

/// Largest answer that is filled: a hundred notifications of the largest size have less.
const ANSWER_BYTES_MAX: usize = 32 << 20;

/// The payloads of one answer.
#[derive(Clone, Default)]
pub(super) struct Fillings(Arc<Mutex<Filled>>);

#[derive(Default)]
struct Filled {
    mark: String,
    payloads: Vec<String>,
}

impl fmt::Debug for Fillings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Fillings").finish_non_exhaustive()
    }
}

impl Fillings {
    /// Keeps a payload, the text of a JSON value, and returns the text that stands for it.
    pub(super) fn put(&self, payload: String) -> Result<String, NoChance> {
        let mut filled = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if filled.mark.is_empty() {
            filled.mark = format!("payload-{}-", drawn()?);
        }
        let standing = format!("{}{}", filled.mark, filled.payloads.len());
        filled.payloads.push(payload);
        Ok(standing)
    }

    fn take(&self) -> Filled {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Puts the payloads into the answer, once it is made.
pub(super) async fn fill(mut request: Request, next: Next) -> Response {
    let fillings = Fillings::default();
    request.extensions_mut().insert(fillings.clone());
    let response = next.run(request).await;
    let filled = fillings.take();
    if filled.payloads.is_empty() {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(answer) = to_bytes(body, ANSWER_BYTES_MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(filled.into(&answer)))
}

impl Filled {
    fn into(self, answer: &[u8]) -> Vec<u8> {
        let opening = format!("\"{}", self.mark);
        let mut whole = Vec::with_capacity(answer.len());
        let mut rest = answer;
        while let Some(at) = memmem::find(rest, opening.as_bytes()) {
            let (before, from) = rest.split_at(at);
            let (_, number) = from.split_at(opening.len());
            let digits = number.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (digits, after) = number.split_at(digits);
            let index = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<usize>().ok());
            let payload = index.and_then(|index| self.payloads.get(index)).map_or("null", String::as_str);
            whole.extend_from_slice(before);
            whole.extend_from_slice(payload.as_bytes());
            rest = after.strip_prefix(b"\"").unwrap_or(after);
        }
        whole.extend_from_slice(rest);
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_take_the_places_of_their_marks_as_they_are_spelled() {
        let fillings = Fillings::default();
        let payloads = ["{ \"b\": 1.50, \"a\" : 12345678901234567890123 }", "{}"];
        let [first, second] = payloads.map(|payload| fillings.put(payload.to_owned()).unwrap());
        let answer = format!(r#"{{"one":"{first}","two":["{second}","{first}"],"other":"payload-0"}}"#);
        let filled = String::from_utf8(fillings.take().into(answer.as_bytes())).unwrap();
        let [first, second] = payloads;
        assert_eq!(filled, format!(r#"{{"one":{first},"two":[{second},{first}],"other":"payload-0"}}"#));
    }

    #[test]
    fn marks_of_two_answers_differ() {
        let put = || Fillings::default().put("{}".to_owned()).unwrap();
        assert_ne!(put(), put());
    }
}
