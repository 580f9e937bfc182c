//! Texts of plugins made safe to show, and sizes made readable.

use std::time::Duration;

/// `text` as one line of at most `length_max` characters: control characters, line ends and invisible marks of
/// direction become spaces, runs of white space one, and a cut shows as `…`.
pub(super) fn one_line(text: &str, length_max: usize) -> String {
    let words = text.split(|character: char| character.is_whitespace() || unprintable(character));
    let mut line = String::new();
    for word in words.filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    cut(line, length_max)
}

/// `text` with control characters but line ends made spaces, cut to `length_max` characters.
pub(super) fn lines(text: &str, length_max: usize) -> String {
    let plain = |character: char| if character != '\n' && unprintable(character) { ' ' } else { character };
    cut(text.chars().map(plain).collect(), length_max)
}

fn unprintable(character: char) -> bool {
    let bidirectional =
        matches!(character, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || bidirectional || matches!(character, '\u{2028}' | '\u{2029}')
}

fn cut(text: String, length_max: usize) -> String {
    if text.chars().count() <= length_max {
        return text;
    }
    let kept = text.chars().take(length_max.saturating_sub(1));
    kept.chain(['…']).collect()
}

/// Bytes in the largest unit that divides them: `32 MiB`, `1500 bytes`.
pub(super) fn bytes(count: usize) -> String {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let fitting = units.into_iter().find(|(_, size)| count >= *size && count.is_multiple_of(*size));
    fitting.map_or_else(|| format!("{count} bytes"), |(unit, size)| format!("{} {unit}", count / size))
}

/// A duration in seconds or milliseconds: `2 s`, `100 ms`.
pub(super) fn duration(duration: Duration) -> String {
    if duration.subsec_nanos() == 0 && duration >= Duration::from_secs(1) {
        format!("{} s", duration.as_secs())
    } else {
        format!("{} ms", duration.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_shows_no_control_character_and_says_what_was_cut() {
        for (text, expected) in [
            ("plain", "plain"),
            ("  a\r\n\tb  ", "a b"),
            ("\u{1b}[2J\u{202e}x", "[2J x"),
            ("1234567890", "1234567890"),
            ("1234567890a", "123456789…"),
            ("\u{7}", ""),
        ] {
            assert_eq!(one_line(text, 10), expected, "{text:?}");
        }
    }

    #[test]
    fn lines_keep_their_ends_only() {
        assert_eq!(lines("a\nb\r\u{1b}c", 10), "a\nb  c");
        assert_eq!(lines("äöüäöü", 3), "äö…");
    }

    #[test]
    fn sizes_are_readable() {
        for (count, expected) in [(0, "0 bytes"), (1500, "1500 bytes"), (32 << 20, "32 MiB"), (1536 << 10, "1536 KiB")]
        {
            assert_eq!(bytes(count), expected);
        }
        for (millis, expected) in [(100, "100 ms"), (1000, "1 s"), (1500, "1500 ms"), (0, "0 ms")] {
            assert_eq!(duration(Duration::from_millis(millis)), expected);
        }
    }
}
