//! Where the body of an answer ends, and what of its bytes is content (RFC 9112, 6 and 7).

use super::message::Malformed;

/// Bytes of chunk extensions and trailers together, which are read and dropped: what common servers accept.
const IGNORED_BYTES_MAX: u32 = 16 * 1024;

/// Digits of a chunk's size: what 64 bits hold.
const SIZE_DIGITS_MAX: u8 = 16;

/// What is still to come of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// So many bytes.
    Exactly(u64),
    /// Chunks until an empty one.
    Chunked { at: At, ignored: u32 },
    /// All until the connection is closed.
    UntilClosed,
}

/// Where in a chunked body the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    Size { size: u64, digits: u8 },
    SizeSpace { size: u64 },
    Extension { size: u64 },
    SizeLineFeed { size: u64 },
    Content { left: u64 },
    ContentReturn,
    ContentLineFeed,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLineFeed,
    LastLineFeed,
    End,
}

const NEXT_CHUNK: At = At::Size { size: 0, digits: 0 };

impl Body {
    pub(super) fn chunked() -> Self {
        Self::Chunked { at: NEXT_CHUNK, ignored: 0 }
    }

    /// Whether nothing is to come.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self, Self::Exactly(0) | Self::Chunked { at: At::End, .. })
    }

    /// Takes bytes as they came, hands the content among them to `keep`, and says how many belonged to the body.
    ///
    /// # Errors
    /// When they are not what was announced.
    pub(super) fn take(&mut self, bytes: &[u8], keep: &mut impl FnMut(&[u8])) -> Result<usize, Malformed> {
        match self {
            Self::UntilClosed => {
                keep(bytes);
                Ok(bytes.len())
            }
            Self::Exactly(left) => Ok(content(left, bytes, keep).0),
            Self::Chunked { at, ignored } => {
                let mut rest = bytes;
                while let (Some((&byte, after)), false) = (rest.split_first(), *at == At::End) {
                    if let At::Content { left } = at {
                        rest = content(left, rest, keep).1;
                        if *left == 0 {
                            *at = At::ContentReturn;
                        }
                        continue;
                    }
                    *at = at.after(byte)?;
                    rest = after;
                    if matches!(at, At::SizeSpace { .. } | At::Extension { .. } | At::TrailerName | At::TrailerValue) {
                        *ignored += 1;
                    }
                    if *ignored > IGNORED_BYTES_MAX {
                        return Err(Malformed("the answer has too much beside its chunks"));
                    }
                }
                Ok(bytes.len() - rest.len())
            }
        }
    }
}

/// Keeps at most so many bytes as are left; says how many that were, and what comes after them.
fn content<'b>(left: &mut u64, bytes: &'b [u8], keep: &mut impl FnMut(&[u8])) -> (usize, &'b [u8]) {
    let count = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
    let (piece, rest) = bytes.split_at(count);
    keep(piece);
    *left -= count as u64;
    (count, rest)
}

impl At {
    /// Where the next byte stands after one that is no content.
    fn after(self, byte: u8) -> Result<Self, Malformed> {
        Ok(match (self, byte) {
            (Self::Size { size, digits }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') if digits < SIZE_DIGITS_MAX => {
                let digit = (byte as char).to_digit(16).unwrap_or_default();
                Self::Size { size: size << 4 | u64::from(digit), digits: digits + 1 }
            }
            (Self::Size { size, digits: 1.. } | Self::SizeSpace { size } | Self::Extension { size }, b'\r') => {
                Self::SizeLineFeed { size }
            }
            // Another number behind the space would be a second size.
            (Self::Size { size, digits: 1.. } | Self::SizeSpace { size }, b' ' | b'\t') => Self::SizeSpace { size },
            (Self::Size { size, digits: 1.. } | Self::SizeSpace { size }, b';') => Self::Extension { size },
            (Self::Extension { size }, byte) if byte != b'\n' => Self::Extension { size },
            (Self::SizeLineFeed { size: 0 }, b'\n') => Self::TrailerStart,
            (Self::SizeLineFeed { size }, b'\n') => Self::Content { left: size },
            (Self::ContentReturn, b'\r') => Self::ContentLineFeed,
            (Self::ContentLineFeed, b'\n') => NEXT_CHUNK,
            (Self::TrailerStart, b'\r') => Self::LastLineFeed,
            // Nobody reads them, but what is none of them shows that the chunks were read wrongly.
            (Self::TrailerStart | Self::TrailerName, byte) if is_token(byte) => Self::TrailerName,
            (Self::TrailerName, b':') => Self::TrailerValue,
            (Self::TrailerValue, b'\r') => Self::TrailerLineFeed,
            (Self::TrailerValue, b'\t' | b' '..=b'~' | 0x80..) => Self::TrailerValue,
            (Self::TrailerLineFeed, b'\n') => Self::TrailerStart,
            (Self::LastLineFeed, b'\n') => Self::End,
            _ => return Err(Malformed("the chunks of the answer cannot be read")),
        })
    }
}

/// Whether a header's name may hold it (RFC 9110, 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes `bytes` in pieces of each size: the content, whether it was whole, and what was left over.
    fn taken(body: impl Fn() -> Body, bytes: &str) -> Result<(String, bool, usize), Malformed> {
        let in_pieces = |size: usize| {
            let (mut body, mut content, mut count) = (body(), Vec::new(), 0);
            for piece in bytes.as_bytes().chunks(size) {
                count += body.take(piece, &mut |piece| content.extend_from_slice(piece))?;
            }
            Ok((String::from_utf8(content).unwrap(), body.is_whole(), bytes.len() - count))
        };
        let at_once = in_pieces(bytes.len());
        for size in 1..bytes.len() {
            assert_eq!(in_pieces(size), at_once, "{bytes:?} in pieces of {size}");
        }
        at_once
    }

    #[test]
    fn a_body_ends_where_it_was_announced_however_its_bytes_come() {
        let check = |body: fn() -> Body, bytes: &str, content: &str, whole: bool, over: usize| {
            assert_eq!(taken(body, bytes), Ok((content.to_owned(), whole, over)), "{bytes:?}");
        };
        check(|| Body::Exactly(2), "okHTTP", "ok", true, 4);
        check(|| Body::Exactly(3), "ok", "ok", false, 0);
        check(|| Body::UntilClosed, "anything", "anything", false, 0);
        check(Body::chunked, "2\r\nok\r\n0\r\n\r\n", "ok", true, 0);
        check(Body::chunked, "1\r\no\r\n0001;a=\"b\"\r\nk\r\n0\r\n\r\nrest", "ok", true, 4);
        check(Body::chunked, "A \r\n0123456789\r\n0;x\r\nname: value\r\nb: c\r\n\r\n", "0123456789", true, 0);
        check(Body::chunked, "5\r\nok", "ok", false, 0);
        check(Body::chunked, "2\r\nok\r\n0\r\n", "ok", false, 0);
    }

    #[test]
    fn chunks_that_could_be_read_in_two_ways_are_refused() {
        for bytes in [
            "\r\n",
            "x\r\n",
            "2\nok",
            "2\r\nokk",
            "2\r\nok\n",
            "-1\r\n",
            "+1\r\n",
            "0x1\r\n",
            "1 2\r\n",
            "0\r\nname: x\n",
            "1;a\nb",
            "0\r\nno colon\r\n\r\n",
            "0\r\n5\r\nhello\r\n",
            "0\r\na : b\r\n\r\n",
        ] {
            assert!(taken(Body::chunked, bytes).is_err(), "{bytes:?}");
        }
        assert!(taken(Body::chunked, "00000000000000001\r\n").is_err(), "a size of more digits than 64 bits have");
    }

    #[test]
    fn what_stands_beside_the_chunks_has_a_limit() {
        let extension = |bytes: usize| {
            let text = format!("1;{}\r\n", "x".repeat(bytes));
            Body::chunked().take(text.as_bytes(), &mut |_| {})
        };
        assert!(extension(IGNORED_BYTES_MAX as usize - 1).is_ok());
        assert!(extension(IGNORED_BYTES_MAX as usize).is_err());
        let trailers = format!("0\r\n{}", "a: b\r\n".repeat(IGNORED_BYTES_MAX as usize));
        assert!(Body::chunked().take(trailers.as_bytes(), &mut |_| {}).is_err());
    }
}
