//! A parsed file as a tree, in which everything knows its place and its path.

use std::fmt;
use std::rc::Rc;

use super::Place;
use super::scalar::{Scalar, Typed};

/// One value of a file.
#[derive(Debug)]
pub(super) struct Node {
    /// Where it begins.
    pub at: At,
    /// Where it ends: the first place behind it.
    pub end: Place,
    /// What it is.
    pub kind: Kind,
}

/// What a value is.
#[derive(Debug)]
pub(super) enum Kind {
    /// A text, number, boolean or nothing.
    Scalar(Scalar),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the order of the file, each key once.
    Mapping(Vec<Entry>),
    /// Something unusable whose mistake was reported already.
    Reported,
}

/// One key of a mapping and its value.
#[derive(Debug)]
pub(super) struct Entry {
    /// The key's text.
    pub key: String,
    /// The path of the entry, at the place of its key.
    pub key_at: At,
    /// The value.
    pub value: Node,
}

/// A place in a file and the path that leads to it.
#[derive(Debug, Clone)]
pub(super) struct At {
    pub path: Path,
    pub place: Place,
}

/// The keys and indexes that lead to a value; cheap to copy.
#[derive(Debug, Clone, Default)]
pub(super) struct Path(Option<Rc<(Path, Step)>>);

#[derive(Debug)]
enum Step {
    Key(Rc<str>),
    Index(usize),
}

impl Node {
    /// Whether nothing stands here.
    pub(super) fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Scalar(scalar) if scalar.typed() == Typed::Null)
    }

    /// What stands here, in words that fit "this is …". Never quotes a text.
    pub(super) fn describe(&self) -> &'static str {
        match &self.kind {
            Kind::Scalar(scalar) => match scalar.typed() {
                Typed::Null => "nothing",
                Typed::Boolean(_) => "a boolean",
                Typed::Integer(_) | Typed::Float(_) => "a number",
                Typed::Text => "a text",
            },
            Kind::List(_) => "a list",
            Kind::Mapping(_) => "a mapping",
            Kind::Reported => "a mistake",
        }
    }
}

impl Path {
    /// Whether it leads to the whole.
    pub(super) fn is_root(&self) -> bool {
        self.0.is_none()
    }

    /// The path of a value in this mapping.
    pub(super) fn key(&self, key: &str) -> Self {
        Self(Some(Rc::new((self.clone(), Step::Key(key.into())))))
    }

    /// The path of an item of this list.
    pub(super) fn index(&self, index: usize) -> Self {
        Self(Some(Rc::new((self.clone(), Step::Index(index)))))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(step) = &self.0 else { return Ok(()) };
        let (parent, step) = &**step;
        write!(out, "{parent}")?;
        let is_simple =
            |key: &str| !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        match step {
            Step::Index(index) => write!(out, "[{index}]"),
            Step::Key(key) if !is_simple(key) => write!(out, "[{}]", super::scalar::quote(key)),
            Step::Key(key) if parent.0.is_none() => write!(out, "{key}"),
            Step::Key(key) => write!(out, ".{key}"),
        }
    }
}
