//! Performs what a plugin asks for, behind the guard.

pub mod guard;
mod http;
mod key;
pub mod mail;
mod mask;
pub mod secret;
mod shown;
mod token;
pub mod tool;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::{Config, Grant, Workspace};
use crate::notification::Name;
use crate::tools::Tools;
use crate::wasm::{Action, Answer, Fault, Reach};
use secret::Seals;
use token::Tokens;

pub use http::HttpClient;
pub use mail::MailClient;
use mail::OtherRelay;
pub use shown::shown;

/// What one attempt may do: decided once, when it begins.
#[derive(Debug)]
pub struct Permission<'a> {
    /// The plugin that asks.
    pub plugin: &'a Name,
    /// For whose workspace.
    pub workspace: &'a Name,
    /// The route that matched.
    pub route: &'a Name,
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
    tokens: Tokens,
    mail: MailClient,
    tools: Option<Arc<dyn Tools>>,
    /// Every connector, with its workspace.
    connectors: Arc<RwLock<BTreeSet<(Name, Name)>>>,
}

/// What effects follow in another configuration.
#[derive(Clone, Debug)]
pub struct Renewal {
    relay: OtherRelay,
    connectors: BTreeSet<(Name, Name)>,
    secrets: BTreeSet<Name>,
}

/// Why effects cannot be performed at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectsError(String);

impl fmt::Display for EffectsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "effects cannot be performed: {}", self.0)
    }
}

impl std::error::Error for EffectsError {}

impl Effects {
    /// Sets up the clients.
    ///
    /// # Errors
    /// When the system's certificates or resolver cannot be used.
    pub fn new(config: &Config, clock: &Clock) -> Result<Self, EffectsError> {
        let tokens = Tokens::new(clock.clone(), &config.store.with_file_name("credentials"));
        let connectors = Arc::new(RwLock::new(connectors_of(config)));
        Ok(Self { http: HttpClient::new()?, mail: MailClient::new(config)?, tokens, tools: None, connectors })
    }

    /// The same, with somebody who calls connectors' tools; without, a call is not supported.
    #[must_use]
    pub fn calling(self, tools: Arc<dyn Tools>) -> Self {
        Self { tools: Some(tools), ..self }
    }

    /// What they would follow in another configuration. Nothing is changed.
    ///
    /// # Errors
    /// When the relay of that configuration cannot be used.
    pub fn prepare(&self, config: &Config) -> Result<Renewal, EffectsError> {
        let secrets = config.secrets.keys().cloned().collect();
        Ok(Renewal { relay: self.mail.prepare(config)?, connectors: connectors_of(config), secrets })
    }

    /// Follows another configuration; returns the way back. Connections and tokens of what did not change stay, and effects
    /// under way go on as they began.
    pub fn renew(&self, renewal: Renewal) -> Renewal {
        let Renewal { relay, connectors, secrets } = renewal;
        self.tokens.keep(|name| secrets.contains(name));
        let relay = self.mail.go_over(relay);
        let mut known = self.connectors.write().unwrap_or_else(PoisonError::into_inner);
        Renewal { relay, connectors: std::mem::replace(&mut known, connectors), secrets }
    }

    /// Closes connections that have been idle for too long, until told to stop.
    pub async fn tend(self, stop: CancellationToken) {
        tokio::select! {
            () = self.http.tidy() => {}
            () = self.mail.tend(&stop) => {}
        }
    }

    /// Whether an effect would be performed: the judgement that comes before it, without any part of it. Nothing is sent,
    /// no name is resolved, and no access token is fetched. Returns the recipients of a mail that it would not go to, and why.
    ///
    /// # Errors
    /// The refusal that answers it.
    pub fn judge(&self, action: &Action, permission: &Permission<'_>) -> Result<Vec<(String, Fault)>, Fault> {
        match action {
            Action::Http(request) => http::judged(request, permission).map(|()| Vec::new()),
            Action::Mail(message) => self.mail.judge(message.clone(), permission),
            Action::Tool(call) => {
                let connectors = self.connectors.read().unwrap_or_else(PoisonError::into_inner);
                let has = |connector: &Name| connectors.contains(&(permission.workspace.clone(), connector.clone()));
                tool::judge(call, permission, has).map(|_| Vec::new())
            }
            Action::Other(extension) => Err(not_done(&format!("actions of kind {:?}", extension.kind))),
            Action::Wait(_) | Action::Done(_) | Action::Failed(_) => Ok(Vec::new()),
        }
    }

    /// Performs an effect and answers in kind. `done`, `failed` and `wait` are no effects and not for here.
    pub async fn perform(&self, action: Action, permission: &Permission<'_>) -> Answer {
        match action {
            Action::Http(request) => Answer::Http(self.http.perform(request, permission, &self.tokens).await),
            Action::Mail(message) => Answer::Mail(self.mail.perform(message, permission).await),
            Action::Tool(call) => Answer::Tool(match &self.tools {
                Some(tools) => tool::perform(&**tools, &call, permission).await,
                None => Err(not_done("tool calls")),
            }),
            Action::Other(extension) => Answer::Other(Err(not_done(&format!("actions of kind {:?}", extension.kind)))),
            Action::Wait(_) | Action::Done(_) | Action::Failed(_) => Answer::Resumed(None),
        }
    }
}

/// Every connector, with its workspace.
fn connectors_of(config: &Config) -> BTreeSet<(Name, Name)> {
    let named = |workspace: &Workspace| {
        let of = workspace.name.clone();
        workspace.connectors.keys().map(move |connector| (of.clone(), connector.clone())).collect::<Vec<_>>()
    };
    config.workspaces.values().flat_map(named).collect()
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
