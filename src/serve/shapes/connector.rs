//! Connectors, and how they are read.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::config::Transport;
use crate::fetch::poller::Polled;
use crate::inbox::Reading;
use crate::notification::Name;
use crate::serve::seat::{Seat, why_not};

/// A connector as every surface spells it. Moments are RFC 3339.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConnectorJson {
    /// The workspace.
    pub workspace_id: String,
    /// Its name, which is the source of its events.
    pub name: String,
    /// `stdio` or `http`; null when no server runs.
    pub transport: Option<String>,
    /// The outbox it declares.
    pub outbox: Option<String>,
    /// Whether its events come from a push queue, and not from an outbox.
    #[serde(default)]
    pub push: bool,
    /// `starting`, `ok`, `failing`, `open`, `reauthorize`, `not-polled`; `stopped` when no server runs.
    pub state: String,
    /// Why it is not polled.
    pub reason: Option<String>,
    /// Whether a read waits for the budget.
    pub deferred: bool,
    /// When an answer came last.
    pub last_read_at: Option<String>,
    /// When the next read is due.
    pub next_read_at: Option<String>,
    /// The last failure, over or not.
    pub last_error: Option<LastErrorJson>,
    /// Failures in a row.
    pub failures: u32,
    /// When the position moved last.
    pub cursor_moved_at: Option<String>,
    /// The revision of MCP that it spoke last.
    pub revision: Option<String>,
    /// The reads of its workspace.
    pub budget: Option<BudgetJson>,
}

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LastErrorJson {
    /// When.
    pub at: String,
    /// Why.
    pub reason: String,
}

/// The budget of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetJson {
    /// Reads allowed in a minute.
    pub per_minute: u32,
    /// Reads left right now.
    pub left: u32,
}

/// What a read that was asked for brought.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolledJson {
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// Whether it was a first read.
    pub bootstrap: bool,
    /// Reads that followed each other.
    pub reads: u32,
    /// Events in the answers.
    pub events: usize,
    /// Events that are new.
    pub new: usize,
    /// Events that were dropped.
    pub dropped: usize,
    /// Until the next read, in milliseconds; null when no server runs.
    pub next_in_ms: Option<u64>,
}

impl From<Polled> for PolledJson {
    fn from(of: Polled) -> Self {
        Self {
            failure: of.failure,
            bootstrap: of.first,
            reads: of.reads,
            events: of.events,
            new: of.new,
            dropped: of.dropped,
            next_in_ms: Some(u64::try_from(of.next_in.as_millis()).unwrap_or(u64::MAX)),
        }
    }
}

impl ConnectorJson {
    /// What the store remembers of a connector.
    pub fn remembered(workspace: &Name, name: &Name, reading: &Reading) -> Self {
        let moment = |at: jiff::Timestamp| at.to_string();
        Self {
            workspace_id: workspace.to_string(),
            name: name.to_string(),
            state: "stopped".to_owned(),
            last_read_at: reading.read_at.map(moment),
            last_error: reading
                .failure
                .as_ref()
                .map(|(at, reason)| LastErrorJson { at: at.to_string(), reason: reason.clone() }),
            failures: reading.failures,
            cursor_moved_at: reading.moved_at.map(moment),
            revision: reading.revision.clone(),
            ..Self::default()
        }
    }
}

impl From<&Seat> for ConnectorJson {
    fn from(seat: &Seat) -> Self {
        let Seat { workspace, connector, polled } = seat;
        let transport = match connector.transport {
            Transport::Stdio { .. } => "stdio",
            Transport::Http { .. } => "http",
        };
        let plain = |reading: &Reading, state: &str| Self {
            transport: Some(transport.to_owned()),
            outbox: connector.outbox.clone(),
            push: connector.push.is_some(),
            state: state.to_owned(),
            ..Self::remembered(workspace, &connector.name, reading)
        };
        match polled {
            Err(reason) => {
                let reason = Some(why_not(reason.as_deref()).to_owned());
                Self { reason, ..plain(&Reading::default(), "not-polled") }
            }
            Ok(handle) => {
                let status = handle.status();
                let budget = handle.budget();
                Self {
                    deferred: status.is_deferred,
                    next_read_at: status.next_at.map(|at| at.to_string()),
                    budget: Some(BudgetJson { per_minute: budget.per_minute(), left: budget.left() }),
                    ..plain(&status.reading, status.state.as_str())
                }
            }
        }
    }
}
