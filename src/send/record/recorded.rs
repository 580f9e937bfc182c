//! A recorded attempt: the delivery, each effect with its action and answer, and how it ended.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{NotARecord, answer, json, text_of};
use crate::wasm::{Answer, Delivery};

mod delivery;

/// The steps of an attempt from its beginning, or the end of a wait, to its end or its next wait.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// What the plugin was handed, with stand-ins for secrets.
    pub delivery: Delivery,
    /// What it asked for and was told, oldest first.
    pub effects: Vec<RecordedEffect>,
    /// JSON: the `done`, `failed` or `wait` that ended it.
    pub end: String,
}

/// An effect of a recorded attempt.
#[derive(Clone, Debug)]
pub struct RecordedEffect {
    /// When its answer came.
    pub at: Timestamp,
    /// JSON: the action; none for the end of a wait, which stands first.
    pub action: Option<String>,
    /// What came of it, masked as the plugin saw it.
    pub answer: Answer,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    delivery: delivery::Wire,
    effects: Vec<EffectWire>,
    end: Box<RawValue>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EffectWire {
    at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    action: Option<Box<RawValue>>,
    answer: answer::Wire,
}

impl Recorded {
    /// As JSON: `{"delivery": {…}, "effects": [{"at": "…", "action": {…}, "answer": {…}}], "end": {…}}`.
    pub fn to_json(&self) -> String {
        let effect = |effect: &RecordedEffect| EffectWire {
            at: effect.at.to_string(),
            action: effect.action.as_deref().map(json),
            answer: answer::Wire::from(&effect.answer),
        };
        let effects = self.effects.iter().map(effect).collect();
        text_of(&Wire { delivery: delivery::Wire::from(&self.delivery), effects, end: json(&self.end) })
    }

    /// What a JSON text records.
    ///
    /// # Errors
    /// Where the text leaves the form, and how.
    pub fn from_json(text: &str) -> Result<Self, NotARecord> {
        let wire: Wire = serde_json::from_str(text).map_err(|error| NotARecord(error.to_string()))?;
        let effect = |effect: EffectWire| {
            let at = effect.at.parse().map_err(|error| NotARecord(format!("effects.at: {error}")))?;
            let answer = effect.answer.try_into().map_err(NotARecord)?;
            Ok(RecordedEffect { at, action: effect.action.map(|action| action.get().to_owned()), answer })
        };
        let effects = wire.effects.into_iter().map(effect).collect::<Result<_, NotARecord>>()?;
        Ok(Self { delivery: wire.delivery.into(), effects, end: wire.end.get().to_owned() })
    }
}
