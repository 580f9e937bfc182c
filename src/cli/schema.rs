//! `switchbell schema`: what may stand in the files, for editors and for people.

use std::process::ExitCode;

use clap::ValueEnum;

use super::output::{print, print_json};
use crate::config::{SchemaFile, reference, schema};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Which file: the operator's (`switchbell.yaml`), a workspace's (`workspaces/NAME.yaml`) or one with tests of routes.
    file: File,
    /// Prints tables for people, in Markdown, instead of a JSON Schema.
    #[arg(long)]
    markdown: bool,
}

/// The files that have a schema.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum File {
    /// The operator's, `switchbell.yaml`.
    Server,
    /// An admin's, `workspaces/NAME.yaml`.
    Workspace,
    /// One with tests of routes.
    Test,
}

pub(super) fn run(asked: &Arguments) -> ExitCode {
    let file = match asked.file {
        File::Server => SchemaFile::Server,
        File::Workspace => SchemaFile::Workspace,
        File::Test => SchemaFile::Test,
    };
    if asked.markdown { print(reference(file)) } else { print_json(&schema(file)) }
}
