//! `switchbell connector`: what concerns one connector.

mod callback;
mod login;

use std::path::Path;
use std::process::ExitCode;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Signs in to a connector that asks for it by OAuth.
    Login(login::LoginArguments),
}

pub(super) async fn run(file: &Path, command: &Command) -> ExitCode {
    match command {
        Command::Login(arguments) => login::run(file, arguments).await,
    }
}
