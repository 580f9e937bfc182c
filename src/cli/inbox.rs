//! `switchbell inbox`: what is in a workspace's inbox, and what people did with it. Reading looks into the store beside a
//! running server; what is changed goes through it. With `--server`, all of it is asked of a server.

mod filters;
mod list;
mod mark;
mod show;
mod tail;

use std::path::Path;
use std::process::ExitCode;

use super::output::{NotificationJson, fail, tell};
use super::{COULD_NOT_RUN, workspace};
use crate::config::{self, Places};
use crate::inbox::sqlite::SqliteInbox;
use crate::inbox::{Deed, Inbox, InboxError};
use crate::notification::Name;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Lists notifications, newest first.
    List(list::List),
    /// Shows one notification whole, with its deliveries.
    Show(show::Show),
    /// Follows an inbox: prints each notification as it comes, until Ctrl-C.
    ///
    /// It needs a running server, and comes back by itself when that was away; nothing is missed or printed twice.
    Tail(tail::Tail),
    /// Marks notifications as read by a person.
    Read(mark::Mark),
    /// Acknowledges notifications as a person, which makes deliveries with `unless: acknowledged` needless.
    Ack(mark::Mark),
}

pub(super) async fn run(file: &Path, command: &Command) -> ExitCode {
    match command {
        Command::List(asked) => list::run(file, asked).await,
        Command::Show(asked) => show::run(file, asked).await,
        Command::Tail(asked) => tail::run(file, asked).await,
        Command::Read(asked) => mark::run(file, Deed::Read, asked).await,
        Command::Ack(asked) => mark::run(file, Deed::Acknowledge, asked).await,
    }
}

/// A notification of a store with what was done with it.
pub(super) async fn found(
    inbox: &SqliteInbox,
    workspace: &Name,
    seq: u64,
) -> Result<Option<NotificationJson>, InboxError> {
    let Some(found) = inbox.notification(workspace, seq).await? else { return Ok(None) };
    let marks = inbox.marks(workspace, vec![seq]).await?.pop();
    Ok(Some(NotificationJson::from(&(found, marks.unwrap_or_default()))))
}

/// The store of the configuration, opened to read, and the workspace that is asked for.
pub(super) fn open(file: &Path, named: Option<&Name>) -> Result<(SqliteInbox, Name), ExitCode> {
    let places = open_places(file)?;
    let workspace = workspace(&places.workspaces, named)?;
    let inbox = SqliteInbox::open_to_read(&places.store).map_err(fail)?;
    Ok((inbox, workspace))
}

/// Where the server of the configuration keeps things.
pub(super) fn open_places(file: &Path) -> Result<Places, ExitCode> {
    config::places(file, &config::process_environment).map_err(|problems| {
        tell(problems);
        ExitCode::from(COULD_NOT_RUN)
    })
}
