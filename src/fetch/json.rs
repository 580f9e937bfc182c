//! JSON read one level at a time, so that what is inside a value stays the text it came as and cannot spoil the rest.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer as _, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

/// What a JSON value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// A number, however it is spelled.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        })
    }
}

/// What this value is, by its first character.
pub(super) fn kind(value: &RawValue) -> Kind {
    match value.get().bytes().next() {
        Some(b'{') => Kind::Object,
        Some(b'[') => Kind::Array,
        Some(b'"') => Kind::String,
        Some(b't' | b'f') => Kind::Boolean,
        Some(b'n') | None => Kind::Null,
        Some(_) => Kind::Number,
    }
}

/// How many arrays and objects stand in each other where they are most: 0 of a plain value, 1 of `{}`.
pub(super) fn depth(value: &RawValue) -> usize {
    let (mut deepest, mut depth) = (0_usize, 0_usize);
    let mut bytes = value.get().bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
    }
    deepest
}

/// Goes on behind the end of a string that has begun.
fn skip_string(bytes: &mut std::str::Bytes<'_>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
}

/// The values of these keys of an object, unread. A key that stands there twice has its last value, as in JavaScript
/// and Python. Every other key is skipped, whatever it holds.
///
/// # Errors
/// When `object` is not the JSON text of an object.
pub(super) fn fields<'a, const COUNT: usize>(
    object: &'a str,
    keys: [&str; COUNT],
) -> Result<[Option<&'a RawValue>; COUNT], serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(object);
    let found = reader.deserialize_map(Fields { keys })?;
    reader.end()?;
    Ok(found)
}

struct Fields<'k, const COUNT: usize> {
    keys: [&'k str; COUNT],
}

impl<'a, const COUNT: usize> Visitor<'a> for Fields<'_, COUNT> {
    type Value = [Option<&'a RawValue>; COUNT];

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = [None; COUNT];
        while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            // A key that is no valid text is none of ours.
            let Some(key) = string(key) else { continue };
            let slots = self.keys.iter().zip(found.iter_mut());
            for (_, slot) in slots.filter(|(wanted, _)| **wanted == key) {
                *slot = Some(value);
            }
        }
        Ok(found)
    }
}

/// The text of a string; none when `value` is no string, or one with half a surrogate pair.
pub(super) fn string(value: &RawValue) -> Option<Cow<'_, str>> {
    struct Text;
    impl<'a> Visitor<'a> for Text {
        type Value = Cow<'a, str>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("a string")
        }

        fn visit_borrowed_str<E>(self, text: &'a str) -> Result<Self::Value, E> {
            Ok(Cow::Borrowed(text))
        }

        fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
            Ok(Cow::Owned(text.to_owned()))
        }
    }
    serde_json::Deserializer::from_str(value.get()).deserialize_str(Text).ok()
}

/// The text of a string, with U+FFFD for each half of a surrogate pair: JavaScript leaves one behind where it cuts a
/// text in the middle of an emoji. None when `value` is no string.
pub(super) fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    struct Bytes;
    impl<'a> Visitor<'a> for Bytes {
        type Value = Cow<'a, str>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("a string")
        }

        fn visit_borrowed_bytes<E: serde::de::Error>(self, bytes: &'a [u8]) -> Result<Self::Value, E> {
            std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(E::custom)
        }

        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
            Ok(Cow::Owned(without_halves(bytes)))
        }
    }
    if kind(value) != Kind::String {
        return None;
    }
    serde_json::Deserializer::from_str(value.get()).deserialize_bytes(Bytes).ok()
}

/// Half a surrogate pair arrives as the three bytes UTF-8 would have for it, of which the first is this one.
const HALF_LEAD: u8 = 0xED;

fn without_halves(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if chunk.invalid().first() == Some(&HALF_LEAD) {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text
}

/// The elements of an array, unread: the first `most`, and how many there are.
///
/// # Errors
/// When `array` is not the JSON text of an array.
pub(super) fn elements(array: &str, most: usize) -> Result<(Vec<&RawValue>, usize), serde_json::Error> {
    struct Elements {
        most: usize,
    }
    impl<'a> Visitor<'a> for Elements {
        type Value = (Vec<&'a RawValue>, usize);

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("an array")
        }

        fn visit_seq<A: serde::de::SeqAccess<'a>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
            let mut first = Vec::new();
            let mut count: usize = 0;
            while let Some(element) = sequence.next_element::<&RawValue>()? {
                count = count.checked_add(1).ok_or_else(|| A::Error::custom("too many elements"))?;
                if first.len() < self.most {
                    first.push(element);
                }
            }
            Ok((first, count))
        }
    }
    let mut reader = serde_json::Deserializer::from_str(array);
    let found = reader.deserialize_seq(Elements { most })?;
    reader.end()?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_value_is_known_by_its_first_character() {
        for (value, expected) in [
            ("null", Kind::Null),
            ("true", Kind::Boolean),
            ("false", Kind::Boolean),
            ("-1e400", Kind::Number),
            ("\"\"", Kind::String),
            (" [ 1 ]", Kind::Array),
            ("{}", Kind::Object),
        ] {
            assert_eq!(kind(raw(value)), expected, "{value}");
        }
    }

    #[test]
    fn the_last_of_two_values_with_one_key_counts_and_strangers_spoil_nothing() {
        let object = r#"{"a":1,"\ud800":"\udfff","b":[1e999],"a":{"a":3},"\u0061":"\ud800","c":null}"#;
        let found = fields(object, ["a", "b", "d"]).unwrap().map(|value| value.map(RawValue::get));
        assert_eq!(found, [Some(r#""\ud800""#), Some("[1e999]"), None]);
    }

    #[test]
    fn only_a_whole_object_has_fields() {
        for bad in ["", "[]", "{", "{}{}", "null", "{\"a\":}", "{'a':1}"] {
            assert!(fields(bad, ["a"]).is_err(), "{bad}");
        }
    }

    #[test]
    fn half_a_surrogate_pair_is_no_text_but_can_be_shown() {
        let half = raw(r#""a\ud83db""#);
        assert_eq!((string(half), text(half).as_deref()), (None, Some("a\u{fffd}b")));
        let twice = raw(r#""\udc00\ud800""#);
        assert_eq!((string(twice), text(twice).as_deref()), (None, Some("\u{fffd}\u{fffd}")));
        let pair = raw(r#""\ud83d\ude00 \u00e4\n""#);
        assert_eq!((string(pair).as_deref(), text(pair).as_deref()), (Some("😀 ä\n"), Some("😀 ä\n")));
        let plain = raw(r#""plain""#);
        assert!(matches!((string(plain), text(plain)), (Some(Cow::Borrowed("plain")), Some(Cow::Borrowed("plain")))));
        assert_eq!((string(raw("1")), text(raw("[1]"))), (None, None));
    }

    #[test]
    fn elements_beyond_the_most_are_counted_only() {
        let (first, count) = elements("[1, {\"a\": \"\\ud800\"} ,3]", 2).unwrap();
        assert_eq!(
            (first.iter().map(|value| value.get()).collect::<Vec<_>>(), count),
            (vec!["1", "{\"a\": \"\\ud800\"}"], 3)
        );
        assert!(elements("{}", 2).is_err());
        assert!(elements("[1", 2).is_err());
    }

    #[test]
    fn depth_is_no_danger() {
        let deep = format!("{{\"data\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(fields(&deep, ["data"]).is_ok());
    }
}
