//! A preview as JSON.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::explained::{ConditionJson, ForecastJson};
use super::of::OfJson;
use crate::config::{Route, Target};
use crate::inbox::delivery::Outcome;
use crate::send::preview::{Asked, End, Previewed, Step};
use crate::send::record::answer_to_json;
use crate::serve::shapes::NotificationJson;
use crate::wasm::Fault;

/// What is asked to be previewed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PreviewAskedJson {
    /// Of what; may be left out for a plugin that no route delivers by.
    pub of: OfJson,
    /// When the attempt would be made, RFC 3339; now when left out.
    pub at: Option<String>,
    /// Only this route.
    pub route: Option<String>,
    /// A plugin with settings that are in no file, in the place of the routes.
    pub ad_hoc: Option<AdHocJson>,
    /// What the effects are answered, in their order, in the form of records; a plain success each when left out.
    #[schema(value_type = Option<Vec<Object>>)]
    pub answers: Option<Vec<Box<RawValue>>>,
    /// The delivery whose recorded attempt says what they are answered.
    pub recorded: Option<String>,
}

/// A plugin with settings.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AdHocJson {
    /// The plugin.
    pub plugin: String,
    /// As they stand under `with`.
    #[schema(value_type = Object)]
    pub settings: Value,
}

/// What would be sent.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewedJson {
    /// Of which.
    pub notification: NotificationJson,
    /// When the attempts would be made.
    pub at: String,
    /// The consumers whose queues it joins.
    pub consumers: Vec<String>,
    /// Each target of the routes that match.
    pub targets: Vec<PreviewJson>,
    /// The routes that do not match.
    pub unmatched: Vec<UnmatchedJson>,
}

/// A route that does not match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnmatchedJson {
    /// Its name.
    pub route: String,
    /// The first condition that does not hold.
    pub unmet: Option<ConditionJson>,
}

/// What would become of one target.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewJson {
    /// The route; null for a plugin with settings that are in no file.
    pub route: Option<String>,
    /// The target's identity.
    pub target: Option<String>,
    /// The plugin.
    pub plugin: String,
    /// The version that runs.
    pub plugin_version: Option<String>,
    /// The SHA-256 of its file, in hex.
    pub plugin_digest: Option<String>,
    /// When the target would hear of it, in words.
    pub when: Option<String>,
    /// The same, stage by stage.
    pub forecast: Option<ForecastJson>,
    /// Why no attempt could be made.
    pub not_made: Option<String>,
    /// What the plugin would ask for, oldest first.
    pub steps: Vec<StepJson>,
    /// What the plugin ends with; null where it fails or that depends on an answer.
    #[schema(value_type = Option<Object>)]
    pub end: Option<Box<RawValue>>,
    /// Whether what follows depends on an answer that there is none of.
    pub needs_answer: bool,
    /// Whether the next of the answers is for another kind of action.
    pub has_wrong_answer: bool,
    /// Whether the plugin fails.
    pub has_fault: bool,
    /// What would come of the attempt; null where that depends on an answer.
    pub outcome: Option<String>,
    /// Why, or the destination's reference.
    pub reason: Option<String>,
}

/// A step.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepJson {
    /// An effect as it would be sent, or a wait.
    #[schema(value_type = Option<Object>)]
    pub action: Option<Box<RawValue>>,
    /// Why the guard refuses it.
    pub refused: Option<FaultJson>,
    /// Recipients of a mail that the guard leaves out.
    pub left_out: Vec<LeftOutJson>,
    /// What the plugin was told that came of it.
    #[schema(value_type = Option<Object>)]
    pub answer: Option<Box<RawValue>>,
}

/// A recipient that is left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeftOutJson {
    /// The address.
    pub recipient: String,
    /// Why, in a word.
    pub code: String,
    /// Why.
    pub message: String,
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FaultJson {
    /// In a word.
    pub code: String,
    /// Why, and what to do.
    pub message: String,
}

impl PreviewJson {
    /// Whether it would not be delivered.
    pub fn is_wrong(&self) -> bool {
        let is_refused = |step: &StepJson| step.refused.is_some() || !step.left_out.is_empty();
        let is_bad = |outcome: &String| outcome != Outcome::Delivered.as_str();
        self.not_made.is_some() || self.steps.iter().any(is_refused) || self.outcome.as_ref().is_some_and(is_bad)
    }

    pub(super) fn of(route: Option<&Route>, target: &Target) -> Self {
        Self {
            route: route.map(|route| route.name.to_string()),
            target: route.map(|_| target.id.clone()),
            plugin: target.plugin.to_string(),
            ..Self::default()
        }
    }

    pub(super) fn show(&mut self, came: Previewed) {
        self.steps = came.steps.iter().map(StepJson::from).collect();
        self.outcome = came.outcome.map(|outcome| outcome.to_string());
        self.reason = came.reason;
        match came.end {
            End::Said(end) => self.end = RawValue::from_string(end).ok(),
            End::NeedsAnswer => self.needs_answer = true,
            End::WrongAnswer => self.has_wrong_answer = true,
            End::Fault { .. } => self.has_fault = true,
        }
    }
}

impl From<&Fault> for FaultJson {
    fn from(of: &Fault) -> Self {
        Self { code: of.code.clone(), message: of.message.clone() }
    }
}

impl From<&Step> for StepJson {
    fn from(of: &Step) -> Self {
        let raw = |json: &str| RawValue::from_string(json.to_owned()).ok();
        match of {
            Step::Wait(wait) => Self { action: raw(wait), refused: None, left_out: Vec::new(), answer: None },
            Step::Effect(Asked { action, refused, left_out, answer }) => {
                let left_out = left_out.iter().map(|(recipient, Fault { code, message, .. })| LeftOutJson {
                    recipient: recipient.clone(),
                    code: code.clone(),
                    message: message.clone(),
                });
                Self {
                    action: raw(action),
                    refused: refused.as_ref().map(FaultJson::from),
                    left_out: left_out.collect(),
                    answer: answer.as_ref().and_then(|answer| raw(&answer_to_json(answer))),
                }
            }
        }
    }
}
