//! One attempt of one delivery: ask the plugin, do what it says, until it answers done, failed or wait.

mod door;
mod made;
mod past;
mod run;
mod version;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::effect::secret::{NoSuchSecret, Occasion, seal};
use super::effect::{Effects, Permission};
use super::keys::Keys;
use super::live::{Current, Live};
use super::queue::Queues;
use super::report::Report;
use crate::clock::Clock;
use crate::config::{Config, Grant, Route, Target};
use crate::inbox::delivery::{OnUnknown, Outcome, Policy};
use crate::inbox::{Change, Claim, Inbox, Kept};
use crate::notification::Notification;
use crate::wasm::{self, Catalog, Delivery, Manifest, Repeat};

pub(super) use door::Door;
pub(super) use made::{Made, Manner, Seen, Watch};
pub(super) use run::Run;
pub(super) use version::handed;

/// How an attempt came off.
#[derive(Clone, Debug)]
pub enum Came {
    /// It is over.
    Ended(Ended),
    /// It goes on later: the same attempt.
    Rests(Rest),
    /// It was cut off where nothing may be written: what is stored says already that an effect may have begun, and the
    /// next opening of the store takes it up from there.
    Left,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub outcome: Outcome,
    /// Why, or the destination's reference; redacted and cut.
    pub reason: Option<String>,
    /// How long the destination asked to wait.
    pub destination_delay: Option<Duration>,
    /// How many times the plugin was asked, waits and restarts included.
    pub steps: u32,
    /// Whether a destination answered at all, or may have been reached.
    pub reached: bool,
    /// What the next attempt carries on with.
    pub resume: Change,
    /// What the target remembers of the subject.
    pub remember: Change,
    /// What is to be written to the inbox.
    pub report: Option<Report>,
    /// The version of the plugin that ran, and its digest.
    pub plugin: Option<(String, String)>,
    /// What a repeat means to it.
    pub repeat: Option<Repeat>,
}

/// An attempt that goes on later.
#[derive(Clone, Debug)]
pub struct Rest {
    /// What is kept of it.
    pub kept: Kept,
    /// When it goes on.
    pub until: Timestamp,
    /// Whether the plugin asked; else the server stops.
    pub is_wait: bool,
    /// What the plugin carries on with.
    pub resume: Change,
}

impl Ended {
    /// Without the plugin having been asked in this process.
    fn without_a_step(claim: &Claim, outcome: Outcome, reason: String) -> Self {
        let progress = claim.begun.as_ref().map(|begun| begun.progress).unwrap_or_default();
        let cut_off = claim.begun.as_ref().is_some_and(|begun| begun.cut_off);
        Self {
            outcome,
            reason: Some(reason),
            destination_delay: None,
            steps: progress.steps,
            reached: progress.reached || cut_off,
            resume: Change::Keep,
            remember: Change::Keep,
            report: None,
            plugin: None,
            repeat: None,
        }
    }

    /// What a failure inside the host makes of an attempt: anything may have happened.
    pub(super) fn inside_the_host(claim: &Claim) -> Self {
        let reason = "the host failed inside during this attempt; please report it".to_owned();
        Self { reached: true, ..Self::without_a_step(claim, Outcome::Unknown, reason) }
    }
}

/// What attempts are made with.
#[derive(Debug)]
pub struct Means {
    /// The routes, the grants, the secrets, the plugins.
    pub live: Live,
    /// The door to the world.
    pub effects: Effects,
    /// The time.
    pub clock: Clock,
    /// Where the past of attempts is kept.
    pub inbox: Arc<dyn Inbox>,
    /// The pace of the lanes.
    pub queues: Arc<Queues>,
    /// What placeholders are computed from.
    pub keys: Keys,
}

/// The two steps of stopping.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// Take no more work; an attempt that has begun no effect ends as interrupted.
    pub soon: CancellationToken,
    /// Stop working; an effect that is under way counts as unanswered.
    pub now: CancellationToken,
}

/// What an attempt is made from, whichever door it uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Basis<'a> {
    pub(super) config: &'a Config,
    pub(super) catalog: &'a Catalog,
    pub(super) keys: &'a Keys,
    /// The target, where it is not to be looked for in the configuration.
    pub(super) of: Option<(&'a Route, &'a Target)>,
}

impl Basis<'_> {
    /// Makes one attempt, or goes on with it. What those who `watch` keep of it comes along.
    pub(super) async fn attempt(
        self,
        claim: &Claim,
        began: Timestamp,
        stop: &Stop,
        (door, watch): (Door<'_>, Option<Watch<'_>>),
    ) -> (Came, Seen) {
        let ended = |outcome, reason| (Came::Ended(Ended::without_a_step(claim, outcome, reason)), Seen::default());
        let Some((route, target)) = self.of.or_else(|| target(self.config, claim)) else {
            let reason = format!("route {} or its target is not in the configuration any more", claim.queue.route);
            return ended(Outcome::Reject, reason);
        };
        let plugin = match version::of(claim.begun.as_ref(), &target.plugin, self.catalog) {
            Ok(plugin) => plugin,
            Err(reason) => {
                let touched = claim.begun.as_ref().is_some_and(|begun| begun.progress.touched || begun.cut_off);
                return ended(if touched { Outcome::Unknown } else { Outcome::Retry }, reason);
            }
        };
        let id = claim.id.to_string();
        let occasion = Occasion { keys: self.keys, delivery: &id, attempt: claim.attempt.get() };
        let sealed = match seal(&target.settings, &self.config.secrets, occasion) {
            Ok(sealed) => sealed,
            Err(NoSuchSecret(name)) => {
                return ended(Outcome::Reconnect, format!("secret {name} is not in the configuration"));
            }
        };
        let no_grant = Grant::default();
        let permission = Permission {
            plugin: &target.plugin,
            workspace: &claim.queue.workspace,
            route: &claim.queue.route,
            grant: self.config.plugins.grants.get(&target.plugin).unwrap_or(&no_grant),
            seals: &sealed.seals,
            delivery: &id,
            due_at: in_milliseconds(claim.due_at),
            on_behalf_of: &route.owner,
        };
        let seqs: Vec<u64> = claim.notifications.iter().map(|notification| notification.seq).collect();
        let delivery = Delivery {
            inbox_url: self.config.inbox_url(&claim.queue.workspace, &seqs),
            ..delivery(claim, id.clone(), route, sealed.settings, began, plugin.manifest())
        };
        let made = Run::new(door, claim, &plugin, delivery, began).until_its_end(&permission, stop).await;
        let of = (&plugin, target, &sealed.seals);
        let seen = watch.map(|watch| watch.look(&made, claim, of, door.clock().now())).unwrap_or_default();
        (made.came, seen)
    }
}

/// The target of a claim; one that went on under another route since is that one, where there is only one of its identity.
fn target<'c>(config: &'c Config, claim: &Claim) -> Option<(&'c Route, &'c Target)> {
    let workspace = config.workspaces.get(&claim.queue.workspace)?;
    let of_route = |route: &'c Route| {
        let target = route.deliver.iter().find(|target| target.id == *claim.queue.target)?;
        Some((route, target))
    };
    let named = workspace.routes.iter().find(|route| route.name == claim.queue.route);
    named.and_then(of_route).or_else(|| {
        let mut namesakes = workspace.routes.iter().filter_map(of_route);
        namesakes.next().filter(|_| namesakes.next().is_none())
    })
}

/// What becomes of an attempt whose target went before it could begin: it is given back, for the store to see to.
fn gone(claim: &Claim, now: Timestamp) -> Came {
    match &claim.begun {
        None => {
            let reason = "its target is not in the configuration any more".to_owned();
            Came::Ended(Ended::without_a_step(claim, Outcome::Interrupted, reason))
        }
        // It may have begun an effect, of which the mark is kept.
        Some(begun) if begun.cut_off => Came::Left,
        Some(begun) => {
            let kept = Kept {
                id: claim.id.clone(),
                fence: claim.fence,
                progress: begun.progress,
                kept_before: begun.past.len(),
                effects: Vec::new(),
                plugin_digest: begun.plugin_digest.clone().unwrap_or_default(),
            };
            Came::Rests(Rest { kept, until: now, is_wait: false, resume: Change::Keep })
        }
    }
}

impl Means {
    /// Makes one attempt, or goes on with it.
    pub async fn attempt(&self, claim: &Claim, began: Timestamp, stop: &Stop) -> Came {
        let current = self.current(claim);
        self.basis(&current).attempt(claim, began, stop, (Door::Doing(self), None)).await.0
    }

    /// The same; some come with what is kept of them.
    pub(super) async fn watched(&self, claim: &Claim, began: Timestamp, stop: &Stop, watch: Watch<'_>) -> (Came, Seen) {
        let current = self.current(claim);
        if target(&current.config, claim).is_none() {
            return (gone(claim, self.clock.now()), Seen::default());
        }
        self.basis(&current).attempt(claim, began, stop, (Door::Doing(self), Some(watch))).await
    }

    /// What holds for a claim: one that was handed out right before its target went is made all the same.
    fn current(&self, claim: &Claim) -> Arc<Current> {
        self.live.with(|config| target(config, claim).is_some())
    }

    fn basis<'a>(&'a self, current: &'a Current) -> Basis<'a> {
        Basis { config: &current.config, catalog: &current.catalog, keys: &self.keys, of: None }
    }

    /// How the end of an attempt moves its delivery: as the target says, else by what a repeat means to the version of the
    /// plugin that ran, or to the one that runs now where none did.
    pub fn policy(&self, claim: &Claim, repeat: Option<Repeat>) -> Policy {
        let Current { config, catalog, .. } = &*self.current(claim);
        let Some((_, target)) = target(config, claim) else { return Policy::default() };
        let repeat = repeat.or_else(|| catalog.get(&target.plugin).map(|plugin| plugin.manifest().repeat));
        let on_unknown = target.on_unknown.unwrap_or(match repeat {
            Some(Repeat::Harmful) => OnUnknown::Stop,
            Some(Repeat::Harmless | Repeat::Tolerable) | None => OnUnknown::Retry,
        });
        Policy { schedule: target.retry, on_unknown }
    }
}

/// A moment as the store keeps it. What a plugin is told must be the same when its attempt goes on after a restart.
pub(super) fn in_milliseconds(moment: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(moment.as_millisecond()).unwrap_or(moment)
}

fn delivery(
    claim: &Claim,
    id: String,
    route: &Route,
    settings: String,
    began: Timestamp,
    manifest: &Manifest,
) -> Delivery {
    let memory = claim.memory.as_ref().filter(|_| manifest.needs_memory);
    Delivery {
        id,
        attempt: claim.attempt.get(),
        due_at: in_milliseconds(claim.due_at).to_string(),
        now: began.to_string(),
        workspace: claim.queue.workspace.to_string(),
        route: claim.queue.route.to_string(),
        on_behalf_of: route.owner.clone(),
        cause: claim.cause.as_str().to_owned(),
        settings,
        notifications: notifications(claim, manifest),
        omitted: claim.omitted,
        inbox_url: None,
        memory: memory.and_then(|memory| handed(Some(&memory.written), manifest)),
        resume: handed(claim.resume.as_ref(), manifest),
        extras: "{}".to_owned(),
    }
}

/// What a plugin sees of the notifications.
pub(super) fn notifications(claim: &Claim, manifest: &Manifest) -> Vec<wasm::Notification> {
    let notification = |notification: &Notification| {
        let mut seen = wasm::convert::notification(notification, manifest.needs_data);
        seen.received_at = in_milliseconds(notification.received_at).to_string();
        seen
    };
    claim.notifications.iter().map(notification).collect()
}
