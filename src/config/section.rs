//! How sections of a file are declared and read: each key once, with its type, whether it is needed, and what it is for.

use super::code::{Code, Said};
use super::node::{At, Entry, Kind, Node};
use super::read::{Placed, Read, placed, refuse};
use super::scalar::{Scalar, quote};
use super::schema::{Additional, File, Schema, Snippet, Written};
use super::source::Report;
use super::{Place, suggest};

/// A kind of mapping with known keys.
#[derive(Debug)]
pub(super) struct Section {
    /// What one of them is called, as in `RawTarget`.
    pub name: &'static str,
    /// What it is, in full sentences.
    pub about: &'static str,
    /// The keys it has, in the order they are shown.
    pub keys: &'static [Key],
    /// Keys of the documented configuration that this version does not have.
    pub not_yet: &'static [&'static str],
    /// Keys that people look for here, and what is said of each.
    pub elsewhere: &'static [(&'static str, &'static str)],
    /// The whole as it would be written, where it is short enough to be shown to those who write something else.
    pub written: Option<&'static str>,
    /// Good ones; in the first, which editors offer, every value is one to fill in.
    pub examples: &'static [&'static str],
}

/// One key of a section.
#[derive(Debug)]
pub(super) struct Key {
    pub name: &'static str,
    /// What it is for, in full sentences; the first alone is said where the key is missing.
    pub about: &'static str,
    /// What may stand there, in words.
    pub wanted: &'static str,
    pub need: Need,
    /// What may stand there, for editors.
    pub schema: fn(File) -> Schema,
}

/// Whether a key must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Required,
    Optional,
    /// What stands for it when it is left out, as it would be written.
    Default(&'static str),
}

impl Section {
    /// The entries of a mapping, once every key that does not belong there was reported.
    pub(super) fn open<'n>(&self, node: &'n Node, report: &mut Report) -> Option<&'n [Entry]> {
        let Kind::Mapping(entries) = &node.kind else {
            let remedy = match self.written {
                Some(written) => format!("write `{written}`"),
                None => format!("its keys are {}", self.keys.iter().map(|key| key.name).collect::<Vec<_>>().join(", ")),
            };
            refuse(node, "a mapping", &remedy, report);
            return None;
        };
        for entry in entries {
            if let Some(said) = self.objection(&entry.key) {
                report.mistake(&entry.key_at, said);
            }
        }
        Some(entries)
    }

    fn objection(&self, key: &str) -> Option<Said> {
        if self.keys.iter().any(|known| known.name == key) {
            return None;
        }
        if self.not_yet.contains(&key) {
            return Some(Code::UnsupportedKey.says(not_supported(key)));
        }
        if let Some((_, message)) = self.elsewhere.iter().find(|(name, _)| *name == key) {
            return Some(Code::MisplacedKey.says(*message));
        }
        let hint = suggest::hint(key, self.keys.iter().map(|key| key.name), "keys here");
        Some(Code::UnknownKey.says(format!("unknown key {}{hint}", quote(key))))
    }

    /// Whether a key that does not belong here was perhaps meant for this one.
    fn stands_for(&self, key: &str, name: &str) -> bool {
        let names: Vec<_> = self.keys.iter().map(|key| key.name).collect();
        // What is said of the key then names the one that is missing.
        let leads_there =
            |message: &str| [format!("`{name}`"), format!("{name}:")].iter().any(|it| message.contains(it));
        let is_elsewhere = self.elsewhere.iter().any(|(other, message)| *other == key && leads_there(message));
        is_elsewhere || !names.contains(&key) && suggest::closest(key, &names) == Some(name)
    }

    /// Reads one key of an opened section.
    pub(super) fn field<T: Read>(
        &self,
        name: &str,
        (node, entries): (&Node, &[Entry]),
        report: &mut Report,
    ) -> Option<Placed<T>> {
        if let Some(entry) = entries.iter().find(|entry| entry.key == name) {
            return placed(&entry.value, report);
        }
        let key = self.keys.iter().find(|key| key.name == name)?;
        match key.need {
            Need::Optional => None,
            // A key that is misspelt, or that people put in its place, is reported once, by its own name.
            Need::Required if entries.iter().any(|entry| self.stands_for(&entry.key, name)) => None,
            Need::Required => {
                let about = first_sentence(key.about);
                let about: String =
                    about.chars().take(1).flat_map(char::to_lowercase).chain(about.chars().skip(1)).collect();
                let text = format!("`{name}` is missing ({about}): write {}", key.wanted);
                report.mistake(&node.at, Code::MissingKey.says(text));
                None
            }
            Need::Default(text) => {
                let scalar = Scalar { text: text.to_owned(), plain: true, written: None };
                // A whole file has no line for what it leaves out.
                let place = if node.at.path.is_root() { Place::NOWHERE } else { node.at.place };
                let at = At { path: node.at.path.key(name), place };
                placed(&Node { at, end: node.at.place, kind: Kind::Scalar(scalar) }, report)
            }
        }
    }
}

/// The first sentence, without its full stop.
fn first_sentence(about: &str) -> &str {
    let about = about.trim();
    about.split_once(". ").map_or(about, |(first, _)| first).trim_end_matches('.')
}

impl Section {
    /// What may stand there, for editors.
    pub(super) fn schema(&self, file: File) -> Schema {
        let examples: Vec<Written> = self.examples.iter().map(|text| Written::of(text)).collect();
        let mut properties: Vec<_> = self.keys.iter().map(|key| (key.name, key.schema(file, &examples))).collect();
        let refused = |(name, message): (&'static str, &str)| (name, Schema::nothing(message));
        properties.extend(self.elsewhere.iter().map(|(name, message)| refused((*name, *message))));
        properties.extend(self.not_yet.iter().map(|name| refused((*name, &not_supported(name)))));
        let label = in_words(self.name.trim_start_matches("Raw"));
        let snippet = examples.first().map(|example| Snippet::of(&label, self.about.trim(), example));
        Schema {
            types: "object".into(),
            properties,
            required: self.keys.iter().filter(|key| key.need == Need::Required).map(|key| key.name).collect(),
            additional_properties: Some(Additional::NONE),
            examples,
            default_snippets: snippet.into_iter().collect(),
            ..Schema::default()
        }
        .described(self.about.trim())
    }
}

impl Key {
    /// The schema of what stands under it. Its examples are those that the examples of the section have there.
    fn schema(&self, file: File, of_section: &[Written]) -> Schema {
        let mut schema = (self.schema)(file);
        let mut examples: Vec<Written> = Vec::new();
        for example in of_section.iter().filter_map(|example| example.get(self.name)) {
            if !examples.contains(example) {
                examples.push(example.clone());
            }
        }
        if !examples.is_empty() {
            schema = schema.with_examples(examples);
        }
        if let Need::Default(text) = self.need {
            schema.default = Some(Written::plain(text));
        }
        schema.described(self.about.trim())
    }
}

/// `HttpGrant` as `http grant`.
fn in_words(name: &str) -> String {
    let mut words = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

fn not_supported(key: &str) -> String {
    format!("`{key}` is not supported by this version: remove it")
}

/// The keys that stand in a section.
#[derive(Debug)]
pub(super) struct Given {
    keys: Vec<String>,
    is_clean: bool,
}

impl Given {
    /// Of these entries of a section.
    pub(super) fn of(entries: &[Entry], section: &Section) -> Self {
        let is_known = |key: &str| section.keys.iter().any(|known| known.name == key);
        let is_clean = entries.iter().all(|entry| is_known(&entry.key));
        Self { keys: entries.iter().map(|entry| entry.key.clone()).collect(), is_clean }
    }

    /// Whether every key belongs there. One that does not may stand for one that is missing, and was reported.
    pub(super) fn is_clean(&self) -> bool {
        self.is_clean
    }

    /// Whether a key stands there, usable or not.
    pub(super) fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|given| given == key)
    }
}

/// Declares a section: a struct with one optional, placed value for each key, its [`Section`], and how it is read.
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        struct $name:ident {
            $( $(#[doc = $key_about:literal])+ $key:literal => $field:ident: $type:ty, $need:expr; )+
        }
        not yet: [$($later:literal),*]
        $( elsewhere: { $( $other:literal: $message:expr, )+ } )?
        $( written: $written:literal )?
        $( examples: [$($example:literal),+ $(,)?] )?
    ) => {
        $(#[doc = $about])+
        #[derive(Debug)]
        pub(in crate::config) struct $name {
            $( $(#[doc = $key_about])+ pub $field: Option<$crate::config::read::Placed<$type>>, )+
            /// Which keys stand in the file, whether usable or not.
            #[allow(dead_code, reason = "not every section has a rule about keys that are there but unusable")]
            pub given: $crate::config::section::Given,
        }

        impl $name {
            /// The keys and what they are for.
            pub(in crate::config) const SECTION: $crate::config::section::Section = $crate::config::section::Section {
                name: stringify!($name),
                about: concat!($($about),+),
                keys: &[$( $crate::config::section::Key {
                    name: $key,
                    about: concat!($($key_about),+),
                    wanted: <$type as $crate::config::read::Read>::WANTED,
                    need: $need,
                    schema: <$type as $crate::config::read::Read>::schema,
                } ),+],
                not_yet: &[$($later),*],
                elsewhere: &[$( $( ($other, $message) ),+ )?],
                written: [$( Some($written), )? None][0],
                // One of the two must be there.
                examples: [$( &[$written], )? $( &[$($example),+] )?][0],
            };
        }

        impl $crate::config::read::Read for $name {
            const WANTED: &'static str = "a mapping";

            fn read(
                node: &$crate::config::node::Node,
                report: &mut $crate::config::source::Report,
            ) -> Option<Self> {
                let section = Self::SECTION;
                let entries = section.open(node, report)?;
                Some(Self {
                    $( $field: section.field($key, (node, entries), report), )+
                    given: $crate::config::section::Given::of(entries, &section),
                })
            }

            fn schema(file: $crate::config::schema::File) -> $crate::config::schema::Schema {
                Self::SECTION.schema(file)
            }
        }
    };
}
pub(super) use section;
