//! The fields of a JSON object, down to a depth that the caller chooses.
//!
//! Settings and most answers are flat as far as they matter. What is nested deeper is passed over without recursion, so
//! that no depth of it can exhaust the sandbox's small stack.

mod read;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use self::read::Reader;

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
    #[inline(never)]
    pub fn read(json: &[u8], depth: u8) -> Result<Self, NoObject> {
        let json = core::str::from_utf8(json).map_err(|error| NoObject::NoJson(error.valid_up_to()))?;
        let mut reader = Reader::new(json);
        match reader.whole(depth) {
            Some(Field::Object(fields)) => Ok(fields),
            Some(_) => Err(NoObject::Other),
            None => Err(NoObject::NoJson(reader.at())),
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

/// Why a text is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoObject {
    /// It is no JSON from this byte on.
    NoJson(usize),
    /// It is JSON, but no object.
    Other,
}

impl fmt::Display for NoObject {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoJson(at) => write!(out, "no JSON at byte {at}"),
            Self::Other => out.write_str("no object"),
        }
    }
}

#[cfg(test)]
mod tests;
