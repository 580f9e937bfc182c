//! What is asked of the one who reloads the configuration, and what it tells.
//!
//! `app/reload.rs` does it; commands reach it by the control socket, with the same [`Handle`].

use std::collections::BTreeMap;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot, watch};

use crate::config::{Changes, Problem, Problems};
use crate::inbox::book::QueueKey;
use crate::notification::Name;
use crate::send::upgrade::Unloaded;

/// Requests that wait; more wait for room.
const REQUESTS_MAX: usize = 16;

/// A reload that was taken.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    /// What differs from before.
    pub changes: Changes,
    /// Deliveries that were cancelled because their target is gone, by queue.
    pub cancelled: Vec<(QueueKey, u64)>,
    /// Plugins whose version may not run any more.
    pub unloaded: Vec<Unloaded>,
    /// Keys that differ and need a restart.
    pub needs_restart: Vec<&'static str>,
    /// What plugins find wrong with settings of their targets, which wait.
    pub blocked: Vec<Problem>,
    /// What deserves a look.
    pub warnings: Vec<Problem>,
    /// What is wrong with the files of workspaces that are set aside.
    pub aside: BTreeMap<Name, Problems>,
    /// What is wrong with the files of workspaces that go on with the text before.
    pub older: BTreeMap<Name, Problems>,
}

/// Why nothing was changed.
#[derive(Clone, Debug)]
pub enum Refused {
    /// The operator's file has mistakes; these are all that there are.
    Mistakes(Problems),
    /// For this reason.
    Because(String),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Mistakes(problems) => problems.fmt(out),
            Self::Because(why) => out.write_str(why),
        }
    }
}

impl std::error::Error for Refused {}

/// How the configuration stands.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// When it was read last, and taken; at the start first.
    pub taken_at: Option<Timestamp>,
    /// When it was read last and not taken, and why, unless it was taken since.
    pub refused: Option<(Timestamp, Refused)>,
    /// Keys that differ from what runs and need a restart.
    pub needs_restart: Vec<&'static str>,
    /// What is wrong with the files of workspaces that are set aside.
    pub aside: BTreeMap<Name, Problems>,
    /// What is wrong with the files of workspaces that go on with the text before.
    pub older: BTreeMap<Name, Problems>,
}

/// Somebody who waits for a reload; none for who does not wait.
pub type Reply = Option<oneshot::Sender<Result<Taken, Refused>>>;

/// Asks for reloads.
#[derive(Clone, Debug)]
pub struct Handle {
    requests: mpsc::Sender<Reply>,
    status: watch::Receiver<Status>,
}

/// The other end of a [`Handle`].
#[derive(Debug)]
pub struct Asked {
    /// Who asks.
    pub requests: mpsc::Receiver<Reply>,
    /// What is told.
    pub status: watch::Sender<Status>,
}

impl Handle {
    /// Both ends.
    pub fn new(status: Status) -> (Self, Asked) {
        let (requests, asked) = mpsc::channel(REQUESTS_MAX);
        let (told, status) = watch::channel(status);
        (Self { requests, status }, Asked { requests: asked, status: told })
    }

    /// Reloads, and waits for what comes of it.
    ///
    /// # Errors
    /// Why nothing was changed.
    pub async fn reload(&self) -> Result<Taken, Refused> {
        let stopping = || Refused::Because("the server is stopping".to_owned());
        let (reply, answer) = oneshot::channel();
        self.requests.send(Some(reply)).await.map_err(|_gone| stopping())?;
        answer.await.map_err(|_gone| stopping())?
    }

    /// Asks for a reload and does not wait. Where as many as fit are waiting already, one of them is this one.
    pub fn ask(&self) {
        let _ = self.requests.try_send(None);
    }

    /// How the configuration stands.
    pub fn status(&self) -> Status {
        self.status.borrow().clone()
    }
}
