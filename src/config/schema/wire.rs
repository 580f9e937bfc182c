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
    /// What is said of a text that does not fit the pattern, where that is not `error_message`.
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
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "in_order")]
    pub(in crate::config) dependencies: Vec<(&'static str, Schema)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::config) any_of: Vec<Schema>,
    #[serde(rename = "if", skip_serializing_if = "Option::is_none")]
    pub(in crate::config) condition: Option<Box<Schema>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) then: Option<Box<Schema>>,
    #[serde(rename = "else", skip_serializing_if = "Option::is_none")]
    pub(in crate::config) otherwise: Option<Box<Schema>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) not: Option<Box<Schema>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) default: Option<Written>,
    /// Good values. Those that are mappings are written in the description: editors propose the others by their text.
    #[serde(skip_serializing_if = "Written::all_mappings", serialize_with = "Written::without_mappings")]
    pub(in crate::config) examples: Vec<Written>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::config) default_snippets: Vec<Snippet>,
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "in_order")]
    pub(in crate::config) definitions: Vec<(&'static str, Schema)>,
}

/// What is wanted where a list is.
const LIST: &str = "a list";

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
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(untagged)]
pub(in crate::config) enum Many {
    One(&'static str),
    List(Vec<&'static str>),
}

impl Many {
    fn is_empty(&self) -> bool {
        matches!(self, Self::List(words) if words.is_empty())
    }

    /// The words as a list.
    pub(in crate::config) fn list(&self) -> Vec<&'static str> {
        match self {
            Self::One(word) => vec![word],
            Self::List(words) => words.clone(),
        }
    }
}

impl Default for Many {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl From<&'static str> for Many {
    fn from(word: &'static str) -> Self {
        Self::One(word)
    }
}

/// What an editor writes for a person, with places to fill in (`${1:…}`).
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(in crate::config) struct Snippet {
    pub label: String,
    pub description: String,
    pub body: Written,
}

impl Snippet {
    /// An example in which every value is one to fill in.
    pub(in crate::config) fn of(label: &str, description: &str, example: &Written) -> Self {
        Self { label: label.to_owned(), description: description.to_owned(), body: example.to_fill_in() }
    }

    /// An entry of a mapping whose keys the writer chooses.
    fn entry(example: &Written) -> Self {
        let body = example.to_fill_in_with_keys();
        Self { label: "entry".to_owned(), description: "A name and what belongs to it.".to_owned(), body }
    }
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
    /// With a description, in which words in backquotes are such as stand in a file, and the examples that are mappings.
    pub(in crate::config) fn described(self, text: &str) -> Self {
        let examples = self.examples.iter().filter(|example| example.has_mapping());
        let examples: Vec<String> = examples.map(|example| format!("`{}`", example.flow())).collect();
        let markdown = match examples.as_slice() {
            [] => text.to_owned(),
            examples => format!("{text}\n\nFor example {}.", examples.join(", or ")),
        };
        let is_marked = markdown.contains(['`', '*', '_']);
        Self { description: Some(text.to_owned()), markdown_description: is_marked.then_some(markdown), ..self }
    }

    /// A mapping or a list, whatever `compound` is, or else the other. `wanted` completes "… is wanted here", said of a value
    /// that is neither.
    pub(in crate::config) fn either(wanted: &str, other: Self, compound: Self) -> Self {
        let examples = other.examples.iter().chain(&compound.examples).cloned().collect();
        let pattern_error_message = other.pattern.as_ref().and(other.error_message.clone());
        let error_message = Some(format!("{wanted} is wanted here"));
        let condition = Self { types: compound.types.clone(), ..Self::default() };
        Self {
            default_snippets: compound.default_snippets.clone(),
            condition: Some(Box::new(condition)),
            then: Some(Box::new(compound)),
            otherwise: Some(Box::new(Self { pattern_error_message, error_message, ..other })),
            examples,
            ..Self::default()
        }
    }

    /// The schemas that a value may be held against besides this one.
    pub(super) fn alternatives(&self) -> impl Iterator<Item = &Self> {
        self.any_of.iter().chain(self.otherwise.as_deref()).chain(self.then.as_deref())
    }

    /// With these examples instead of its own and those of its alternatives.
    pub(in crate::config) fn with_examples(mut self, examples: Vec<Written>) -> Self {
        self.any_of.iter_mut().for_each(|schema| schema.examples.clear());
        let branches = [&mut self.then, &mut self.otherwise];
        branches.into_iter().flatten().for_each(|schema| schema.examples.clear());
        Self { examples, ..self }
    }

    /// A list of these.
    pub(in crate::config) fn list(items: Self) -> Self {
        let examples = items.examples.iter().take(1).map(|example| Written::List(vec![example.clone()])).collect();
        Self {
            types: "array".into(),
            items: Some(Box::new(items)),
            error_message: Some(format!("{LIST} is wanted here")),
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
            default_snippets: example.iter().map(Snippet::entry).collect(),
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
