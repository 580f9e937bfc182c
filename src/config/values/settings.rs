//! `with`: a plugin's settings as JSON, with the place of every value and the secrets they ask for.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use super::super::Place;
use super::super::code::Code;
use super::super::node::{At, Kind, Node};
use super::super::read::Read;
use super::super::scalar::{Scalar, Typed};
use super::super::schema::{Additional, File, Many, Schema, Written, no_variable};
use super::super::source::Report;

/// The settings of one target.
#[derive(Debug)]
pub(in crate::config) struct Settings {
    /// The settings as JSON.
    pub value: Value,
    /// Where each value stands, by JSON Pointer.
    pub places: BTreeMap<String, Place>,
    /// The names of secrets as written in `{ secret: NAME }`, with their places.
    pub secrets: Vec<(String, At)>,
    /// Whether all of it is good. What is not was reported, and reads as null.
    pub is_whole: bool,
}

/// Most bytes of texts, keys and JSON Pointers in the settings of one target: they go to the plugin at every attempt.
const SETTINGS_BYTES_MAX: usize = 64 << 10;

impl Read for Settings {
    const WANTED: &'static str = "a mapping of settings";

    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        if !matches!(node.kind, Kind::Mapping(_)) {
            if !matches!(node.kind, Kind::Reported) {
                let text = format!("settings are a mapping (`name: value`), this is {}", node.describe());
                report.mistake(&node.at, Code::WrongType.says(text));
            }
            return Some(Self { value: Value::Null, places: BTreeMap::new(), secrets: Vec::new(), is_whole: false });
        }
        let mut reader = Reader { places: BTreeMap::new(), secrets: Vec::new(), bytes: 0, is_whole: true, report };
        let value = reader.value(node, "");
        if reader.bytes > SETTINGS_BYTES_MAX {
            reader.refuse(&node.at, &format!("the settings of a target are at most {SETTINGS_BYTES_MAX} bytes"));
        }
        let Reader { places, secrets, is_whole, .. } = reader;
        Some(Self { value, places, secrets, is_whole })
    }

    /// The definitions that this refers to are those of [`setting_definition`].
    fn schema(_: File) -> Schema {
        Schema {
            types: "object".into(),
            additional_properties: Some(Additional::Any(Box::new(a_setting()))),
            dependencies: vec![("secret", nothing_beside_a_secret())],
            error_message: Some(format!("{} is wanted here", Self::WANTED)),
            examples: vec![Written::of("{ webhook: { secret: slack-ops } }")],
            ..Schema::default()
        }
    }
}

const DEFINITION: &str = "setting";

fn a_setting() -> Schema {
    Schema { reference: Some("#/definitions/setting"), ..Schema::default() }
}

/// Said of a secret that has something beside it.
const SECRET: &str = "a secret is written `{ secret: NAME }`, with nothing beside it";

fn nothing_beside_a_secret() -> Schema {
    let name = Schema { types: "string".into(), error_message: Some(SECRET.to_owned()), ..Schema::default() };
    Schema {
        properties: vec![("secret", name)],
        additional_properties: Some(Additional::NONE),
        error_message: Some(SECRET.to_owned()),
        ..Schema::default()
    }
}

/// The definition of any value among settings, by its name.
pub(in crate::config) fn setting_definition() -> (&'static str, Schema) {
    let message = "`${` is not read here: variables belong to the operator's switchbell.yaml".to_owned();
    let setting = Schema {
        types: Many::List(vec!["string", "number", "boolean", "null", "array", "object"]),
        pattern: Some(no_variable()),
        pattern_error_message: Some(message),
        items: Some(Box::new(a_setting())),
        additional_properties: Some(Additional::Any(Box::new(a_setting()))),
        dependencies: vec![("secret", nothing_beside_a_secret())],
        ..Schema::default()
    };
    (DEFINITION, setting)
}

struct Reader<'a> {
    places: BTreeMap<String, Place>,
    secrets: Vec<(String, At)>,
    bytes: usize,
    is_whole: bool,
    report: &'a mut Report,
}

impl Reader<'_> {
    fn value(&mut self, node: &Node, pointer: &str) -> Value {
        self.bytes += pointer.len() + 1;
        if self.bytes > SETTINGS_BYTES_MAX {
            return Value::Null;
        }
        self.places.insert(pointer.to_owned(), node.at.place);
        match &node.kind {
            Kind::Scalar(scalar) => {
                self.bytes += scalar.text.len();
                json(scalar).unwrap_or_else(|message| self.refuse(&node.at, &message))
            }
            Kind::List(items) => {
                let items = items.iter().enumerate();
                items.map(|(index, item)| self.value(item, &format!("{pointer}/{index}"))).collect()
            }
            Kind::Mapping(entries) => {
                let mut object = Map::new();
                for entry in entries {
                    // RFC 6901 §3.
                    let token = entry.key.replace('~', "~0").replace('/', "~1");
                    self.bytes += entry.key.len();
                    object.insert(entry.key.clone(), self.value(&entry.value, &format!("{pointer}/{token}")));
                }
                self.note_secret(node, &object);
                Value::Object(object)
            }
            Kind::Reported => {
                self.is_whole = false;
                Value::Null
            }
        }
    }

    fn refuse(&mut self, at: &At, message: &str) -> Value {
        self.report.mistake(at, message);
        self.is_whole = false;
        Value::Null
    }

    fn note_secret(&mut self, node: &Node, object: &Map<String, Value>) {
        let Some(name) = object.get("secret") else { return };
        let Kind::Mapping(entries) = &node.kind else { return };
        let Some(entry) = entries.iter().find(|entry| entry.key == "secret") else { return };
        match name {
            Value::String(name) if object.len() == 1 => self.secrets.push((name.clone(), entry.value.at.clone())),
            _ if matches!(entry.value.kind, Kind::Reported) => {}
            _ => drop(self.refuse(&entry.key_at, SECRET)),
        }
    }
}

/// The JSON value of a scalar. Numbers whose spelling would be lost need quotes.
fn json(scalar: &Scalar) -> Result<Value, String> {
    let number = match scalar.typed() {
        Typed::Null => return Ok(Value::Null),
        Typed::Boolean(value) => return Ok(Value::Bool(value)),
        Typed::Text => return Ok(Value::String(scalar.text.clone())),
        Typed::Integer(Some(value)) => {
            let unsigned = u64::try_from(value).map(Number::from);
            unsigned.or_else(|_| i64::try_from(value).map(Number::from)).ok()
        }
        Typed::Integer(None) => None,
        Typed::Float(value) => Number::from_f64(value),
    };
    let Some(number) = number else {
        return Err("this number has no place in 64 bits: put it in quotes if it is a text".to_owned());
    };
    let spelling = number.to_string();
    if spelling == scalar.text || scalar.text.starts_with("0x") || scalar.text.starts_with("0o") {
        return Ok(Value::Number(number));
    }
    Err(format!("this reads as the number {spelling}: put it in quotes if it is a text, else write {spelling}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        let scalar = Scalar { text: text.to_owned(), plain: true, written: None };
        assert_eq!(json(&scalar).ok().map(|value| value.to_string()).as_deref(), expected, "{text}");
    }

    #[test]
    fn a_number_keeps_its_spelling_or_is_refused() {
        for text in ["1", "-1", "0", "0.5", "1700000000.123456", "18446744073709551615"] {
            check(text, Some(text));
        }
        check("0x1F", Some("31"));
        for text in ["0123", "+49", "1.10", "1e400", ".inf", ".nan", "18446744073709551616"] {
            check(text, None);
        }
    }
}
