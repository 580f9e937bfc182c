//! A schema as it is written: JSON Schema, draft-07 (draft-handrews-json-schema-validation-01), with the keywords that
//! yaml-language-server adds (`markdownDescription`, `errorMessage`, `defaultSnippets`, `doNotSuggest`).

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::written::Written;

/// A schema. What is left out says nothing.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Schema {
    /// `$schema`.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub(in crate::config) dialect: Option<&'static str>,
    /// `$comment`.
    #[serde(rename = "$comment", skip_serializing_if = "Option::is_none")]
    pub(in crate::config) comment: Option<String>,
    /// `$ref`.
    #[serde(rename = "$ref", skip_serializing_if = "Option::is_none")]
    pub(in crate::config) reference: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) markdown_description: Option<String>,
    /// Whether editors leave it out when they propose keys.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::config) do_not_suggest: bool,
    #[serde(rename = "type", skip_serializing_if = "Many::is_empty")]
    pub(in crate::config) types: Many,
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty")]
    pub(in crate::config) words: Vec<&'static str>,
    #[serde(rename = "enumDescriptions", skip_serializing_if = "Vec::is_empty")]
    pub(in crate::config) words_about: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) minimum: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) maximum: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) pattern: Option<String>,
    /// What is said of a text that does not fit the pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) pattern_error_message: Option<String>,
    /// What is said of a value of another type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) error_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) min_items: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) max_items: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) items: Option<Box<Schema>>,
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "in_order")]
    pub(in crate::config) properties: Vec<(&'static str, Schema)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::config) required: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) property_names: Option<Box<Schema>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) additional_properties: Option<Additional>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) max_properties: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "in_order")]
    pub(in crate::config) dependencies: Vec<(&'static str, Schema)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::config) any_of: Vec<Schema>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) not: Option<Box<Schema>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) default: Option<Written>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::config) examples: Vec<Written>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::config) default_snippets: Vec<Snippet>,
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "in_order")]
    pub(in crate::config) definitions: Vec<(&'static str, Schema)>,
}

/// `additionalProperties`.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub(in crate::config) enum Additional {
    /// None but the known ones.
    Known(False),
    /// Any, with such a value.
    Any(Box<Schema>),
}

impl Additional {
    /// None but the known ones.
    pub(in crate::config) const NONE: Self = Self::Known(False);
}

/// Written `false`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) struct False;

impl Serialize for False {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(false)
    }
}

/// One word, or a list of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::config) struct Many(pub Vec<&'static str>);

impl Many {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&'static str> for Many {
    fn from(word: &'static str) -> Self {
        Self(vec![word])
    }
}

impl Serialize for Many {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => serializer.serialize_str(one),
            all => all.serialize(serializer),
        }
    }
}

/// What an editor writes for a person, with places to fill in (`${1:…}`).
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(in crate::config) struct Snippet {
    pub label: String,
    pub description: String,
    pub body: Written,
}

/// Keys in the order in which they are declared.
fn in_order<S: Serializer>(entries: &[(&'static str, Schema)], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(entries.len()))?;
    for (name, schema) in entries {
        map.serialize_entry(name, schema)?;
    }
    map.end()
}

impl Schema {
    /// With a description, in which words in backquotes are such as stand in a file.
    pub(in crate::config) fn described(self, text: &str) -> Self {
        let markdown = text.contains(['`', '*', '_']).then(|| text.to_owned());
        Self { description: Some(text.to_owned()), markdown_description: markdown, ..self }
    }

    /// Either of these.
    pub(in crate::config) fn either(any_of: Vec<Self>) -> Self {
        let examples = any_of.iter().flat_map(|schema| schema.examples.iter().cloned()).collect();
        let default_snippets = any_of.iter().flat_map(|schema| schema.default_snippets.iter().cloned()).collect();
        Self { any_of, examples, default_snippets, ..Self::default() }
    }

    /// A list of these.
    pub(in crate::config) fn list(items: Self) -> Self {
        let examples = items.examples.iter().take(1).map(|example| Written::List(vec![example.clone()])).collect();
        Self {
            types: "array".into(),
            items: Some(Box::new(items)),
            error_message: Some("a list is wanted here".to_owned()),
            examples,
            ..Self::default()
        }
    }

    /// A mapping with chosen keys.
    pub(in crate::config) fn map(keys: Self, values: Self) -> Self {
        let first = |schema: &Self| schema.examples.first().cloned();
        let example = match (first(&keys), first(&values)) {
            (Some(Written::Text(key)), Some(value)) => Some(Written::Mapping(vec![(key, value)])),
            _ => None,
        };
        Self {
            types: "object".into(),
            property_names: Some(Box::new(keys)),
            additional_properties: Some(Additional::Any(Box::new(values))),
            examples: example.into_iter().collect(),
            ..Self::default()
        }
    }

    /// What nothing fits: of a text that stands here, `message` is said.
    pub(in crate::config) fn nothing(message: &str) -> Self {
        let null = Self { types: "null".into(), ..Self::default() };
        Self {
            do_not_suggest: true,
            error_message: Some(message.to_owned()),
            not: Some(Box::new(null.clone())),
            ..null
        }
    }
}
