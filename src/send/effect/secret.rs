//! Sealed secrets: plugins see placeholders, and the host puts values in where a secret's own rule allows.

use std::cell::RefCell;
use std::collections::BTreeMap;

use memchr::memmem;
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::Value;

use super::mask::Mask;
use crate::config::{HostPattern, Secret, SecretPlace, SecretValue, TokenSource};
use crate::notification::Name;
use crate::send::keys::Keys;

/// How every placeholder begins; only characters that URLs leave as they are.
pub const PREFIX: &str = "switchbell-secret.";

/// Why a request with a secret is refused by a host that did not read its value (see [`Secrets::NotRead`](crate::config::Secrets)).
pub const NOT_READ: &str = "secret-not-read";

/// Why an effect is refused in which a secret stands where its rule does not let it.
pub const MISPLACED: &str = "secret-place";

/// The last part of the stand-ins that `check` sees: that of an attempt's placeholders is another for each.
const STAND_IN: &str = "0000000000000000";

/// The placeholders of one attempt.
#[derive(Debug)]
pub struct Seals<'a> {
    by_placeholder: BTreeMap<String, (&'a Name, &'a Secret)>,
}

/// The settings of a target as a plugin sees them.
#[derive(Debug)]
pub struct Sealed<'a> {
    /// JSON text with placeholders for secrets.
    pub settings: String,
    /// What they stand for.
    pub seals: Seals<'a>,
}

/// Which attempt placeholders are for.
#[derive(Clone, Copy, Debug)]
pub struct Occasion<'a> {
    /// What they are computed from.
    pub keys: &'a Keys,
    /// The delivery's id.
    pub delivery: &'a str,
    /// The number of the attempt.
    pub attempt: u32,
}

/// Why settings cannot be sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchSecret(pub String);

impl<'a> Seals<'a> {
    /// The secret with this placeholder.
    pub fn get(&self, placeholder: &str) -> Option<(&'a Name, &'a Secret)> {
        self.by_placeholder.get(placeholder).copied()
    }

    /// The name of a secret whose placeholder stands somewhere in `bytes`.
    pub fn found_in(&self, bytes: &[u8]) -> Option<&'a Name> {
        let stands = |placeholder: &str| memmem::find(bytes, placeholder.as_bytes()).is_some();
        // Most texts hold none at all: one search for what all of them begin with settles it.
        if !stands(PREFIX) {
            return None;
        }
        self.by_placeholder.iter().find(|(placeholder, _)| stands(placeholder)).map(|(_, &(name, _))| name)
    }

    /// The secret of this name.
    pub fn named(&self, name: &Name) -> Option<&'a Secret> {
        self.by_placeholder.values().find(|(own, _)| *own == name).map(|&(_, secret)| secret)
    }

    /// The placeholder that a text begins with.
    pub fn at_the_start_of(&self, text: &str) -> Option<&str> {
        self.by_placeholder.keys().map(String::as_str).find(|placeholder| text.starts_with(placeholder))
    }

    /// Whether any of the secrets has its place here.
    pub fn have(&self, here: impl Fn(&SecretPlace) -> bool) -> bool {
        self.by_placeholder.values().any(|(_, secret)| here(&secret.place))
    }

    /// The placeholders and names of secrets that are access tokens.
    pub fn tokens(&self) -> impl Iterator<Item = (&str, &'a Name, &'a TokenSource)> {
        self.by_placeholder.iter().filter_map(|(placeholder, &(name, secret))| match &secret.value {
            SecretValue::Token(source) => Some((placeholder.as_str(), name, &**source)),
            SecretValue::Fixed(_) | SecretValue::NotRead => None,
        })
    }

    /// Of an attempt without secrets.
    pub fn none() -> Self {
        Self { by_placeholder: BTreeMap::new() }
    }

    /// `text` with each placeholder as `by` writes the name of its secret. What holds no placeholder stays as it is.
    pub fn with_names(&self, text: &str, by: impl Fn(&Name) -> String) -> String {
        if !text.contains(PREFIX) {
            return text.to_owned();
        }
        let replaced = |text: String, (placeholder, (name, _)): (&String, &(&Name, &Secret))| {
            text.replace(placeholder.as_str(), &by(name))
        };
        self.by_placeholder.iter().fold(text.to_owned(), replaced)
    }

    /// `text` with the stand-ins that `check` sees in the place of the placeholders.
    pub fn with_stand_ins(&self, text: &str) -> String {
        self.with_names(text, |name| stand_in_of(name.as_str()))
    }

    /// `text` with every secret's value and placeholder taken out, for reasons that are kept and shown.
    pub fn redact(&self, text: &str) -> String {
        let mut text = self.with_names(text, |name| format!("[secret {name}]")).into_bytes();
        Mask::of_all(self.by_placeholder.values().copied()).apply(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// Replaces each `{"secret": NAME}` of a target's settings by a placeholder for one attempt: another for each attempt, and
/// the same when the attempt goes on after a restart.
///
/// # Errors
/// Names a secret that there is not.
pub fn seal<'a>(
    settings: &Value,
    secrets: &'a BTreeMap<Name, Secret>,
    occasion: Occasion<'_>,
) -> Result<Sealed<'a>, NoSuchSecret> {
    let mut by_placeholder = BTreeMap::new();
    let mut placeholder = |name: &str| {
        let (name, secret) = secrets.get_key_value(name).ok_or_else(|| NoSuchSecret(name.to_owned()))?;
        let Occasion { keys, delivery, attempt } = occasion;
        let placeholder = format!("{PREFIX}{name}.{}", keys.placeholder(delivery, attempt, name.as_str()));
        by_placeholder.insert(placeholder.clone(), (name, secret));
        Ok(placeholder)
    };
    let settings = text_with(settings, &mut placeholder)?;
    Ok(Sealed { settings, seals: Seals { by_placeholder } })
}

/// The settings as a plugin's `check` sees them: with stand-ins of the same form, always the same.
pub fn stand_in(settings: &Value) -> String {
    let stand_in = |name: &str| Ok::<_, NoSuchSecret>(stand_in_of(name));
    text_with(settings, &mut { stand_in }).unwrap_or_else(|_| "{}".to_owned())
}

/// The key of a lane as `check` gave it, with a keyed hash of the value in the place of each secret's stand-in: two
/// secrets with one value share a lane, and the value does not show.
pub fn lane_key(key: &str, secrets: &BTreeMap<Name, Secret>, keys: &Keys) -> String {
    if !key.contains(PREFIX) {
        return key.to_owned();
    }
    let replaced = |key: String, (name, secret): (&Name, &Secret)| {
        let stand_in = stand_in_of(name.as_str());
        if key.contains(&stand_in) {
            key.replace(&stand_in, &format!("secret:{}", keys.lane(secret.fixed().unwrap_or_default())))
        } else {
            key
        }
    };
    secrets.iter().fold(key.to_owned(), replaced)
}

fn stand_in_of(name: &str) -> String {
    format!("{PREFIX}{name}.{STAND_IN}")
}

/// Whether a host is among those a secret's rule names.
pub fn host_allowed(hosts: &[HostPattern], host: &str) -> bool {
    hosts.iter().any(|pattern| pattern.covers(host))
}

/// JSON text of `settings` with a placeholder in the place of each secret.
fn text_with<E>(settings: &Value, placeholder: &mut dyn FnMut(&str) -> Result<String, E>) -> Result<String, E> {
    let replacing = RefCell::new(Replacing { placeholder, error: None });
    let text = serde_json::to_string(&Replaced { value: settings, replacing: &replacing });
    // Nothing else can go wrong: the keys of JSON are texts.
    replacing.into_inner().error.map_or_else(|| Ok(text.unwrap_or_default()), Err)
}

struct Replacing<'p, E> {
    placeholder: &'p mut dyn FnMut(&str) -> Result<String, E>,
    error: Option<E>,
}

/// Written without a copy of the settings, once for each attempt.
struct Replaced<'v, 'p, E> {
    value: &'v Value,
    replacing: &'v RefCell<Replacing<'p, E>>,
}

impl<E> Serialize for Replaced<'_, '_, E> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let replaced = |value| Replaced { value, replacing: self.replacing };
        match self.value {
            Value::Object(object) => match secret_reference(self.value) {
                Some(name) => {
                    let mut replacing = self.replacing.borrow_mut();
                    let placeholder = (replacing.placeholder)(name);
                    let placeholder = placeholder.map_err(|error| replacing.error = Some(error));
                    serializer.serialize_str(&placeholder.map_err(|()| S::Error::custom("no such secret"))?)
                }
                None => serializer.collect_map(object.iter().map(|(key, member)| (key, replaced(member)))),
            },
            Value::Array(items) => serializer.collect_seq(items.iter().map(replaced)),
            plain => plain.serialize(serializer),
        }
    }
}

/// The name in `{"secret": NAME}`.
fn secret_reference(value: &Value) -> Option<&str> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    object.get("secret")?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secrets() -> BTreeMap<Name, Secret> {
        let secret = |value: &str, place| Secret::new(value.to_owned(), place);
        let header = SecretPlace::Header { name: "authorization".to_owned(), prefix: Some("Bearer".to_owned()) };
        BTreeMap::from([
            ("hook".parse().unwrap(), secret("https://hooks.example/T/very-secret", SecretPlace::Url)),
            ("bot".parse().unwrap(), secret("xoxb-0123456789abcdef", header)),
        ])
    }

    fn sealed<'a>(
        settings: &Value,
        attempt: u32,
        secrets: &'a BTreeMap<Name, Secret>,
    ) -> Result<Sealed<'a>, NoSuchSecret> {
        seal(settings, secrets, Occasion { keys: &Keys::new(&[7; 32]), delivery: "0badcafe-1", attempt })
    }

    #[test]
    fn a_plugin_sees_placeholders_that_are_its_attempts_own() {
        let secrets = secrets();
        let settings = json!({"webhook": {"secret": "hook"}, "list": [{"secret": "bot"}, 1], "text": "x"});
        let once = sealed(&settings, 1, &secrets).unwrap();
        let twice = sealed(&settings, 2, &secrets).unwrap();
        assert_ne!(once.settings, twice.settings);
        assert_eq!(once.settings, sealed(&settings, 1, &secrets).unwrap().settings, "an attempt that is resumed");
        let seen: Value = serde_json::from_str(&once.settings).unwrap();
        let placeholder = seen["webhook"].as_str().unwrap();
        assert!(placeholder.starts_with("switchbell-secret.hook.") && placeholder.len() == 23 + 16, "{placeholder}");
        assert_eq!(once.seals.get(placeholder).unwrap().0.as_str(), "hook");
        assert!(twice.seals.get(placeholder).is_none());
        assert!(!once.settings.contains("very-secret") && !once.settings.contains("xoxb"));
        assert_eq!(seen["text"], "x");
    }

    #[test]
    fn the_stand_ins_of_a_check_are_always_the_same() {
        let settings = json!({"webhook": {"secret": "hook"}});
        assert_eq!(stand_in(&settings), r#"{"webhook":"switchbell-secret.hook.0000000000000000"}"#);
    }

    #[test]
    fn secrets_of_one_value_share_a_lane_and_do_not_show() {
        let (mut secrets, keys) = (secrets(), Keys::new(&[7; 32]));
        let key = |secret: &str, secrets: &BTreeMap<Name, Secret>| {
            let seen: Value = serde_json::from_str(&stand_in(&json!({"secret": secret}))).unwrap();
            lane_key(&format!("webhook {} end", seen.as_str().unwrap()), secrets, &keys)
        };
        let (hook, bot) = (key("hook", &secrets), key("bot", &secrets));
        assert_ne!(hook, bot);
        assert!(hook.starts_with("webhook secret:") && hook.ends_with(" end") && hook.len() == 15 + 32 + 4, "{hook}");
        secrets.get_mut("bot").unwrap().value = secrets["hook"].value.clone();
        assert_eq!(key("bot", &secrets), hook);
        assert_eq!(lane_key("#ops", &secrets, &keys), "#ops");
    }

    #[test]
    fn a_secret_that_is_not_there_is_named() {
        let error = sealed(&json!({"webhook": {"secret": "other"}}), 1, &secrets()).unwrap_err();
        assert_eq!(error, NoSuchSecret("other".to_owned()));
    }

    #[test]
    fn echoes_of_a_secret_are_masked_in_every_likely_form() {
        let secrets = secrets();
        let sealed = sealed(&json!([{"secret": "hook"}, {"secret": "bot"}]), 1, &secrets).unwrap();
        let check = |answer: &str, expected: &str| {
            let mut masked = answer.as_bytes().to_vec();
            Mask::of_all(sealed.seals.by_placeholder.values().copied()).apply(&mut masked);
            assert_eq!(String::from_utf8(masked).unwrap(), expected);
            assert_eq!(sealed.seals.redact(answer), expected);
        };
        check("Cannot POST /T/very-secret", "Cannot POST [secret hook]");
        check("https://hooks.example/T/very-secret twice: /T/very-secret", "[secret hook] twice: [secret hook]");
        check("Authorization: Bearer xoxb-0123456789abcdef", "Authorization: Bearer [secret bot]");
        check("nothing of /T/ or of hooks.example", "nothing of /T/ or of hooks.example");
        check("", "");
    }

    #[test]
    fn kept_texts_hold_neither_values_nor_placeholders() {
        let secrets = secrets();
        let sealed = sealed(&json!([{"secret": "hook"}, {"secret": "bot"}]), 1, &secrets).unwrap();
        let text = format!("{} https://hooks.example/T/very-secret xoxb-0123456789abcdef", sealed.settings);
        let kept = sealed.seals.redact(&text);
        assert_eq!(kept, "[\"[secret hook]\",\"[secret bot]\"] [secret hook] [secret bot]");
        assert!(sealed.seals.found_in(text.as_bytes()).is_some());
        assert_eq!(sealed.seals.found_in(b"switchbell-secret.hook.0000000000000000"), None);
    }
}
