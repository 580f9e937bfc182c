//! An explanation as JSON.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::of::Found;
use crate::notification::Name;
use crate::route::forecast::{End, Joined, Move, Said, Word};
use crate::route::{Condition, Field, Stage, Step, Why};
use crate::send::explain::{Explained, Explanation, Outlook, Target};
use crate::send::queue::LaneView;
use crate::serve::shapes::{DeliveryJson, NotificationJson};

/// What becomes of a notification. Moments are RFC 3339; those called `local` are by the clock of the target's quiet hours,
/// with its zone.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedJson {
    /// About which.
    pub notification: NotificationJson,
    /// Whether it is in the inbox.
    pub is_stored: bool,
    /// The moment that it is about.
    pub at: String,
    /// Whether it is supposed to come then, and not now.
    pub is_supposed: bool,
    /// The ceiling of its source today; null where no connector has that name any more.
    pub ceiling: Option<String>,
    /// Its level under the ceiling of today.
    pub effective_level_today: String,
    /// Why it owes nothing, whatever the routes say.
    pub owes_nothing: Option<String>,
    /// The consumers whose queues it joins, as they are configured today.
    pub consumers: Vec<String>,
    /// Every route, in the order of the file.
    pub routes: Vec<RouteJson>,
    /// Its deliveries of routes and targets that are not in the configuration.
    pub other_deliveries: Vec<DeliveryJson>,
}

/// A route.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RouteJson {
    /// Its name.
    pub name: String,
    /// The admin it acts for.
    pub owner: String,
    /// Why it may not act for that one.
    pub owner_mistake: Option<String>,
    /// Whether it matches, at the level as stamped.
    pub matches: bool,
    /// Whether it would match under the ceiling of today.
    pub matches_today: bool,
    /// Whether it owed something when the notification was accepted, as far as its deliveries tell; null where that is not
    /// known.
    pub matched_then: Option<bool>,
    /// Its conditions, in the order in which they are decided.
    pub conditions: Vec<ConditionJson>,
    /// Its targets, where it matches or owes something.
    pub targets: Vec<TargetJson>,
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConditionJson {
    /// `source`, `name`, `not`, `subject` or `level`.
    pub field: String,
    /// What the route asks.
    pub asked: String,
    /// What the notification has.
    pub found: String,
    /// Whether it holds.
    pub holds: bool,
}

/// A target.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetJson {
    /// Its identity.
    pub id: String,
    /// Its plugin.
    pub plugin: String,
    /// The version that runs.
    pub plugin_version: Option<String>,
    /// The SHA-256 of its file, in hex.
    pub plugin_digest: Option<String>,
    /// What the plugin calls the destination.
    pub destination: Option<String>,
    /// Why the plugin does not take the settings.
    pub settings_mistake: Option<String>,
    /// What the grants lack.
    pub lacks: Vec<String>,
    /// Why the plugin's first request would not be let out.
    pub refused: Option<String>,
    /// Why nothing can be delivered to it now.
    pub blocked: Option<String>,
    /// Why it is owed nothing though its route matches.
    pub spared: Option<String>,
    /// When it would hear of it.
    pub forecast: ForecastJson,
    /// The lanes, as they stand now.
    pub lanes: Vec<LaneJson>,
    /// What it is owed of the notification, oldest first.
    pub deliveries: Vec<DeliveryJson>,
}

/// When a target would hear of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForecastJson {
    /// When it would go at the earliest; null where it is needless, or not foreseen.
    pub goes_at: Option<String>,
    /// The same, by the clock of the quiet hours.
    pub goes_at_local: Option<String>,
    /// Whether it is needless, because it is acknowledged.
    pub is_needless: bool,
    /// Whether it is about the delivery that waits; else about one that comes at the moment that is asked about.
    pub is_of_delivery: bool,
    /// Why what else the target is owed does not count.
    pub blind: Option<String>,
    /// What is decided, each time that it is asked, in order.
    pub moves: Vec<MoveJson>,
}

/// One time that it is decided what happens next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MoveJson {
    /// When.
    pub at: String,
    /// By the clock of the quiet hours.
    pub at_local: Option<String>,
    /// Why it is asked: `matched`, `waited` or `closed`.
    pub asked: String,
    /// What each part of the timing says, up to the one that decides.
    pub said: Vec<SaidJson>,
    /// The state that follows: `scheduled`, `held`, `collecting`, `suppressed` or `pending`.
    pub next: String,
    /// The digest that it joins, where one is open: its number.
    pub joins: Option<i64>,
    /// Whether that digest only counts it.
    pub is_counted: bool,
}

/// What a part of the timing says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SaidJson {
    /// `unless`, `after`, `hold`, `collect` or `at_most`.
    pub part: String,
    /// `passes`, `excepts` (because it is urgent), `keeps` or `suppresses`.
    pub says: String,
    /// Until when it keeps it.
    pub until: Option<String>,
    /// By the clock of the quiet hours.
    pub until_local: Option<String>,
}

/// A lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LaneJson {
    /// The plugin's key; null for the lane that a target has to itself.
    pub key: Option<String>,
    /// At most so many effects, 0 for no limit, …
    pub count: u32,
    /// … in so many seconds.
    pub per_seconds: u32,
    /// Attempts at once; 0 for no limit.
    pub in_flight_max: u32,
    /// Whether deliveries are made one after the other.
    pub ordered: bool,
    /// Attempts under way.
    pub in_flight: u32,
    /// Until when the destination asked to be left alone.
    pub paused_until: Option<String>,
    /// Until when it is left alone because it seems dead.
    pub dead_until: Option<String>,
    /// When its pace or a pause lets another attempt start; null if one can start now, or an end makes room.
    pub opens_at: Option<String>,
}

impl ExplainedJson {
    pub(super) fn new(found: &Found, of: &Explained, is_supposed: bool) -> Self {
        Self {
            notification: NotificationJson::from(&(found.notification.clone(), found.marks.clone())),
            is_stored: found.stored.is_some(),
            at: of.at.to_string(),
            is_supposed,
            ceiling: of.ceiling.map(|ceiling| ceiling.to_string()),
            effective_level_today: of.level_today.to_string(),
            owes_nothing: of.owes_nothing.clone(),
            consumers: of.consumers.iter().map(Name::to_string).collect(),
            routes: of.routes.iter().map(RouteJson::from).collect(),
            other_deliveries: of.others.iter().map(DeliveryJson::from).collect(),
        }
    }
}

impl From<&Explanation> for RouteJson {
    fn from(of: &Explanation) -> Self {
        Self {
            name: of.name.to_string(),
            owner: of.owner.clone(),
            owner_mistake: of.owner_mistake.clone(),
            matches: of.matches,
            matches_today: of.matches_today,
            matched_then: of.matched_then,
            conditions: of.conditions.iter().map(ConditionJson::from).collect(),
            targets: of.targets.iter().map(TargetJson::from).collect(),
        }
    }
}

impl From<&Condition> for ConditionJson {
    fn from(of: &Condition) -> Self {
        let field = match of.field {
            Field::Source => "source",
            Field::Name => "name",
            Field::Not => "not",
            Field::Subject => "subject",
            Field::Level => "level",
        };
        Self { field: field.to_owned(), asked: of.asked.clone(), found: of.found.clone(), holds: of.holds }
    }
}

impl From<&Target> for TargetJson {
    fn from(of: &Target) -> Self {
        let (version, digest) = of.version.clone().unzip();
        Self {
            id: of.id.clone(),
            plugin: of.plugin.to_string(),
            plugin_version: version,
            plugin_digest: digest,
            destination: of.destination.clone(),
            settings_mistake: of.settings_mistake.clone(),
            lacks: of.lacks.clone(),
            refused: of.refused.clone(),
            blocked: of.blocked.clone(),
            spared: of.spared.clone(),
            forecast: ForecastJson::new(&of.outlook, of.zone.as_ref()),
            lanes: of.lanes.iter().map(LaneJson::from).collect(),
            deliveries: of.deliveries.iter().map(DeliveryJson::from).collect(),
        }
    }
}

impl ForecastJson {
    pub(super) fn new(of: &Outlook, zone: Option<&TimeZone>) -> Self {
        let goes_at = of.goes_at();
        Self {
            goes_at: goes_at.map(|at| at.to_string()),
            goes_at_local: goes_at.and_then(|at| local(at, zone)),
            is_needless: matches!(of.forecast.end, End::Suppressed { .. }),
            is_of_delivery: of.is_of_delivery,
            blind: of.blind.map(str::to_owned),
            moves: of.forecast.moves.iter().map(|one| MoveJson::new(one, zone)).collect(),
        }
    }
}

impl MoveJson {
    fn new(of: &Move, zone: Option<&TimeZone>) -> Self {
        let asked = match of.stage {
            Stage::Matched => "matched",
            Stage::Waited => "waited",
            Stage::Closed => "closed",
        };
        let next = match &of.step {
            Step::Wait { .. } => "scheduled",
            Step::Gather { why: Why::Hold, .. } => "held",
            Step::Gather { why: Why::Collect | Why::Surplus, .. } => "collecting",
            Step::Suppress => "suppressed",
            Step::Go => "pending",
        };
        // A digest that is foreseen and not made yet has no number.
        let number = |joined: &Joined| Some(joined.number).filter(|number| *number < i64::MAX);
        Self {
            at: of.at.to_string(),
            at_local: local(of.at, zone),
            asked: asked.to_owned(),
            said: of.said.iter().map(|said| SaidJson::new(*said, zone)).collect(),
            next: next.to_owned(),
            joins: of.joins.as_ref().and_then(number),
            is_counted: of.joins.as_ref().is_some_and(|joined| joined.is_counted),
        }
    }
}

impl SaidJson {
    fn new(of: Said, zone: Option<&TimeZone>) -> Self {
        let (says, until) = match of.word {
            Word::Passes => ("passes", None),
            Word::Excepts => ("excepts", None),
            Word::Keeps { until } => ("keeps", Some(until)),
            Word::Suppresses => ("suppresses", None),
        };
        Self {
            part: of.part.as_str().to_owned(),
            says: says.to_owned(),
            until: until.map(|until| until.to_string()),
            until_local: until.and_then(|until| local(until, zone)),
        }
    }
}

/// A moment by the clock of a zone: `2026-12-01T07:00:00+01:00[Europe/Berlin]`.
fn local(at: Timestamp, zone: Option<&TimeZone>) -> Option<String> {
    zone.map(|zone| at.to_zoned_datetime(zone.clone()).to_string())
}

impl From<&LaneView> for LaneJson {
    fn from(of: &LaneView) -> Self {
        let moment = |at: Option<Timestamp>| at.map(|at| at.to_string());
        Self {
            key: of.key.clone(),
            count: of.count,
            per_seconds: of.per_seconds,
            in_flight_max: of.in_flight_max,
            ordered: of.is_ordered,
            in_flight: of.in_flight,
            paused_until: moment(of.asked_until),
            dead_until: moment(of.dead_until),
            opens_at: moment(of.opens_at),
        }
    }
}
