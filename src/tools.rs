//! How a tool of a connector is called, as those see it who want one called: without a word of the protocol.

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::notification::Name;

/// Calls tools of workspaces' connectors, each with the connector's own credential.
pub trait Tools: Send + Sync + fmt::Debug {
    /// Whether the workspace has this connector.
    fn has(&self, workspace: &Name, connector: &Name) -> bool;

    /// Calls a tool, connecting first where there is no connection. It ends in bounded time. Dropping the future gives
    /// the call up, and the server is told so where it can be.
    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Said, Trouble>>;
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Call<'a> {
    /// Whose connector.
    pub workspace: &'a Name,
    /// Which.
    pub connector: &'a Name,
    /// The tool's name on that server.
    pub tool: &'a str,
    /// What it is given.
    pub arguments: Map<String, Value>,
    /// The admin for whom it is called. The server is told.
    pub on_behalf_of: &'a str,
    /// The delivery that it belongs to, the same when it is repeated. The server is told.
    pub delivery: &'a str,
    /// How long to wait for the answer, once the server is connected.
    pub time_max: Duration,
}

/// What a tool answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// Whether the tool says that it failed.
    pub is_error: bool,
    /// What it said: `content`, a list, and `structuredContent` where there is one. It holds no credential of the
    /// connector.
    pub content: Map<String, Value>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// How far the call got.
    pub stage: Stage,
    /// Short and stable, such as `timeout`.
    pub code: String,
    /// For a person: what happened and what to do about it, without a secret.
    pub message: String,
    /// The status of HTTP that the server, or what stands before it, answered with.
    pub status: Option<u16>,
    /// How long it asked to wait.
    pub retry_after: Option<Duration>,
}

/// How far a call got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The server was not reached.
    Unsent,
    /// The server answered that it does not do it.
    Refused,
    /// The call was sent and no answer came: it may have been done.
    Unanswered,
}
