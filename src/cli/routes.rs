//! `switchbell routes`: what routes make of what came.

mod diff;
mod show;
mod sides;

use std::path::Path;
use std::process::ExitCode;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Says what another configuration would have delivered of what came: new, gone or changed.
    Diff(diff::Arguments),
}

pub(super) async fn run(file: &Path, command: &Command) -> ExitCode {
    match command {
        Command::Diff(asked) => diff::run(file, asked).await,
    }
}
