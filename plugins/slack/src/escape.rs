//! Makes untrusted text safe for Slack, within a limit.
//!
//! Slack reads `&`, `<` and `>` as control characters and decodes exactly three entities
//! (docs.slack.dev/messaging/formatting-message-text, "Escaping text"). Whether a `plain_text` object parses them is
//! not documented, so everything is escaped. Lengths are counted in UTF-16 units of the escaped text: the strictest of
//! the ways Slack may count.

use alloc::string::String;
use alloc::vec::Vec;

use switchbell_kit::text::{ELLIPSIS, one_line};

/// How long the text is by Slack's count, in UTF-16 units.
pub(crate) fn length(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// The text escaped, on one line, in at most `units_max`; what was cut ends in `…`, never inside an entity.
pub(crate) fn line(text: &str, units_max: usize) -> String {
    paragraphs(&one_line(text), units_max)
}

/// As [`line`], but lines stay lines.
pub(crate) fn paragraphs(text: &str, units_max: usize) -> String {
    split(text, units_max, 1).pop().unwrap_or_default()
}

/// The text escaped and split into at most `parts_max` parts of at most `units_max`, at a space where one is near.
/// What does not fit is cut, and the last part ends in `…`.
pub(crate) fn split(text: &str, units_max: usize, parts_max: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = Part::default();
    for letter in text.chars() {
        while !part.fits(letter, units_max) {
            if part.text.is_empty() || parts.len() + 1 >= parts_max {
                part.cut(units_max);
                parts.push(part.text);
                return parts;
            }
            let word = part.split_off_word();
            parts.push(core::mem::replace(&mut part, word).text);
        }
        part.push(letter, units_max);
    }
    if !part.text.is_empty() {
        parts.push(part.text);
    }
    parts
}

/// Escaped text being written.
#[derive(Default)]
struct Part {
    text: String,
    /// Its length.
    units: usize,
    /// The longest prefix, in bytes, that leaves room for `…`.
    cut_at: usize,
}

impl Part {
    fn fits(&self, letter: char, units_max: usize) -> bool {
        self.units + units_of(letter) <= units_max
    }

    fn push(&mut self, letter: char, units_max: usize) {
        match escaped(letter) {
            Some(entity) => self.text.push_str(entity),
            None => self.text.push(letter),
        }
        self.units += units_of(letter);
        if self.units < units_max {
            self.cut_at = self.text.len();
        }
    }

    fn cut(&mut self, units_max: usize) {
        self.text.truncate(self.cut_at);
        if units_max > 0 {
            self.text.push(ELLIPSIS);
        }
    }

    /// Takes off the word that is being written, so that the next part begins with it. A word of half a part and more is
    /// broken instead.
    fn split_off_word(&mut self) -> Self {
        let space = self.text.rfind([' ', '\n']).filter(|space| *space >= self.text.len() / 2);
        let word = self.text.split_off(space.map_or(self.text.len(), |space| space + 1));
        Self { units: length(&word), cut_at: word.len(), text: word }
    }
}

fn units_of(letter: char) -> usize {
    escaped(letter).map_or(letter.len_utf16(), str::len)
}

/// What stands for a character that may not stand for itself. Control characters have no place in a message.
fn escaped(letter: char) -> Option<&'static str> {
    match letter {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '\n' => None,
        control if control.is_control() => Some(" "),
        _ => None,
    }
}
