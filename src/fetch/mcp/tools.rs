//! Every connector's tools, called with the connector's own credential and headers.
//!
//! A program that is polled is called over the poller's connection, so that it runs once. Over HTTP each call has a
//! connection to itself, kept for the next ones: what goes wrong with a call is then told exactly, and disturbs neither
//! polls nor other calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, FutureExt, join_all};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::called::{self, request, said, trouble, unready};
use super::era::Era;
use super::link::{CALLS_MAX, Link};
use super::way::Way;
use super::{Common, McpOutbox};
use crate::config::{Config, Connector};
use crate::fetch::outbox::ReadError;
use crate::notification::Name;
use crate::tools::{Call, Said, Tools, Trouble};

/// Waiting for other calls and for a connection, together: a connection may take twice its time where another is being
/// made.
const READY_TIME_MAX: Duration = Duration::from_secs(40);

/// A connection that is there for calls alone is closed when none came for so long.
const IDLE_TIME_MAX: Duration = Duration::from_secs(60);

/// How often it is looked for such connections.
const IDLE_LOOK: Duration = Duration::from_secs(15);

/// The servers of all workspaces, by workspace and connector; or why one cannot be reached.
#[derive(Debug)]
pub struct Connectors {
    callers: BTreeMap<(Name, Name), Result<Caller, ReadError>>,
}

impl Connectors {
    /// All connectors that there are. None is connected yet.
    pub fn new(config: &Config, common: &Common<'_>) -> Self {
        let mut callers = BTreeMap::new();
        for workspace in config.workspaces.values() {
            for connector in workspace.connectors.values() {
                let caller = Way::new(&workspace.name, connector, common).map(|way| Caller::new(way, connector));
                callers.insert((workspace.name.clone(), connector.name.clone()), caller);
            }
        }
        Self { callers }
    }

    /// The outbox of a connector.
    ///
    /// # Errors
    /// As [`McpOutbox::new`]; also when there is no such connector.
    pub fn outbox(&self, workspace: &Name, connector: &Name) -> Result<McpOutbox, ReadError> {
        self.caller(workspace, connector).map(Caller::outbox)
    }

    /// Closes connections that no call needed for a while, until told to stop.
    pub async fn tend(&self, stop: &CancellationToken) {
        while stop.run_until_cancelled(tokio::time::sleep(IDLE_LOOK)).await.is_some() {
            join_all(self.all().map(|caller| caller.close_older_than(IDLE_TIME_MAX))).await;
        }
    }

    /// Closes every connection that calls may have made, once they are over.
    pub async fn close(&self) {
        join_all(self.all().map(Caller::close)).await;
    }

    fn all(&self) -> impl Iterator<Item = &Caller> {
        self.callers.values().filter_map(|caller| caller.as_ref().ok())
    }

    fn caller(&self, workspace: &Name, connector: &Name) -> Result<&Caller, ReadError> {
        let unknown = || ReadError::NotConnected(format!("workspace {workspace} has no connector {connector}"));
        let caller = self.callers.get(&(workspace.clone(), connector.clone())).ok_or_else(unknown)?;
        caller.as_ref().map_err(Clone::clone)
    }
}

impl Tools for Connectors {
    fn has(&self, workspace: &Name, connector: &Name) -> bool {
        self.callers.contains_key(&(workspace.clone(), connector.clone()))
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Said, Trouble>> {
        async move {
            let caller = self.caller(call.workspace, call.connector).map_err(|error| unready(&error))?;
            caller.call(call).await
        }
        .boxed()
    }
}

/// Calls the tools of one connector.
#[derive(Debug)]
pub(super) struct Caller {
    way: Way,
    /// The one connection of a program.
    program: Option<Arc<Link>>,
    /// Whether a poller keeps the program's connection.
    is_polled: bool,
    turns: Semaphore,
    /// Links that no call uses, the last one used last, each with the moment it was.
    idle: Mutex<Vec<(Instant, Arc<Link>)>>,
    /// The revision that was spoken last.
    spoken: Mutex<Option<String>>,
}

/// A link for one call, given back when this is dropped: a call that is given up tells the server so over it.
struct Borrowed<'a> {
    caller: &'a Caller,
    link: Arc<Link>,
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        self.caller.take_back(&self.link);
    }
}

impl Caller {
    pub(super) fn new(way: Way, connector: &Connector) -> Self {
        let program = way.is_program().then(|| Arc::new(Link::new(way.clone(), Era::default())));
        Self {
            way,
            program,
            is_polled: connector.outbox.is_some(),
            turns: Semaphore::new(CALLS_MAX as usize),
            idle: Mutex::default(),
            spoken: Mutex::default(),
        }
    }

    /// The outbox of its server.
    pub(super) fn outbox(&self) -> McpOutbox {
        McpOutbox::over(self.program.clone().unwrap_or_else(|| self.link()))
    }

    /// A link of its own.
    fn link(&self) -> Arc<Link> {
        let era = Era::of(lock(&self.spoken).as_deref());
        Arc::new(Link::new(self.way.clone(), era))
    }

    pub(super) async fn call(&self, call: Call<'_>) -> Result<Said, Trouble> {
        let busy = || ReadError::Timeout { waited: READY_TIME_MAX };
        let deadline = tokio::time::Instant::now() + READY_TIME_MAX;
        let turn = tokio::time::timeout_at(deadline, self.turns.acquire()).await;
        let _turn = turn.map_err(|_| called::busy(READY_TIME_MAX))?;
        let borrowed = self.borrow();
        let link = &borrowed.link;
        let ready = async {
            let leave = link.call().await;
            link.connection().await.map(|connection| (leave, connection))
        };
        let ready = tokio::time::timeout_at(deadline, ready).await.unwrap_or_else(|_| Err(busy()));
        let (_leave, connection) = ready.map_err(|error| unready(&error))?;
        lock(&self.spoken).clone_from(&connection.spoken);

        let time_max = call.time_max;
        let came = connection.call(request(call), time_max, &self.way.faults).await;
        link.called(&connection, &came).await;
        if self.program.is_none() && came.as_ref().is_err_and(is_in_doubt_after) {
            // The next call may meet a server of another revision.
            lock(&self.spoken).take();
            link.lose(&connection).await;
        }
        match came {
            Ok(answer) => said(answer, self.program.is_none().then_some(&self.way.faults)),
            Err(error) => Err(trouble(&self.way.explain(error))),
        }
    }

    fn borrow(&self) -> Borrowed<'_> {
        let kept = || lock(&self.idle).pop().map(|(_, link)| link);
        let link = self.program.clone().or_else(kept).unwrap_or_else(|| self.link());
        Borrowed { caller: self, link }
    }

    /// Keeps a link for the next call, if it is of use. There are never more of them than calls at once.
    fn take_back(&self, link: &Arc<Link>) {
        if self.is_polled && self.program.is_some() {
            return;
        }
        let mut idle = lock(&self.idle);
        idle.retain(|(_, kept)| !Arc::ptr_eq(kept, link));
        if link.is_up() {
            idle.push((Instant::now(), Arc::clone(link)));
        }
    }

    pub(super) async fn close(&self) {
        self.close_older_than(Duration::ZERO).await;
        if let Some(program) = &self.program {
            program.close().await;
        }
    }

    async fn close_older_than(&self, most: Duration) {
        let old = |(since, link): &mut (Instant, Arc<Link>)| since.elapsed() >= most && link.is_idle();
        let old: Vec<_> = lock(&self.idle).extract_if(.., old).collect();
        join_all(old.iter().map(|(_, link)| link.close())).await;
    }
}

/// Whether a call over a connection to itself says that another connection is better. That time ran out does not.
fn is_in_doubt_after(error: &ReadError) -> bool {
    !matches!(error, ReadError::Refused { .. } | ReadError::Timeout { .. })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
