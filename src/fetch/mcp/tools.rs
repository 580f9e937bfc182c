//! Every connector's tools, called with the connector's own credential and headers.
//!
//! A program that is polled is called over the poller's connection, so that it runs once. Over HTTP each call has a
//! connection to itself, kept for the next ones: what goes wrong with a call is then told exactly, and disturbs neither
//! polls nor other calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, FutureExt, join_all};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::called::{self, request, said, trouble, unready};
use super::era::Era;
use super::link::{CALLS_MAX, Link};
use super::way::Way;
use super::{Common, McpOutbox, McpQueue};
use crate::config::{Auth, Config, Connector, Secret, Transport};
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

/// The servers of all workspaces, by workspace and connector.
#[derive(Debug)]
pub struct Connectors {
    known: RwLock<Known>,
}

/// Connectors, by workspace and name.
pub type Known = BTreeMap<(Name, Name), Arc<Server>>;

/// What one connector leads to; or why it leads nowhere.
#[derive(Debug)]
pub struct Server {
    /// What it was made from: one that is made from the same is the same.
    made_from: MadeFrom,
    caller: Result<Caller, ReadError>,
}

/// All of the configuration that a connection depends on. How it is polled and what its levels count is not part of it.
#[derive(Debug, PartialEq, Eq)]
struct MadeFrom {
    transport: Transport,
    outbox: Option<String>,
    is_pushed: bool,
    secrets: Vec<Option<Secret>>,
}

impl MadeFrom {
    fn of(connector: &Connector, secrets: &BTreeMap<Name, Secret>) -> Self {
        let mut named: Vec<&Name> = Vec::new();
        if let Transport::Http { auth, headers, .. } = &connector.transport {
            named.extend(headers.values());
            match auth {
                Auth::None => {}
                Auth::Bearer(name) => named.push(name),
                Auth::OAuth(oauth) => named.extend(&oauth.client_secret),
            }
        }
        let secrets = named.into_iter().map(|name| secrets.get(name).cloned()).collect();
        let (transport, outbox) = (connector.transport.clone(), connector.outbox.clone());
        Self { transport, outbox, is_pushed: connector.push.is_some(), secrets }
    }
}

impl Server {
    /// Closes every connection that calls may have made, once they are over.
    pub async fn close(&self) {
        if let Ok(caller) = &self.caller {
            caller.close().await;
        }
    }

    /// The outbox of the connector.
    ///
    /// # Errors
    /// As [`McpOutbox::new`].
    pub fn outbox(&self) -> Result<McpOutbox, ReadError> {
        self.caller.as_ref().map(Caller::outbox).map_err(Clone::clone)
    }
}

impl Server {
    /// The push queue of the connector.
    ///
    /// # Errors
    /// As [`McpOutbox::new`].
    pub fn queue(&self) -> Result<McpQueue, ReadError> {
        self.caller.as_ref().map(Caller::queue).map_err(Clone::clone)
    }
}

impl Connectors {
    /// All connectors that there are. None is connected yet.
    pub fn new(config: &Config, common: &Common<'_>) -> Self {
        let none = Self { known: RwLock::default() };
        none.go_over(none.prepare(config, common));
        none
    }

    /// The connectors of another configuration: those that are reached as before are the same, with their connections.
    /// Nothing is changed.
    pub fn prepare(&self, config: &Config, common: &Common<'_>) -> Known {
        let before = self.known();
        let mut known = Known::new();
        for workspace in config.workspaces.values() {
            for connector in workspace.connectors.values() {
                let key = (workspace.name.clone(), connector.name.clone());
                let made_from = MadeFrom::of(connector, common.secrets);
                let same = before.get(&key).filter(|server| server.made_from == made_from && server.caller.is_ok());
                let server = same.map(Arc::clone).unwrap_or_else(|| {
                    let caller = Way::new(&workspace.name, connector, common).map(|way| Caller::new(way, connector));
                    Arc::new(Server { made_from, caller })
                });
                known.insert(key, server);
            }
        }
        known
    }

    /// Calls go to these from now on; returns those before. Calls under way go on where they began.
    pub fn go_over(&self, known: Known) -> Known {
        std::mem::replace(&mut *self.known.write().unwrap_or_else(PoisonError::into_inner), known)
    }

    /// All connectors that there are.
    pub fn known(&self) -> Known {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The outbox of a connector.
    ///
    /// # Errors
    /// As [`McpOutbox::new`]; also when there is no such connector.
    pub fn outbox(&self, workspace: &Name, connector: &Name) -> Result<McpOutbox, ReadError> {
        self.server(workspace, connector)?.outbox()
    }

    /// Closes connections that no call needed for a while, until told to stop.
    pub async fn tend(&self, stop: &CancellationToken) {
        while stop.run_until_cancelled(tokio::time::sleep(IDLE_LOOK)).await.is_some() {
            let known = self.known();
            let callers = known.values().filter_map(|server| server.caller.as_ref().ok());
            join_all(callers.map(|caller| caller.close_older_than(IDLE_TIME_MAX))).await;
        }
    }

    /// Closes every connection that calls may have made, once they are over.
    pub async fn close(&self) {
        join_all(self.known().values().map(|server| server.close())).await;
    }

    fn server(&self, workspace: &Name, connector: &Name) -> Result<Arc<Server>, ReadError> {
        let unknown = || ReadError::NotConnected(format!("workspace {workspace} has no connector {connector}"));
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&(workspace.clone(), connector.clone())).map(Arc::clone).ok_or_else(unknown)
    }
}

impl Tools for Connectors {
    fn has(&self, workspace: &Name, connector: &Name) -> bool {
        self.server(workspace, connector).is_ok()
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Said, Trouble>> {
        async move {
            let server = self.server(call.workspace, call.connector).map_err(|error| unready(&error))?;
            server.caller.as_ref().map_err(unready)?.call(call).await
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
            is_polled: connector.is_fetched_from(),
            turns: Semaphore::new(CALLS_MAX as usize),
            idle: Mutex::default(),
            spoken: Mutex::default(),
        }
    }

    /// The outbox of its server.
    pub(super) fn outbox(&self) -> McpOutbox {
        McpOutbox::over(self.program.clone().unwrap_or_else(|| self.link()))
    }

    /// The push queue of its server.
    fn queue(&self) -> McpQueue {
        McpQueue::over(self.program.clone().unwrap_or_else(|| self.link()))
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
