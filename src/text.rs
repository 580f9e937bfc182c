//! Plain text made fit for every surface that shows it.

/// Characters that show nothing but change how their surroundings are shown or compared: zero-width space and joiner
/// of words, byte order mark, and the marks, embeddings, overrides and isolates of writing direction. The joiners
/// U+200C and U+200D stay: scripts and emoji need them.
fn is_invisible(found: char) -> bool {
    matches!(
        found,
        '\u{200B}'
            | '\u{2060}'
            | '\u{FEFF}'
            | '\u{200E}'
            | '\u{200F}'
            | '\u{061C}'
            | '\u{202A}'..='\u{202E}'
            | '\u{2066}'..='\u{2069}'
    )
}

/// Bytes in lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}

/// One line: each run of control characters becomes a space, invisible characters go, the ends are trimmed, and what
/// is longer than `chars_max` is cut, `…` being its last character.
pub fn line(text: &str, chars_max: usize) -> String {
    clean(text, chars_max, false)
}

/// The same for several lines: `\n` stays, `\r\n` becomes `\n`.
pub fn lines(text: &str, chars_max: usize) -> String {
    clean(&text.replace("\r\n", "\n"), chars_max, true)
}

fn clean(text: &str, chars_max: usize, keeps_lines: bool) -> String {
    let mut cleaned = String::with_capacity(text.len().min(chars_max * char::MAX_LEN_UTF8));
    let mut in_run = false;
    for next in text.chars().filter(|&next| !is_invisible(next)) {
        let control = next.is_control() && !(keeps_lines && next == '\n');
        match (control, in_run) {
            (true, true) => {}
            (true, false) => cleaned.push(' '),
            (false, _) => cleaned.push(next),
        }
        in_run = control;
    }
    cut(cleaned.trim(), chars_max)
}

fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    text.chars().take(chars_max.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected_line: &str, expected_lines: &str) {
        assert_eq!(line(text, 20), expected_line, "line {text:?}");
        assert_eq!(lines(text, 20), expected_lines, "lines {text:?}");
    }

    #[test]
    fn control_characters_become_one_space_for_each_run() {
        check("a\0\u{1}\u{7f}b", "a b", "a b");
        check("a\u{85}\u{9f}b\tc", "a b c", "a b c");
        check("a\u{1b}[31mb", "a [31mb", "a [31mb");
        check("a\t \tb", "a   b", "a   b");
    }

    #[test]
    fn several_lines_stay_several_lines() {
        check("a\nb", "a b", "a\nb");
        check("a\r\nb\rc", "a b c", "a\nb c");
        check("a\n\n\tb", "a b", "a\n\n b");
        check("\n a \r\n", "a", "a");
    }

    #[test]
    fn what_shows_nothing_goes_but_joiners_stay() {
        let hidden = "\u{200B}\u{2060}\u{FEFF}\u{200E}\u{200F}\u{061C}\u{202A}\u{202E}\u{2066}\u{2069}";
        check(&format!("a{hidden}b"), "ab", "ab");
        check(&format!("a\0{hidden}\0b"), "a b", "a b");
        check("👩\u{200D}💻 می\u{200C}خواهم", "👩\u{200D}💻 می\u{200C}خواهم", "👩\u{200D}💻 می\u{200C}خواهم");
        check(&format!("{hidden} {hidden}"), "", "");
    }

    #[test]
    fn what_is_too_long_ends_in_an_ellipsis() {
        check(&"ä".repeat(20), &"ä".repeat(20), &"ä".repeat(20));
        let cut = format!("{}…", "ä".repeat(19));
        check(&"ä".repeat(21), &cut, &cut);
        check(&format!("{} ", "😀".repeat(20)), &"😀".repeat(20), &"😀".repeat(20));
    }
}
