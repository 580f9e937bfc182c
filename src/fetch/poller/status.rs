//! What can be seen of a poller from outside, and asked of it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot, watch};

use crate::fetch::budget::Budget;
use crate::inbox::Reading;
use crate::notification::Name;

/// Requests of people that wait while a read is under way.
const COMMANDS_MAX: usize = 16;

/// How a connector does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing was read since the start.
    #[default]
    Starting,
    /// The last read brought an answer.
    Ok,
    /// The last read failed; the waits grow.
    Failing,
    /// Several in a row failed: one is made each time the ceiling has passed, until one succeeds.
    Open,
    /// A person must sign in again.
    Reauthorize,
}

impl State {
    /// Its name on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ok => "ok",
            Self::Failing => "failing",
            Self::Open => "open",
            Self::Reauthorize => "reauthorize",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// A poller at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// How it does.
    pub state: State,
    /// Whether it waits because the workspace's budget has run out.
    pub is_deferred: bool,
    /// When the next read is due.
    pub next_at: Option<Timestamp>,
    /// How the outbox has been read so far.
    pub reading: Reading,
}

/// What a read that a person asked for brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// Whether it was a first read, which only finds the place to start from.
    pub first: bool,
    /// Reads that followed each other at once.
    pub reads: u32,
    /// Events in the answers.
    pub events: usize,
    /// Events that are new in the inbox.
    pub new: usize,
    /// Events that broke a rule.
    pub dropped: usize,
    /// When the next read is due.
    pub next_in: Duration,
}

/// The way to a poller that runs.
#[derive(Clone, Debug)]
pub struct Handle {
    /// The workspace.
    pub workspace: Name,
    /// The connector.
    pub source: Name,
    budget: Arc<Budget>,
    status: watch::Receiver<Status>,
    commands: mpsc::Sender<oneshot::Sender<Polled>>,
}

impl Handle {
    /// How it does right now.
    pub fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// The reads of its workspace.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Reads now, whatever the next read was due, or after the one under way; none when the poller has ended.
    pub async fn poll(&self) -> Option<Polled> {
        let (reply, polled) = oneshot::channel();
        self.commands.send(reply).await.ok()?;
        polled.await.ok()
    }
}

/// The poller's own end of its [`Handle`]s.
#[derive(Debug)]
pub(in crate::fetch) struct Desk {
    pub(in crate::fetch) status: watch::Sender<Status>,
    pub(in crate::fetch) commands: mpsc::Receiver<oneshot::Sender<Polled>>,
    sender: mpsc::Sender<oneshot::Sender<Polled>>,
}

impl Desk {
    pub(in crate::fetch) fn new() -> Self {
        let (sender, commands) = mpsc::channel(COMMANDS_MAX);
        Self { status: watch::Sender::default(), commands, sender }
    }

    pub(in crate::fetch) fn handle(&self, workspace: &Name, source: &Name, budget: &Arc<Budget>) -> Handle {
        Handle {
            workspace: workspace.clone(),
            source: source.clone(),
            budget: Arc::clone(budget),
            status: self.status.subscribe(),
            commands: self.sender.clone(),
        }
    }

    pub(in crate::fetch) fn update(&self, change: impl FnOnce(&mut Status)) {
        self.status.send_modify(change);
    }
}
