//! JSON's strings.

use alloc::string::String;
use core::str::Chars;

/// What a string literal stands for. One that was cut is read to the cut; half a surrogate pair is U+FFFD.
pub(super) fn read(literal: &str) -> Option<String> {
    let inner = literal.strip_prefix('"')?;
    let mut text = String::with_capacity(inner.len());
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => break,
            '\\' => escape(&mut letters, &mut text)?,
            _ => text.push(letter),
        }
    }
    Some(text)
}

fn escape(letters: &mut Chars<'_>, text: &mut String) -> Option<()> {
    let Some(letter) = letters.next() else { return Some(()) };
    text.push(match letter {
        '"' | '\\' | '/' => letter,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => unicode(letters),
        _ => return None,
    });
    Some(())
}

/// The character of `\uXXXX`, or of two of them.
fn unicode(letters: &mut Chars<'_>) -> char {
    let Some(first) = digits(letters) else { return char::REPLACEMENT_CHARACTER };
    if !(0xD800..0xDC00).contains(&first) {
        return char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER);
    }
    let mut ahead = letters.clone();
    let second = (ahead.next() == Some('\\') && ahead.next() == Some('u')).then(|| digits(&mut ahead)).flatten();
    let Some(second) = second.filter(|second| (0xDC00..0xE000).contains(second)) else {
        return char::REPLACEMENT_CHARACTER;
    };
    *letters = ahead;
    let scalar = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
    char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn digits(letters: &mut Chars<'_>) -> Option<u32> {
    (0..4).try_fold(0, |number, _| Some(number * 16 + letters.next()?.to_digit(16)?))
}
