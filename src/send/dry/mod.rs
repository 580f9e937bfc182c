//! Attempts that do nothing: the code is that of every attempt, behind a door that writes down what would be done and
//! answers from a list.
//!
//! [`preview`] shows what an attempt would do, [`sampling`] keeps some attempts as recordings, [`replay`] makes a recorded
//! one again, on any version of its plugin, and [`versions`] compares two versions by it.

pub mod preview;
pub mod replay;
pub(super) mod sampling;
pub mod versions;

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::attempt::{Came, Door, Run, Stop};
use super::effect::secret::Seals;
use super::effect::{Effects, Permission, in_kind, shown};
use super::record::action_to_json;
use crate::clock::Clock;
use crate::config::{Grant, Limits};
use crate::inbox::book::QueueKey;
use crate::inbox::delivery::Cause;
use crate::inbox::{Begun, Claim, Fence, Progress, Written};
use crate::notification::Name;
use crate::wasm::{
    Action, Answer, Delivery, Fault, Mailed, Manifest, Plugin, Recipient, Response, StepFault, ToolAnswer,
};

/// An answer to an effect that is not performed.
#[derive(Clone, Debug)]
pub(super) struct Scripted {
    /// When it comes; at once where that is not said.
    pub(super) at: Option<Timestamp>,
    /// The effect that it answers, as JSON; whatever effect comes, where that is not said.
    pub(super) expected: Option<String>,
    /// The answer.
    pub(super) answer: Answer,
}

/// An effect that a plugin asked for and that was not performed.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// JSON: the action.
    pub action: String,
    /// Why the guard would refuse it, where it judges.
    pub refused: Option<Fault>,
    /// The recipients of a mail that the guard would leave out, and why, where it judges.
    pub left_out: Vec<(String, Fault)>,
    /// What the plugin was told that came of it.
    pub answer: Option<Answer>,
}

/// How the steps of an attempt that does nothing ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The plugin said so: JSON of `done`, `failed` or `wait`.
    Said(String),
    /// What comes next depends on the answer to the last effect, and there is none.
    NeedsAnswer,
    /// The answer that stands next in the list is for another kind of action.
    WrongAnswer,
    /// The plugin failed.
    Fault {
        /// How.
        reason: String,
        /// Whether it passed a limit, or the host could not run it.
        is_limit: bool,
        /// Whether the host could not run it.
        is_host: bool,
    },
}

/// The door that only writes down.
#[derive(Debug)]
pub(super) struct Recorder<'a> {
    clock: Clock,
    limits: Limits,
    /// Whose guard judges; none where the answers tell already what was refused.
    guard: Option<&'a Effects>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    script: VecDeque<Scripted>,
    /// What requests are answered once the script has ended, where all effects succeed.
    plain: Option<&'static str>,
    asked: Vec<Asked>,
    end: Option<End>,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(now: Timestamp, limits: Limits, guard: Option<&'a Effects>, script: Vec<Scripted>) -> Self {
        let state = State { script: script.into(), ..State::default() };
        Self { clock: Clock::manual(now), limits, guard, state: Mutex::new(state) }
    }

    /// A door behind which every effect that the guard lets out succeeds; requests are answered with this body.
    pub(super) fn succeeding(now: Timestamp, limits: Limits, guard: &'a Effects, body: &'static str) -> Self {
        let state = State { plain: Some(body), ..State::default() };
        Self { clock: Clock::manual(now), limits, guard: Some(guard), state: Mutex::new(state) }
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// Writes an effect down; its answer where there is one.
    pub(super) fn perform(&self, action: &Action, permission: &Permission<'_>) -> Option<Answer> {
        let (left_out, refused) = match self.guard.map(|guard| guard.judge(action, permission)) {
            Some(Ok(left_out)) => (left_out, None),
            Some(Err(refused)) => (Vec::new(), Some(refused)),
            None => (Vec::new(), None),
        };
        let mut asked = Asked { action: self.json(action, permission), refused, left_out, answer: None };
        let mut state = self.state();
        asked.answer = match (&asked.refused, state.plain) {
            (Some(fault), _) => Some(in_kind(action)(fault.clone())),
            (None, Some(body)) => plain_success(action, body, &asked.left_out),
            (None, None) => state.next_answer(action, &asked.action, &self.clock),
        };
        let answer = asked.answer.clone();
        state.asked.push(asked);
        answer
    }

    /// Writes down how the plugin ends it.
    pub(super) fn hear(&self, stepped: &Result<Action, StepFault>, permission: &Permission<'_>) {
        let end = match stepped {
            Ok(action @ (Action::Wait(_) | Action::Done(_) | Action::Failed(_))) => {
                End::Said(self.json(action, permission))
            }
            Ok(_) => return,
            Err(fault) => End::Fault {
                reason: permission.seals.redact(&fault.to_string()),
                is_limit: matches!(fault, StepFault::Limit { .. } | StepFault::Host { .. }),
                is_host: matches!(fault, StepFault::Host { .. }),
            },
        };
        self.state().end = Some(end);
    }

    fn json(&self, action: &Action, permission: &Permission<'_>) -> String {
        if self.guard.is_some() { shown(action, permission.seals) } else { action_to_json(action) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was written down since this was asked last, and how the steps ended that came to this.
    fn take(&self, came: &Came) -> (Vec<Asked>, End) {
        let mut state = self.state();
        let end = match (state.end.take(), came) {
            (Some(end), _) => end,
            // A limit of the whole attempt is no step's fault.
            (None, Came::Ended(ended)) => {
                End::Fault { reason: ended.reason.clone().unwrap_or_default(), is_limit: true, is_host: false }
            }
            (None, _) => End::NeedsAnswer,
        };
        (std::mem::take(&mut state.asked), end)
    }
}

impl State {
    fn next_answer(&mut self, action: &Action, json: &str, clock: &Clock) -> Option<Answer> {
        let next = self.script.front()?;
        if next.expected.as_ref().is_some_and(|expected| expected != json) {
            return None;
        }
        if !answers(&next.answer, action) {
            self.end = Some(End::WrongAnswer);
            return None;
        }
        let next = self.script.pop_front()?;
        if let Some(at) = next.at {
            clock.set(at);
        }
        Some(next.answer)
    }
}

/// The plainest answer by which an effect has succeeded; none for what is no effect.
fn plain_success(action: &Action, body: &str, left_out: &[(String, Fault)]) -> Option<Answer> {
    Some(match action {
        Action::Http(_) => Answer::Http(Ok(Response {
            status: 200,
            headers: Vec::new(),
            body: body.as_bytes().to_vec(),
            truncated: false,
            extras: "{}".to_owned(),
        })),
        Action::Mail(mail) => {
            let outcome = |address: &String| {
                let fault = left_out.iter().find(|(left_out, _)| left_out == address).map(|(_, fault)| fault.clone());
                Recipient { address: address.clone(), outcome: fault.map_or(Ok(()), Err) }
            };
            let recipients = mail.to.iter().map(outcome).collect();
            Answer::Mail(Ok(Mailed { message_id: "<preview@switchbell>".to_owned(), recipients }))
        }
        Action::Tool(_) => {
            let content = r#"{"content":[]}"#.to_owned();
            Answer::Tool(Ok(ToolAnswer { is_error: false, content, truncated: false }))
        }
        Action::Other(_) => Answer::Other(Ok("{}".to_owned())),
        Action::Wait(_) | Action::Done(_) | Action::Failed(_) => return None,
    })
}

/// Whether an answer is of the kind that an action has.
fn answers(answer: &Answer, action: &Action) -> bool {
    matches!(
        (answer, action),
        (Answer::Http(_), Action::Http(_))
            | (Answer::Mail(_), Action::Mail(_))
            | (Answer::Tool(_), Action::Tool(_))
            | (Answer::Other(_), Action::Other(_))
    )
}

/// The steps of an attempt from its beginning, or the end of a wait, to its end or its next wait.
#[derive(Clone, Debug)]
pub(super) struct Leg {
    pub(super) delivery: Delivery,
    /// When the wait before it ended, and what the plugin was told then.
    pub(super) resumed: Option<(Timestamp, Option<String>)>,
    pub(super) script: Vec<Scripted>,
}

impl Leg {
    /// Takes out what a plugin does not see because it does not say that it needs it: another version may have.
    fn show_only_what_is_needed(&mut self, manifest: &Manifest) {
        if !manifest.needs_data {
            self.delivery.notifications.iter_mut().for_each(|notification| notification.data = None);
        }
        if !manifest.needs_memory {
            self.delivery.memory = None;
        }
    }
}

/// What a plugin asks for, told what the script says; none where the delivery is none that a host makes.
pub(super) async fn steps(plugin: &Plugin, mut leg: Leg) -> Option<(Vec<Asked>, End)> {
    leg.show_only_what_is_needed(plugin.manifest());
    let claim = claim(&leg, plugin.manifest().name.clone())?;
    let began: Timestamp = leg.delivery.now.parse().ok()?;
    let now = leg.resumed.as_ref().map_or(began, |(at, _)| *at);
    // The script is the limit: there is no step beyond it.
    let limits = Limits { steps_max: u32::MAX, attempt_time_max: Duration::MAX, ..Limits::default() };
    let recorder = Recorder::new(now, limits, None, leg.script);
    let permission = Permission {
        plugin: &claim.plugin,
        workspace: &claim.queue.workspace,
        route: &claim.queue.route,
        grant: &Grant::default(),
        seals: &Seals::none(),
        delivery: &leg.delivery.id,
        due_at: claim.due_at,
        on_behalf_of: &leg.delivery.on_behalf_of,
    };
    let run = Run::new(Door::Recording(&recorder), &claim, plugin, leg.delivery.clone(), began);
    let made = run.until_its_end(&permission, &Stop::default()).await;
    Some(recorder.take(&made.came))
}

/// A claim as it was when the leg began, as far as its steps concern.
fn claim(leg: &Leg, plugin: Name) -> Option<Claim> {
    let Leg { delivery, resumed, .. } = leg;
    let started_at = delivery.now.parse().ok()?;
    let due_at = delivery.due_at.parse().ok()?;
    let begun = |_: &_| Begun {
        started_at,
        progress: Progress::default(),
        past: Vec::new(),
        waited: true,
        cut_off: false,
        plugin_digest: None,
    };
    // What was handed over is handed over again, whoever wrote it.
    let written = |value: String| Written { value, plugin_version: None };
    let queue = QueueKey {
        workspace: delivery.workspace.parse().ok()?,
        route: delivery.route.parse().ok()?,
        target: "".into(),
    };
    Some(Claim {
        id: delivery.id.parse().ok()?,
        fence: Fence::default(),
        plugin,
        queue,
        attempt: NonZeroU32::new(delivery.attempt)?,
        since: started_at,
        due_at,
        cause: Cause::First,
        notifications: Vec::new(),
        omitted: delivery.omitted,
        resume: resumed.as_ref().and_then(|(_, resume)| resume.clone().map(written)),
        memory: None,
        begun: resumed.as_ref().map(begun),
    })
}
