//! The ends of an attempt.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use switchbell_kit::outcome;
use switchbell_kit::text;
use switchbell_kit::types::{Action, Delivery, FailureKind, Receipt};

use crate::json::Object;
use crate::settings::Agent;

/// The longest title of a report, in characters, as the inbox has them.
const TITLE_MAX: usize = 200;

/// The longest body of a report, in characters, as the inbox has them.
const BODY_MAX: usize = 2_000;

/// What an answer says of a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// It goes on, under this id.
    Running(String),
    /// It is over, and this came of it.
    Answered(Answered),
    /// It is over, without success: nothing more comes of it.
    Over(String),
    /// It goes on once a person has done something.
    Stuck {
        /// Its id.
        id: String,
        /// What the person must do it to.
        kind: FailureKind,
        /// What that is.
        reason: String,
    },
    /// The agent does not speak this revision of the protocol. Nothing began.
    OtherRevision(String),
    /// It is no answer to what was asked.
    Refused(crate::refusal::Refusal),
}

/// What came of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Answered {
    /// The agent's id for it.
    pub(crate) reference: Option<String>,
    /// What the agent said.
    pub(crate) text: String,
    /// Worth knowing for the admin.
    pub(crate) note: Option<&'static str>,
}

/// The delivery was made.
pub(crate) fn done(agent: &Agent, delivery: &Delivery, answered: Answered) -> Action {
    let Answered { reference, text, note } = answered;
    let note = note.map(|note| match &reference {
        Some(reference) => format!("{reference}: {note}"),
        None => note.to_owned(),
    });
    let extras = if agent.report { report(delivery, &text) } else { "{}".to_owned() };
    Action::Done(Receipt { reference, note, remember: None, extras })
}

/// The receipt's extras by which the host writes the answer to the inbox.
fn report(delivery: &Delivery, answer: &str) -> String {
    let first = delivery.notifications.first().map(|first| first.title.as_str()).unwrap_or_default();
    let more = delivery.notifications.len().saturating_sub(1);
    let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
    let route = &delivery.route;
    // What is cut is the connector's title, not how many more there are.
    let room = TITLE_MAX.saturating_sub(format!("{route}: {more}").chars().count());
    let title = format!("{route}: {}{more}", text::cut(&text::one_line(first), room));
    let answer = if answer.trim().is_empty() { "The agent ended without a text." } else { answer.trim() };
    let report = Object::new().text("title", &title).text("body", &text::cut(answer, BODY_MAX)).end();
    Object::new().raw("report", &report).end()
}

/// The attempt failed; `resume` replaces what there is to carry on with.
pub(crate) fn failed(kind: FailureKind, reason: &str, after_seconds: Option<u32>, resume: Option<String>) -> Action {
    match outcome::failed(kind, reason, after_seconds) {
        Action::Failed(mut failure) => {
            failure.resume = resume;
            Action::Failed(failure)
        }
        other => other,
    }
}
