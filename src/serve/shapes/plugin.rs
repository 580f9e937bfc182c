//! Versions of plugins.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::send::upgrade::{Done, PluginView, Refused, Standing, VersionView, probation};
use crate::wasm::catalog::depot;

/// The header with the text of a minisign signature, in base64.
pub const SIGNATURE_HEADER: &str = "x-switchbell-signature";

/// The header with what a person calls the file, in base64.
pub const FROM_HEADER: &str = "x-switchbell-from";

/// A plugin. Moments are RFC 3339.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginJson {
    /// Its name.
    pub name: String,
    /// The version that runs.
    pub active: Option<VersionJson>,
    /// The other versions that are kept, the newest first.
    pub others: Vec<VersionJson>,
    /// What is wrong with its file in the folder.
    pub problem: Option<String>,
    /// How the version that runs does, while it is on probation.
    pub probation: Option<ProbationJson>,
}

/// A version of a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VersionJson {
    /// What it says it is.
    pub version: String,
    /// The SHA-256 of its file, in hex.
    pub digest: String,
    /// `good`, `held` or `quarantined`.
    pub standing: String,
    /// Why, unless it is good.
    pub why: Option<String>,
    /// When it was seen first.
    pub first_at: String,
    /// When it became active last, or ceased to be.
    pub last_active_at: Option<String>,
    /// Whether attempts that began on it are not over.
    pub in_use: bool,
}

/// How a version does that is watched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProbationJson {
    /// Since when.
    pub since: String,
    /// Attempts that ended.
    pub ended: u64,
    /// Those that were judged.
    pub judged: u64,
    /// Those that failed by its fault.
    pub at_fault: u64,
}

/// Which version is meant: its version or the beginning of its digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WhichVersionJson {
    /// None for the one that ran before, or the one that is held.
    pub version: Option<String>,
}

/// What came of it: one of the two is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangedJson {
    /// It was done.
    pub done: Option<VersionDoneJson>,
    /// Nothing was changed.
    pub refused: Option<VersionRefusedJson>,
}

/// What came of a version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VersionDoneJson {
    /// The plugin.
    pub name: String,
    /// The version.
    pub version: String,
    /// The SHA-256 of its file, in hex.
    pub digest: String,
    /// `active`, `already` or `held`.
    pub standing: String,
    /// What ran before.
    pub before: Option<String>,
    /// Why it is held.
    pub why: Option<String>,
    /// What the gate says.
    #[schema(value_type = Option<Object>)]
    pub report: Option<Value>,
    /// The same for a person.
    pub told: Option<String>,
    /// What a person should know besides.
    pub notes: Vec<String>,
}

/// Why nothing was changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VersionRefusedJson {
    /// What is wrong, and what to do.
    pub why: String,
    /// What the gate says, where it came so far.
    #[schema(value_type = Option<Object>)]
    pub report: Option<Value>,
    /// The same for a person.
    pub told: Option<String>,
}

impl From<Result<Done, Refused>> for ChangedJson {
    fn from(of: Result<Done, Refused>) -> Self {
        match of {
            Ok(done) => Self { done: Some(done.into()), refused: None },
            Err(Refused { why, report, .. }) => {
                let (told, report) =
                    (report.as_ref().map(|report| report.told()), report.map(|report| report.to_json()));
                Self { done: None, refused: Some(VersionRefusedJson { why, report, told }) }
            }
        }
    }
}

impl From<Done> for VersionDoneJson {
    fn from(of: Done) -> Self {
        let (standing, before, why) = match of.standing {
            Standing::Active { before } => ("active", before, None),
            Standing::Already => ("already", None, None),
            Standing::Held { why } => ("held", None, Some(why)),
        };
        Self {
            name: of.name.to_string(),
            version: of.version,
            digest: of.digest,
            standing: standing.to_owned(),
            before,
            why,
            told: of.report.as_ref().map(|report| report.told()),
            report: of.report.map(|report| report.to_json()),
            notes: of.notes,
        }
    }
}

impl From<PluginView> for PluginJson {
    fn from(of: PluginView) -> Self {
        let version = |version: VersionView| VersionJson::new(version, &of.in_use);
        Self {
            name: of.name.to_string(),
            active: of.active.map(version),
            others: of.others.into_iter().map(version).collect(),
            problem: of.problem,
            probation: of.probation.map(ProbationJson::from),
        }
    }
}

impl VersionJson {
    fn new(of: VersionView, in_use: &[String]) -> Self {
        let (standing, why) = match of.standing {
            depot::Standing::Good => ("good", None),
            depot::Standing::Held { why } => ("held", Some(why)),
            depot::Standing::Quarantined { why, .. } => ("quarantined", Some(why)),
        };
        Self {
            version: of.version,
            in_use: in_use.contains(&of.digest),
            digest: of.digest,
            standing: standing.to_owned(),
            why,
            first_at: of.first_at.to_string(),
            last_active_at: of.last_active_at.map(|at| at.to_string()),
        }
    }
}

impl From<probation::Standing> for ProbationJson {
    fn from(of: probation::Standing) -> Self {
        Self { since: of.since.to_string(), ended: of.ended, judged: of.judged, at_fault: of.attributed }
    }
}
