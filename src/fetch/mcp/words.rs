//! Words of a server made fit for a log and for an admin: one line, short, and without what it was trusted with.

use std::collections::BTreeMap;
use std::path::Path;

use crate::fetch::text;

/// Longest piece of a server's words that is repeated, in characters.
const WORDS_CHARS_MAX: usize = 400;

/// A value that is shorter hides nothing, and hiding it everywhere would make words unreadable.
const HIDDEN_CHARS_MIN: usize = 8;

/// The values of a program's environment that may be secrets: all but short ones and paths of what is there. The longest
/// come first, so that one which holds another is hidden whole.
pub(super) fn hidden_in(env: &BTreeMap<String, String>) -> Vec<String> {
    let mut hidden: Vec<String> = env.values().filter(|value| !Path::new(value).exists()).cloned().collect();
    hidden.sort_by_key(|value| std::cmp::Reverse(value.len()));
    hidden
}

/// `said` without control characters and without `hidden`, cut.
pub(super) fn fit(said: &str, hidden: &[String]) -> String {
    let secrets = hidden.iter().filter(|secret| secret.chars().count() >= HIDDEN_CHARS_MIN);
    let masked = secrets.fold(said.to_owned(), |said, secret| said.replace(secret.as_str(), "***"));
    text::line(&masked, WORDS_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_one_short_line_without_secrets() {
        let env = [("A", "s3cret-token"), ("B", "/usr/bin"), ("D", "/s3cret-token-2"), ("C", "debug")];
        let env = env.map(|(key, value)| (key.to_owned(), value.to_owned())).into_iter().collect();
        let hidden = hidden_in(&env);
        assert_eq!(
            fit("bad tokens s3cret-token, /s3cret-token-2\r\n\tin /usr/bin (debug)\u{1b}[0m", &hidden),
            "bad tokens ***, *** in /usr/bin (debug) [0m"
        );
        assert_eq!(fit(&"x".repeat(500), &hidden).chars().count(), WORDS_CHARS_MAX);
    }
}
