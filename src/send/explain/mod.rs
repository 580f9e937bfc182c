//! Why something is told to whom, when, and why not: of a notification, every route with its conditions, and every target with
//! its timing, its lanes and its plugin.
//!
//! Nothing is decided here. Routes are asked by [`Router::select`](crate::route::Router::select) and
//! [`Router::explain`](crate::route::Router::explain), times are those of [`forecast`](crate::route::forecast), which asks
//! the plan, and what a plugin would be refused is what the guard of a preview refuses. Nothing is changed, sent or stored.

mod target;

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::effect::Effects;
use super::keys::Keys;
use super::live::Current;
use super::queue::{LaneView, Queues};
use super::spare::About;
use crate::config::{Role, Route, Workspace};
use crate::inbox::{DeliveryView, Inbox, InboxError};
use crate::notification::{HOST_SOURCE, Level, Name, Notification};
use crate::route::forecast::{End, Forecast};
use crate::route::{Acknowledged, Condition, Facts};

/// What explanations are made with.
#[derive(Clone, Copy, Debug)]
pub struct Explainer<'a> {
    /// The routes, the grants, the plugins and the targets as both have them.
    pub current: &'a Current,
    /// Whose guard judges; nothing is performed.
    pub effects: &'a Effects,
    /// What placeholders are computed from.
    pub keys: &'a Keys,
    /// Who knows how lanes stand.
    pub queues: &'a Queues,
    /// The store; none where there is none yet.
    pub inbox: Option<&'a dyn Inbox>,
    /// Why plugins are not loaded, by name, where more is known than that.
    pub not_loaded: &'a BTreeMap<Name, String>,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The workspace, of [`Explainer::current`].
    pub workspace: &'a Workspace,
    /// About which notification.
    pub notification: &'a Notification,
    /// Who acknowledged it by now.
    pub acknowledged: Acknowledged,
    /// What is known of it, where it is in the inbox.
    pub stored: Option<&'a Stored>,
    /// The time.
    pub now: Timestamp,
    /// When it is supposed to come; left out, it comes at this very moment.
    pub at: Option<Timestamp>,
    /// Only this route.
    pub only: Option<&'a Name>,
    /// Whether targets of routes that do not match are looked at, too.
    pub all: bool,
}

/// What is known of a notification that is in the inbox.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    /// The deliveries that stand for it, oldest first.
    pub deliveries: Vec<DeliveryView>,
    /// Whether it came with the first answer of its outbox, so that it owes nothing.
    pub is_of_first_read: bool,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The moment that it is about.
    pub at: Timestamp,
    /// The ceiling of the source today; none where no connector has that name any more.
    pub ceiling: Option<Level>,
    /// What its level would be today; as stamped where there is no ceiling.
    pub level_today: Level,
    /// Why it owes nothing, whatever the routes say.
    pub owes_nothing: Option<String>,
    /// The consumers whose queues it joins, by the configuration of today at the level as stamped.
    pub consumers: Vec<Name>,
    /// Every route that was asked about, in the order of the file.
    pub routes: Vec<Explanation>,
    /// Deliveries of routes or targets that are not in the configuration.
    pub others: Vec<DeliveryView>,
}

/// One route.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Its name.
    pub name: Name,
    /// The admin it acts for.
    pub owner: String,
    /// Why it may not act for that one.
    pub owner_mistake: Option<String>,
    /// Whether it matches at the level as stamped.
    pub matches: bool,
    /// Whether it would match at the level of today.
    pub matches_today: bool,
    /// Whether it owed something when the notification was accepted; none where that is not known.
    pub matched_then: Option<bool>,
    /// Every condition, at the level as stamped.
    pub conditions: Vec<Condition>,
    /// Its targets: all of them, or those there is a delivery of.
    pub targets: Vec<Target>,
}

/// One target.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its identity.
    pub id: String,
    /// Its plugin.
    pub plugin: Name,
    /// The version of the plugin that runs, and its digest.
    pub version: Option<(String, String)>,
    /// What the plugin calls the destination.
    pub destination: Option<String>,
    /// Why the plugin does not take the settings.
    pub settings_mistake: Option<String>,
    /// What the grants lack, so that every delivery is refused.
    pub lacks: Vec<String>,
    /// Why the guard would refuse what the plugin asks for first.
    pub refused: Option<String>,
    /// Why nothing can be delivered to it now.
    pub blocked: Option<String>,
    /// Why it is owed nothing though its route matches.
    pub spared: Option<String>,
    /// When it would hear of it.
    pub outlook: Outlook,
    /// Where the clock hangs that its quiet hours go by.
    pub zone: Option<jiff::tz::TimeZone>,
    /// The lanes, as they stand now.
    pub lanes: Vec<LaneView>,
    /// What it is owed of the notification, oldest first.
    pub deliveries: Vec<DeliveryView>,
}

/// When a target would hear of a notification.
#[derive(Clone, Debug)]
pub struct Outlook {
    /// What is foreseen.
    pub forecast: Forecast,
    /// Whether it is about the delivery that waits, or else about one that is made up.
    pub is_of_delivery: bool,
    /// Why what else the target is owed does not count; none when it does.
    pub blind: Option<&'static str>,
}

impl Question<'_> {
    /// The consumers whose queues the notification joins, by the configuration of today at the level as stamped.
    pub fn consumers(&self) -> Vec<Name> {
        if self.stored.is_some_and(|stored| stored.is_of_first_read) {
            return Vec::new();
        }
        self.workspace.consumers.of(&facts(self.notification, self.notification.effective_level))
    }
}

impl Outlook {
    /// When it would go.
    pub fn goes_at(&self) -> Option<Timestamp> {
        match self.forecast.end {
            End::Goes { at } => Some(at),
            End::Suppressed { .. } | End::Open => None,
        }
    }
}

impl Explainer<'_> {
    /// Answers a question.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn explain(&self, asked: Question<'_>) -> Result<Explained, InboxError> {
        let Question { workspace, notification, .. } = asked;
        let ceiling = ceiling(workspace, &notification.source);
        let level_today =
            ceiling.map_or(notification.effective_level, |ceiling| notification.event.level.capped(ceiling));
        let then = decided(workspace, notification, notification.effective_level);
        let today = decided(workspace, notification, level_today);
        let about = About::of(&workspace.name, &notification.source, &notification.event);
        let mut routes = Vec::new();
        for (index, route) in workspace.routes.iter().enumerate() {
            if asked.only.is_some_and(|only| *only != route.name) {
                continue;
            }
            let has = |decided: &[bool]| decided.get(index).copied().unwrap_or_default();
            let mut targets = Vec::new();
            for target in &route.deliver {
                let is_owed = deliveries(asked, &route.name, &target.id).next().is_some();
                if asked.all || has(&then) || has(&today) || is_owed {
                    targets.push(self.target(asked, (route, target), about.as_ref()).await?);
                }
            }
            routes.push(Explanation {
                name: route.name.clone(),
                owner: route.owner.clone(),
                owner_mistake: owner_mistake(workspace, &route.owner),
                matches: has(&then),
                matches_today: has(&today),
                matched_then: matched_then(asked, route),
                conditions: workspace.router.explain(index, &facts(notification, notification.effective_level)),
                targets,
            });
        }
        let owes_nothing = asked.stored.filter(|stored| stored.is_of_first_read).map(|_| of_first_read(notification));
        Ok(Explained {
            at: asked.at.unwrap_or(asked.now),
            ceiling,
            level_today,
            consumers: asked.consumers(),
            owes_nothing,
            routes,
            others: others(asked),
        })
    }
}

fn facts(notification: &Notification, effective_level: Level) -> Facts<'_> {
    let event = &notification.event;
    Facts { source: &notification.source, name: &event.name, effective_level, subject: event.subject.as_deref() }
}

/// For each route, whether it matches at this level.
fn decided(workspace: &Workspace, notification: &Notification, level: Level) -> Vec<bool> {
    let decisions = workspace.router.select(&facts(notification, level));
    let mut matches = vec![false; workspace.routes.len()];
    for decision in decisions {
        if let Some(place) = matches.get_mut(decision.route) {
            *place = decision.matches();
        }
    }
    matches
}

/// The ceiling of a source today.
pub fn ceiling(workspace: &Workspace, source: &Name) -> Option<Level> {
    if source.as_str() == HOST_SOURCE {
        return Some(Level::Urgent);
    }
    workspace.connectors.get(source).map(|connector| connector.ceiling)
}

fn owner_mistake(workspace: &Workspace, owner: &str) -> Option<String> {
    match workspace.members.get(owner) {
        Some(Role::Admin) => None,
        Some(Role::Member) => Some(format!("{owner} is a member but no admin of {}", workspace.name)),
        None => Some(format!("{owner} is no member of {}", workspace.name)),
    }
}

/// The deliveries of a target that stand for the notification.
fn deliveries<'a>(asked: Question<'a>, route: &Name, target: &str) -> impl Iterator<Item = &'a DeliveryView> {
    let all = asked.stored.map(|stored| stored.deliveries.as_slice()).unwrap_or_default();
    all.iter().filter(move |one| one.route == *route && one.target == target)
}

/// Whether a route owed something when the notification was accepted, as far as its deliveries tell.
fn matched_then(asked: Question<'_>, route: &Route) -> Option<bool> {
    let stored = asked.stored.filter(|stored| !stored.is_of_first_read)?;
    Some(stored.deliveries.iter().any(|delivery| delivery.route == route.name))
}

fn of_first_read(notification: &Notification) -> String {
    format!(
        "it came with the first answer of {}'s outbox: what happened before anybody asked is kept and owes nothing",
        notification.source
    )
}

/// Deliveries of what the configuration does not have any more.
fn others(asked: Question<'_>) -> Vec<DeliveryView> {
    let routes = &asked.workspace.routes;
    let is_there = |one: &DeliveryView| {
        let route = routes.iter().find(|route| route.name == one.route);
        route.is_some_and(|route| route.deliver.iter().any(|target| target.id == one.target))
    };
    let all = asked.stored.map(|stored| stored.deliveries.as_slice()).unwrap_or_default();
    let asked_for = all.iter().filter(|one| asked.only.is_none_or(|only| *only == one.route));
    asked_for.filter(|one| !is_there(one)).cloned().collect()
}
