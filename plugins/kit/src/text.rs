//! Text for places of limited size.

use alloc::string::String;

/// What stands for the part that was cut.
pub const ELLIPSIS: char = '…';

/// The text in at most `characters_max` Unicode scalars, the last being `…` when something was cut.
///
/// ```
/// assert_eq!(switchbell_kit::text::cut("a long title", 6), "a lon…");
/// ```
#[inline(never)]
pub fn cut(text: &str, characters_max: usize) -> String {
    if text.chars().nth(characters_max).is_none() {
        return String::from(text);
    }
    let mut short: String = text.chars().take(characters_max.saturating_sub(1)).collect();
    if characters_max > 0 {
        short.push(ELLIPSIS);
    }
    short
}

/// The text on one line: each run of white space and control characters is one space, none at either end.
///
/// ```
/// assert_eq!(switchbell_kit::text::one_line(" two\r\n\tlines "), "two lines");
/// ```
#[inline(never)]
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split(|letter: char| letter.is_whitespace() || letter.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// The text without characters that nobody sees and that can turn others around: zero-width ones, and those that change
/// the direction of writing.
///
/// ```
/// assert_eq!(switchbell_kit::text::visible("exe\u{202e}gpj.\u{200b}"), "exegpj.");
/// ```
#[inline(never)]
pub fn visible(text: &str) -> String {
    let is_hidden = |letter: char| {
        matches!(letter, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}')
            || matches!(letter, '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    text.chars().filter(|letter| !is_hidden(*letter)).collect()
}

#[cfg(test)]
mod tests {
    use super::{cut, one_line};

    #[test]
    fn text_is_cut_only_beyond_its_limit_and_says_so() {
        let cases = [
            ("", 0, ""),
            ("a", 0, ""),
            ("a", 1, "a"),
            ("ab", 1, "…"),
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("äöüß", 3, "äö…"),
            ("🔔🔔🔔", 2, "🔔…"),
        ];
        for (text, characters_max, expected) in cases {
            assert_eq!(cut(text, characters_max), expected, "{text:?} in {characters_max}");
        }
    }

    #[test]
    fn one_line_has_single_spaces_and_no_control_characters() {
        let cases = [
            ("", ""),
            (" \n ", ""),
            ("plain words", "plain words"),
            ("\ta\u{0}\u{1b}b\r\n\r\nc\u{85}d\u{a0}e ", "a b c d e"),
        ];
        for (text, expected) in cases {
            assert_eq!(one_line(text), expected, "{text:?}");
        }
    }
}
