//! What is carried on with: which run was begun, and how long it has been waited for.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};

use switchbell_kit::types::Delivery;

use crate::json::{Object, Value};
use crate::settings::{Agent, Poll};

/// The most questions in one attempt. Each takes two steps of the host's 64 for an attempt, and a start takes up to four;
/// the next attempt goes on.
const POLLS_MAX: u32 = 28;

/// Which revision of A2A the agent speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Revision {
    /// 1.0.
    One,
    /// 0.3.
    ZeroThree,
}

impl Revision {
    /// As its header has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::One => "1.0",
            Self::ZeroThree => "0.3",
        }
    }
}

/// How far the delivery is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    /// No run is under way.
    No,
    /// A run may be under way: whether one is can be looked up.
    Perhaps,
    /// A run is under way.
    Run(Run),
}

/// A run that goes on without us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The agent's own id for it.
    pub(crate) id: String,
    pub(crate) revision: Revision,
    /// How often it was asked for in this attempt.
    polls: u32,
    /// How long it was waited for, in seconds.
    waited: u32,
}

/// What `resume` holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) begun: Begun,
    /// How many runs of this delivery came to an end without success. A person may have had it retried.
    pub(crate) ended: u32,
}

/// Why a run of other settings cannot be asked for.
pub(crate) struct OtherAgent {
    pub(crate) run: String,
    pub(crate) protocol: String,
}

impl Run {
    pub(crate) fn new(id: String, revision: Revision) -> Self {
        Self { id, revision, polls: 0, waited: 0 }
    }

    /// Whether the attempt has asked often enough.
    pub(crate) fn is_asked_enough(&self) -> bool {
        self.polls >= POLLS_MAX
    }

    /// Whether it has been waited for as long as the settings say.
    pub(crate) fn is_given_up(&self, poll: Poll) -> bool {
        self.waited >= poll.give_up
    }

    /// The next pause in seconds, and the run as it is after it: half of the time since the start, so that what is short is
    /// known soon and what is long costs little.
    pub(crate) fn pause(&self, poll: Poll) -> (u32, Self) {
        let left = poll.give_up.saturating_sub(self.waited).max(1);
        let pause = (self.waited / 2).max(poll.first).min(poll.most).min(left);
        let run = Self { polls: self.polls + 1, waited: self.waited.saturating_add(pause), ..self.clone() };
        (pause, run)
    }

    /// As if it had begun now.
    pub(crate) fn anew(self) -> Self {
        Self::new(self.id, self.revision)
    }
}

impl Progress {
    /// Reads what an earlier step or attempt left.
    ///
    /// # Errors
    /// When a run was begun with another protocol than the settings now have.
    pub(crate) fn read(resume: Option<&str>, agent: &Agent, delivery: &Delivery) -> Result<Self, OtherAgent> {
        let kept = Value::new(resume.unwrap_or_default());
        let ended = kept.get("ended").and_then(Value::whole).unwrap_or(0);
        let number = |name: &str| kept.get(name).and_then(Value::whole).unwrap_or(0_u32);
        let begun = match kept.text_at(&["run"]) {
            None if kept.get("perhaps").is_some_and(Value::is_true) => Begun::Perhaps,
            None => Begun::No,
            Some(run) => {
                let protocol = kept.text_at(&["protocol"]).unwrap_or_default();
                if protocol != agent.protocol.name() {
                    return Err(OtherAgent { run, protocol });
                }
                let is_old = kept.text_at(&["revision"]).is_some_and(|name| name == Revision::ZeroThree.name());
                let revision = if is_old { Revision::ZeroThree } else { Revision::One };
                let polls = if number("attempt") == delivery.attempt { number("polls") } else { 0 };
                Begun::Run(Run { id: run, revision, polls, waited: number("waited") })
            }
        };
        Ok(Self { begun, ended })
    }

    /// What a later step or attempt reads; `null` when there is nothing to carry on with.
    pub(crate) fn write(&self, agent: &Agent, delivery: &Delivery) -> String {
        let object = match &self.begun {
            Begun::No if self.ended == 0 => return "null".to_owned(),
            Begun::No => Object::new(),
            Begun::Perhaps => Object::new().raw("perhaps", "true"),
            Begun::Run(run) => Object::new()
                .text("protocol", agent.protocol.name())
                .text("revision", run.revision.name())
                .text("run", &run.id)
                .raw("attempt", &delivery.attempt.to_string())
                .raw("polls", &run.polls.to_string())
                .raw("waited", &run.waited.to_string()),
        };
        object.raw("ended", &self.ended.to_string()).end()
    }

    /// The key by which the agent can tell a repeated request: the delivery's id, and after a run that ended without
    /// success another, since that run is what the old one stands for.
    pub(crate) fn key(&self, delivery: &Delivery) -> String {
        if self.ended == 0 { delivery.id.clone() } else { format!("{}.{}", delivery.id, self.ended + 1) }
    }
}
