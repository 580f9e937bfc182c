//! Reloads, and how the configuration stands.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::config::{Change, Problem, Problems, What};
use crate::notification::Name;
use crate::reload::{Refused, Status, Taken};

/// What came of a reload: one of the two is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReloadedJson {
    /// It was taken.
    pub taken: Option<TakenJson>,
    /// Nothing was changed.
    pub refused: Option<NotReloadedJson>,
}

/// A reload that was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TakenJson {
    /// What differs.
    pub changes: Vec<ChangeJson>,
    /// Connectors that are as they were.
    pub connectors_kept: usize,
    /// Deliveries that were cancelled because their target is gone.
    pub cancelled: Vec<CancelledJson>,
    /// Plugins whose version may not run any more.
    pub unloaded: Vec<UnloadedJson>,
    /// Keys that differ and need a restart.
    pub needs_restart: Vec<String>,
    /// What plugins find wrong with settings of their targets, which wait.
    pub blocked: Vec<MistakeJson>,
    /// What deserves a look.
    pub warnings: Vec<MistakeJson>,
    /// Workspaces that are set aside.
    pub aside: Vec<AsideJson>,
    /// Workspaces that go on with their files as they were before.
    pub older: Vec<AsideJson>,
}

/// One thing that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeJson {
    /// The workspace; null for what is the operator's.
    pub workspace_id: Option<String>,
    /// `key`, `secret`, `workspace`, `members`, `connector`, `consumer`, `route` or `target`.
    pub what: String,
    /// Its name; a target's identity; null for a workspace and its members.
    pub name: Option<String>,
    /// A target's route.
    pub route: Option<String>,
    /// `new`, `gone` or `changed`.
    pub how: String,
}

/// Deliveries of one target that were cancelled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelledJson {
    /// The workspace.
    pub workspace_id: String,
    /// The route.
    pub route: String,
    /// The target.
    pub target: String,
    /// How many.
    pub deliveries: u64,
}

/// A plugin whose version may not run any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnloadedJson {
    /// The plugin.
    pub name: String,
    /// Why.
    pub why: String,
    /// The version that runs instead.
    pub instead: Option<String>,
}

/// A mistake, or what deserves a look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MistakeJson {
    /// The file.
    #[schema(value_type = String)]
    pub file: PathBuf,
    /// From 1.
    pub line: Option<usize>,
    /// From 1, in characters.
    pub column: Option<usize>,
    /// Where in the file, such as `routes[2].deliver[0].plugin`.
    pub path: String,
    /// What is wrong and what to write instead.
    pub message: String,
    /// The same for a person, with the line.
    pub told: String,
}

/// A workspace whose file has mistakes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AsideJson {
    /// The workspace.
    pub workspace_id: String,
    /// What is wrong.
    pub mistakes: Vec<MistakeJson>,
    /// How many more mistakes there are.
    pub omitted: usize,
}

/// Why nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NotReloadedJson {
    /// The reason, for a person.
    pub why: String,
    /// Every mistake, where that is the reason.
    pub mistakes: Vec<MistakeJson>,
    /// How many more mistakes there are.
    pub omitted: usize,
}

/// How the configuration stands. Moments are RFC 3339.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusJson {
    /// When it was taken last; at the start first.
    pub taken_at: Option<String>,
    /// Whether it was taken when it was read last.
    pub is_good: bool,
    /// When it was read and not taken, unless it was taken since.
    pub refused_at: Option<String>,
    /// Why it was not.
    pub refused: Option<NotReloadedJson>,
    /// Keys that differ from what runs and need a restart.
    pub needs_restart: Vec<String>,
    /// Workspaces that are set aside.
    pub aside: Vec<AsideJson>,
    /// Workspaces that go on with their files as they were before.
    pub older: Vec<AsideJson>,
}

impl From<Result<Taken, Refused>> for ReloadedJson {
    fn from(of: Result<Taken, Refused>) -> Self {
        match of {
            Ok(taken) => Self { taken: Some(taken.into()), refused: None },
            Err(refused) => Self { taken: None, refused: Some((&refused).into()) },
        }
    }
}

impl From<Taken> for TakenJson {
    fn from(of: Taken) -> Self {
        let cancelled = of.cancelled.into_iter().map(|(queue, deliveries)| CancelledJson {
            workspace_id: queue.workspace.to_string(),
            route: queue.route.to_string(),
            target: queue.target.to_string(),
            deliveries,
        });
        let unloaded = of.unloaded.into_iter().map(|one| UnloadedJson {
            name: one.name.to_string(),
            why: one.why,
            instead: one.instead,
        });
        Self {
            changes: of.changes.changes.iter().map(ChangeJson::from).collect(),
            connectors_kept: of.changes.connectors_kept,
            cancelled: cancelled.collect(),
            unloaded: unloaded.collect(),
            needs_restart: of.needs_restart.iter().map(|key| (*key).to_owned()).collect(),
            blocked: of.blocked.iter().map(MistakeJson::from).collect(),
            warnings: of.warnings.iter().map(MistakeJson::from).collect(),
            aside: aside(&of.aside),
            older: aside(&of.older),
        }
    }
}

impl From<&Change> for ChangeJson {
    fn from(of: &Change) -> Self {
        let (what, name, route) = match &of.what {
            What::Key(key) => ("key", Some((*key).to_owned()), None),
            What::Secret(name) => ("secret", Some(name.to_string()), None),
            What::Workspace => ("workspace", None, None),
            What::Members => ("members", None, None),
            What::Connector(name) => ("connector", Some(name.to_string()), None),
            What::Consumer(name) => ("consumer", Some(name.to_string()), None),
            What::Route(name) => ("route", Some(name.to_string()), None),
            What::Target { route, target } => ("target", Some(target.clone()), Some(route.to_string())),
        };
        let workspace_id = of.workspace.as_ref().map(Name::to_string);
        Self { workspace_id, what: what.to_owned(), name, route, how: of.how.as_str().to_owned() }
    }
}

impl From<&Problem> for MistakeJson {
    fn from(of: &Problem) -> Self {
        Self {
            file: of.file.clone(),
            line: of.place.map(|place| place.line),
            column: of.place.map(|place| place.column),
            path: of.path.clone(),
            message: of.message.clone(),
            told: of.to_string(),
        }
    }
}

impl From<&Refused> for NotReloadedJson {
    fn from(of: &Refused) -> Self {
        let (mistakes, omitted) = match of {
            Refused::Mistakes(problems) => {
                (problems.mistakes.iter().map(MistakeJson::from).collect(), problems.omitted)
            }
            Refused::Because(_) => (Vec::new(), 0),
        };
        Self { why: of.to_string(), mistakes, omitted }
    }
}

impl From<Status> for StatusJson {
    fn from(of: Status) -> Self {
        let moment = |at: Timestamp| at.to_string();
        Self {
            taken_at: of.taken_at.map(moment),
            is_good: of.refused.is_none(),
            refused_at: of.refused.as_ref().map(|(at, _)| moment(*at)),
            refused: of.refused.as_ref().map(|(_, refused)| refused.into()),
            needs_restart: of.needs_restart.iter().map(|key| (*key).to_owned()).collect(),
            aside: aside(&of.aside),
            older: aside(&of.older),
        }
    }
}

fn aside(of: &BTreeMap<Name, Problems>) -> Vec<AsideJson> {
    let json = |(name, problems): (&Name, &Problems)| AsideJson {
        workspace_id: name.to_string(),
        mistakes: problems.mistakes.iter().map(MistakeJson::from).collect(),
        omitted: problems.omitted,
    };
    of.iter().map(json).collect()
}
