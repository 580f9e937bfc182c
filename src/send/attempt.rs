//! One attempt of one delivery: ask the plugin, do what it says, until it answers done or failed.

use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::effect::secret::{NoSuchSecret, Seals, seal};
use super::effect::{Effects, Permission, may_have_happened};
use crate::clock::{Clock, until};
use crate::config::{Config, Grant, Limits, Route, Target};
use crate::inbox::Claim;
use crate::inbox::delivery::Outcome;
use crate::wasm::{self, Action, Answer, Catalog, Delivery, Effect, Failure, FailureKind, Plugin};

/// Characters kept of a reason: room for the destination's own words.
const REASON_CHARS_MAX: usize = 500;

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub outcome: Outcome,
    /// Why, or the destination's reference; redacted and cut.
    pub reason: Option<String>,
    /// How long the destination asked to wait.
    pub destination_delay: Option<Duration>,
    /// How many times the plugin was asked.
    pub steps: u32,
    /// The version of the plugin that ran, and its digest.
    pub plugin: Option<(String, String)>,
}

impl Ended {
    fn before_any_step(outcome: Outcome, reason: String) -> Self {
        Self { outcome, reason: Some(reason), destination_delay: None, steps: 0, plugin: None }
    }
}

/// What attempts are made with.
#[derive(Debug)]
pub struct Means {
    /// The routes, the grants, the secrets.
    pub config: std::sync::Arc<Config>,
    /// The plugins.
    pub catalog: Catalog,
    /// The door to the world.
    pub effects: Effects,
    /// The time.
    pub clock: Clock,
}

/// The two steps of stopping.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// Take no more work; an attempt that has begun no effect ends as interrupted.
    pub soon: CancellationToken,
    /// Stop working; an effect that is under way counts as unanswered.
    pub now: CancellationToken,
}

impl Means {
    /// Makes one attempt.
    pub async fn attempt(&self, claim: &Claim, began: Timestamp, stop: &Stop) -> Ended {
        let Some((route, target)) = self.target(claim) else {
            let reason = format!("route {} or its target is not in the configuration any more", claim.queue.route);
            return Ended::before_any_step(Outcome::Reject, reason);
        };
        let Some(plugin) = self.catalog.get(&target.plugin) else {
            let reason = format!("plugin {} is not loaded: see the log for why", target.plugin);
            return Ended::before_any_step(Outcome::Retry, reason);
        };
        let sealed = match seal(&target.settings, &self.config.secrets) {
            Ok(sealed) => sealed,
            Err(NoSuchSecret(name)) => {
                return Ended::before_any_step(
                    Outcome::Reconnect,
                    format!("secret {name} is not in the configuration"),
                );
            }
        };
        let delivery = delivery(claim, route, sealed.settings, began, plugin.manifest().needs_data);
        let no_grant = Grant::default();
        let permission = Permission {
            plugin: &target.plugin,
            workspace: &claim.queue.workspace,
            grant: self.config.plugins.grants.get(&target.plugin).unwrap_or(&no_grant),
            seals: &sealed.seals,
        };
        let mut run = Run {
            means: self,
            attempt: plugin.attempt(delivery),
            kept_time_max: plugin.kept_time_max(),
            began: self.clock.now(),
            touched: false,
        };
        let verdict = run.until_it_ends(&permission, stop).await;
        run.ended(verdict, &plugin, &sealed.seals)
    }

    fn target(&self, claim: &Claim) -> Option<(&Route, &Target)> {
        let workspace = self.config.workspaces.get(&claim.queue.workspace)?;
        let route = workspace.routes.iter().find(|route| route.name == claim.queue.route)?;
        let target = route.deliver.iter().find(|target| target.id == *claim.queue.target)?;
        Some((route, target))
    }
}

struct Verdict {
    outcome: Outcome,
    reason: Option<String>,
    destination_delay: Option<Duration>,
}

impl Verdict {
    fn new(outcome: Outcome, reason: impl Into<String>) -> Self {
        Self { outcome, reason: Some(reason.into()), destination_delay: None }
    }
}

struct Run<'a> {
    means: &'a Means,
    attempt: wasm::Attempt,
    /// How long an instance is worth keeping while an answer is on its way.
    kept_time_max: Duration,
    began: Timestamp,
    /// Whether a destination accepted an effect, or may have.
    touched: bool,
}

impl Run<'_> {
    /// Step by step. Every effect ends in bounded time, so the limits are looked at between steps.
    async fn until_it_ends(&mut self, permission: &Permission<'_>, stop: &Stop) -> Verdict {
        let Limits { steps_max, attempt_time_max, .. } = self.means.config.plugins.limits;
        let mut begun = false;
        loop {
            if stop.soon.is_cancelled() && !begun {
                return Verdict::new(Outcome::Interrupted, "the server stopped before any effect began");
            }
            if self.attempt.steps() >= steps_max {
                return self.at_fault(format!("the plugin asked for more than {steps_max} steps"));
            }
            if until(self.began, self.means.clock.now()) > attempt_time_max {
                return self.at_fault(format!("the attempt took longer than its limit of {attempt_time_max:?}"));
            }
            let stepped = tokio::select! {
                biased;
                stepped = self.attempt.step() => stepped,
                () = stop.now.cancelled(), if !begun => {
                    return Verdict::new(Outcome::Interrupted, "the server stopped before any effect began");
                }
            };
            let action = match stepped {
                Ok(action) => action,
                Err(fault) => return self.at_fault(fault.to_string()),
            };
            let answer = match action {
                Action::Done(receipt) => {
                    let reason = receipt.note.or(receipt.reference);
                    return Verdict { outcome: Outcome::Delivered, reason, destination_delay: None };
                }
                Action::Failed(failure) => return failed(failure),
                Action::Wait(_) => {
                    let reason = "the plugin asked to wait, which this version of the host does not do";
                    return Verdict::new(Outcome::Reject, reason);
                }
                effect => {
                    begun = true;
                    match self.effect(effect, permission, stop).await {
                        Some(answer) => answer,
                        None => return Verdict::new(Outcome::Unknown, "the server stopped before the answer came"),
                    }
                }
            };
            self.touched |= may_have_happened(&answer);
            self.attempt.answer(Effect { at: self.means.clock.now().to_string(), answer });
        }
    }

    /// Performs an effect and lets go of the instance when the answer takes long; nothing when it was cut off.
    async fn effect(&mut self, action: Action, permission: &Permission<'_>, stop: &Stop) -> Option<Answer> {
        let mut performing = std::pin::pin!(self.means.effects.perform(action, permission));
        tokio::select! {
            biased;
            answer = &mut performing => return Some(answer),
            () = tokio::time::sleep(self.kept_time_max) => self.attempt.rest(),
        }
        tokio::select! {
            answer = performing => Some(answer),
            () = stop.now.cancelled() => None,
        }
    }

    /// A trap, a limit or a wrong answer: unknown if anything may have happened, else worth another try.
    fn at_fault(&self, reason: String) -> Verdict {
        Verdict::new(if self.touched { Outcome::Unknown } else { Outcome::Retry }, reason)
    }

    fn ended(self, verdict: Verdict, plugin: &Plugin, seals: &Seals<'_>) -> Ended {
        Ended {
            outcome: verdict.outcome,
            reason: verdict.reason.map(|reason| kept(&seals.redact(&reason))),
            destination_delay: verdict.destination_delay,
            steps: self.attempt.steps(),
            plugin: Some((plugin.manifest().version.clone(), plugin.digest().to_owned())),
        }
    }
}

fn failed(failure: Failure) -> Verdict {
    let outcome = match failure.kind {
        FailureKind::Retry => Outcome::Retry,
        FailureKind::Reject => Outcome::Reject,
        FailureKind::Reconnect => Outcome::Reconnect,
        FailureKind::Unknown => Outcome::Unknown,
    };
    let destination_delay = failure.after_seconds.map(|seconds| Duration::from_secs(seconds.into()));
    Verdict { outcome, reason: Some(failure.reason), destination_delay }
}

/// A reason as it is kept: one line, without control characters, cut.
fn kept(reason: &str) -> String {
    let plain: String = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match plain.char_indices().nth(REASON_CHARS_MAX) {
        Some((end, _)) => format!("{}…", plain.get(..end).unwrap_or_default()),
        None => plain,
    }
}

fn delivery(claim: &Claim, route: &Route, settings: String, began: Timestamp, with_data: bool) -> Delivery {
    let cause = claim.cause.as_str();
    Delivery {
        id: claim.id.to_string(),
        attempt: claim.attempt.get(),
        due_at: claim.due_at.to_string(),
        now: began.to_string(),
        workspace: claim.queue.workspace.to_string(),
        route: claim.queue.route.to_string(),
        on_behalf_of: route.owner.clone(),
        cause: cause.to_owned(),
        settings,
        notifications: vec![wasm::convert::notification(&claim.notifications[0], with_data)],
        omitted: 0,
        inbox_url: None,
        memory: None,
        resume: None,
        extras: "{}".to_owned(),
    }
}
