//! JSON, read where it stands and written as text.
//!
//! Reading is lazy: a [`Value`] is the text from where the value begins, and only what is asked for is looked at. So no
//! depth of nesting exhausts the sandbox's small stack, an answer that was cut still tells what stood before the cut, and
//! what must stay as it is (`data`) is copied byte for byte. What is no JSON has no fields; nothing here checks the rest.

mod text;
mod write;

use alloc::string::String;

pub(crate) use write::{Object, quoted};

/// What a value is, by its first character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool,
    Number,
    Text,
    List,
    Object,
}

/// A value: its own text, without white space around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Value<'a>(&'a str);

impl<'a> Value<'a> {
    /// The first value in the text.
    pub(crate) fn new(text: &'a str) -> Self {
        let text = trimmed(text);
        Self(text.get(..end(text)).unwrap_or(text))
    }

    /// Its text, byte for byte.
    pub(crate) fn raw(self) -> &'a str {
        self.0
    }

    pub(crate) fn kind(self) -> Option<Kind> {
        match self.0.bytes().next()? {
            b'"' => Some(Kind::Text),
            b'{' => Some(Kind::Object),
            b'[' => Some(Kind::List),
            b't' | b'f' => Some(Kind::Bool),
            b'n' => Some(Kind::Null),
            b'-' | b'0'..=b'9' => Some(Kind::Number),
            _ => None,
        }
    }

    /// The text it stands for.
    pub(crate) fn text(self) -> Option<String> {
        text::read(self.0)
    }

    pub(crate) fn is_true(self) -> bool {
        self.0 == "true"
    }

    /// The number, if it is a whole one that fits.
    pub(crate) fn whole<N: core::str::FromStr>(self) -> Option<N> {
        self.0.parse().ok()
    }

    /// The fields of an object in order; none of anything else.
    pub(crate) fn fields(self) -> impl Iterator<Item = (String, Value<'a>)> {
        let mut rest = self.0.strip_prefix('{').unwrap_or_default();
        core::iter::from_fn(move || {
            let (name, after) = next(rest)?;
            let name = name.text()?;
            let (value, after) = next(trimmed(after).strip_prefix(':')?)?;
            rest = after;
            Some((name, value))
        })
    }

    /// The items of a list; none of anything else.
    pub(crate) fn items(self) -> impl Iterator<Item = Value<'a>> {
        let mut rest = self.0.strip_prefix('[').unwrap_or_default();
        core::iter::from_fn(move || {
            let (value, after) = next(rest)?;
            rest = after;
            Some(value)
        })
    }

    /// The first field of this name.
    pub(crate) fn field(self, name: &str) -> Option<Value<'a>> {
        self.fields().find_map(|(found, value)| (found == name).then_some(value))
    }

    /// The first field of this name, unless it is null.
    pub(crate) fn get(self, name: &str) -> Option<Value<'a>> {
        self.field(name).filter(|value| value.kind() != Some(Kind::Null))
    }

    /// The field of a field, and so on.
    pub(crate) fn at(self, path: &[&str]) -> Option<Value<'a>> {
        path.iter().try_fold(self, |value, name| value.get(name))
    }

    /// The text of the field there.
    pub(crate) fn text_at(self, path: &[&str]) -> Option<String> {
        self.at(path)?.text()
    }
}

/// JSON's white space.
fn is_space(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | '\r')
}

fn trimmed(text: &str) -> &str {
    text.trim_start_matches(is_space)
}

/// The next value and what is after it; none at the end of the list or object, and where there is no value.
fn next(rest: &str) -> Option<(Value<'_>, &str)> {
    let rest = trimmed(rest);
    let rest = trimmed(rest.strip_prefix(',').unwrap_or(rest));
    let value = Value::new(rest);
    value.kind()?;
    Some((value, rest.get(value.0.len()..)?))
}

/// Where the value at the beginning ends: the end of the text where it was cut.
fn end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = end_of_text(bytes, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => return if depth == 1 { at + 1 } else { at },
            b'}' | b']' => depth -= 1,
            b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// The position after the closing quote of the text that begins at `start`.
fn end_of_text(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}
