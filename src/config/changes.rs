//! What differs between two configurations, and what of it a process cannot follow while it runs.

use std::collections::{BTreeMap, BTreeSet};

use super::{Config, Connector, Route, Target, Workspace};
use crate::notification::Name;

/// What differs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// The operator's first, then those of each workspace.
    pub changes: Vec<Change>,
    /// Connectors that are as they were.
    pub connectors_kept: usize,
}

/// One thing that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The workspace; none for what is the operator's.
    pub workspace: Option<Name>,
    /// What it is.
    pub what: What,
    /// How it differs.
    pub how: How,
}

/// A part of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A key of a file, such as `plugins.trust`.
    Key(&'static str),
    /// A secret.
    Secret(Name),
    /// A workspace as a whole.
    Workspace,
    /// The members of a workspace.
    Members,
    /// A connector.
    Connector(Name),
    /// A consumer.
    Consumer(Name),
    /// A route.
    Route(Name),
    /// A target of a route that is there before and after.
    Target {
        /// The route.
        route: Name,
        /// The target's identity.
        target: String,
    },
}

/// How something differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It was not there before.
    New,
    /// It is not there any more.
    Gone,
    /// It is another.
    Changed,
}

impl How {
    /// The word for it on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Gone => "gone",
            Self::Changed => "changed",
        }
    }
}

impl Changes {
    /// What differs between two configurations. A workspace that is set aside in one of them is not there in it.
    pub fn between(before: &Config, after: &Config) -> Self {
        let mut found = Self::default();
        found.operator(before, after);
        let is_kept_alike = before.retention.kept == after.retention.kept;
        each(&before.workspaces, &after.workspaces, |name, before, after| match (before, after) {
            (Some(before), Some(after)) => {
                // What follows from the operator's is said once.
                if is_kept_alike && before.kept != after.kept {
                    found.add(Some(name), What::Key("retention"), How::Changed);
                }
                found.workspace(before, after);
            }
            (None, _) => found.add(Some(name), What::Workspace, How::New),
            (_, None) => found.add(Some(name), What::Workspace, How::Gone),
        });
        found
    }

    fn add(&mut self, workspace: Option<&Name>, what: What, how: How) {
        self.changes.push(Change { workspace: workspace.cloned(), what, how });
    }

    fn operator(&mut self, before: &Config, after: &Config) {
        let (old, new) = (&before.plugins, &after.plugins);
        let keys = [
            ("public_url", before.access.public_url == after.access.public_url),
            ("trusted_proxies", before.access.trusted_proxies == after.access.trusted_proxies),
            ("poll.budget_per_minute", before.reads_per_minute_max == after.reads_per_minute_max),
            ("plugins.grants", old.grants == new.grants),
            ("plugins.gate", old.gate == new.gate),
            ("plugins.trust", old.trust == new.trust),
            ("plugins.pins", old.pins == new.pins),
            ("plugins.limits", old.limits == new.limits),
            ("mail", before.mail == after.mail),
            ("retention", before.retention == after.retention),
        ];
        for (key, _) in keys.into_iter().filter(|(_, is_same)| !is_same) {
            self.add(None, What::Key(key), How::Changed);
        }
        each(&before.secrets, &after.secrets, |name, before, after| {
            self.extend(None, What::Secret(name.clone()), how(before, after));
        });
    }

    fn workspace(&mut self, before: &Workspace, after: &Workspace) {
        let name = &after.name;
        if before.members != after.members {
            self.add(Some(name), What::Members, How::Changed);
        }
        each(&before.connectors, &after.connectors, |connector, before, after| {
            let how = how(before, after);
            self.connectors_kept += usize::from(how.is_none());
            self.extend(Some(name), What::Connector(connector.clone()), how);
        });
        each(before.consumers.whens(), after.consumers.whens(), |consumer, before, after| {
            self.extend(Some(name), What::Consumer(consumer.clone()), how(before, after));
        });
        let routes = |of: &'_ Workspace| {
            of.routes.iter().enumerate().map(|(at, route)| (route.name.clone(), at)).collect::<BTreeMap<Name, usize>>()
        };
        each(&routes(before), &routes(after), |route, old, new| {
            let old = old.and_then(|at| before.routes.get(*at));
            let new = new.and_then(|at| after.routes.get(*at));
            self.route(name, route, old, new);
        });
    }

    fn route(&mut self, workspace: &Name, name: &Name, before: Option<&Route>, after: Option<&Route>) {
        let (before, after) = match (before, after) {
            (Some(before), Some(after)) => (before, after),
            (None, None) => return,
            (before, _) => {
                let how = if before.is_some() { How::Gone } else { How::New };
                return self.add(Some(workspace), What::Route(name.clone()), how);
            }
        };
        if (&before.owner, &before.when) != (&after.owner, &after.when) {
            self.add(Some(workspace), What::Route(name.clone()), How::Changed);
        }
        let targets = |route: &Route| -> BTreeMap<String, Target> {
            route.deliver.iter().map(|target| (target.id.clone(), target.clone())).collect()
        };
        each(&targets(before), &targets(after), |id, before, after| {
            let how = match (before, after) {
                (Some(before), Some(after)) => (!before.is_same(after)).then_some(How::Changed),
                (before, _) => Some(if before.is_some() { How::Gone } else { How::New }),
            };
            self.extend(Some(workspace), What::Target { route: name.clone(), target: id.clone() }, how);
        });
    }

    fn extend(&mut self, workspace: Option<&Name>, what: What, how: Option<How>) {
        if let Some(how) = how {
            self.add(workspace, what, how);
        }
    }
}

fn how<T: PartialEq>(before: Option<&T>, after: Option<&T>) -> Option<How> {
    match (before, after) {
        (None, Some(_)) => Some(How::New),
        (Some(_), None) => Some(How::Gone),
        (before, after) => (before != after).then_some(How::Changed),
    }
}

/// Calls `tell` with each key of either, in order, and what both have for it.
fn each<K: Ord, V>(before: &BTreeMap<K, V>, after: &BTreeMap<K, V>, mut tell: impl FnMut(&K, Option<&V>, Option<&V>)) {
    let keys: BTreeSet<&K> = before.keys().chain(after.keys()).collect();
    keys.into_iter().for_each(|key| tell(key, before.get(key), after.get(key)));
}

impl Target {
    /// Whether both are the same but for where they stand in the file.
    pub fn is_same(&self, other: &Self) -> bool {
        let Self { id, plugin, settings, places: _, timing, retry, on_unknown, is_strict } = self;
        (id, plugin, settings, timing, retry, on_unknown, is_strict)
            == (
                &other.id,
                &other.plugin,
                &other.settings,
                &other.timing,
                &other.retry,
                &other.on_unknown,
                &other.is_strict,
            )
    }
}

impl Connector {
    /// Whether both are reached in the same way and read the same outbox or queue, however often.
    pub fn is_reached_as(&self, other: &Self) -> bool {
        (&self.transport, &self.outbox, self.push.is_some()) == (&other.transport, &other.outbox, other.push.is_some())
    }

    /// Whether events come from it by themselves: it declares an outbox, or has a push queue.
    pub fn is_fetched_from(&self) -> bool {
        self.outbox.is_some() || self.push.is_some()
    }
}

impl Config {
    /// Takes from the configuration that this process runs on what it cannot change while it runs. Returns the keys that
    /// differ: they need a restart.
    pub fn keep_what_cannot_change(&mut self, running: &Self) -> Vec<&'static str> {
        let mut differ = Vec::new();
        let mut keep = |key, is_same: bool| {
            if !is_same {
                differ.push(key);
            }
        };
        let (new, old) = (&self.plugins, &running.plugins);
        keep("listen", self.listen == running.listen);
        keep("store", self.store == running.store);
        keep("plugins.directory", new.directory == old.directory);
        keep("plugins.limits.memory", new.limits.memory_bytes_max == old.limits.memory_bytes_max);
        keep("plugins.limits.step_cpu", new.limits.step_cpu_max == old.limits.step_cpu_max);
        self.listen = running.listen;
        self.store.clone_from(&running.store);
        self.plugins.directory.clone_from(&running.plugins.directory);
        self.plugins.limits.memory_bytes_max = running.plugins.limits.memory_bytes_max;
        self.plugins.limits.step_cpu_max = running.plugins.limits.step_cpu_max;
        differ
    }
}

#[cfg(test)]
mod tests;
