//! Words of a server made fit for a log and for an admin: one line, short, and without what it was trusted with.

use std::collections::BTreeMap;
use std::path::Path;

use crate::text;

/// Longest piece of a server's words that is repeated, in characters.
const WORDS_CHARS_MAX: usize = 400;

/// A value that is shorter hides nothing, and hiding it everywhere would make words unreadable.
const HIDDEN_CHARS_MIN: usize = 8;

const MASK: &str = "***";

/// The values of a program's environment that may be secrets: all but short ones and paths of what is there.
pub(super) fn hidden_in(env: &BTreeMap<String, String>) -> Vec<String> {
    env.values().filter(|value| !Path::new(value).exists()).cloned().collect()
}

/// What to look for, given what is to be hidden: each line of a value too, since words come line by line. The longest
/// come first, so that one which holds another is hidden whole.
pub(super) fn telling(hidden: Vec<String>) -> Vec<String> {
    let lines: Vec<String> = hidden.iter().flat_map(|value| value.lines().map(|line| line.trim().to_owned())).collect();
    let mut telling: Vec<String> = hidden.into_iter().chain(lines).collect();
    telling.retain(|value| value.chars().count() >= HIDDEN_CHARS_MIN);
    telling.sort_by(|one, other| (other.len(), other).cmp(&(one.len(), one)));
    telling.dedup();
    telling
}

/// `said` without control characters and without `hidden`, cut.
pub(super) fn fit(said: &str, hidden: &[String]) -> String {
    text::line(&masked(said, hidden), WORDS_CHARS_MAX)
}

/// The beginning of a line that was longer, without `hidden`, and so marked. What lies across the cut does not show in
/// part.
pub(super) fn beginning(said: &[u8], hidden: &[String]) -> String {
    let said = String::from_utf8_lossy(said);
    let mut masked = masked(said.trim_end_matches(char::REPLACEMENT_CHARACTER), hidden);
    if let Some(shown) = hidden.iter().filter_map(|value| shown_at_the_end(&masked, value)).max() {
        masked.truncate(masked.len() - shown);
        masked.push_str(MASK);
    }
    masked + " … (the line was longer)"
}

/// `said` without `hidden`, where pieces of it were cut before and end in `…`: what lies across such a cut does not show in
/// part.
pub(super) fn excerpt(said: &str, hidden: &[String]) -> String {
    let masked = masked(said, hidden);
    let mut pieces: Vec<String> = masked.split('…').map(str::to_owned).collect();
    let cut = pieces.len().saturating_sub(1);
    for piece in pieces.iter_mut().take(cut) {
        if let Some(shown) = hidden.iter().filter_map(|value| shown_at_the_end(piece, value)).max() {
            piece.truncate(piece.len() - shown);
            piece.push_str(MASK);
        }
    }
    pieces.join("…")
}

/// Bytes of the beginning of `value` that `text` ends with.
fn shown_at_the_end(text: &str, value: &str) -> Option<usize> {
    (1..value.len()).rev().find(|&end| value.get(..end).is_some_and(|part| text.ends_with(part)))
}

/// `said` without `hidden`.
pub(super) fn masked(said: &str, hidden: &[String]) -> String {
    hidden.iter().fold(said.to_owned(), |said, value| said.replace(value.as_str(), MASK))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(env: &[(&str, &str)]) -> Vec<String> {
        let env = env.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        telling(hidden_in(&env))
    }

    #[test]
    fn words_are_one_short_line_without_secrets() {
        let hidden = hidden(&[("A", "s3cret-token"), ("B", "/usr/bin"), ("D", "/s3cret-token-2"), ("C", "debug")]);
        assert_eq!(
            fit("bad tokens s3cret-token, /s3cret-token-2\r\n\tin /usr/bin (debug)\u{1b}[0m", &hidden),
            "bad tokens ***, *** in /usr/bin (debug) [0m"
        );
        assert_eq!(fit(&"x".repeat(500), &hidden).chars().count(), WORDS_CHARS_MAX);
    }

    #[test]
    fn a_secret_that_was_cut_does_not_show_in_part() {
        let hidden = hidden(&[("A", "s3cret-token-of-forty-characters")]);
        let check = |said: &str, expected: &str| assert_eq!(excerpt(said, &hidden), expected);
        check("level is \"Bearer s3cret-token-of…\"; it must be", "level is \"Bearer ***…\"; it must be");
        check("id \"s3cret-token-of-forty-characters\" and more…", "id \"***\" and more…");
        check("nothing to hide", "nothing to hide");
    }

    #[test]
    fn a_secret_of_several_lines_is_hidden_line_by_line() {
        let hidden = hidden(&[("KEY", "-----BEGIN KEY-----\nc2VjcmV0LW9uZQ\n  c2VjcmV0LXR3bw\n\n-----END KEY-----\n")]);
        assert_eq!(fit("cannot read c2VjcmV0LXR3bw", &hidden), "cannot read ***");
    }

    #[test]
    fn a_secret_that_lies_across_a_cut_does_not_show_in_part() {
        let hidden = hidden(&[("A", "s3cret-token"), ("B", "schlüssel-ß")]);
        let check = |piece: &[u8], expected: &str| {
            assert_eq!(beginning(piece, &hidden), format!("{expected} … (the line was longer)"));
        };
        check(b"using s3cret-token and s3cret-to", "using *** and ***");
        check(b"using s3cret-token", "using ***");
        check("using schlü".as_bytes(), "using ***");
        check("using schlü".as_bytes().split_last().unwrap().1, "using ***");
        check(b"using s", "using ***");
        check(b"using nothing", "using nothing");
    }
}
