//! What the host itself tells a workspace about its deliveries: notices in the inbox, from the source `switchbell`, that
//! routes may match like anything else.
//!
//! None can bring about an endless chain (nor can [reports](super::report)): there is none about a delivery that stands for notices alone, and a notice owes
//! nothing to the target that it is about, nor to any that shares a lane with it.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use serde_json::json;

use super::spare::About;
use crate::config::Workspace;
use crate::inbox::book::{Book, QueueKey};
use crate::inbox::delivery::{Cause, State};
use crate::inbox::{Claim, Ended, Entry, Intake, Owed};
use crate::notification::{Event, HOST_SOURCE, Level, Name};
use crate::route::{Decision, entry};
use crate::text;

/// Dead deliveries of one target are told once in so many seconds: whoever is told looks at all of them.
const TOLD_EVERY_SECONDS: i64 = 3_600;

/// The same for targets that become blocked again because a person had them tried in vain, who wants to know each time.
const BLOCKED_TOLD_EVERY_SECONDS: i64 = 1;

/// Longest id of an event, in characters.
const EVENT_ID_CHARS_MAX: usize = 200;

/// Longest title and body, in characters, as of every notification.
const TITLE_CHARS_MAX: usize = 200;
const BODY_CHARS_MAX: usize = 2_000;

/// Deliveries that are listed of one notice's digest.
pub(super) const SEQS_MAX: usize = 100;

/// Which targets wait for a person and were told of.
#[derive(Debug, Default)]
pub(super) struct Blocked(Mutex<HashSet<QueueKey>>);

impl Blocked {
    /// Whether the end of this attempt is news: a target that becomes blocked is told once, and once more when a person had
    /// it tried again in vain.
    fn is_news(&self, claim: &Claim, state: State) -> bool {
        let mut blocked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state == State::Blocked {
            blocked.insert(claim.queue.clone()) || claim.cause == Cause::Manual
        } else {
            blocked.remove(&claim.queue);
            true
        }
    }
}

/// A delivery that came to a bad end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Notice<'a> {
    claim: &'a Claim,
    kind: Kind,
    reason: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Dead,
    Blocked,
    Unknown,
}

impl<'a> Notice<'a> {
    /// What there is to tell of an attempt that left its delivery in `state`.
    pub(super) fn of(claim: &'a Claim, state: State, reason: Option<&'a str>, blocked: &Blocked) -> Option<Self> {
        let is_news = blocked.is_news(claim, state);
        let kind = match state {
            State::Dead => Kind::Dead,
            State::Blocked => Kind::Blocked,
            State::Unknown => Kind::Unknown,
            _ => return None,
        };
        (is_news && !is_of_notices_alone(claim)).then_some(Self {
            claim,
            kind,
            reason: reason.unwrap_or("no reason was given"),
        })
    }

    /// The notice as it is written, and what was decided about each route.
    pub(super) fn entry(&self, workspace: &Workspace, book: &Book, now: Timestamp) -> Option<(Entry, Vec<Decision>)> {
        let host: Name = HOST_SOURCE.parse().ok()?;
        let event = self.event(now);
        let level = event.level.capped(Level::Urgent);
        let (mut entry, decisions) = entry(event, level, (workspace, &host));
        let about = About::Delivery(self.claim.queue.clone());
        entry.owed.retain(|owed| about.spares(owed, book, |_| false).is_none());
        Some((entry, decisions))
    }

    fn event(&self, now: Timestamp) -> Event {
        let name = self.name();
        let QueueKey { route, target, .. } = &self.claim.queue;
        let every = if self.kind == Kind::Blocked { BLOCKED_TOLD_EVERY_SECONDS } else { TOLD_EVERY_SECONDS };
        let event_id = format!("{name}:{}:{route}:{target}", now.as_second().div_euclid(every));
        Event {
            event_id: event_id.chars().take(EVENT_ID_CHARS_MAX).collect(),
            name: name.to_owned(),
            timestamp: now,
            level: Level::Attention,
            subject: Some(route.to_string()),
            title: self.title(),
            body: Some(format!("{}\n{}", self.reason, self.remedy())),
            link: None,
            data: self.data(),
            content: None,
        }
    }

    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Dead => "delivery.dead",
            Kind::Blocked => "delivery.blocked",
            Kind::Unknown => "delivery.unknown",
        }
    }

    fn title(&self) -> String {
        let (route, plugin) = (&self.claim.queue.route, &self.claim.plugin);
        match self.kind {
            Kind::Dead => format!("{route}: a delivery through {plugin} was given up"),
            Kind::Blocked => format!("{route}: deliveries through {plugin} wait for a person"),
            Kind::Unknown => format!("{route}: a delivery through {plugin} may or may not have been made"),
        }
    }

    fn remedy(&self) -> String {
        let id = &self.claim.id;
        match self.kind {
            Kind::Dead => format!(
                "`switchbell deliveries retry {id}` tries it again. It is told once an hour for each target, so there are \
                 perhaps more: `switchbell deliveries list --state dead`"
            ),
            Kind::Blocked => {
                format!(
                    "Mend the credential or the channel, then `switchbell deliveries retry {id}`: they go on from there."
                )
            }
            Kind::Unknown => format!(
                "It is not repeated by itself, since that could do harm. Look at the destination; `switchbell deliveries retry \
                 {id}` makes it once more. It is told once an hour for each target, so there are perhaps more: `switchbell \
                 deliveries list --state unknown`"
            ),
        }
    }

    fn data(&self) -> String {
        let Claim { id, queue, plugin, attempt, notifications, .. } = self.claim;
        let seqs: Vec<u64> = notifications.iter().take(SEQS_MAX).map(|one| one.seq).collect();
        let data = json!({
            "delivery": id.to_string(),
            "route": queue.route.as_str(),
            "target": &*queue.target,
            "plugin": plugin.as_str(),
            "attempts": attempt.get(),
            "reason": self.reason,
            "notifications": seqs,
        });
        data.to_string()
    }
}

/// What there is to tell of deliveries that were cancelled because the configuration does not have their target any more.
pub(super) fn cancelled(workspace: &Workspace, gone: &QueueKey, deliveries: u64, now: Timestamp) -> Option<Intake> {
    let source: Name = HOST_SOURCE.parse().ok()?;
    let QueueKey { route, target, .. } = gone;
    let event_id = format!("delivery.cancelled:{}:{route}:{target}", now.as_millisecond());
    let event = Event {
        event_id: event_id.chars().take(EVENT_ID_CHARS_MAX).collect(),
        name: "delivery.cancelled".to_owned(),
        timestamp: now,
        level: Level::Attention,
        subject: Some(route.to_string()),
        title: match deliveries {
            1 => format!("{route}: a waiting delivery was cancelled"),
            more => format!("{route}: {more} waiting deliveries were cancelled"),
        },
        body: Some(format!(
            "The configuration does not have their target {target} of route {route} any more. `switchbell deliveries list \
             --state cancelled` lists them; a target keeps what waits for it when its settings change if it has an `id`."
        )),
        link: None,
        data: json!({ "route": route.as_str(), "target": &**target, "deliveries": deliveries }).to_string(),
        content: None,
    };
    let (entry, _) = entry(event, Level::Attention, (workspace, &source));
    Some(intake(workspace, source, entry, now))
}

/// What there is to tell of a plugin that went back by itself from one version to another, each as a person reads it.
pub(super) fn plugin_rolled_back(
    workspace: &Workspace,
    plugin: &Name,
    (from, to): (&str, &str),
    why: &str,
    now: Timestamp,
) -> Option<Intake> {
    let event = Event {
        event_id: format!("plugin.rolled-back:{}:{plugin}", now.as_millisecond()),
        name: "plugin.rolled-back".to_owned(),
        timestamp: now,
        level: Level::Attention,
        subject: Some(plugin.to_string()),
        title: text::line(&format!("plugin {plugin} went back from {from} to {to}"), TITLE_CHARS_MAX),
        body: Some(body(
            why,
            "What it failed is made again where that can do no harm. It is not loaded again by itself; `switchbell plugin \
             load FILE` loads it all the same, or a version that is mended.",
        )),
        link: None,
        data: json!({ "plugin": plugin.as_str(), "from": from, "to": to, "reason": why }).to_string(),
        content: None,
    };
    about_plugin(workspace, plugin, event)
}

/// What there is to tell of a plugin that targets use and that does not run.
pub(super) fn plugin_not_loaded(workspace: &Workspace, plugin: &Name, why: &str, now: Timestamp) -> Option<Intake> {
    let event = Event {
        event_id: format!("plugin.not-loaded:{}:{plugin}", now.as_second().div_euclid(TOLD_EVERY_SECONDS)),
        name: "plugin.not-loaded".to_owned(),
        timestamp: now,
        level: Level::Attention,
        subject: Some(plugin.to_string()),
        title: format!("plugin {plugin} is not loaded"),
        body: Some(body(
            why,
            &format!(
                "What its targets are owed waits. Put {plugin}.wasm into the folder of plugins, or `switchbell plugin load \
                 FILE`: it goes on from there."
            ),
        )),
        link: None,
        data: json!({ "plugin": plugin.as_str(), "reason": why }).to_string(),
        content: None,
    };
    about_plugin(workspace, plugin, event)
}

/// Why, and the remedy whole: a reason may be long.
fn body(why: &str, remedy: &str) -> String {
    let room = BODY_CHARS_MAX.saturating_sub(remedy.chars().count() + 1);
    format!("{}\n{remedy}", text::lines(why, room))
}

/// A notice about a plugin, for a workspace that uses it. It owes nothing to the plugin's own targets.
fn about_plugin(workspace: &Workspace, plugin: &Name, event: Event) -> Option<Intake> {
    let mut targets = workspace.routes.iter().flat_map(|route| &route.deliver);
    if !targets.any(|target| target.plugin == *plugin) {
        return None;
    }
    let source: Name = HOST_SOURCE.parse().ok()?;
    let now = event.timestamp;
    let (mut entry, _) = entry(event, Level::Attention, (workspace, &source));
    let about = About::Plugin(plugin.clone());
    entry.owed.retain(|owed| about.spares(owed, &Book::default(), |_| false).is_none());
    Some(intake(workspace, source, entry, now))
}

fn intake(workspace: &Workspace, source: Name, entry: Entry, now: Timestamp) -> Intake {
    Intake {
        is_first: false,
        workspace: workspace.name.clone(),
        source,
        received_at: now,
        entries: vec![entry],
        notices: Vec::new(),
        cursor: None,
        ended: Ended::Answered { revision: None, is_backlog: false },
    }
}

/// Whether all that a delivery stands for came from the host itself.
pub(super) fn is_of_notices_alone(claim: &Claim) -> bool {
    claim.notifications.iter().all(|one| one.source.as_str() == HOST_SOURCE)
}

/// Whether a delivery would go to the target that a notice is about, or through one of its lanes.
pub(super) fn meets(owed: &Owed, about: &QueueKey, book: &Book) -> bool {
    if owed.target == *about.target {
        return true;
    }
    let (workspace, route) = (about.workspace.clone(), owed.route.clone());
    let other = QueueKey { workspace, route, target: owed.target.as_str().into() };
    let (Some(about), Some(other)) = (book.get(about), book.get(&other)) else { return false };
    about.lanes.iter().any(|lane| other.lanes.iter().any(|other| other.lane == lane.lane))
}
