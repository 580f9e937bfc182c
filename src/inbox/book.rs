//! What a store and the dispatcher know of targets: made from the configuration and the plugins, swapped as a whole.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use crate::notification::Name;
use crate::route::timing::Timing;

/// Whose deliveries stand in one queue: a target of a route.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueKey {
    /// The workspace.
    pub workspace: Name,
    /// The route.
    pub route: Name,
    /// The target's identity.
    pub target: Arc<str>,
}

impl fmt::Display for QueueKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {} -> {}", self.workspace, self.route, self.target)
    }
}

/// A lane's identity: keys are a plugin's own within a workspace, with secrets replaced.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneKey {
    /// The workspace.
    pub workspace: Name,
    /// The plugin.
    pub plugin: Name,
    /// The plugin's key, at most 400 bytes.
    pub key: Arc<str>,
}

/// What a lane allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneRule {
    /// Which.
    pub lane: LaneKey,
    /// At most so many effects, 0 for no limit, …
    pub count: u32,
    /// … in so many seconds.
    pub per_seconds: u32,
    /// Attempts at once; 0 for no limit.
    pub in_flight: u32,
    /// Whether deliveries are made one after the other, in the order they came due.
    pub is_ordered: bool,
}

/// A target as the store and the dispatcher see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Whose queue it is.
    pub queue: QueueKey,
    /// The plugin.
    pub plugin: Name,
    /// When it wants to hear of things.
    pub timing: Timing,
    /// Why nothing can be delivered to it now: its plugin is not loaded, or refuses its settings.
    pub blocked: Option<String>,
    /// The versions of its plugin that are there all the same for attempts that began on them: the SHA-256 of each, in hex.
    pub goes_on: Vec<String>,
    /// Whether a delivery that fails keeps all later ones back (`order: strict`).
    pub is_strict: bool,
    /// Whether the plugin remembers by subject: two attempts of one subject never run at once.
    pub by_subject: bool,
    /// The lanes it needs, sorted by key; empty for none.
    pub lanes: Vec<LaneRule>,
}

/// Every target there is.
#[derive(Clone, Debug, Default)]
pub struct Book {
    rules: HashMap<QueueKey, Arc<Rule>>,
    /// Routes' targets by workspace and identity, for those that moved to another route.
    by_target: BTreeMap<(Name, Arc<str>), Vec<QueueKey>>,
    /// The workspaces of which all targets are known; none where that is every one.
    whole: Option<BTreeSet<Name>>,
}

impl Book {
    /// A book of these targets.
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Self {
        let mut book = Self::default();
        for rule in rules {
            let by_target = (rule.queue.workspace.clone(), Arc::clone(&rule.queue.target));
            book.by_target.entry(by_target).or_default().push(rule.queue.clone());
            book.rules.insert(rule.queue.clone(), Arc::new(rule));
        }
        book
    }

    /// The same, of these workspaces alone. Any other is set aside: what its targets are owed waits, and is neither handed
    /// out nor cancelled, until a book knows it again. Its file may have mistakes, or be away for a moment.
    #[must_use]
    pub fn of_workspaces<'a>(self, whole: impl IntoIterator<Item = &'a Name>) -> Self {
        Self { whole: Some(whole.into_iter().cloned().collect()), ..self }
    }

    /// Whether a workspace is set aside.
    pub fn is_aside(&self, workspace: &Name) -> bool {
        self.whole.as_ref().is_some_and(|whole| !whole.contains(workspace))
    }

    /// The target of this queue.
    pub fn get(&self, queue: &QueueKey) -> Option<&Arc<Rule>> {
        self.rules.get(queue)
    }

    /// The queues of this target's identity, whatever their route: routes may be renamed, and several may have a target
    /// with the same plugin and settings.
    pub fn namesakes(&self, queue: &QueueKey) -> impl Iterator<Item = &QueueKey> {
        self.by_target.get(&(queue.workspace.clone(), Arc::clone(&queue.target))).into_iter().flatten()
    }

    /// Every target.
    pub fn rules(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.rules.values()
    }
}

/// Lets deliveries in as they are written: asked inside the transaction, so it must be quick and never wait.
pub trait Admission: Send + Sync + fmt::Debug {
    /// Whether an attempt for this queue can start now; it then counts as started.
    fn admit(&self, queue: &QueueKey, subject: Option<&str>) -> bool;

    /// Takes back what was admitted and not written.
    fn give_back(&self, queue: &QueueKey, subject: Option<&str>);
}
