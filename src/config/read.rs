//! How values are read: every mistake is collected, none ends the reading.

use std::ops::Deref;

use super::code::Code;
use super::node::{At, Kind, Node};
use super::scalar::{Typed, quote};
use super::schema::{self, File, Form, Schema, Written};
use super::source::Report;

/// A value with its place.
#[derive(Debug, Clone)]
pub(super) struct Placed<T> {
    pub at: At,
    pub value: T,
}

impl<T> Deref for Placed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// Something that can stand in a file.
pub(super) trait Read: Sized {
    /// What it is, to complete "… is wanted here".
    const WANTED: &'static str;

    /// Reads it. None when a mistake was reported.
    fn read(node: &Node, report: &mut Report) -> Option<Self>;

    /// What may stand there, as far as its form tells.
    fn schema(file: File) -> Schema;
}

/// Reads a value and keeps its place.
pub(super) fn placed<T: Read>(node: &Node, report: &mut Report) -> Option<Placed<T>> {
    let value = T::read(node, report)?;
    Some(Placed { at: node.at.clone(), value })
}

/// Reports that something else is wanted. `remedy` says how it is written, where that is not plain.
pub(super) fn refuse(node: &Node, wanted: &str, remedy: &str, report: &mut Report) {
    let separator = if remedy.is_empty() { "" } else { "; " };
    match &node.kind {
        Kind::Reported => {}
        Kind::Scalar(scalar) if scalar.typed() == Typed::Null => {
            let text = format!("nothing stands here: write {wanted}, or leave the key out{separator}{remedy}");
            report.mistake(&node.at, Code::WrongType.says(text));
        }
        _ => {
            let found = node.describe();
            let text = format!("{wanted} is wanted here, this is {found}{separator}{remedy}");
            report.mistake(&node.at, Code::WrongType.says(text));
        }
    }
}

/// Something written as one text.
pub(super) trait FromText: Sized {
    /// What it is, to complete "… is wanted here".
    const WANTED: &'static str;
    /// Whether a plain number is handed over too, because the form says more about it than "a text is wanted".
    const SEES_NUMBERS: bool = false;
    /// How it is written, for those who write a list or a mapping; empty where that is plain.
    const REMEDY: &'static str = "";

    /// The value of the text. `quoted` is the text as a message may show it.
    ///
    /// # Errors
    /// Says what is wrong and what to write instead.
    fn from_text(text: &str, quoted: &str) -> Result<Self, String>;

    /// What such a text looks like: it fits whatever [`FromText::from_text`] takes, and little else.
    fn form() -> Form;
}

impl<T: FromText> Read for T {
    const WANTED: &'static str = <T as FromText>::WANTED;

    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        let Kind::Scalar(scalar) = &node.kind else {
            refuse(node, <T as FromText>::WANTED, T::REMEDY, report);
            return None;
        };
        match scalar.typed() {
            Typed::Null => {
                refuse(node, <T as FromText>::WANTED, "", report);
                return None;
            }
            Typed::Boolean(_) | Typed::Integer(_) | Typed::Float(_) if !T::SEES_NUMBERS => {
                let would_do = T::from_text(&scalar.text, "").is_ok();
                let remedy = if would_do { "; if it is one, put it in quotes" } else { "" };
                let (wanted, found) = (<T as FromText>::WANTED, node.describe());
                let text = format!("{wanted} is wanted here, this is {found}{remedy}");
                report.mistake(&node.at, Code::WrongType.says(text));
                return None;
            }
            _ => {}
        }
        T::from_text(&scalar.text, &scalar.quoted()).map_err(|message| report.mistake(&node.at, message)).ok()
    }

    fn schema(file: File) -> Schema {
        T::form().schema(<T as FromText>::WANTED, file)
    }
}

/// Any text.
#[derive(Debug, Clone)]
pub(super) struct Text(pub String);

impl FromText for Text {
    const WANTED: &'static str = "a text";

    fn from_text(text: &str, _: &str) -> Result<Self, String> {
        Ok(Self(text.to_owned()))
    }

    fn form() -> Form {
        Form::ANY
    }
}

impl Read for bool {
    const WANTED: &'static str = "`true` or `false`";

    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        if let Kind::Scalar(scalar) = &node.kind
            && let Typed::Boolean(value) = scalar.typed()
        {
            return Some(value);
        }
        let said = match &node.kind {
            Kind::Scalar(scalar) => scalar.text.to_ascii_lowercase(),
            _ => String::new(),
        };
        // YAML 1.2 reads these as texts and numbers.
        let remedy = match said.as_str() {
            "yes" | "y" | "on" | "1" | "true" => "write true, without quotes",
            "no" | "n" | "off" | "0" | "false" => "write false, without quotes",
            _ => "",
        };
        refuse(node, <Self as Read>::WANTED, remedy, report);
        None
    }

    fn schema(file: File) -> Schema {
        let boolean = Schema {
            types: "boolean".into(),
            error_message: Some(format!("{} is wanted here", <Self as Read>::WANTED)),
            examples: vec![Written::Boolean(true)],
            ..Schema::default()
        };
        schema::or_variable(boolean, file)
    }
}

/// A whole number from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whole<const MIN: u32, const MAX: u32>(pub u32);

impl<const MIN: u32, const MAX: u32> Read for Whole<MIN, MAX> {
    const WANTED: &'static str = "a whole number";

    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        if let Kind::Scalar(scalar) = &node.kind
            && let Typed::Integer(value) = scalar.typed()
        {
            let value = value.and_then(|value| u32::try_from(value).ok()).filter(|value| (MIN..=MAX).contains(value));
            if value.is_none() {
                let text = format!("{} is out of bounds: write {MIN} to {MAX}", scalar.quoted());
                report.mistake(&node.at, Code::OutOfBounds.says(text));
            }
            return value.map(Self);
        }
        refuse(node, &format!("a whole number from {MIN} to {MAX}"), "", report);
        None
    }

    fn schema(file: File) -> Schema {
        let number = Schema {
            types: "integer".into(),
            minimum: Some(MIN),
            maximum: Some(MAX),
            error_message: Some(format!("a whole number from {MIN} to {MAX} is wanted here")),
            examples: vec![Written::Whole(MIN.into())],
            ..Schema::default()
        };
        schema::or_variable(number, file)
    }
}

/// A list.
impl<T: Read> Read for Vec<Placed<T>> {
    const WANTED: &'static str = "a list";

    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        let Kind::List(items) = &node.kind else {
            let remedy = format!("write `[…]`, or lines that begin with `- `, each item {}", T::WANTED);
            refuse(node, "a list", &remedy, report);
            return None;
        };
        Some(items.iter().filter_map(|item| placed(item, report)).collect())
    }

    fn schema(file: File) -> Schema {
        Schema::list(T::schema(file))
    }
}

/// A list of at least one item.
#[derive(Debug)]
pub(super) struct NonEmpty<T>(pub Vec<Placed<T>>);

impl<T: Read> Read for NonEmpty<T> {
    const WANTED: &'static str = "a list";

    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        if matches!(&node.kind, Kind::List(items) if items.is_empty()) {
            report.mistake(&node.at, "an empty list allows nothing: name what you allow, or leave the key out");
            return None;
        }
        Vec::read(node, report).map(Self)
    }

    fn schema(file: File) -> Schema {
        Schema { min_items: Some(1), ..Schema::list(T::schema(file)) }
    }
}

/// One item, or a list of at least one and at most [`ITEMS_MAX`].
#[derive(Debug)]
pub(super) struct OneOrMore<T>(pub Vec<Placed<T>>);

/// Most items where one or a list is wanted: patterns are compiled together, and nobody reads more.
const ITEMS_MAX: usize = 50;

impl<T: Read> Read for OneOrMore<T> {
    const WANTED: &'static str = "one item or a list";

    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        match &node.kind {
            Kind::List(items) if items.is_empty() => {
                report.mistake(&node.at, "an empty list asks for nothing: write what you want, or leave the key out");
                None
            }
            Kind::List(items) if items.len() > ITEMS_MAX => {
                let text = format!("{} items: at most {ITEMS_MAX} may stand here", items.len());
                report.mistake(&node.at, Code::OutOfBounds.says(text));
                None
            }
            Kind::List(items) => Some(Self(items.iter().filter_map(|item| placed(item, report)).collect())),
            Kind::Mapping(_) => {
                refuse(node, T::WANTED, "a list of such may stand here too", report);
                None
            }
            Kind::Scalar(_) | Kind::Reported => Some(Self(vec![placed(node, report)?])),
        }
    }

    fn schema(file: File) -> Schema {
        let one = T::schema(file);
        let list = Schema { min_items: Some(1), max_items: Some(ITEMS_MAX), ..Schema::list(one.clone()) };
        Schema::either(&format!("{}, or a list of such,", T::WANTED), one, list)
    }
}

/// A mapping whose keys are chosen by the writer, in the order of the file.
#[derive(Debug)]
pub(super) struct Map<K, T>(pub Vec<Named<K, T>>);

impl<K, T> Default for Map<K, T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// One entry of a [`Map`].
#[derive(Debug)]
pub(super) struct Named<K, T> {
    pub name: K,
    /// The path of the entry, at the place of its key.
    pub at: At,
    /// None when it is unusable and was reported.
    pub value: Option<Placed<T>>,
}

impl<K: FromText, T: Read> Read for Map<K, T> {
    const WANTED: &'static str = "a mapping (`name: …`)";

    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        let Kind::Mapping(entries) = &node.kind else {
            let remedy =
                format!("write `name: value`, each name {} and each value {}", <K as FromText>::WANTED, T::WANTED);
            refuse(node, "a mapping", &remedy, report);
            return None;
        };
        let mut map = Vec::new();
        for entry in entries {
            let name = K::from_text(&entry.key, &quote(&entry.key));
            let name = name.map_err(|message| report.mistake(&entry.key_at, message)).ok();
            let value = placed(&entry.value, report);
            map.extend(name.map(|name| Named { name, at: entry.key_at.clone(), value }));
        }
        Some(Self(map))
    }

    fn schema(file: File) -> Schema {
        Schema::map(K::form().schema_of_keys(<K as FromText>::WANTED), T::schema(file))
    }
}
