//! What a plugin says it is: the answer of `describe`, parsed and checked (`wit/delivery.wit`, interface `plugin`).

use semver::Version;
use serde_json::{Map, Value};

use crate::notification::Name;

use super::limits::DESCRIPTION_BYTES_MAX;
use super::text::{bytes, one_line};

/// Characters kept of a summary.
const SUMMARY_LENGTH_MAX: usize = 200;

/// Characters of a version.
const VERSION_LENGTH_MAX: usize = 100;

/// Entries in each list of what a plugin wants.
const WANTS_MAX: usize = 100;

/// What a plugin is.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// Its name, which is also that of its file.
    pub name: Name,
    /// Its version, a semantic version (semver 2.0).
    pub version: String,
    /// One line for a person; empty when it gives none.
    pub summary: String,
    /// A JSON Schema (draft-07) of a target's settings.
    pub settings: Option<Value>,
    /// What it hopes to be granted. It is granted nothing by saying so.
    pub wants: Wants,
    /// Whether it reads the payloads of notifications.
    pub needs_data: bool,
    /// Whether it reads what the last receipt of the target and subject asked to remember.
    pub needs_memory: bool,
    /// What it means to repeat an attempt.
    pub repeat: Repeat,
    /// Whether what it starts can write events back: an agent, say.
    pub agent: bool,
}

/// What a plugin hopes to be granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// Hosts to make HTTP requests to.
    pub http: Vec<String>,
    /// Whether it sends mail.
    pub mail: bool,
    /// Tools to call, each `connector/tool`.
    pub tools: Vec<String>,
}

/// What it means to repeat an attempt with the same delivery id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// The destination recognises it.
    Harmless,
    /// It shows twice. Assumed of a plugin that does not say, since delivery is at least once.
    Tolerable,
    /// It does harm.
    Harmful,
}

impl Repeat {
    /// As the contract spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Harmless => "harmless",
            Self::Tolerable => "tolerable",
            Self::Harmful => "harmful",
        }
    }
}

impl Manifest {
    /// Reads what `describe` answered.
    ///
    /// # Errors
    /// Every mistake, each with its place.
    pub(super) fn parse(text: &str) -> Result<Self, Vec<String>> {
        if text.len() > DESCRIPTION_BYTES_MAX {
            return Err(vec![format!("it is {} bytes long; at most {}", text.len(), bytes(DESCRIPTION_BYTES_MAX))]);
        }
        let object = match serde_json::from_str(text) {
            Ok(Value::Object(object)) => object,
            Ok(_) => return Err(vec!["it is JSON but no object".into()]),
            Err(error) => return Err(vec![format!("it is no JSON: {error}")]),
        };
        let mut mistakes = Vec::new();
        let manifest = Reader { object: &object, place: "", mistakes: &mut mistakes }.manifest();
        manifest.filter(|_| mistakes.is_empty()).ok_or(mistakes)
    }
}

/// Reads one object and collects its mistakes.
struct Reader<'a, 'm> {
    object: &'a Map<String, Value>,
    /// Before each key, such as `wants.`.
    place: &'static str,
    mistakes: &'m mut Vec<String>,
}

impl<'a> Reader<'a, '_> {
    fn manifest(&mut self) -> Option<Manifest> {
        let name = self.required("name", |name| {
            name.parse().map_err(|error| format!("{:?} is no name; {error}", one_line(name, 80)))
        });
        let version = self.required("version", |version| {
            let wrong = || format!("{:?} is no semantic version such as 1.2.3", one_line(version, 80));
            if is_semantic_version(version) { Ok(version.to_owned()) } else { Err(wrong()) }
        });
        let summary = self.text("summary").map_or_else(String::new, |summary| one_line(summary, SUMMARY_LENGTH_MAX));
        let settings = self.schema();
        let wants = self.wants();
        let needs = self.needs();
        let (repeat, agent) = (self.repeat(), self.flag("agent"));
        let (needs_data, needs_memory) = (needs.contains(&"data"), needs.contains(&"memory"));
        let (name, version) = (name?, version?);
        Some(Manifest { name, version, summary, settings, wants, needs_data, needs_memory, repeat, agent })
    }

    fn schema(&mut self) -> Option<Value> {
        let schema = self.value("settings")?;
        if schema.is_object() || schema.is_boolean() {
            return Some(schema.clone());
        }
        self.mistake("settings", "must be a JSON Schema: an object");
        None
    }

    fn wants(&mut self) -> Wants {
        let object = match self.value("wants") {
            None => return Wants::default(),
            Some(Value::Object(object)) => object,
            Some(_) => {
                self.mistake("wants", "must be an object, such as {\"http\": [\"hooks.example.com\"]}");
                return Wants::default();
            }
        };
        let mut inner = Reader { object, place: "wants.", mistakes: self.mistakes };
        let owned = |texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect();
        Wants { http: owned(inner.texts("http")), mail: inner.flag("mail"), tools: owned(inner.texts("tools")) }
    }

    fn needs(&mut self) -> Vec<&'a str> {
        let needs = self.texts("needs");
        for need in &needs {
            if !["data", "memory"].contains(need) {
                let need = one_line(need, 80);
                self.mistake("needs", &format!("{need:?} is unknown (this host knows: data, memory)"));
            }
        }
        needs
    }

    fn repeat(&mut self) -> Repeat {
        match self.text("repeat") {
            None | Some("tolerable") => Repeat::Tolerable,
            Some("harmless") => Repeat::Harmless,
            Some("harmful") => Repeat::Harmful,
            Some(other) => {
                let other = one_line(other, 80);
                self.mistake("repeat", &format!("{other:?} is not one of harmless, tolerable, harmful"));
                Repeat::Tolerable
            }
        }
    }
}

/// The kinds of value.
impl<'a> Reader<'a, '_> {
    /// The value of a key; `null` means absent.
    fn value(&self, key: &str) -> Option<&'a Value> {
        self.object.get(key).filter(|value| !value.is_null())
    }

    fn mistake(&mut self, key: &str, what: &str) {
        self.mistakes.push(format!("{}{key}: {what}", self.place));
    }

    fn text(&mut self, key: &str) -> Option<&'a str> {
        let value = self.value(key)?;
        if value.as_str().is_none() {
            self.mistake(key, "must be a string");
        }
        value.as_str()
    }

    fn required<T>(&mut self, key: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        if self.value(key).is_none() {
            self.mistake(key, "is missing");
        }
        read(self.text(key)?).map_err(|what| self.mistake(key, &what)).ok()
    }

    fn flag(&mut self, key: &str) -> bool {
        let Some(value) = self.value(key) else { return false };
        if !value.is_boolean() {
            self.mistake(key, "must be true or false");
        }
        value.as_bool().unwrap_or(false)
    }

    fn texts(&mut self, key: &str) -> Vec<&'a str> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let entries = value.as_array().map(Vec::as_slice);
        let texts: Option<Vec<&str>> = entries.and_then(|entries| entries.iter().map(Value::as_str).collect());
        match texts {
            Some(texts) if texts.len() <= WANTS_MAX => texts,
            _ => {
                self.mistake(key, &format!("must be a list of at most {WANTS_MAX} strings"));
                Vec::new()
            }
        }
    }
}

/// Whether `text` is a version of semver 2.0 (semver.org), at most 100 characters long.
pub(super) fn is_semantic_version(text: &str) -> bool {
    text.len() <= VERSION_LENGTH_MAX && Version::parse(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_description_is_read() {
        let manifest = Manifest::parse(
            r#"{"name":"slack","version":"1.2.3-rc.1+5","summary":"posts\nto Slack","settings":{"type":"object"},
                "wants":{"http":["hooks.slack.com"],"mail":false,"tools":null},"needs":["data"],"repeat":"harmful",
                "agent":true,"later":1}"#,
        );
        let expected = Manifest {
            name: "slack".parse().unwrap(),
            version: "1.2.3-rc.1+5".into(),
            summary: "posts to Slack".into(),
            settings: Some(serde_json::json!({"type": "object"})),
            wants: Wants { http: vec!["hooks.slack.com".into()], mail: false, tools: vec![] },
            needs_data: true,
            needs_memory: false,
            repeat: Repeat::Harmful,
            agent: true,
        };
        assert_eq!(manifest, Ok(expected));
    }

    #[test]
    fn a_name_and_a_version_are_enough() {
        let manifest = Manifest::parse(r#"{"name":"a","version":"0.0.0"}   "#).unwrap();
        assert_eq!((manifest.summary.as_str(), manifest.settings, manifest.wants), ("", None, Wants::default()));
        assert_eq!((manifest.needs_data, manifest.needs_memory, manifest.repeat), (false, false, Repeat::Tolerable));
        assert!(!manifest.agent);
    }

    #[test]
    fn every_mistake_is_reported_at_once() {
        let mistakes = Manifest::parse(
            r#"{"name":"Slack","version":"1.2","summary":1,"settings":[],"wants":{"http":"x","mail":"yes"},
                "needs":["files"],"repeat":"sometimes","agent":"no"}"#,
        );
        assert_eq!(
            mistakes.unwrap_err(),
            [
                "name: \"Slack\" is no name; a name is 1 to 63 of a-z, 0-9 and inner hyphens",
                "version: \"1.2\" is no semantic version such as 1.2.3",
                "summary: must be a string",
                "settings: must be a JSON Schema: an object",
                "wants.http: must be a list of at most 100 strings",
                "wants.mail: must be true or false",
                "needs: \"files\" is unknown (this host knows: data, memory)",
                "repeat: \"sometimes\" is not one of harmless, tolerable, harmful",
                "agent: must be true or false",
            ]
        );
    }

    #[test]
    fn what_is_no_description_is_refused() {
        for (text, expected) in [
            ("", "it is no JSON: EOF while parsing a value at line 1 column 0"),
            ("[]", "it is JSON but no object"),
            ("{}", "name: is missing"),
            (r#"{"name":null,"version":"1.0.0"}"#, "name: is missing"),
            (&"x".repeat(DESCRIPTION_BYTES_MAX + 1), "it is 262145 bytes long; at most 256 KiB"),
        ] {
            let mistakes = Manifest::parse(text).unwrap_err();
            assert_eq!(mistakes.first().map(String::as_str), Some(expected));
        }
    }

    #[test]
    fn versions_follow_the_grammar() {
        for good in ["0.0.0", "1.2.3", "10.20.30", "1.0.0-alpha.1", "1.0.0-0a", "1.0.0--", "1.0.0+01", "1.0.0-a+b.c"] {
            assert!(is_semantic_version(good), "{good}");
        }
        let long = format!("1.0.0-{}", "a".repeat(100));
        for bad in [
            "",
            "1",
            "1.2",
            "1.2.3.4",
            "01.2.3",
            "v1.2.3",
            "1.2.3-",
            "1.2.3-01",
            "1.2.3+",
            "1.2.3-a..b",
            "1.2.x",
            "1.2.18446744073709551616",
            &long,
        ] {
            assert!(!is_semantic_version(bad), "{bad}");
        }
    }
}
