//! Some attempts are kept as recordings: what the plugin was handed, what it asked for, and what came of that.
//!
//! Nothing is kept while an attempt runs. When it has ended and that is durable, the plugin, which is a pure function, is
//! asked once more, in an attempt that does nothing: handed stable stand-ins instead of that attempt's placeholders, and
//! told the same answers. What it asks for then is the recording, so that no placeholder needs to be looked for in what
//! it made of it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::{Asked, End, Leg, Scripted, steps};
use crate::clock::until;
use crate::inbox::delivery::Outcome;
use crate::inbox::{Claim, RECORDING_BYTES_MAX, Recording};
use crate::notification::Name;
use crate::send::attempt::Came;
use crate::send::effect::secret::{Seals, stand_in};
use crate::send::record::{Recorded, RecordedEffect};
use crate::wasm::{self, Answer, Delivery, Plugin};

/// The time in which one end of each kind is recorded of a plugin: making a recording costs as much as the steps of the
/// attempt and one write, so that six a second are lost in what a busy plugin costs.
const ONE_EACH: Duration = Duration::from_secs(1);

/// Which ends are recorded: of each plugin, the first of each outcome in a second.
#[derive(Debug, Default)]
pub(in crate::send) struct Samples(Mutex<HashMap<Name, [Option<Timestamp>; 6]>>);

impl Samples {
    /// Whether this end is recorded.
    pub(in crate::send) fn take(&self, plugin: &Name, came: &Came, now: Timestamp) -> bool {
        let kind = match outcome(came) {
            Some(None) => 0,
            Some(Some(Outcome::Delivered)) => 1,
            Some(Some(Outcome::Retry)) => 2,
            Some(Some(Outcome::Reject)) => 3,
            Some(Some(Outcome::Reconnect)) => 4,
            Some(Some(Outcome::Unknown)) => 5,
            Some(Some(Outcome::Interrupted)) | None => return false,
        };
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_plugin = match taken.get_mut(plugin) {
            Some(of_plugin) => of_plugin,
            None => taken.entry(plugin.clone()).or_default(),
        };
        let Some(last) = of_plugin.get_mut(kind) else { return false };
        // A clock that is set back does not stop it.
        let is_due = last.is_none_or(|last| now < last || until(last, now) >= ONE_EACH);
        if is_due {
            *last = Some(now);
        }
        is_due
    }
}

/// The outcome by the plugin's own word; none inside for a wait.
fn outcome(came: &Came) -> Option<Option<Outcome>> {
    match came {
        Came::Ended(ended) => Some(Some(ended.outcome)),
        Came::Rests(_) => Some(None),
        Came::Left => None,
    }
}

/// An attempt that is recorded, or judged, once its end is durable.
#[derive(Clone, Debug)]
pub(in crate::send) struct Taken {
    plugin: Plugin,
    leg: Leg,
}

impl Taken {
    /// As it ended, or waits: with stand-ins in the place of its placeholders.
    pub(in crate::send) fn new(attempt: &wasm::Attempt, plugin: &Plugin, settings: &Value, seals: &Seals<'_>) -> Self {
        let kept = |json: &Option<String>| json.as_ref().map(|json| seals.with_stand_ins(json.trim()));
        let told = attempt.delivery();
        let (memory, resume) = (kept(&told.memory), kept(&told.resume));
        let delivery = Delivery { settings: stand_in(settings), memory, resume, ..told.clone() };
        let mut leg = Leg { delivery, resumed: None, script: Vec::new() };
        for effect in attempt.past() {
            let at = effect.at.parse().ok();
            match (&effect.answer, at) {
                (Answer::Resumed(resume), Some(at)) => leg.resumed = Some((at, kept(resume))),
                (answer, at) => leg.script.push(Scripted { at, expected: None, answer: answer.clone() }),
            }
        }
        Self { plugin: plugin.clone(), leg }
    }

    /// The plugin that made it.
    pub(in crate::send) fn plugin(&self) -> &Plugin {
        &self.plugin
    }

    /// What it was handed and told.
    pub(in crate::send) fn leg(&self) -> &Leg {
        &self.leg
    }

    /// The recording; none where the plugin, asked again, does not do the same, or where it would be too large.
    pub(in crate::send) async fn recording(
        self,
        claim: &Claim,
        outcome: Option<Outcome>,
        at: Timestamp,
    ) -> Option<Recording> {
        let Self { plugin, leg } = self;
        let (asked, end) = steps(&plugin, leg.clone()).await?;
        let End::Said(end) = end else { return None };
        if asked.len() != leg.script.len() || !is_of(&end, outcome) {
            return None;
        }
        let content = recorded(leg, asked, end)?.to_json();
        if content.len() > RECORDING_BYTES_MAX {
            return None;
        }
        Some(Recording {
            delivery: claim.id.clone(),
            attempt: claim.attempt,
            workspace: claim.queue.workspace.clone(),
            seqs: claim.notifications.iter().map(|one| one.seq).collect(),
            plugin: plugin.manifest().name.clone(),
            plugin_version: plugin.manifest().version.clone(),
            plugin_digest: plugin.digest().to_owned(),
            outcome,
            at,
            content,
        })
    }
}

fn recorded(leg: Leg, asked: Vec<Asked>, end: String) -> Option<Recorded> {
    let resumed = leg.resumed.map(|(at, resume)| RecordedEffect { at, action: None, answer: Answer::Resumed(resume) });
    let effect = |(scripted, asked): (Scripted, Asked)| {
        Some(RecordedEffect { at: scripted.at?, action: Some(asked.action), answer: scripted.answer })
    };
    let effects = leg.script.into_iter().zip(asked).map(effect);
    let effects = resumed.map(Some).into_iter().chain(effects).collect::<Option<_>>()?;
    Some(Recorded { delivery: leg.delivery, effects, end })
}

/// Whether what the plugin ended with means this outcome.
pub(in crate::send) fn is_of(end: &str, outcome: Option<Outcome>) -> bool {
    match outcome {
        None => end.starts_with(r#"{"wait":"#),
        Some(Outcome::Delivered) => end.starts_with(r#"{"done":"#),
        Some(failed) => end.starts_with(&format!(r#"{{"failed":{{"kind":"{failed}""#)),
    }
}
