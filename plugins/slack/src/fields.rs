//! The fields of a JSON object, without what is inside of lists and objects.
//!
//! Settings and Slack's answers are flat as far as they matter here. What is nested is passed over without recursion,
//! so that no depth of it can exhaust the sandbox's small stack.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use core::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The value of a field.
#[derive(Debug, PartialEq)]
pub(crate) enum Field {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List,
    Object,
}

/// The fields by name; of several with one name, the last.
#[derive(Debug, Default)]
pub(crate) struct Fields(BTreeMap<String, Field>);

impl Fields {
    /// Reads an object. Anything else is an error.
    pub(crate) fn read(json: &[u8]) -> Result<Self, serde_json::Error> {
        let mut fields = BTreeMap::new();
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let whole = deserializer.deserialize_any(Reader { fields: Some(&mut fields) })?;
        deserializer.end()?;
        if whole == Field::Object { Ok(Self(fields)) } else { Err(Error::custom("not an object")) }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Field> {
        self.0.get(name)
    }

    /// The field, if it is text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Field::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader { fields: None })
    }
}

/// Reads any value: what is in an object only where there is a place for it. It takes every type, so that no error has
/// to spell out a number: the code for that is a fifth of the component.
struct Reader<'a> {
    fields: Option<&'a mut BTreeMap<String, Field>>,
}

impl<'de> Visitor<'de> for Reader<'_> {
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
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Field::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Field, A::Error> {
        match self.fields {
            Some(fields) => {
                while let Some((name, field)) = map.next_entry()? {
                    fields.insert(name, field);
                }
            }
            None => while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {},
        }
        Ok(Field::Object)
    }
}
