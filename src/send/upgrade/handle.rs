//! How commands ask for changes.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::configure::Configured;
use super::prepare::{Candidate, prepare};
use super::take::{Done, Refused};
use super::view::PluginView;
use super::{Arrived, Upgrades};
use crate::config::Config;
use crate::notification::Name;

/// Requests that wait; more wait for room.
pub(super) const REQUESTS_MAX: usize = 16;

type Reply = oneshot::Sender<Result<Done, Refused>>;

/// What is asked for.
#[derive(Debug)]
pub(super) enum Request {
    List(oneshot::Sender<Vec<PluginView>>),
    Load(Candidate, Reply),
    RollBack(Name, Option<String>, Reply),
    Approve(Name, Option<String>, Reply),
    Configure(Arc<Config>, oneshot::Sender<Result<Configured, Refused>>),
}

/// Asks the one who owns the versions.
#[derive(Clone, Debug)]
pub struct Handle(mpsc::Sender<Request>);

impl Handle {
    pub(super) fn new(requests: mpsc::Sender<Request>) -> Self {
        Self(requests)
    }

    /// Every plugin there is, by name.
    pub async fn list(&self) -> Option<Vec<PluginView>> {
        let (reply, answer) = oneshot::channel();
        self.0.send(Request::List(reply)).await.ok()?;
        answer.await.ok()
    }

    /// Loads a file by hand: as one that appears in the folder, but also a version that was at fault; it is written into
    /// the folder. `from` is what a person calls it.
    ///
    /// # Errors
    /// Why nothing was changed.
    pub async fn load(&self, from: PathBuf, bytes: Vec<u8>, signature: Option<String>) -> Result<Done, Refused> {
        self.ask(|reply| Request::Load(Candidate { name: None, path: from, bytes, signature }, reply)).await
    }

    /// Goes back to an earlier version.
    ///
    /// # Errors
    /// Why nothing was changed.
    pub async fn roll_back(&self, name: Name, version: Option<String>) -> Result<Done, Refused> {
        self.ask(|reply| Request::RollBack(name, version, reply)).await
    }

    /// Lets in a version that is held.
    ///
    /// # Errors
    /// Why nothing was changed.
    pub async fn approve(&self, name: Name, version: Option<String>) -> Result<Done, Refused> {
        self.ask(|reply| Request::Approve(name, version, reply)).await
    }

    /// Goes over to another configuration, with the plugins that it lets run.
    ///
    /// # Errors
    /// Why everything is as it was.
    pub async fn configure(&self, config: Arc<Config>) -> Result<Configured, Refused> {
        let (reply, answer) = oneshot::channel();
        let stopping = || Refused::new("the server is stopping");
        self.0.send(Request::Configure(config, reply)).await.map_err(|_gone| stopping())?;
        answer.await.map_err(|_gone| stopping())?
    }

    async fn ask(&self, request: impl FnOnce(Reply) -> Request) -> Result<Done, Refused> {
        let (reply, answer) = oneshot::channel();
        let stopping = || Refused::new("the server is stopping");
        self.0.send(request(reply)).await.map_err(|_gone| stopping())?;
        answer.await.map_err(|_gone| stopping())?
    }
}

impl Upgrades {
    pub(super) async fn serve(&mut self, request: Request, preparing: &mut JoinSet<Arrived>) {
        // Whoever asked may be gone.
        match request {
            Request::List(reply) => drop(reply.send(self.view())),
            Request::Configure(config, reply) => drop(reply.send(self.configure(config).await)),
            Request::Load(candidate, reply) => self.begin(candidate, Some(reply), preparing),
            Request::RollBack(name, version, reply) => {
                self.next_turn(&name);
                drop(reply.send(self.roll_back(&name, version.as_deref()).await));
            }
            Request::Approve(name, version, reply) => {
                self.next_turn(&name);
                drop(reply.send(self.approve(&name, version.as_deref()).await));
            }
        }
    }

    /// Begins to prepare a file, beside everything else.
    pub(super) fn begin(&self, candidate: Candidate, reply: Option<Reply>, preparing: &mut JoinSet<Arrived>) {
        let (ground, catalog, depot) = (self.ground.clone(), self.catalog.clone(), self.depot.clone());
        let turn = candidate.name.as_ref().map_or(0, |name| self.turn(name));
        let history = self.history.clone();
        preparing.spawn(async move {
            let prepared = prepare(&ground, &candidate, &catalog, (&depot, &history)).await;
            let config = Arc::clone(&ground.config);
            Arrived { candidate, turn, config, prepared, reply }
        });
    }

    /// Loads a file by hand in a process that runs no server.
    ///
    /// # Errors
    /// Why nothing was changed.
    pub async fn load(&mut self, from: PathBuf, bytes: Vec<u8>, signature: Option<String>) -> Result<Done, Refused> {
        let candidate = Candidate { name: None, path: from, bytes, signature };
        let prepared = prepare(&self.ground, &candidate, &self.catalog, (&self.depot, &self.history)).await?;
        self.take(&candidate, prepared, true).await
    }
}
