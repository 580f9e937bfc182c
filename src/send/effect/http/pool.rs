//! Connections that wait for a further request of the same plugin, workspace and origin.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::connection::Connection;
use crate::notification::Name;
use crate::send::effect::Permission;
use crate::send::effect::guard::Allowed;

/// Idle connections in all: what a burst leaves behind must not use up the files a process may have open.
pub(super) const IDLE_MAX: usize = 512;

/// Idle connections of one plugin and workspace to one origin: what one queue has in flight at once, so that a burst does not
/// open connections anew for each of its waves.
pub(super) const IDLE_PER_ORIGIN_MAX: usize = 128;

/// How long a connection may be idle: less than most servers and gateways in between allow.
pub(super) const IDLE_TIME_MAX: Duration = Duration::from_secs(30);

/// Who uses a connection, and for what: nothing is carried over from one to another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct User {
    /// The plugin and the workspace; none for the host itself, which fetches tokens.
    whose: Option<(Name, Name)>,
    /// Whether it may lead to a private address.
    private: bool,
    is_tls: bool,
    host: Box<str>,
    port: u16,
}

impl User {
    pub(super) fn of(allowed: &Allowed<'_>, permission: &Permission<'_>) -> Self {
        Self::with(Some((permission.plugin.clone(), permission.workspace.clone())), allowed)
    }

    pub(super) fn of_the_host(allowed: &Allowed<'_>) -> Self {
        Self::with(None, allowed)
    }

    fn with(whose: Option<(Name, Name)>, Allowed { url, private, .. }: &Allowed<'_>) -> Self {
        Self {
            whose,
            private: *private,
            is_tls: url.scheme() != "http",
            host: url.host_str().unwrap_or_default().into(),
            port: url.port_or_known_default().unwrap_or_default(),
        }
    }
}

/// The idle connections.
#[derive(Debug, Default)]
pub(super) struct Pool {
    idle: Mutex<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    /// Oldest first.
    of: HashMap<User, Vec<(Instant, Connection)>>,
    count: usize,
}

impl Pool {
    /// The state is whole between any two statements, so a panic elsewhere does not spoil it.
    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection on which nothing has happened since it was put here.
    pub(super) fn take(&self, user: &User) -> Option<Connection> {
        loop {
            let (since, mut connection) = self.idle().take(user)?;
            if since.elapsed() < IDLE_TIME_MAX && connection.is_unused() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection, if there is room.
    pub(super) fn put(&self, user: User, connection: Connection) {
        let mut idle = self.idle();
        if idle.count >= IDLE_MAX {
            idle.sweep(Instant::now());
        }
        if idle.count >= IDLE_MAX {
            return;
        }
        let of_user = idle.of.entry(user).or_default();
        if of_user.len() < IDLE_PER_ORIGIN_MAX {
            of_user.push((Instant::now(), connection));
            idle.count += 1;
        }
    }

    /// Closes what has been idle for too long, or was closed by the other side.
    pub(super) fn sweep(&self, now: Instant) {
        self.idle().sweep(now);
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.idle().count
    }
}

impl Idle {
    fn take(&mut self, user: &User) -> Option<(Instant, Connection)> {
        let of_user = self.of.get_mut(user)?;
        let taken = of_user.pop();
        if of_user.is_empty() {
            self.of.remove(user);
        }
        self.count -= usize::from(taken.is_some());
        taken
    }

    fn sweep(&mut self, now: Instant) {
        self.of.retain(|_, of_user| {
            of_user
                .retain_mut(|(since, connection)| now.duration_since(*since) < IDLE_TIME_MAX && connection.is_unused());
            !of_user.is_empty()
        });
        self.count = self.of.values().map(Vec::len).sum();
    }
}
