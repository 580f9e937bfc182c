//! What may stand in the files, as JSON Schema for editors and as a reference for people. Every type that reads a value
//! also says its schema ([`super::read::Read::schema`]), so that the two cannot part.
//!
//! A schema knows the form of single values and which keys there are. What takes more than one value (does this connector
//! exist, may this workspace use that secret, is this duration within its bounds) is said by [`super::load`] alone.

mod form;
mod reference;
mod wire;
mod written;

#[cfg(test)]
mod tests;

use super::raw::{RawServer, RawTrials, RawWorkspace};
use super::read::Read;
use super::values;

pub(super) use form::{Form, Words, no_variable, one_of, or_variable, word};
pub use wire::Schema;
pub(super) use wire::{Additional, Many, Snippet};
pub(super) use written::Written;

/// The dialect that editors know best.
const DIALECT: &str = "http://json-schema.org/draft-07/schema#";

/// The kinds of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum File {
    /// `switchbell.yaml`, the operator's, in which variables may stand.
    Server,
    /// `workspaces/NAME.yaml`, an admin's.
    Workspace,
    /// A file with tests of routes.
    Test,
}

impl File {
    /// The word that names it on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Workspace => "workspace",
            Self::Test => "test",
        }
    }
}

/// The schema of a file (JSON Schema, draft-07).
pub fn schema(file: File) -> Schema {
    let (root, definitions) = match file {
        File::Server => (RawServer::schema(file), Vec::new()),
        File::Test => (RawTrials::schema(file), Vec::new()),
        File::Workspace => (RawWorkspace::schema(file), vec![values::setting_definition()]),
    };
    Schema {
        dialect: Some(DIALECT),
        comment: Some(format!("Written by `switchbell schema {}`.", file.as_str())),
        definitions,
        ..root
    }
}

/// The keys of a file as tables in Markdown.
pub fn reference(file: File) -> String {
    reference::render(&schema(file))
}
