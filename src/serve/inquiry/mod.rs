//! What would happen, and why: explanations and previews of notifications that are in the inbox or made up. Nothing is changed,
//! stored or sent.
//!
//! A running server answers by its own configuration, plugins, lanes and limits; a command without one answers by the same
//! code from the files. Questions and answers are JSON, so that every surface gets the same.

mod checked;
mod explained;
mod of;
mod preview;
mod previewed;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::clock::Clock;
use crate::config::{Config, Workspace, hint};
use crate::inbox::{Inbox, InboxError};
use crate::notification::Name;
use crate::send::effect::Effects;
use crate::send::explain::{Explainer, Question};
use crate::send::keys::Keys;
use crate::send::queue::Queues;
use crate::send::upgrade;
use crate::send::{Current, Means};

pub use checked::{CheckedJson, FindingJson, NotJudgedJson};
pub use explained::{ConditionJson, ExplainedJson, ForecastJson, LaneJson, MoveJson, RouteJson, SaidJson, TargetJson};
pub use of::OfJson;
pub use previewed::{
    AdHocJson, FaultJson, LeftOutJson, PreviewAskedJson, PreviewJson, PreviewedJson, StepJson, UnmatchedJson,
};

/// Answers questions.
#[derive(Debug)]
pub struct Inquiry {
    /// The configuration, the plugins and the targets.
    pub sight: Sight,
    /// Whose guard judges.
    pub effects: Effects,
    /// The time.
    pub clock: Clock,
    /// How lanes stand.
    pub queues: Arc<Queues>,
    /// What placeholders are computed from.
    pub keys: Keys,
    /// The store; none where there is none yet.
    pub inbox: Option<Arc<dyn Inbox>>,
    /// Who knows why a plugin is not loaded.
    pub loading: Loading,
}

/// What is looked at.
#[derive(Debug)]
pub enum Sight {
    /// What a command has loaded.
    Fixed(Arc<Current>),
    /// What a server works with at that moment.
    Live(Arc<Means>),
}

/// Who knows why a plugin is not loaded.
#[derive(Debug)]
pub enum Loading {
    /// It is known, by name.
    Known(BTreeMap<Name, String>),
    /// The one who owns the versions.
    Asked(upgrade::Handle),
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// There is nothing to answer about: no such notification or recording, or a route that does not match.
    Nothing(String),
    /// It is about an event that would be dropped.
    Dropped(String),
    /// What was asked names what is not there.
    Unknown(String),
    /// What was asked makes no sense.
    Wrong(String),
    /// The store cannot be read.
    Store(InboxError),
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing(why) | Self::Dropped(why) | Self::Unknown(why) | Self::Wrong(why) => out.write_str(why),
            Self::Store(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for NoAnswer {}

impl From<InboxError> for NoAnswer {
    fn from(error: InboxError) -> Self {
        Self::Store(error)
    }
}

/// What is asked to be explained.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ExplainAskedJson {
    /// About what.
    pub of: OfJson,
    /// When it is supposed to come, RFC 3339; now when left out.
    pub at: Option<String>,
    /// Only this route.
    pub route: Option<String>,
    /// Whether the targets of routes that do not match are looked at, too.
    pub all: bool,
}

impl Inquiry {
    /// Explains what becomes of a notification.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn explain(&self, workspace: &str, asked: &ExplainAskedJson) -> Result<ExplainedJson, NoAnswer> {
        let current = self.current();
        let workspace = known_workspace(&current.config, workspace)?;
        let now = self.clock.now();
        let at = moment(asked.at.as_deref())?;
        let only = route(workspace, asked.route.as_deref())?;
        let found = self.find(workspace, &asked.of, at.unwrap_or(now)).await?;
        let not_loaded = self.not_loaded().await;
        let explainer = self.explainer(&current, &not_loaded);
        let question = Question {
            workspace,
            notification: &found.notification,
            acknowledged: found.marks.acknowledged_by(),
            stored: found.stored.as_ref(),
            now,
            at,
            only: only.as_ref(),
            all: asked.all,
        };
        let explained = explainer.explain(question).await?;
        Ok(ExplainedJson::new(&found, &explained, at.is_some()))
    }

    fn current(&self) -> Arc<Current> {
        match &self.sight {
            Sight::Fixed(current) => Arc::clone(current),
            Sight::Live(means) => means.live.get(),
        }
    }

    async fn not_loaded(&self) -> BTreeMap<Name, String> {
        match &self.loading {
            Loading::Known(known) => known.clone(),
            Loading::Asked(handle) => {
                let views = handle.list().await.unwrap_or_default();
                views.into_iter().filter_map(|view| Some((view.name, view.problem?))).collect()
            }
        }
    }

    fn explainer<'a>(&'a self, current: &'a Current, not_loaded: &'a BTreeMap<Name, String>) -> Explainer<'a> {
        let inbox = self.inbox.as_deref();
        Explainer { current, effects: &self.effects, keys: &self.keys, queues: &self.queues, inbox, not_loaded }
    }
}

fn known_workspace<'a>(config: &'a Config, name: &str) -> Result<&'a Workspace, NoAnswer> {
    config.workspaces.get(name).ok_or_else(|| {
        if config.aside.contains(name) {
            let why = "its file has mistakes, so that it is left out: `switchbell check` says them";
            return NoAnswer::Unknown(format!("workspace {name}: {why}"));
        }
        let known = hint(name, config.workspaces.keys().map(Name::as_str), "there are");
        NoAnswer::Unknown(format!("unknown workspace {name:?}{known}"))
    })
}

fn moment(text: Option<&str>) -> Result<Option<Timestamp>, NoAnswer> {
    let Some(text) = text else { return Ok(None) };
    let wrong = |_| NoAnswer::Wrong(format!("{text:?} is no moment: write 2026-12-01T03:00:00Z"));
    text.parse().map(Some).map_err(wrong)
}

/// The route of this name.
fn route(workspace: &Workspace, name: Option<&str>) -> Result<Option<Name>, NoAnswer> {
    let Some(name) = name else { return Ok(None) };
    let there = || workspace.routes.iter().map(|route| route.name.as_str());
    match workspace.routes.iter().find(|route| route.name.as_str() == name) {
        Some(route) => Ok(Some(route.name.clone())),
        None => Err(NoAnswer::Unknown(format!("--route: unknown route {name}{}", hint(name, there(), "there are")))),
    }
}
