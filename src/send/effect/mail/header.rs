//! The one header that carries a stranger's text: the subject.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lettre::message::header::{HeaderName, HeaderValue};

const SUBJECT: HeaderName = HeaderName::new_from_ascii_str("Subject");

/// Longest line with an encoded word, bytes (RFC 2047 §2).
const LINE_BYTES_MAX: usize = 76;
/// Longest encoded word, bytes (RFC 2047 §2).
const WORD_BYTES_MAX: usize = 75;

const OPENING: &str = "=?utf-8?b?";
const CLOSING: &str = "?=";

/// The subject as it is sent. Plain short ASCII stands as it is; everything else is encoded as a whole (RFC 2047), also
/// what only looks encoded: a reader would decode that into something that nobody judged.
pub(super) fn subject(text: &str) -> HeaderValue {
    if is_plain(text) {
        return HeaderValue::new(SUBJECT, text.to_owned());
    }
    // Words of base64 with folds between them: nothing of the text stands in the header.
    HeaderValue::dangerous_new_pre_encoded(SUBJECT, text.to_owned(), encoded(text))
}

/// Whether a text means itself in a header, however it is folded.
fn is_plain(text: &str) -> bool {
    let is_short = |word: &str| (1..LINE_BYTES_MAX - "Subject: ".len()).contains(&word.len());
    text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
        && !text.contains("=?")
        && (text.is_empty() || text.split(' ').all(is_short))
}

fn encoded(text: &str) -> String {
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        // The name of the header stands before the first word.
        let room = if lines.is_empty() { LINE_BYTES_MAX - "Subject: ".len() } else { WORD_BYTES_MAX };
        let most = (room - OPENING.len() - CLOSING.len()) / 4 * 3;
        let (word, after) = rest.split_at(boundary(rest, most));
        lines.push(format!("{OPENING}{}{CLOSING}", STANDARD.encode(word)));
        rest = after;
    }
    lines.join("\r\n ")
}

/// Where to cut a text of at most `most` bytes, without cutting a character.
fn boundary(text: &str, most: usize) -> usize {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    ends.take_while(|end| *end <= most).last().unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use lettre::message::header::Headers;
    use proptest::prelude::*;

    use super::*;

    fn written(text: &str) -> String {
        let mut headers = Headers::new();
        headers.insert_raw(subject(text));
        headers.to_string()
    }

    #[test]
    fn a_plain_subject_stands_as_it_is() {
        assert_eq!(written("[acme] domain.active: acme.example"), "Subject: [acme] domain.active: acme.example\r\n");
        assert_eq!(written(""), "Subject: \r\n");
    }

    #[test]
    fn what_is_not_plain_is_encoded_as_a_whole() {
        for (text, expected) in [
            ("größer", "Subject: =?utf-8?b?Z3LDtsOfZXI=?=\r\n"),
            ("=?utf-8?q?a=0D=0ABcc:_x?=", "Subject: =?utf-8?b?PT91dGYtOD9xP2E9MEQ9MEFCY2M6X3g/PQ==?=\r\n"),
            ("two  spaces", "Subject: =?utf-8?b?dHdvICBzcGFjZXM=?=\r\n"),
            (" edge", "Subject: =?utf-8?b?IGVkZ2U=?=\r\n"),
        ] {
            assert_eq!(written(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_subject_is_more_than_one_header(text in "\\PC{0,300}|[\\x00-\\x7f]{0,200}|.{0,300}") {
            let written = written(&text);
            prop_assert!(written.starts_with("Subject: ") && written.ends_with("\r\n"));
            let value = written.trim_end_matches("\r\n");
            for (at, line) in value.split("\r\n").enumerate() {
                prop_assert!(at == 0 || line.starts_with(' '), "{written:?}");
                prop_assert!(line.len() <= 78, "{written:?}");
                prop_assert!(line.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()), "{written:?}");
                prop_assert!(!line.trim().is_empty() || text.is_empty(), "{written:?}");
            }
        }
    }
}
