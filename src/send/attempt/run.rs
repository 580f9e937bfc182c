//! The steps of an attempt: each asks the plugin and does what it says.

use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::door::Door;
use super::made::{Made, Manner};
use super::past::{Asked, Astray, Past};
use super::version::handed;
use super::{Came, Ended, Rest, Stop, in_milliseconds};
use crate::clock::{later, until};
use crate::config::Limits;
use crate::inbox::delivery::Outcome;
use crate::inbox::{Change, Claim, Kept, Progress, Written};
use crate::send::STORE_PAUSE;
use crate::send::effect::{Permission, cut_off, in_kind, late, may_have_happened, was_reached};
use crate::send::report::Report;
use crate::telemetry::rounded;
use crate::wasm::{self, Action, Answer, Delivery, Effect, Failure, FailureKind, Pause, Plugin, Receipt};

/// Characters kept of a reason: room for the destination's own words.
const REASON_CHARS_MAX: usize = 500;

/// A pause of its lane that an attempt sits out, ready to go on: ending it and claiming it again costs two writes.
const PAUSE_SAT_OUT_MAX: Duration = Duration::from_secs(5);

const STOPPED: &str = "the server stopped before any effect began";

/// What ends an attempt, before its texts are redacted.
#[derive(Default)]
struct Verdict {
    reason: Option<String>,
    destination_delay: Option<Duration>,
    resume: Change,
    remember: Change,
    /// The receipt of an agent's run, which may report something.
    receipt: Option<Box<Receipt>>,
    /// Why it came to this.
    manner: Manner,
}

/// Why no further step is made.
enum Halt {
    Verdict(Outcome, Box<Verdict>),
    Rests { until: Timestamp, is_wait: bool, resume: Change },
    Left,
}

pub(in crate::send) struct Run<'a> {
    door: Door<'a>,
    claim: &'a Claim,
    plugin: &'a Plugin,
    attempt: wasm::Attempt,
    began: Timestamp,
    /// Its steps are those before the last wait: the others are made again when the attempt is resumed.
    progress: Progress,
    past: Past,
    /// The effect that is under way.
    asked: Asked,
    /// Whether the next effect may have begun in an earlier process.
    cut_off: bool,
    /// Whether an effect was begun, or given up as cut off, in this process.
    begun: bool,
}

impl<'a> Run<'a> {
    pub(in crate::send) fn new(
        door: Door<'a>,
        claim: &'a Claim,
        plugin: &'a Plugin,
        delivery: Delivery,
        began: Timestamp,
    ) -> Self {
        let begun = claim.begun.as_ref();
        let resume = handed(claim.resume.as_ref(), plugin.manifest());
        let mut attempt = plugin.attempt(delivery);
        let (past, resumed) = Past::new(begun, resume, in_milliseconds(door.clock().now()));
        if let Some(resumed) = resumed {
            attempt.answer(resumed);
        }
        let progress = begun.map(|begun| begun.progress).unwrap_or_default();
        let cut_off = begun.is_some_and(|begun| begun.cut_off);
        Self { door, claim, plugin, attempt, began, progress, past, asked: Asked::Nothing, cut_off, begun: false }
    }

    /// How it came off.
    pub(in crate::send) async fn until_its_end(mut self, permission: &Permission<'_>, stop: &Stop) -> Made {
        let halt = loop {
            if let Err(halt) = self.step(permission, stop).await {
                break halt;
            }
        };
        let (came, manner) = match halt {
            Halt::Left => (Came::Left, Manner::Host),
            Halt::Rests { until, is_wait, resume } => {
                let manner = if is_wait { Manner::Said } else { Manner::Host };
                (Came::Rests(self.rest(until, is_wait, resume)), manner)
            }
            Halt::Verdict(outcome, verdict) => {
                let manner = verdict.manner;
                (Came::Ended(self.ended(outcome, *verdict, permission)), manner)
            }
        };
        Made { came, manner, accepted: self.progress.touched || self.cut_off, attempt: self.attempt }
    }

    /// Asks once, and does what the plugin says. Every effect ends in bounded time, so the limits are looked at between
    /// steps.
    async fn step(&mut self, permission: &Permission<'_>, stop: &Stop) -> Result<(), Halt> {
        self.within_limits()?;
        let stopped = if self.begun { &stop.now } else { &stop.soon };
        let stepped = tokio::select! {
            biased;
            () = stopped.cancelled() => return Err(self.cut_short()),
            stepped = self.attempt.step() => stepped,
        };
        self.door.hear(&stepped, permission);
        let action = stepped.map_err(|fault| self.at_fault(fault.to_string(), Manner::of(&fault)))?;
        let ends = matches!(action, Action::Wait(_) | Action::Done(_) | Action::Failed(_));
        if ends && !self.past.is_caught_up() {
            return Err(self.astray(&Astray::Otherwise));
        }
        match action {
            Action::Done(receipt) => Err(self.done(receipt)),
            Action::Failed(failure) => Err(self.failed(failure)),
            Action::Wait(pause) => Err(self.wait(pause)),
            effect => self.effect(effect, permission, stop).await,
        }
    }

    fn within_limits(&self) -> Result<(), Halt> {
        let Limits { steps_max, attempt_time_max, .. } = self.door.limits();
        if self.steps() >= steps_max {
            let reason = format!("the plugin asked for more than {steps_max} steps: plugins.limits.steps");
            return Err(self.at_fault(reason, Manner::Beyond));
        }
        if until(self.began, self.door.clock().now()) > attempt_time_max {
            let limit = rounded(attempt_time_max);
            let reason = format!("the attempt took longer than its limit of {limit}: plugins.limits.attempt_time");
            return Err(self.at_fault(reason, Manner::Beyond));
        }
        Ok(())
    }

    /// Answers an effect: from what is kept, as cut off, or by performing it.
    async fn effect(&mut self, action: Action, permission: &Permission<'_>, stop: &Stop) -> Result<(), Halt> {
        if let Some(effect) = self.past.again(&action).map_err(|astray| self.astray(&astray))? {
            self.answered(effect);
            return Ok(());
        }
        if std::mem::take(&mut self.cut_off) {
            self.begun = true;
            let answer = cut_off(&action);
            self.asked = Asked::Action(Box::new(action));
            self.add(answer);
            return Ok(());
        }
        if self.past.is_to_keep() {
            Box::pin(self.keep(stop)).await?;
        }
        self.unless_the_lane_is_paused()?;
        let (door, claim) = (self.door, self.claim);
        if self.patiently(door.turn(claim), &stop.soon).await.is_none() {
            return Err(self.cut_short());
        }
        self.begun = true;
        let cut = cut_off(&action);
        self.asked = Asked::Action(Box::new(action.clone()));
        // Boxed: what a future is given is held twice in the one that waits for it.
        match self.patiently(Box::pin(self.bounded(action, permission)), &stop.now).await {
            Some(Some(answer)) => {
                self.add(answer);
                Ok(())
            }
            Some(None) => Err(Halt::Left),
            None => {
                self.add(cut);
                Err(self.cut_short())
            }
        }
    }

    /// A destination that asked to be left alone for long, after this delivery was claimed: the attempt makes room for
    /// others meanwhile.
    fn unless_the_lane_is_paused(&self) -> Result<(), Halt> {
        let Some(paused_until) = self.door.paused_until(self.claim) else { return Ok(()) };
        if until(self.door.clock().now(), paused_until) <= PAUSE_SAT_OUT_MAX {
            return Ok(());
        }
        if self.has_begun() {
            return Err(Halt::Rests { until: paused_until, is_wait: false, resume: Change::Keep });
        }
        Err(verdict(Outcome::Interrupted, "the destination asked to be left alone for a while".to_owned()))
    }

    /// Performs an effect, for no longer than the delivery is held.
    fn bounded<'p>(
        &self,
        action: Action,
        permission: &'p Permission<'p>,
    ) -> impl Future<Output = Option<Answer>> + use<'a, 'p> {
        let (door, held_until) = (self.door, self.claim.fence.until);
        async move {
            let Some(held_until) = held_until else { return door.perform(action, permission).await };
            let answer = in_kind(&action);
            let left = until(door.clock().now(), held_until);
            if left.is_zero() {
                return Some(answer(late(false)));
            }
            tokio::select! {
                biased;
                answer = door.perform(action, permission) => answer,
                () = door.clock().sleep(left) => Some(answer(late(true))),
            }
        }
    }

    /// Waits for something, and lets go of the instance and of the action when that takes long; none when it was cut off.
    async fn patiently<T>(&mut self, waited_for: impl Future<Output = T>, cut: &CancellationToken) -> Option<T> {
        let mut waited_for = std::pin::pin!(waited_for);
        tokio::select! {
            biased;
            came = &mut waited_for => return Some(came),
            () = tokio::time::sleep(self.plugin.kept_time_max()) => {}
        }
        self.attempt.rest();
        self.asked.shrink();
        tokio::select! {
            biased;
            came = waited_for => Some(came),
            () = cut.cancelled() => None,
        }
    }

    /// Has the store keep the effects so far, before a further one. What it refuses is tried again until the server stops.
    async fn keep(&mut self, stop: &Stop) -> Result<(), Halt> {
        let kept = self.kept(self.progress);
        let mut told = false;
        loop {
            let door = self.door;
            match self.patiently(door.keep(kept.clone()), &CancellationToken::new()).await {
                Some(Ok(())) => break,
                Some(Err(error)) if !told => {
                    let delivery = &self.claim.id;
                    tracing::error!(%delivery, %error, "the past of an attempt cannot be kept; trying until it is");
                    told = true;
                }
                _ => {}
            }
            tokio::select! {
                () = door.clock().sleep(STORE_PAUSE) => {}
                () = stop.soon.cancelled() => return Err(self.cut_short()),
            }
        }
        self.past.all_kept();
        Ok(())
    }

    /// Adds what the effect under way came to.
    fn add(&mut self, answer: Answer) {
        let at = in_milliseconds(self.door.clock().now());
        self.past.add(at, std::mem::replace(&mut self.asked, Asked::Nothing));
        self.answered(Effect { at: at.to_string(), answer });
    }

    fn answered(&mut self, effect: Effect) {
        self.progress.touched |= may_have_happened(&effect.answer);
        self.progress.reached |= was_reached(&effect.answer);
        self.attempt.answer(effect);
    }
}

/// How it ends.
impl Run<'_> {
    fn ended(&self, outcome: Outcome, verdict: Verdict, permission: &Permission<'_>) -> Ended {
        Ended {
            outcome,
            reason: verdict.reason.map(|reason| shown(&permission.seals.redact(&reason))),
            destination_delay: verdict.destination_delay,
            steps: self.steps(),
            reached: self.progress.reached || self.cut_off,
            resume: verdict.resume,
            remember: verdict.remember,
            report: verdict.receipt.and_then(|receipt| Report::of(&receipt, |text| permission.seals.redact(text))),
            plugin: Some((self.plugin.manifest().version.clone(), self.plugin.digest().to_owned())),
            repeat: Some(self.plugin.manifest().repeat),
        }
    }

    fn steps(&self) -> u32 {
        self.progress.steps.saturating_add(self.attempt.steps())
    }

    fn has_begun(&self) -> bool {
        self.begun || self.claim.begun.is_some()
    }

    /// The server stops: an attempt that has begun nothing gives its number back, one that has goes on at the next start.
    fn cut_short(&self) -> Halt {
        if self.cut_off {
            return Halt::Left;
        }
        if self.has_begun() {
            return Halt::Rests { until: self.door.clock().now(), is_wait: false, resume: Change::Keep };
        }
        verdict(Outcome::Interrupted, STOPPED.to_owned())
    }

    /// A trap, a limit or a wrong answer: unknown if anything may have happened, else worth another try.
    fn at_fault(&self, reason: String, manner: Manner) -> Halt {
        let may_have_happened = self.progress.touched || self.cut_off;
        let outcome = if may_have_happened { Outcome::Unknown } else { Outcome::Retry };
        Halt::Verdict(outcome, Box::new(Verdict { reason: Some(reason), manner, ..Verdict::default() }))
    }

    fn astray(&self, astray: &Astray) -> Halt {
        self.at_fault(astray.to_string(), Manner::of_resuming(astray))
    }

    /// What the plugin asks to be kept: absent keeps what is there, JSON `null` deletes it.
    fn change(&self, json: Option<String>) -> Change {
        match json {
            None => Change::Keep,
            Some(json) if json.trim() == "null" => Change::Forget,
            Some(value) => Change::Set(Written { value, plugin_version: Some(self.plugin.manifest().version.clone()) }),
        }
    }

    fn failed(&self, failure: Failure) -> Halt {
        let outcome = match failure.kind {
            FailureKind::Retry => Outcome::Retry,
            FailureKind::Reject => Outcome::Reject,
            FailureKind::Reconnect => Outcome::Reconnect,
            FailureKind::Unknown => Outcome::Unknown,
        };
        let destination_delay = failure.after_seconds.map(|seconds| Duration::from_secs(seconds.into()));
        let (reason, resume) = (Some(failure.reason), self.change(failure.resume));
        let verdict = Verdict { reason, destination_delay, resume, manner: Manner::Said, ..Verdict::default() };
        Halt::Verdict(outcome, Box::new(verdict))
    }

    fn wait(&self, pause: Pause) -> Halt {
        let (now, limit) = (self.door.clock().now(), self.door.limits().attempt_time_max);
        let wait = Duration::from_secs(pause.seconds.into());
        let until = later(now, wait);
        if until > later(self.began, limit) {
            let (wait, limit) = (rounded(wait), rounded(limit));
            let reason = format!(
                "the plugin asked to wait for {wait}, beyond the {limit} that an attempt may take: plugins.limits.attempt_time"
            );
            return self.at_fault(reason, Manner::Beyond);
        }
        Halt::Rests { until, is_wait: true, resume: self.change(pause.resume) }
    }

    fn done(&self, mut receipt: Receipt) -> Halt {
        let manifest = self.plugin.manifest();
        let remember = if manifest.needs_memory { self.change(receipt.remember.take()) } else { Change::Keep };
        let reason = match (receipt.note.take(), &receipt.reference) {
            (Some(note), Some(reference)) if !note.contains(reference.as_str()) => Some(format!("{reference}: {note}")),
            (note, reference) => note.or_else(|| reference.clone()),
        };
        let receipt = manifest.agent.then(|| Box::new(receipt));
        let verdict = Verdict { reason, remember, receipt, manner: Manner::Said, ..Verdict::default() };
        Halt::Verdict(Outcome::Delivered, Box::new(verdict))
    }

    fn rest(&self, until: Timestamp, is_wait: bool, resume: Change) -> Rest {
        let steps = if is_wait { self.steps() } else { self.progress.steps };
        let mut kept = self.kept(Progress { steps, ..self.progress });
        if is_wait {
            // A wait forgets the past.
            kept.effects.clear();
        }
        Rest { kept, until, is_wait, resume }
    }

    fn kept(&self, progress: Progress) -> Kept {
        let (kept_before, effects) = self.past.to_keep(self.attempt.past());
        let (id, fence) = (self.claim.id.clone(), self.claim.fence);
        Kept { id, fence, progress, kept_before, effects, plugin_digest: self.plugin.digest().to_owned() }
    }
}

fn verdict(outcome: Outcome, reason: String) -> Halt {
    Halt::Verdict(outcome, Box::new(Verdict { reason: Some(reason), ..Verdict::default() }))
}

/// A reason as it is kept: one line, without control characters, cut.
fn shown(reason: &str) -> String {
    let plain: String = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match plain.char_indices().nth(REASON_CHARS_MAX) {
        Some((end, _)) => format!("{}…", plain.get(..end).unwrap_or_default()),
        None => plain,
    }
}
