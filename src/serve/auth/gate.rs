//! Lets callers in.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::request::Parts;
use tokio::sync::watch;

use super::{Caller, Right};
use crate::clock::Clock;
use crate::config::{Config, Workspace};
use crate::inbox::Store;
use crate::notification::Name;
use crate::serve::problem::Problem;

/// Knows tokens and sessions, and what they may.
#[derive(Clone, Debug)]
pub struct Gate {
    /// Where tokens are kept.
    pub store: Arc<dyn Store>,
    /// Members, and whom to believe.
    pub config: watch::Receiver<Arc<Config>>,
    /// The time.
    pub clock: Clock,
}

/// A caller in a workspace, with the configuration as it was then.
#[derive(Clone, Debug)]
pub struct Admitted {
    config: Arc<Config>,
    name: Name,
}

impl Admitted {
    /// The workspace's name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The configuration.
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// The workspace; none while its file has mistakes.
    pub fn workspace(&self) -> Option<&Workspace> {
        self.config.workspaces.get(&self.name)
    }
}

impl Gate {
    /// Who sends this request: by its bearer token, else, where `cookies`, by its session cookie. A request of a session that
    /// is no GET or HEAD must have our `Origin` and the header of our pages.
    ///
    /// # Errors
    /// [`Problem::Unauthenticated`], [`Problem::Forbidden`] for a foreign origin, [`Problem::TooMany`] after too many
    /// failures from this address.
    pub async fn caller(&self, request: &Parts, from: Option<SocketAddr>, cookies: bool) -> Result<Caller, Problem> {
        let _ = (request, from, cookies, &self.store, &self.clock);
        Err(Problem::Unauthenticated("no token is known yet".to_owned()))
    }

    /// Lets a caller into a workspace. Unknown, foreign and set aside for strangers: all the same answer.
    ///
    /// # Errors
    /// [`Problem::Unknown`], [`Problem::Forbidden`] where the workspace is the caller's but the role does not allow it.
    pub fn workspace(&self, caller: &Caller, workspace: &str, right: Right) -> Result<Admitted, Problem> {
        let config = self.config.borrow().clone();
        let is_own = caller.workspace.as_ref().is_none_or(|own| own.as_str() == workspace);
        let known = config.workspaces.keys().chain(&config.aside).find(|name| name.as_str() == workspace && is_own);
        let Some(name) = known.cloned() else {
            return Err(Problem::Unknown(format!("there is no workspace {workspace:?} that this token may see")));
        };
        self.operate(caller, right)?;
        Ok(Admitted { config, name })
    }

    /// Whether a caller may do this, where no workspace is named.
    ///
    /// # Errors
    /// [`Problem::Forbidden`].
    pub fn operate(&self, caller: &Caller, right: Right) -> Result<(), Problem> {
        match caller.may(right) {
            true => Ok(()),
            false => Err(Problem::Forbidden("the role of this token does not allow it".to_owned())),
        }
    }
}
