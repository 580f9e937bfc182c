//! The door that an attempt does things through: one that does them, or one that only writes down what would be done.

use futures_util::future::{BoxFuture, FutureExt};
use jiff::Timestamp;

use super::Means;
use crate::clock::Clock;
use crate::config::Limits;
use crate::inbox::{Claim, InboxError, Kept};
use crate::send::dry::Recorder;
use crate::send::effect::Permission;
use crate::wasm::{Action, Answer, StepFault};

/// What is behind an attempt. Nothing else of it differs.
#[derive(Clone, Copy)]
pub(in crate::send) enum Door<'a> {
    /// Does what is asked for, at the pace of the lanes.
    Doing(&'a Means),
    /// Writes it down, and answers from a list.
    Recording(&'a Recorder<'a>),
}

impl<'a> Door<'a> {
    pub(super) fn clock(self) -> &'a Clock {
        match self {
            Self::Doing(means) => &means.clock,
            Self::Recording(recorder) => recorder.clock(),
        }
    }

    pub(super) fn limits(self) -> Limits {
        match self {
            Self::Doing(means) => means.live.get().config.plugins.limits,
            Self::Recording(recorder) => recorder.limits(),
        }
    }

    /// Until when the lanes of a delivery are paused.
    pub(super) fn paused_until(self, claim: &Claim) -> Option<Timestamp> {
        match self {
            Self::Doing(means) => means.queues.paused_until(claim),
            Self::Recording(_) => None,
        }
    }

    /// Ready when the pace of the lanes allows an effect.
    pub(super) async fn turn(self, claim: &Claim) {
        if let Self::Doing(means) = self {
            means.queues.effect(claim).await;
        }
    }

    /// Performs an effect. None where that needs an answer that there is none of.
    pub(super) async fn perform(self, action: Action, permission: &Permission<'_>) -> Option<Answer> {
        match self {
            Self::Doing(means) => Some(means.effects.perform(action, permission).await),
            Self::Recording(recorder) => recorder.perform(&action, permission),
        }
    }

    /// Keeps the past of an attempt before a further effect.
    pub(super) fn keep(self, kept: Kept) -> BoxFuture<'a, Result<(), InboxError>> {
        match self {
            Self::Doing(means) => means.inbox.keep(kept),
            Self::Recording(_) => std::future::ready(Ok(())).boxed(),
        }
    }

    /// Hears what the plugin said, or how it failed.
    pub(super) fn hear(self, stepped: &Result<Action, StepFault>, permission: &Permission<'_>) {
        if let Self::Recording(recorder) = self {
            recorder.hear(stepped, permission);
        }
    }
}
