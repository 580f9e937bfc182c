//! The messages of HTTP/1.1 as bytes (RFC 9112): a request, and the head of an answer.

use http::Method;
use http::header::{ACCEPT, USER_AGENT};

use super::body::Body;
use crate::send::effect::guard::Allowed;

/// Headers that an answer may have; one with more is no answer.
const HEADERS_MAX: usize = 100;

const OURS: &str = concat!("switchbell/", env!("CARGO_PKG_VERSION"));

/// Room for the head of a usual request, bytes.
const HEAD_BYTES_LIKELY: usize = 512;

/// Why an answer cannot be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

/// The head of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Body,
    /// Whether a further request may follow on the connection.
    pub(super) goes_on: bool,
}

/// The bytes of a request. The guard and the parser of URLs let through no line end nor space that could split them.
pub(super) fn request(allowed: &Allowed<'_>) -> Vec<u8> {
    let Allowed { method, url, headers, body, .. } = allowed;
    let mut bytes = Vec::with_capacity(HEAD_BYTES_LIKELY + body.len());
    let mut put = |parts: &[&[u8]]| parts.iter().for_each(|part| bytes.extend_from_slice(part));
    put(&[method.as_str().as_bytes(), b" ", url.path().as_bytes()]);
    if let Some(query) = url.query() {
        put(&[b"?", query.as_bytes()]);
    }
    put(&[b" HTTP/1.1\r\n"]);
    for (name, value) in headers {
        put(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
    }
    if !headers.contains_key(USER_AGENT) {
        put(&[b"user-agent: ", OURS.as_bytes(), b"\r\n"]);
    }
    if !headers.contains_key(ACCEPT) {
        put(&[b"accept: */*\r\n"]);
    }
    // A secret could not be masked in anything else.
    put(&[b"accept-encoding: identity\r\n"]);
    put(&[b"host: ", url.host_str().unwrap_or_default().as_bytes()]);
    if let Some(port) = url.port() {
        put(&[b":", port.to_string().as_bytes()]);
    }
    // A method that usually has a body says that there is none (RFC 9110, 8.6).
    if !body.is_empty() || ![Method::GET, Method::HEAD, Method::DELETE].contains(method) {
        put(&[b"\r\ncontent-length: ", body.len().to_string().as_bytes()]);
    }
    put(&[b"\r\n\r\n", body]);
    bytes
}

/// Whether a head may end in `bytes` behind `from`, where none ended before: spares the parser bytes that come one by one.
pub(super) fn may_end(bytes: &[u8], from: usize) -> bool {
    let recent = bytes.get(from.saturating_sub(3)..).unwrap_or_default();
    recent.windows(2).any(|two| two == b"\n\n") || recent.windows(3).any(|three| three == b"\n\r\n")
}

/// The head with which `bytes` begin, and its length; none while it is not whole.
///
/// # Errors
/// When no answer begins so.
pub(super) fn head(bytes: &[u8], asked: &Method) -> Result<Option<(Head, usize)>, Malformed> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut answer = httparse::Response::new(&mut headers);
    let end = match answer.parse(bytes) {
        Ok(httparse::Status::Complete(end)) => end,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Malformed("the answer has more than 100 headers")),
        Err(_) => return Err(Malformed("the answer is not HTTP/1.1")),
    };
    let status = answer.code.unwrap_or_default();
    if status < 100 {
        return Err(Malformed("the answer's status is none of HTTP's"));
    }
    let body = body((status, answer.version), asked, answer.headers)?;
    let closes = tokens(answer.headers, "connection").any(|token| token.eq_ignore_ascii_case("close"));
    let headers = answer
        .headers
        .iter()
        .map(|header| (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).into_owned()));
    let goes_on = answer.version == Some(1) && !closes && body != Body::UntilClosed;
    Ok(Some((Head { status, headers: headers.collect(), body, goes_on }, end)))
}

/// Where the body ends (RFC 9112, 6.3).
fn body(
    (status, version): (u16, Option<u8>),
    asked: &Method,
    headers: &[httparse::Header<'_>],
) -> Result<Body, Malformed> {
    if status < 200 || status == 204 || status == 304 || asked == Method::HEAD {
        return Ok(Body::Exactly(0));
    }
    let mut lengths = tokens(headers, "content-length");
    let length = lengths.next();
    if let Some(coding) = tokens(headers, "transfer-encoding").last() {
        // Chunks came with HTTP/1.1; whoever says both is not to be believed about either (RFC 9112, 6.1).
        if version == Some(0) {
            return Err(Malformed("the answer is HTTP/1.0 and has a transfer encoding"));
        }
        // An answer that says both was made by two who disagree: nothing after it can be trusted.
        return match (coding.eq_ignore_ascii_case("chunked"), length) {
            (true, None) => Ok(Body::chunked()),
            (true, Some(_)) => Err(Malformed("the answer has a length and is chunked")),
            (false, _) => Ok(Body::UntilClosed),
        };
    }
    let Some(length) = length else { return Ok(Body::UntilClosed) };
    let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = length.parse().ok().filter(|_| digits && lengths.all(|other| other == length));
    parsed.map(Body::Exactly).ok_or(Malformed("the length of the answer cannot be read"))
}

/// The comma-separated parts of all headers of this name.
fn tokens<'a>(headers: &'a [httparse::Header<'a>], name: &'a str) -> impl Iterator<Item = &'a str> {
    let named = headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
    // What is not text is no token either.
    named.flat_map(|header| std::str::from_utf8(header.value).unwrap_or("?").split(',').map(str::trim))
}
