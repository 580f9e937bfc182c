//! The way to what is changed: through the running server, or, when none runs, in the store itself.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::sync::watch;

use super::control::{Control, NoAnswer};
use super::inbox::open_places;
use super::output::{fail, tell};
use super::remote::Server;
use super::{load, workspace};
use crate::clock::Clock;
use crate::config::Places;
use crate::inbox::sqlite::SqliteInbox;
use crate::inbox::{Deed, Inbox, InboxError};
use crate::notification::Name;
use crate::send::book_without_plugins;
use crate::serve::auth::Caller;
use crate::serve::control;
use crate::serve::desk::{Change, Desk, HandledJson, MarkJson, MarkedJson, WhichJson};

/// Where changes are made.
#[derive(Debug)]
pub(super) enum Way {
    /// By the server that has the store open.
    Server(Control),
    /// By this command, which has the store open until it ends.
    Alone(Desk),
}

impl Way {
    /// The way to the server that is asked, or to the store of the files; and the workspace.
    pub(super) async fn find(file: &Path, server: &Server, named: Option<&Name>) -> Result<(Self, Name), ExitCode> {
        if let Some((control, workspace)) = server.find(file, named).await? {
            return Ok((Self::Server(control), workspace));
        }
        let places = open_places(file)?;
        let workspace = workspace(&places.workspaces, named)?;
        Ok((Self::of(file, &places).await?, workspace))
    }

    /// The way to this store.
    async fn of(file: &Path, places: &Places) -> Result<Self, ExitCode> {
        let control = match Control::of(&places.store) {
            Ok(control) => control,
            Err(no_answer) => return Err(failed(&no_answer)),
        };
        match control.is_there().await {
            Ok(true) => Ok(Self::Server(control)),
            Ok(false) => alone(file, places).await.map(Self::Alone),
            Err(no_answer) => Err(failed(&no_answer)),
        }
    }

    pub(super) async fn change(
        &self,
        workspace: &Name,
        change: Change,
        which: &WhichJson,
    ) -> Result<HandledJson, ExitCode> {
        match self {
            Self::Server(control) => {
                let path = format!("/v1/workspaces/{workspace}/deliveries/{}", change.as_str());
                control.post_json(&path, which).await.map_err(|no_answer| failed(&no_answer))
            }
            Self::Alone(desk) => desk.change(workspace.as_str(), change, which, &Caller::local()).await.map_err(fail),
        }
    }

    pub(super) async fn mark(&self, workspace: &Name, deed: Deed, which: &MarkJson) -> Result<MarkedJson, ExitCode> {
        match self {
            Self::Server(control) => {
                let deed = match deed {
                    Deed::Read => "read",
                    Deed::Acknowledge => "acknowledge",
                };
                let path = format!("/v1/workspaces/{workspace}/notifications/{deed}");
                control.post_json(&path, which).await.map_err(|no_answer| failed(&no_answer))
            }
            Self::Alone(desk) => desk.mark(workspace.as_str(), deed, which, &Caller::local()).await.map_err(fail),
        }
    }
}

fn failed(no_answer: &NoAnswer) -> ExitCode {
    match no_answer {
        NoAnswer::NotRunning => fail("the server has just stopped: run the command again"),
        NoAnswer::Nothing(why) | NoAnswer::Refused(why) => fail(why),
    }
}

/// Opens the store and tells it what targets there are, as a server does at its start.
async fn alone(file: &Path, places: &Places) -> Result<Desk, ExitCode> {
    let clock = Clock::system();
    let (inbox, config) = (open_store(places, &clock)?, load(file)?);
    let book = Arc::new(book_without_plugins(&config));
    inbox.adopt(book, None, clock.now()).await.map_err(fail)?;
    tell("no server runs: this is written to the store, and acted on once one does");
    let config = watch::channel(config).1;
    Ok(Desk { inbox, clock, config })
}

/// Opens a store that no server has open.
pub(super) fn open_store(places: &Places, clock: &Clock) -> Result<Arc<SqliteInbox>, ExitCode> {
    if !places.store.exists() {
        let store = places.store.display();
        return Err(fail(format_args!("store {store}: there is none yet: start `switchbell serve`, which makes it")));
    }
    SqliteInbox::open(&places.store, clock.now()).map(Arc::new).map_err(|error| match error {
        InboxError::InUse(_) => fail(silent(&places.store)),
        other => fail(other),
    })
}

/// Why the store can neither be opened nor its server asked.
fn silent(store: &Path) -> String {
    let socket = control::path(store);
    format!(
        "store {} is in use by a process whose control socket {} does not answer: if it is a server that starts or stops, \
         run the command again in a moment; if not, stop it first",
        store.display(),
        socket.display()
    )
}
