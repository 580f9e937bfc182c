//! A value as it is written in a file, keys in their order.

use serde::ser::{Serialize, SerializeMap as _, Serializer};

use crate::config::node::{Kind, Node};
use crate::config::parse;
use crate::config::scalar::{Scalar, Typed};
use crate::config::source::Report;

/// A value that stands in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::config) enum Written {
    Null,
    Boolean(bool),
    Whole(i64),
    Text(String),
    List(Vec<Written>),
    Mapping(Vec<(String, Written)>),
}

impl Written {
    /// The value of a text in YAML; null when it is not good, which a test rules out.
    pub(in crate::config) fn of(text: &str) -> Self {
        let mut report = Report::new("example".into(), text.to_owned());
        parse::parse(&mut report).map_or(Self::Null, |node| Self::of_node(&node))
    }

    fn of_node(node: &Node) -> Self {
        match &node.kind {
            Kind::Scalar(scalar) => Self::of_scalar(scalar),
            Kind::List(items) => Self::List(items.iter().map(Self::of_node).collect()),
            Kind::Mapping(entries) => {
                Self::Mapping(entries.iter().map(|entry| (entry.key.clone(), Self::of_node(&entry.value))).collect())
            }
            Kind::Reported => Self::Null,
        }
    }

    fn of_scalar(scalar: &Scalar) -> Self {
        match scalar.typed() {
            Typed::Null => Self::Null,
            Typed::Boolean(value) => Self::Boolean(value),
            Typed::Integer(Some(value)) => i64::try_from(value).map_or(Self::Null, Self::Whole),
            Typed::Integer(None) | Typed::Float(_) | Typed::Text => Self::Text(scalar.text.clone()),
        }
    }

    /// The value of a scalar without quotes.
    pub(in crate::config) fn plain(text: &str) -> Self {
        Self::of_scalar(&Scalar { text: text.to_owned(), plain: true, written: None })
    }

    /// What stands under this key.
    pub(in crate::config) fn get(&self, key: &str) -> Option<&Self> {
        let Self::Mapping(entries) = self else { return None };
        entries.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Whether it is a mapping, or a list in which there is one.
    pub(in crate::config) fn has_mapping(&self) -> bool {
        match self {
            Self::Mapping(_) => true,
            Self::List(items) => items.iter().any(Self::has_mapping),
            _ => false,
        }
    }

    /// Whether nothing is left of these without the mappings.
    pub(super) fn all_mappings(values: &[Self]) -> bool {
        values.iter().all(Self::has_mapping)
    }

    /// Writes these without the mappings.
    pub(super) fn without_mappings<S: Serializer>(values: &[Self], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().filter(|value| !value.has_mapping()))
    }

    /// The value in one line of YAML.
    pub(in crate::config) fn flow(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Boolean(value) => value.to_string(),
            Self::Whole(number) => number.to_string(),
            Self::Text(text) if is_plain(text) => text.clone(),
            Self::Text(text) => format!("{text:?}"),
            Self::List(items) => format!("[{}]", items.iter().map(Self::flow).collect::<Vec<_>>().join(", ")),
            Self::Mapping(entries) => {
                let entries: Vec<_> = entries.iter().map(|(key, value)| format!("{key}: {}", value.flow())).collect();
                format!("{{ {} }}", entries.join(", "))
            }
        }
    }

    /// The same with each value a place to fill in, numbered from 1 (`${1:…}`).
    pub(super) fn to_fill_in(&self) -> Self {
        self.filled_in(&mut 0)
    }

    /// The same for a mapping whose keys the writer chooses.
    pub(super) fn to_fill_in_with_keys(&self) -> Self {
        let Self::Mapping(entries) = self else { return self.to_fill_in() };
        let mut places = 0;
        let mut entry = |(key, value): &(String, Self)| {
            places += 1;
            (format!("${{{places}:{key}}}"), value.filled_in(&mut places))
        };
        Self::Mapping(entries.iter().map(&mut entry).collect())
    }

    fn filled_in(&self, places: &mut usize) -> Self {
        let mut place = |text: &str| {
            *places += 1;
            Self::Text(format!("${{{places}:{text}}}"))
        };
        match self {
            Self::List(items) => Self::List(items.iter().map(|item| item.filled_in(places)).collect()),
            Self::Mapping(entries) => {
                Self::Mapping(entries.iter().map(|(key, value)| (key.clone(), value.filled_in(places))).collect())
            }
            Self::Text(_) => place(&self.flow().replace('\\', "\\\\").replace('$', "\\$").replace('}', "\\}")),
            Self::Whole(number) => place(&number.to_string()),
            Self::Boolean(value) => place(&value.to_string()),
            Self::Null => Self::Null,
        }
    }
}

/// Whether a text stays one without quotes, also between brackets.
fn is_plain(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-./:@".contains(c);
    let is_text = Written::plain(text) == Written::Text(text.to_owned());
    let is_time = text.chars().all(|c| c.is_ascii_digit() || c == ':');
    is_text && !is_time && text.chars().all(fits) && !text.starts_with(['-', '@', ':']) && !text.ends_with(':')
}

impl From<&str> for Written {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl Serialize for Written {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Boolean(value) => serializer.serialize_bool(*value),
            Self::Whole(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => items.serialize(serializer),
            Self::Mapping(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}
