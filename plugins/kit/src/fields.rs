//! The fields of a JSON object, down to a depth that the caller chooses.
//!
//! Settings and most answers are flat as far as they matter. What is nested deeper is passed over without recursion, so
//! that no depth of it can exhaust the sandbox's small stack.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Any number, as near as a float comes to it.
    Number(f64),
    /// A string.
    Text(String),
    /// An array; empty where it lies deeper than was read.
    List(Vec<Field>),
    /// An object; empty where it lies deeper than was read.
    Object(Fields),
}

impl Field {
    /// What a person calls this kind of value.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Object(_) => "a mapping",
        }
    }

    /// The value, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// The fields by name; of several with one name, the last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields(BTreeMap<String, Field>);

impl Fields {
    /// Reads an object. A `depth` of 1 reads its fields, 2 also what is in a list or an object in them, and so on.
    ///
    /// # Errors
    /// It is no JSON, or no object.
    pub fn read(json: &[u8], depth: u8) -> Result<Self, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let whole = Reader { depth }.deserialize(&mut deserializer)?;
        deserializer.end()?;
        match whole {
            Field::Object(fields) => Ok(fields),
            _ => Err(Error::custom("not an object")),
        }
    }

    /// All fields, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Field)> {
        self.0.iter().map(|(name, field)| (name.as_str(), field))
    }

    /// The field of this name.
    pub fn get(&self, name: &str) -> Option<&Field> {
        self.0.get(name)
    }

    /// The field, if it is text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_text()
    }

    /// The field, if it is an object.
    pub fn object(&self, name: &str) -> Option<&Self> {
        match self.get(name)? {
            Field::Object(fields) => Some(fields),
            _ => None,
        }
    }

    /// The texts of a list; nothing if it is none.
    pub fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        let list = match self.get(name) {
            Some(Field::List(items)) => items.as_slice(),
            _ => &[],
        };
        list.iter().filter_map(Field::as_text)
    }
}

/// Reads any value, so many levels deep. It takes every type, so that no error has to spell out a number: the code for
/// that is a fifth of a component.
#[derive(Clone, Copy)]
struct Reader {
    depth: u8,
}

impl<'de> DeserializeSeed<'de> for Reader {
    type Value = Field;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Field, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader {
    type Value = Field;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Field, E> {
        Ok(Field::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Field, E> {
        Ok(Field::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Field, E> {
        self.visit_f64(value as f64)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Field, E> {
        self.visit_f64(value as f64)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Field, E> {
        Ok(Field::Number(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Field, E> {
        Ok(Field::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Field, A::Error> {
        let mut items = Vec::new();
        match self.depth.checked_sub(1) {
            Some(depth) => {
                while let Some(item) = list.next_element_seed(Self { depth })? {
                    items.push(item);
                }
            }
            None => while list.next_element::<IgnoredAny>()?.is_some() {},
        }
        Ok(Field::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Field, A::Error> {
        let mut fields = BTreeMap::new();
        match self.depth.checked_sub(1) {
            Some(depth) => {
                while let Some(name) = map.next_key()? {
                    fields.insert(name, map.next_value_seed(Self { depth })?);
                }
            }
            None => while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {},
        }
        Ok(Field::Object(Fields(fields)))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::{Field, Fields};

    #[test]
    fn what_lies_deeper_than_asked_for_is_passed_over() {
        let json = br#"{"a":{"b":{"c":1}},"l":["x",["y"],7]}"#;
        let flat = Fields::read(json, 1).unwrap();
        assert_eq!(flat.get("a"), Some(&Field::Object(Fields::default())));
        assert_eq!(flat.get("l"), Some(&Field::List(vec![])));
        let deeper = Fields::read(json, 2).unwrap();
        assert_eq!(deeper.object("a").unwrap().get("b"), Some(&Field::Object(Fields::default())));
        let list = vec![Field::Text("x".to_string()), Field::List(vec![]), Field::Number(7.0)];
        assert_eq!(deeper.get("l"), Some(&Field::List(list)));
        assert_eq!(deeper.texts("l").collect::<vec::Vec<_>>(), ["x"]);
    }

    #[test]
    fn any_depth_is_read_in_a_small_stack() {
        let nested = ["{\"x\":", &"{\"x\":[".repeat(100_000), "1", &"]}".repeat(100_000), "}"].concat();
        for depth in [1, 2, 3] {
            assert!(Fields::read(nested.as_bytes(), depth).is_ok(), "{depth}");
        }
    }

    #[test]
    fn only_whole_objects_are_read() {
        for json in ["", "[]", "null", "{", r#"{"a":1} x"#, r#"{"a":}"#] {
            assert!(Fields::read(json.as_bytes(), 2).is_err(), "{json}");
        }
    }
}
