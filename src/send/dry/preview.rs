//! What a target would be sent, without sending it.

use std::num::NonZeroU32;

use jiff::Timestamp;

use super::{Recorder, Scripted};
use crate::config::{Config, Route, Target};
use crate::inbox::book::QueueKey;
use crate::inbox::delivery::{Cause, Outcome};
use crate::inbox::{Begun, Change, Claim, DeliveryId, Fence};
use crate::notification::Notification;
use crate::send::attempt::{Basis, Came, Door, Rest, Stop, in_milliseconds};
use crate::send::effect::Effects;
use crate::send::effect::secret::stand_in;
use crate::send::keys::Keys;
use crate::wasm::{Answer, Catalog, CheckError};

pub use super::{Asked, End};

/// What previews are made with.
#[derive(Clone, Copy, Debug)]
pub struct Previewer<'a> {
    /// The routes, the grants, the secrets.
    pub config: &'a Config,
    /// The plugins.
    pub catalog: &'a Catalog,
    /// Whose guard judges; nothing is performed.
    pub effects: &'a Effects,
    /// What placeholders are computed from.
    pub keys: &'a Keys,
}

/// Which delivery is looked at.
#[derive(Clone, Debug)]
pub struct Supposed<'a> {
    /// The route.
    pub route: &'a Route,
    /// Its target.
    pub target: &'a Target,
    /// What is delivered.
    pub notification: Notification,
    /// Its id.
    pub id: DeliveryId,
    /// When it comes due.
    pub due_at: Timestamp,
    /// When the attempt begins.
    pub now: Timestamp,
    /// What comes of the effects.
    pub answers: Answers,
}

/// What comes of the effects of an attempt that is looked at.
#[derive(Clone, Debug)]
pub enum Answers {
    /// These, in their order; what follows the last is not answered.
    These(Vec<Answer>),
    /// All of them succeed. What a request is answered is the first of a few plain bodies that the plugin takes for a
    /// success, or up to what the guard refuses; where it takes none, what follows the first effect is left open.
    Success,
}

impl Answers {
    /// No effect is answered.
    pub const NONE: Self = Self::These(Vec::new());
}

/// What destinations answer that say little more than that all is well.
const PLAIN_BODIES: [&str; 4] = ["ok", r#"{"ok":true}"#, "{}", ""];

/// What an attempt would do.
#[derive(Clone, Debug)]
pub struct Previewed {
    /// What the plugin would ask for, oldest first.
    pub steps: Vec<Step>,
    /// How that ends.
    pub end: End,
    /// What would come of the attempt; none where that depends on an answer.
    pub outcome: Option<Outcome>,
    /// Why, or the destination's reference.
    pub reason: Option<String>,
}

impl Previewed {
    fn is_refused(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Effect(Asked { refused: Some(_), .. })))
    }
}

/// One step of an attempt that is looked at.
#[derive(Clone, Debug)]
pub enum Step {
    /// An effect. Its action is as it would be sent, with `[secret NAME]` for each secret.
    Effect(Asked),
    /// JSON: the `wait` that the plugin asks for. It is not waited.
    Wait(String),
}

impl Previewer<'_> {
    /// Why the plugin does not take the settings of a target; none when it does.
    pub async fn settings_refused(&self, target: &Target) -> Option<String> {
        let plugin = self.catalog.get(&target.plugin)?;
        match plugin.check(stand_in(&target.settings)).await {
            Ok(_) => None,
            Err(CheckError::Problems(problems)) => {
                let one = |problem: crate::wasm::Problem| match problem.path.as_str() {
                    "" => problem.message,
                    path => format!("{path}: {}", problem.message),
                };
                Some(problems.into_iter().map(one).collect::<Vec<_>>().join("; "))
            }
            Err(fault) => Some(fault.to_string()),
        }
    }

    /// What the first attempt of a delivery would do.
    pub async fn preview(&self, supposed: Supposed<'_>) -> Previewed {
        let (began, limits) = (in_milliseconds(supposed.now), self.config.plugins.limits);
        let script = match &supposed.answers {
            Answers::These(list) => list.clone(),
            Answers::Success => {
                for body in PLAIN_BODIES {
                    let recorder = Recorder::succeeding(began, limits, self.effects, body);
                    let previewed = self.made(&supposed, &recorder).await;
                    if previewed.outcome == Some(Outcome::Delivered) || previewed.is_refused() {
                        return previewed;
                    }
                }
                Vec::new()
            }
        };
        let script = script.into_iter().map(|answer| Scripted { at: None, expected: None, answer });
        let recorder = Recorder::new(began, limits, Some(self.effects), script.collect());
        self.made(&supposed, &recorder).await
    }

    async fn made(&self, supposed: &Supposed<'_>, recorder: &Recorder<'_>) -> Previewed {
        let began = in_milliseconds(supposed.now);
        let mut claim = claim(supposed);
        let of = Some((supposed.route, supposed.target));
        let basis = Basis { config: self.config, catalog: self.catalog, keys: self.keys, of };
        let mut steps = Vec::new();
        loop {
            let door = Door::Recording(recorder);
            let (came, _) = basis.attempt(&claim, began, &Stop::default(), (door, None)).await;
            let (asked, end) = recorder.take(&came);
            steps.extend(asked.into_iter().map(Step::Effect));
            match (came, end) {
                // The limits on steps and time end this, as they end every attempt.
                (Came::Rests(rest), End::Said(wait)) => {
                    steps.push(Step::Wait(wait));
                    recorder.clock().set(rest.until);
                    go_on(&mut claim, began, rest);
                }
                (Came::Ended(ended), end) => {
                    return Previewed { steps, end, outcome: Some(ended.outcome), reason: ended.reason };
                }
                (Came::Rests(_) | Came::Left, end) => {
                    return Previewed { steps, end, outcome: None, reason: None };
                }
            }
        }
    }
}

fn claim(supposed: &Supposed<'_>) -> Claim {
    let (route, target) = (supposed.route.name.clone(), supposed.target.id.as_str().into());
    Claim {
        id: supposed.id.clone(),
        fence: Fence::default(),
        queue: QueueKey { workspace: supposed.notification.workspace.clone(), route, target },
        plugin: supposed.target.plugin.clone(),
        attempt: NonZeroU32::MIN,
        since: supposed.now,
        due_at: supposed.due_at,
        cause: Cause::First,
        notifications: vec![supposed.notification.clone()],
        omitted: 0,
        resume: None,
        memory: None,
        begun: None,
    }
}

/// As the store hands it out when the wait is over.
fn go_on(claim: &mut Claim, began: Timestamp, rest: Rest) {
    match rest.resume {
        Change::Keep => {}
        Change::Set(resume) => claim.resume = Some(resume),
        Change::Forget => claim.resume = None,
    }
    let progress = rest.kept.progress;
    let (past, plugin_digest) = (Vec::new(), Some(rest.kept.plugin_digest));
    claim.begun = Some(Begun { started_at: began, progress, past, waited: true, cut_off: false, plugin_digest });
}
