//! What people change: deliveries retried and cancelled, notifications read and acknowledged. A running server does it for
//! commands that ask by its socket; where none runs, a command does it by the same code.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use utoipa::ToSchema;

use crate::clock::Clock;
use crate::config::{Config, Workspace, hint};
use crate::inbox::delivery::State;
use crate::inbox::{Actor, Deed, DeliveryId, HANDLED_MAX, Handled, Inbox, InboxError, Mark, Marked, Which};
use crate::notification::Name;
use crate::serve::auth::Caller;
use crate::serve::shapes::number;

/// Notifications that one request may mark: as many as deliveries it may move.
pub const MARKED_MAX: u32 = HANDLED_MAX;

/// Makes changes.
#[derive(Clone, Debug)]
pub struct Desk {
    /// The store, which knows its targets.
    pub inbox: Arc<dyn Inbox>,
    /// The time.
    pub clock: Clock,
    /// The configuration, for members and names.
    pub config: watch::Receiver<Arc<Config>>,
}

/// What is done to deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// They are made again.
    Retry,
    /// They are not made.
    Cancel,
}

impl Change {
    /// The word of commands and paths.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Cancel => "cancel",
        }
    }

    /// The states that a filter means when it names none: those that wait for a person, or those that are not over.
    pub fn states(self) -> Vec<State> {
        match self {
            Self::Retry => vec![State::Dead, State::Blocked],
            Self::Cancel => State::ALL.into_iter().filter(|state| !state.is_final()).collect(),
        }
    }
}

/// Which deliveries are meant: these ids, or all that the filters allow. Without either, `all` must be said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WhichJson {
    /// These, 1,000 at most.
    #[schema(max_items = 1000)]
    pub ids: Vec<String>,
    /// In one of these states. Without states and ids: dead and blocked ones to retry, those that are not over to cancel.
    pub states: Vec<String>,
    /// Of this route.
    pub route: Option<String>,
    /// Of this plugin.
    pub plugin: Option<String>,
    /// Made at or after this moment, RFC 3339.
    #[schema(format = DateTime)]
    pub since: Option<String>,
    /// Of this notification.
    #[serde(deserialize_with = "number::one")]
    pub seq: Option<u64>,
    /// Whether no filter is meant to be needed.
    pub all: bool,
}

impl WhichJson {
    /// Whether nothing says what is meant. That is never taken for everything.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What to do when nothing says which deliveries are meant.
pub fn unnamed(change: Change) -> String {
    let change = change.as_str();
    format!("name the deliveries to {change}: ids, a filter such as --route NAME, or --all")
}

/// What became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HandledJson {
    /// Those that were changed.
    pub done: Vec<DoneJson>,
    /// Those whose state does not allow it.
    pub refused: Vec<RefusedJson>,
    /// Ids that the workspace does not have.
    pub missing: Vec<String>,
    /// Whether the filters allow more than one request handles.
    pub has_more: bool,
}

/// A delivery that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DoneJson {
    /// Which.
    pub id: String,
    /// The new delivery that repeats it; null where the delivery itself goes on.
    pub new_id: Option<String>,
}

/// A delivery that was not changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedJson {
    /// Which.
    pub id: String,
    /// Where it stands.
    pub state: String,
}

/// Which notifications are marked, and by whom.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MarkJson {
    /// Their numbers, 1 to 1,000.
    #[serde(deserialize_with = "number::all")]
    #[schema(required, min_items = 1, max_items = 1000)]
    pub seqs: Vec<u64>,
    /// A member; may be left out when there is one. Only commands on the server's own machine say it: whoever has a token
    /// marks in its name.
    pub by: Option<String>,
}

/// What became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MarkedJson {
    /// Who marked them: a member, a consumer or the operator.
    pub by: String,
    /// Those that are marked, now or before.
    pub seqs: Vec<u64>,
    /// Numbers that the inbox does not have.
    pub missing: Vec<u64>,
    /// Deliveries that this made needless.
    pub suppressed: Vec<String>,
}

/// Why nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such thing.
    Unknown(String),
    /// What was asked makes no sense.
    Wrong(String),
    /// Whoever asks may not say that.
    Forbidden(String),
    /// It cannot be done as things stand.
    Conflict(String),
    /// The store cannot do it.
    Store(InboxError),
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(why) | Self::Wrong(why) | Self::Forbidden(why) | Self::Conflict(why) => out.write_str(why),
            Self::Store(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<InboxError> for Refusal {
    fn from(error: InboxError) -> Self {
        Self::Store(error)
    }
}

impl Desk {
    /// Retries or cancels deliveries of a workspace.
    ///
    /// # Errors
    /// When nothing was changed, and why.
    pub async fn change(
        &self,
        workspace: &str,
        change: Change,
        asked: &WhichJson,
        caller: &Caller,
    ) -> Result<HandledJson, Refusal> {
        let config = self.config.borrow().clone();
        let workspace = known(&config, workspace)?;
        let which = which(change, asked)?;
        let (route, plugin) = (which.route.clone(), which.plugin.clone());
        let handled = match change {
            Change::Retry => self.inbox.retry(&workspace.name, which, self.clock.now()).await?,
            Change::Cancel => self.inbox.cancel(&workspace.name, which, cancelled_by(caller)).await?,
        };
        // Deliveries of a route that is gone can still be meant: only what matches nothing is a mistake.
        let is_nothing = handled.done.is_empty() && handled.refused.is_empty() && handled.missing.is_empty();
        match unknown_filter(workspace, route.as_ref(), plugin.as_ref()).filter(|_| is_nothing) {
            Some(why) => Err(Refusal::Unknown(why)),
            None => Ok(handled.into()),
        }
    }

    /// Retries or cancels one delivery of a workspace.
    ///
    /// # Errors
    /// When nothing was changed, and why.
    pub async fn change_one(
        &self,
        workspace: &str,
        change: Change,
        id: &DeliveryId,
        caller: &Caller,
    ) -> Result<DoneJson, Refusal> {
        let asked = WhichJson { ids: vec![id.to_string()], ..WhichJson::default() };
        let handled = self.change(workspace, change, &asked, caller).await?;
        match (handled.done.into_iter().next(), handled.refused.first()) {
            (Some(done), _) => Ok(done),
            (None, Some(refused)) => Err(Refusal::Conflict(format!("delivery {id}: {}", why_not(change, refused)))),
            (None, None) => Err(Refusal::Unknown(format!("workspace {workspace} has no delivery {id}"))),
        }
    }

    /// Marks notifications of a workspace as read or acknowledged: by whoever asks, or, on this machine, by a member.
    ///
    /// # Errors
    /// When nothing was marked, and why.
    pub async fn mark(
        &self,
        workspace: &str,
        deed: Deed,
        asked: &MarkJson,
        caller: &Caller,
    ) -> Result<MarkedJson, Refusal> {
        let config = self.config.borrow().clone();
        let workspace = known(&config, workspace)?;
        let by = match (caller.is_local(), asked.by.as_deref()) {
            (true, named) => Actor { name: member(workspace, named)?, is_agent: false },
            (false, None) => caller.actor.clone(),
            (false, Some(_)) => {
                let why = "by: a token marks in its own name: leave `by` out, or use the token of that member";
                return Err(Refusal::Forbidden(why.to_owned()));
            }
        };
        if asked.seqs.is_empty() || asked.seqs.len() > MARKED_MAX as usize {
            let count = asked.seqs.len();
            return Err(Refusal::Wrong(format!("{count} notifications: name 1 to {MARKED_MAX} in one request")));
        }
        let mark = Mark { at: self.clock.now(), by };
        let by = mark.by.name.clone();
        let Marked { seqs, missing, suppressed } =
            self.inbox.mark(&workspace.name, asked.seqs.clone(), deed, mark).await?;
        Ok(MarkedJson { by, seqs, missing, suppressed: suppressed.iter().map(DeliveryId::to_string).collect() })
    }
}

fn cancelled_by(caller: &Caller) -> String {
    match caller.is_local() {
        true => "cancelled by a person on the command line".to_owned(),
        false => format!("cancelled by {}", caller.actor.name),
    }
}

/// Why a delivery in this state was not changed.
pub fn why_not(change: Change, refused: &RefusedJson) -> String {
    let state = &refused.state;
    let why = match (change, State::parse(state)) {
        (_, Some(State::InFlight)) => "its attempt runs; wait for the outcome",
        (_, None) => "this command does not know that state",
        (Change::Cancel, Some(_)) => "it is over",
        (Change::Retry, Some(State::Scheduled | State::Held | State::Collecting | State::Pending | State::Waiting)) => {
            "it goes by itself"
        }
        (Change::Retry, Some(_)) => "its target is no longer in the configuration",
    };
    format!("it is {state}: {why}")
}

fn known<'c>(config: &'c Config, name: &str) -> Result<&'c Workspace, Refusal> {
    if config.aside.iter().any(|aside| aside.as_str() == name) {
        return Err(Refusal::Conflict(format!(
            "workspace {name} is set aside: its file has mistakes, which `switchbell check` shows: mend them first"
        )));
    }
    config.workspaces.get(name).ok_or_else(|| {
        let known = hint(name, config.workspaces.keys().map(Name::as_str), "there are");
        Refusal::Unknown(format!("unknown workspace {name:?}{known}"))
    })
}

/// What is wrong with a filter that found nothing: a route or a plugin that a workspace does not use.
pub fn unknown_filter(workspace: &Workspace, route: Option<&Name>, plugin: Option<&Name>) -> Option<String> {
    let name = &workspace.name;
    let routes = || workspace.routes.iter().map(|route| route.name.as_str());
    if let Some(route) = route.filter(|route| routes().all(|known| known != route.as_str())) {
        return Some(format!("unknown route {route:?} in {name}{}", hint(route.as_str(), routes(), "its routes")));
    }
    let targets = workspace.routes.iter().flat_map(|route| &route.deliver);
    let mut plugins: Vec<&str> = targets.map(|target| target.plugin.as_str()).collect();
    plugins.sort_unstable();
    plugins.dedup();
    let plugin = plugin.filter(|plugin| !plugins.contains(&plugin.as_str()))?;
    Some(format!("no route of {name} delivers by {plugin:?}{}", hint(plugin.as_str(), plugins, "its plugins")))
}

/// The member who is named, or the only one.
fn member(workspace: &Workspace, named: Option<&str>) -> Result<String, Refusal> {
    let (name, members) = (&workspace.name, &workspace.members);
    let names = || members.keys().map(String::as_str);
    match (named, members.first_key_value()) {
        (_, None) => {
            let file = workspace.file.display();
            Err(Refusal::Wrong(format!("{name} has no members: write them under `members` in {file}")))
        }
        (Some(named), _) if members.contains_key(named) => Ok(named.to_owned()),
        (Some(named), _) => Err(Refusal::Unknown(format!(
            "--by: unknown member {named:?} of {name}{}",
            hint(named, names(), "members")
        ))),
        (None, Some((only, _))) if members.len() == 1 => Ok(only.clone()),
        (None, _) => {
            Err(Refusal::Wrong(format!("--by NAME is needed: who of {name} is it?{}", hint("", names(), "members"))))
        }
    }
}

fn which(change: Change, asked: &WhichJson) -> Result<Which, Refusal> {
    let wrong = |what: String| Refusal::Wrong(what);
    if asked.is_empty() {
        return Err(wrong(unnamed(change)));
    }
    if asked.ids.len() > HANDLED_MAX as usize {
        return Err(wrong(format!("{} ids: name at most {HANDLED_MAX} in one request", asked.ids.len())));
    }
    let id = |text: &String| text.parse().map_err(|why| wrong(format!("{text:?}: {why}")));
    let state =
        |text: &String| State::parse(text).ok_or_else(|| wrong(format!("unknown state {text:?}{}", state_hint(text))));
    let name = |text: &String| text.parse().map_err(|why| wrong(format!("{text:?}: {why}")));
    let moment =
        |text: &String| text.parse::<Timestamp>().map_err(|_| wrong(format!("{text:?} is no moment of RFC 3339")));
    let states: Vec<State> = asked.states.iter().map(state).collect::<Result<_, _>>()?;
    let is_open = states.is_empty() && asked.ids.is_empty();
    Ok(Which {
        ids: asked.ids.iter().map(id).collect::<Result<_, _>>()?,
        states: if is_open { change.states() } else { states },
        route: asked.route.as_ref().map(name).transpose()?,
        plugin: asked.plugin.as_ref().map(name).transpose()?,
        since: asked.since.as_ref().map(moment).transpose()?,
        seq: asked.seq,
    })
}

fn state_hint(state: &str) -> String {
    hint(state, State::ALL.map(State::as_str), "states")
}

impl From<Handled> for HandledJson {
    fn from(of: Handled) -> Self {
        let done = of
            .done
            .iter()
            .map(|(id, new)| DoneJson { id: id.to_string(), new_id: new.as_ref().map(DeliveryId::to_string) });
        let refused = of.refused.iter().map(|(id, state)| RefusedJson { id: id.to_string(), state: state.to_string() });
        Self {
            done: done.collect(),
            refused: refused.collect(),
            missing: of.missing.iter().map(DeliveryId::to_string).collect(),
            has_more: of.has_more,
        }
    }
}

#[cfg(test)]
mod tests;
