//! `switchbell connector`: how the connectors of a workspace do, a read of one right now, and signing in to one.

mod callback;
mod login;
mod poll;
mod show;

use std::path::Path;
use std::process::ExitCode;

use crate::notification::Name;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Lists connectors and how they do.
    List(show::List),
    /// Shows one connector whole.
    Show(show::Show),
    /// Reads the outbox of a connector now.
    Poll(poll::Poll),
    /// Signs in to a connector that asks for it by OAuth.
    Login(login::LoginArguments),
}

/// Which connector is meant.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Which {
    /// The connector.
    name: Name,
    /// The workspace; may be left out when there is one.
    #[arg(long, value_name = "NAME")]
    workspace: Option<Name>,
}

pub(super) async fn run(file: &Path, command: &Command) -> ExitCode {
    match command {
        Command::List(asked) => show::list(file, asked).await,
        Command::Show(asked) => show::show(file, asked).await,
        Command::Poll(asked) => poll::run(file, asked).await,
        Command::Login(arguments) => login::run(file, arguments).await,
    }
}
