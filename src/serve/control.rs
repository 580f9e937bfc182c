//! The control socket: how commands on this machine ask a running server. A Unix socket beside the database that only
//! its owner may use; over it HTTP and JSON.

mod configuration;
mod desk;
mod inquiries;
mod plugins;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path as Segments, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router, body::Body};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;

use crate::config::{Connector, Transport};
use crate::fetch::poller::{Handle, Polled};
use crate::inbox::{Deed, Reading};
use crate::notification::Name;
use crate::serve::{Served, auth, mcp};
pub use configuration::{
    AsideJson, CancelledJson, ChangeJson, MistakeJson, NotReloadedJson, ReloadedJson, StatusJson, TakenJson,
    UnloadedJson,
};
pub use desk::{
    Change, Desk, DoneJson, HandledJson, MARKED_MAX, MarkJson, MarkedJson, Refusal, RefusedJson, WhichJson,
    unknown_filter, unnamed,
};

pub use inquiries::AnswerJson;
pub use plugins::{
    ChangedJson, FROM_HEADER, PluginJson, ProbationJson, SIGNATURE_HEADER, VersionDoneJson, VersionJson,
    VersionRefusedJson, WhichVersionJson,
};

/// Longest path of a Unix socket, in bytes, that every system takes.
const PATH_BYTES_MAX: usize = 100;

/// A connector of the running server.
#[derive(Debug)]
pub struct Seat {
    /// The workspace.
    pub workspace: Name,
    /// The connector as configured.
    pub connector: Connector,
    /// The way to its poller; or why it is not polled, none when it declares no outbox.
    pub polled: Result<Handle, Option<String>>,
}

/// A connector as every surface spells it. Moments are RFC 3339.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastErrorJson {
    /// When.
    pub at: String,
    /// Why.
    pub reason: String,
}

/// The budget of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetJson {
    /// Reads allowed in a minute.
    pub per_minute: u32,
    /// Reads left right now.
    pub left: u32,
}

/// What a read that was asked for brought.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// Where the control socket of a store is.
pub fn path(store: &Path) -> PathBuf {
    let mut path = store.as_os_str().to_owned();
    path.push(".sock");
    path.into()
}

/// Listens on the control socket of a store that this process has open for writing: what is left there is of a process
/// that is gone.
///
/// # Errors
/// When the socket cannot be made; its text says what to do.
pub fn listen(store: &Path) -> io::Result<UnixListener> {
    let path = path(store);
    if path.as_os_str().len() > PATH_BYTES_MAX {
        let message = format!(
            "the path {} has more than {PATH_BYTES_MAX} bytes, which a socket cannot have: use a shorter one for `store`",
            path.display()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    // It gets its name only once it is its owner's alone.
    let new = path.with_extension("new");
    for old in [&path, &new] {
        match fs::remove_file(old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let listener = UnixListener::bind(&new)?;
    fs::set_permissions(&new, fs::Permissions::from_mode(0o600))?;
    fs::rename(&new, &path)?;
    Ok(listener)
}

/// Serves until told to stop.
pub async fn serve(listener: UnixListener, served: Arc<Served>, stop: CancellationToken) {
    let routes = Router::new()
        .route("/connectors", get(list))
        .route("/workspaces/{workspace}/connectors/{name}/poll", post(poll))
        .route("/workspaces/{workspace}/deliveries/retry", post(retry))
        .route("/workspaces/{workspace}/deliveries/cancel", post(cancel))
        .route("/workspaces/{workspace}/notifications/read", post(read))
        .route("/workspaces/{workspace}/notifications/acknowledge", post(acknowledge))
        .merge(plugins::routes())
        .merge(inquiries::routes())
        .merge(configuration::routes())
        .merge(auth::routes().layer(Extension(auth::Caller::local())))
        // Here, too, a caller is who its token says.
        .merge(mcp::routes(&served))
        .with_state(served);
    let served = axum::serve(listener, routes).with_graceful_shutdown(stop.cancelled_owned());
    if let Err(error) = served.await {
        tracing::error!(%error, "serving the control socket ended");
    }
}

async fn list(State(served): State<Arc<Served>>) -> Response {
    let seats = served.seats.borrow().clone();
    json(StatusCode::OK, &seats.iter().map(ConnectorJson::from).collect::<Vec<_>>())
}

async fn poll(State(served): State<Arc<Served>>, Segments((workspace, name)): Segments<(String, String)>) -> Response {
    let is_it = |seat: &&Seat| seat.workspace.as_str() == workspace && seat.connector.name.as_str() == name;
    let seats = served.seats.borrow().clone();
    let Some(seat) = seats.iter().find(is_it) else {
        return text(StatusCode::NOT_FOUND, format!("there is no connector {name:?} in the workspace {workspace:?}"));
    };
    let handle = match &seat.polled {
        Ok(handle) => handle,
        Err(reason) => return text(StatusCode::CONFLICT, not_polled(&seat.connector.name, reason.as_deref())),
    };
    match handle.poll().await {
        Some(polled) => json(StatusCode::OK, &PolledJson::from(polled)),
        None => text(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping".to_owned()),
    }
}

async fn retry(State(served): State<Arc<Served>>, Segments(workspace): Segments<String>, body: Bytes) -> Response {
    answer(async || served.desk.change(&workspace, Change::Retry, &asked(&body)?).await).await
}

async fn cancel(State(served): State<Arc<Served>>, Segments(workspace): Segments<String>, body: Bytes) -> Response {
    answer(async || served.desk.change(&workspace, Change::Cancel, &asked(&body)?).await).await
}

async fn read(State(served): State<Arc<Served>>, Segments(workspace): Segments<String>, body: Bytes) -> Response {
    answer(async || served.desk.mark(&workspace, Deed::Read, &asked(&body)?).await).await
}

async fn acknowledge(
    State(served): State<Arc<Served>>,
    Segments(workspace): Segments<String>,
    body: Bytes,
) -> Response {
    answer(async || served.desk.mark(&workspace, Deed::Acknowledge, &asked(&body)?).await).await
}

fn asked<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| {
        Refusal::Wrong(format!("the running server does not understand what it is asked for ({error}): restart it"))
    })
}

async fn answer<T: Serialize>(make: impl AsyncFnOnce() -> Result<T, Refusal>) -> Response {
    match make().await {
        Ok(value) => json(StatusCode::OK, &value),
        Err(refusal) => {
            let status = match refusal {
                Refusal::Unknown(_) => StatusCode::NOT_FOUND,
                Refusal::Wrong(_) => StatusCode::BAD_REQUEST,
                Refusal::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
            };
            text(status, refusal.to_string())
        }
    }
}

/// Says that a connector is not polled, and why.
pub fn not_polled(name: &Name, reason: Option<&str>) -> String {
    format!("the connector {name} is not polled: {}", why_not(reason))
}

fn why_not(reason: Option<&str>) -> &str {
    reason.unwrap_or("it declares no outbox under `notifications`")
}

fn text(status: StatusCode, text: String) -> Response {
    (status, text).into_response()
}

fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => (status, [(header::CONTENT_TYPE, "application/json")], Body::from(text)).into_response(),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_socket_is_its_owners_alone_and_takes_the_place_of_one_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("switchbell.db");
        drop(listen(&store).unwrap());
        let _listener = listen(&store).unwrap();
        let mode = fs::metadata(path(&store)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn a_path_that_is_too_long_for_a_socket_is_said() {
        let refused = listen(&Path::new("/tmp").join("a".repeat(PATH_BYTES_MAX))).unwrap_err();
        assert!(refused.to_string().contains("use a shorter one"), "{refused}");
    }
}
