//! Performs what a plugin asks for, behind the guard.

pub mod guard;
mod http;
mod key;
mod mask;
pub mod secret;
mod shown;
mod token;

use std::fmt;

use jiff::Timestamp;

use crate::config::Grant;
use crate::notification::Name;
use crate::wasm::{Action, Answer, Fault, Reach};
use guard::{judge, tokens_wanted};
use secret::Seals;

pub use http::HttpClient;
pub use shown::shown;

/// What one attempt may do: decided once, when it begins.
#[derive(Debug)]
pub struct Permission<'a> {
    /// The plugin that asks.
    pub plugin: &'a Name,
    /// For whose workspace.
    pub workspace: &'a Name,
    /// What the operator granted the plugin.
    pub grant: &'a Grant,
    /// The secrets the target's settings name.
    pub seals: &'a Seals<'a>,
    /// The delivery's id, stable across attempts.
    pub delivery: &'a str,
    /// When the delivery came due, stable across attempts.
    pub due_at: Timestamp,
    /// The admin on whose behalf the route acts.
    pub on_behalf_of: &'a str,
}

/// Performs actions.
#[derive(Clone, Debug)]
pub struct Effects {
    http: HttpClient,
}

/// Why effects cannot be performed at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectsError(String);

impl fmt::Display for EffectsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the HTTP client cannot be set up: {}", self.0)
    }
}

impl std::error::Error for EffectsError {}

impl Effects {
    /// Sets up the clients.
    ///
    /// # Errors
    /// When the system's certificates or resolver cannot be used.
    pub fn new() -> Result<Self, EffectsError> {
        HttpClient::new().map(|http| Self { http })
    }

    /// Gives up what is kept for further effects and was not used for long. Never returns: it is worked on beside
    /// attempts.
    pub async fn tidy(&self) {
        self.http.tidy().await;
    }

    /// Whether an effect would be performed: the judgement that comes before it, without any part of it. Nothing is sent,
    /// no name is resolved, and no access token is fetched.
    ///
    /// # Errors
    /// The refusal that answers it.
    pub fn judge(&self, action: &Action, permission: &Permission<'_>) -> Result<(), Fault> {
        match action {
            Action::Http(request) => {
                let token = |(name, _): (&Name, _)| (name.clone(), "a-token-that-was-not-fetched".to_owned());
                let tokens = tokens_wanted(request, permission).into_iter().map(token).collect();
                judge(request.clone(), permission, &tokens).map(drop)
            }
            Action::Mail(_) => Err(not_done("mail")),
            Action::Tool(_) => Err(not_done("tool calls")),
            Action::Other(extension) => Err(not_done(&format!("actions of kind {:?}", extension.kind))),
            Action::Wait(_) | Action::Done(_) | Action::Failed(_) => Ok(()),
        }
    }

    /// Performs an effect and answers in kind. `done`, `failed` and `wait` are no effects and not for here.
    pub async fn perform(&self, action: Action, permission: &Permission<'_>) -> Answer {
        match action {
            Action::Http(request) => Answer::Http(self.http.perform(request, permission).await),
            Action::Mail(_) => Answer::Mail(Err(not_done("mail"))),
            Action::Tool(_) => Answer::Tool(Err(not_done("tool calls"))),
            Action::Other(extension) => Answer::Other(Err(not_done(&format!("actions of kind {:?}", extension.kind)))),
            Action::Wait(_) | Action::Done(_) | Action::Failed(_) => Answer::Resumed(None),
        }
    }
}

fn not_done(what: &str) -> Fault {
    denied("not-supported", format!("this version of the host does not do {what}: the plugin needs a newer one"))
}

/// A refusal: nothing was sent, and asking again will not help.
fn denied(code: &str, message: String) -> Fault {
    fault(Reach::Denied, code, message)
}

fn fault(reach: Reach, code: &str, message: String) -> Fault {
    Fault { reach, code: code.to_owned(), message, status: None, after_seconds: None }
}

/// How an action that is an effect is answered by a fault.
pub fn in_kind(action: &Action) -> fn(Fault) -> Answer {
    match action {
        Action::Http(_) => |fault| Answer::Http(Err(fault)),
        Action::Mail(_) => |fault| Answer::Mail(Err(fault)),
        Action::Tool(_) => |fault| Answer::Tool(Err(fault)),
        Action::Other(_) | Action::Wait(_) | Action::Done(_) | Action::Failed(_) => |fault| Answer::Other(Err(fault)),
    }
}

/// The answer to an effect during which the server was cut off.
pub fn cut_off(action: &Action) -> Answer {
    let message = "the server was cut off before the answer came: it may have happened".to_owned();
    in_kind(action)(fault(Reach::Unanswered, "cut-off", message))
}

/// Why an effect ends when this server may not hold its delivery any longer.
pub fn late(begun: bool) -> Fault {
    let message = "the time ran out for which this server held the delivery".to_owned();
    fault(if begun { Reach::Unanswered } else { Reach::Unsent }, "held-too-long", message)
}

/// Whether a destination answered at all, or may have been reached.
pub fn was_reached(answer: &Answer) -> bool {
    let reached = |fault: &Fault| matches!(fault.reach, Reach::Refused | Reach::Unanswered);
    match answer {
        Answer::Http(Ok(_)) | Answer::Tool(Ok(_)) | Answer::Other(Ok(_)) => true,
        Answer::Mail(Ok(mailed)) => {
            mailed.recipients.iter().any(|recipient| recipient.outcome.as_ref().map_or_else(reached, |()| true))
        }
        Answer::Http(Err(fault)) | Answer::Mail(Err(fault)) | Answer::Tool(Err(fault)) | Answer::Other(Err(fault)) => {
            reached(fault)
        }
        Answer::Resumed(_) => false,
    }
}

/// Whether a destination accepted the effect, or may have: repeating it could do it twice.
pub fn may_have_happened(answer: &Answer) -> bool {
    let unanswered = |fault: &Fault| fault.reach == Reach::Unanswered;
    match answer {
        Answer::Http(Ok(response)) => (200..300).contains(&response.status),
        Answer::Mail(Ok(mailed)) => {
            mailed.recipients.iter().any(|recipient| recipient.outcome.as_ref().map_or_else(unanswered, |()| true))
        }
        Answer::Tool(Ok(_)) | Answer::Other(Ok(_)) => true,
        Answer::Http(Err(fault)) | Answer::Mail(Err(fault)) | Answer::Tool(Err(fault)) | Answer::Other(Err(fault)) => {
            unanswered(fault)
        }
        Answer::Resumed(_) => false,
    }
}
