//! Forms of answers: usual ones, odd ones that are legal, and ones that are none.

use fastrand::Rng;

/// An answer.
#[derive(Debug)]
pub(super) struct Form {
    /// Of the request.
    pub(super) method: &'static str,
    pub(super) bytes: Vec<u8>,
    /// Why only we refuse it.
    pub(super) refused_by_us: Option<&'static str>,
}

/// Everything that is refused though others take it.
pub(super) const STRICTER: [&str; 4] = [LENGTH_AND_CHUNKED, LENGTHS_SPELLED_APART, LONG_CHUNK_SIZE, OTHER_PROTOCOL];

/// Made by two who disagree about where the answer ends (RFC 9112, 6.3, calls it an attempt at smuggling).
const LENGTH_AND_CHUNKED: &str = "it has a length and is chunked";
/// `2, 02`: the same number, but who writes such a thing?
const LENGTHS_SPELLED_APART: &str = "its lengths are the same number in two spellings";
/// Zeros in front of it, without end.
const LONG_CHUNK_SIZE: &str = "a chunk's size has more than 16 digits";
/// Nobody asked for one.
const OTHER_PROTOCOL: &str = "it changes the protocol";

/// How the body's end is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length,
    Chunked,
    UntilClosed,
}

/// Any form.
pub(super) fn any(rng: &mut Rng) -> Form {
    let method = *rng.choice(&["POST", "POST", "POST", "GET", "DELETE", "HEAD"]).unwrap();
    let mut form = Form { method, bytes: Vec::new(), refused_by_us: None };
    if rng.u8(..10) == 0 {
        form.bytes.extend(line_ends(rng));
    }
    if rng.u8(..4) == 0 {
        interim(&mut form.bytes, rng);
    }
    if rng.u8(..60) == 0 {
        form.refused_by_us = Some(OTHER_PROTOCOL);
        form.bytes.extend(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: other\r\nconnection: upgrade\r\n\r\nhello");
        return form;
    }
    last(&mut form, rng);
    form
}

/// Some servers write an empty line before an answer.
fn line_ends(rng: &mut Rng) -> &'static [u8] {
    rng.choice(&[&b"\r\n"[..], b"\n", b"\r\n\r\n"]).unwrap()
}

fn interim(bytes: &mut Vec<u8>, rng: &mut Rng) {
    for _ in 0..rng.usize(1..4) {
        let status = *rng.choice(&["100 Continue", "102 Processing", "103 Early Hints", "199 x", "100"]).unwrap();
        bytes.extend(format!("HTTP/1.1 {status}\r\n").bytes());
        if rng.bool() {
            bytes.extend(b"link: </a.css>; rel=preload\r\nX-B: 1\r\n");
        }
        bytes.extend(b"\r\n");
    }
}

/// The final answer.
fn last(form: &mut Form, rng: &mut Rng) {
    let end = *rng.choice(&["\r\n", "\r\n", "\r\n", "\n"]).unwrap();
    let (version, status) = (version(rng), status(rng));
    let mut framed = Vec::new();
    let framing = *rng.choice(&[Framing::Length, Framing::Chunked, Framing::UntilClosed]).unwrap();
    let size = match rng.u8(..6) {
        0 => 0,
        1..=3 => rng.usize(..60),
        4 => rng.usize(..2_000),
        _ => rng.usize(..30_000),
    };
    let content: Vec<u8> = (0..size).map(|_| rng.u8(b' '..=b'z')).collect();
    let mut lines: Vec<Vec<u8>> = (0..rng.usize(..5)).map(|_| header(rng)).collect();
    let is_without_body = form.method == "HEAD" || status.starts_with("204") || status.starts_with("304");
    // Only an answer that is understood up to there is refused for this.
    let mut refuse = |why| form.refused_by_us = (!is_without_body && version == "HTTP/1.1").then_some(why);
    let mut body = content.clone();
    match framing {
        Framing::UntilClosed => {
            let coding = ["transfer-encoding: identity", "transfer-encoding: chunked, gzip", "transfer-encoding:"];
            if rng.u8(..6) == 0 {
                framed.push(rng.choice(coding).unwrap().as_bytes().to_vec());
            }
        }
        Framing::Length => {
            let (headers, is_apart) = lengths(size, rng);
            framed.extend(headers);
            if is_apart {
                refuse(LENGTHS_SPELLED_APART);
            }
            match rng.u8(..12) {
                0 => body.truncate(size / 2),
                1 => body.extend(b"HTTP/1.1 200 OK\r\n\r\n"),
                _ => {}
            }
        }
        Framing::Chunked => {
            framed.extend(codings(rng));
            let (chunked, is_long) = chunks(&content, rng);
            body = chunked;
            let has_length = rng.u8(..15) == 0;
            if has_length {
                framed.push(format!("content-length: {size}").into_bytes());
                refuse(LENGTH_AND_CHUNKED);
            } else if is_long {
                refuse(LONG_CHUNK_SIZE);
            }
            if !has_length && !is_long && rng.u8(..12) == 0 {
                body.truncate(body.len() - rng.usize(1..=body.len().min(7)));
            }
        }
    }
    let at = rng.usize(..=lines.len());
    lines.splice(at..at, framed);
    for line in [format!("{version} {status}").into_bytes()].into_iter().chain(lines) {
        form.bytes.extend(line);
        form.bytes.extend(end.bytes());
    }
    form.bytes.extend(end.bytes());
    form.bytes.extend(body);
}

fn version(rng: &mut Rng) -> &'static str {
    match rng.u8(..40) {
        0 => rng.choice(&["HTTP/2.0", "HTTP/1.2", "http/1.1", "ICY", "HTTP/1.1 "]).unwrap(),
        1..=4 => "HTTP/1.0",
        _ => "HTTP/1.1",
    }
}

fn status(rng: &mut Rng) -> String {
    if rng.u8(..30) == 0 {
        return (*rng.choice(&["20 OK", "2000 OK", "OK", "", "+20 OK", "099 early", "000"]).unwrap()).to_owned();
    }
    let code =
        *rng.choice(&[200, 200, 200, 201, 204, 207, 299, 304, 400, 401, 404, 429, 500, 503, 599, 600, 999]).unwrap();
    let reason = *rng.choice(&[" OK", " Not Found", " ", "", " größer", " a b\tc", " 200"]).unwrap();
    format!("{code}{reason}")
}

fn header(rng: &mut Rng) -> Vec<u8> {
    if rng.u8(..80) == 0 {
        let broken = [&b"no colon"[..], b"a b: c", b"a : b", b": empty", b" folded: x", b"a: b\x01c", b"x\xc3: y"];
        return rng.choice(broken).unwrap().to_vec();
    }
    let name = *rng.choice(&["X-A", "x-a", "Retry-After", "Date", "ETag", "a!#$%&'*+-.^_`|~0", "Connection"]).unwrap();
    if name == "Connection" {
        return format!("{name}: {}", rng.choice(["close", "keep-alive", "Close, x", "upgrade"]).unwrap()).into_bytes();
    }
    let space = *rng.choice(&["", " ", "  ", "\t"]).unwrap();
    let values =
        [&b""[..], b"1", b"a, b", b"\"quoted: \\\" \"", b"gr\xc3\xb6\xc3\x9fer", b"\xff\xfe", b"trailing \t ", b"a  b"];
    [name.as_bytes(), b":", space.as_bytes(), rng.choice(values).unwrap()].concat()
}

/// Headers that tell a length, and whether they say the same in two spellings.
fn lengths(size: usize, rng: &mut Rng) -> (Vec<Vec<u8>>, bool) {
    let name = *rng.choice(&["content-length", "Content-Length", "CONTENT-LENGTH"]).unwrap();
    let line = |value: String| format!("{name}: {value}").into_bytes();
    match rng.u8(..24) {
        0 => (vec![line(size.to_string()), line(size.to_string())], false),
        1 => (vec![line(format!("{size}, {size}"))], false),
        2 => (vec![line(format!("0{size}"))], false),
        3 => (vec![line(format!("{size},0{size}"))], true),
        4 => (vec![line(size.to_string()), line((size + 1).to_string())], false),
        5 => {
            let broken = ["+1", "-1", "1.0", "0x1", "", "1 2", "one", "1;", ",", "18446744073709551616", "\u{661}"];
            (vec![line((*rng.choice(broken).unwrap()).to_owned())], false)
        }
        _ => (vec![line(format!("{size}{}", rng.choice(["", "", " ", "\t"]).unwrap()))], false),
    }
}

fn codings(rng: &mut Rng) -> Vec<Vec<u8>> {
    let one = |value: &str| vec![format!("Transfer-Encoding: {value}").into_bytes()];
    match rng.u8(..10) {
        0 => one("gzip, chunked"),
        1 => one("gzip ,\tCHUNKED"),
        2 => [one("gzip"), one("chunked")].concat(),
        3 => one("Chunked"),
        _ => one("chunked"),
    }
}

/// The chunks of a content, and whether a size has more digits than we read.
fn chunks(content: &[u8], rng: &mut Rng) -> (Vec<u8>, bool) {
    let (mut bytes, mut rest, mut is_long) = (Vec::new(), content, false);
    let most = *rng.choice(&[5, 100, 10_000]).unwrap();
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(rng.usize(1..=most).min(rest.len()));
        let size = size(chunk.len(), rng);
        is_long |= size.len() > 16;
        bytes.extend(size.bytes());
        bytes.extend(extension(rng).bytes());
        bytes.extend(b"\r\n");
        bytes.extend(chunk);
        bytes.extend(b"\r\n");
        rest = after;
    }
    bytes.extend(rng.choice(["0", "0", "000", "0000000000000000"]).unwrap().bytes());
    bytes.extend(extension(rng).bytes());
    bytes.extend(b"\r\n");
    for _ in 0..rng.usize(..3).saturating_sub(1) {
        bytes.extend(b"x-checksum: 0123\r\nX-Empty:\r\n");
    }
    bytes.extend(b"\r\n");
    (bytes, is_long)
}

fn size(size: usize, rng: &mut Rng) -> String {
    match rng.u8(..40) {
        0 => format!("{size:017x}"),
        1 => format!("{size:016X}"),
        2..=10 => format!("{size:X}"),
        11..=14 => format!("{size:04x}"),
        _ => format!("{size:x}"),
    }
}

fn extension(rng: &mut Rng) -> &'static str {
    if rng.u8(..5) > 0 {
        return "";
    }
    rng.choice(&[";a", ";a=b", ";a=\"b;c\"", " ;a=b", "  ", "\t", "; a = b"]).unwrap()
}
