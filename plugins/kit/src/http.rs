//! Requests, and what answers say about waiting.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use crate::time;
use crate::types::{Request, Response};

/// A header.
pub fn header(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// A POST that waits `timeout_ms` for its answer.
#[inline(never)]
pub fn post(url: String, headers: Vec<(String, String)>, body: Vec<u8>, timeout_ms: u32) -> Request {
    Request {
        method: "POST".to_owned(),
        url,
        headers,
        body,
        sign: Vec::new(),
        timeout_ms: Some(timeout_ms),
        response_max: None,
        extras: "{}".to_owned(),
    }
}

/// The answer's header of this name, the first if there are several.
pub fn find<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    let (_, value) = response.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name))?;
    Some(value.trim())
}

/// How long `Retry-After` asks to wait, in seconds: a number, or a date (RFC 9110 section 10.2.3), which is compared with
/// the answer's own `Date` where it has one, else with `at`, when the answer came (RFC 3339).
#[inline(never)]
pub fn retry_after(response: &Response, at: &str) -> Option<u32> {
    let value = find(response, "retry-after")?;
    let seconds = match value.parse::<u64>() {
        Ok(seconds) => seconds,
        Err(_) if value.bytes().all(|byte| byte.is_ascii_digit()) && !value.is_empty() => u64::MAX,
        Err(_) => {
            let now = find(response, "date").and_then(time::http_date).or_else(|| time::seconds(at))?;
            time::http_date(value)?.saturating_sub(now)
        }
    };
    u32::try_from(seconds).ok().or(Some(u32::MAX)).filter(|seconds| *seconds > 0)
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;
    use alloc::vec;

    use super::{header, retry_after};
    use crate::types::Response;

    #[test]
    fn an_answer_asks_to_wait_in_seconds_or_until_a_date() {
        let date = Some("Wed, 21 Oct 2026 07:27:50 GMT");
        let cases = [
            ("30", None, Some(30)),
            (" 1 ", None, Some(1)),
            ("0", None, None),
            ("-5", None, None),
            ("1.5", None, None),
            ("99999999999", None, Some(u32::MAX)),
            ("99999999999999999999999", None, Some(u32::MAX)),
            ("Wed, 21 Oct 2026 07:28:00 GMT", None, Some(60)),
            ("Wed, 21 Oct 2026 07:28:00 GMT", date, Some(10)),
            ("Wed, 21 Oct 2026 07:28:00 GMT", Some("soon"), Some(60)),
            ("Wed, 21 Oct 2026 07:26:00 GMT", None, None),
            ("soon", None, None),
            ("", None, None),
        ];
        for (value, date, expected) in cases {
            let mut headers = vec![header("retry-after", value)];
            headers.extend(date.map(|date| header("date", date)));
            let response = Response { status: 503, headers, body: vec![], truncated: false, extras: "{}".to_owned() };
            assert_eq!(retry_after(&response, "2026-10-21T07:27:00.5Z"), expected, "{value} {date:?}");
        }
    }
}
