//! Whose fault the failure of an attempt is.

use serde_json::Value;
use url::Url;

use super::Suspect;
use crate::inbox::delivery::Outcome;
use crate::inbox::{Claim, Written};
use crate::send::attempt::{Manner, handed, notifications};
use crate::send::dry::replay::{Class, class, kind};
use crate::send::dry::sampling::is_of;
use crate::send::dry::{Asked, End, Leg, steps};
use crate::wasm::{Answer, Fault, Plugin, Reach, Response};

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The version before fares no better, or nothing can be told.
    NotAtFault,
    /// The version before would have done something else, and the failure may come from that.
    Differs(String),
    /// It did not go on with an attempt as it began it.
    Otherwise,
    /// It traps, passes a limit or answers wrong, again when it is asked again, and the version before does not.
    Fails(String),
}

/// What a version does in an attempt, told certain answers.
struct Acts {
    asked: Vec<Asked>,
    end: End,
}

/// Judges an attempt by what its version does when it is asked again, and what the version before does.
pub(super) async fn finding(claim: &Claim, suspect: &Suspect, old: &Plugin) -> Found {
    if suspect.manner == Manner::Otherwise {
        return Found::Otherwise;
    }
    let (new, leg) = (suspect.plugin(), suspect.taken.leg());
    let Some(now) = acts(new, leg.clone()).await else { return Found::NotAtFault };
    if !now.is_worth_comparing(suspect, leg.script.len()) {
        return Found::NotAtFault;
    }
    let Some(before) = acts(old, as_told(old, claim, leg)).await else { return Found::NotAtFault };
    if matches!(before.end, End::Fault { .. }) {
        return Found::NotAtFault;
    }
    let reason = || suspect.reason.clone().unwrap_or_else(|| "it failed".to_owned());
    match (suspect.manner, &now.end) {
        (Manner::Failed { .. }, End::Fault { .. }) => Found::Fails(reason()),
        // Its steps are not the same each time, or depend on what no plugin may depend on.
        (Manner::Failed { .. }, _) => Found::Differs(reason()),
        (manner, _) => match difference(&now, &before, suspect.outcome) {
            Some(_) if manner == Manner::Beyond => Found::Fails(reason()),
            Some(difference) if is_fair(claim, leg, new, old) => {
                let (new, old) = (&new.manifest().version, &old.manifest().version);
                Found::Differs(format!("{} ({})", difference.shown(new, old), reason()))
            }
            _ => Found::NotAtFault,
        },
    }
}

async fn acts(plugin: &Plugin, leg: Leg) -> Option<Acts> {
    let (asked, end) = steps(plugin, leg).await?;
    Some(Acts { asked, end })
}

/// What the host would have handed to the version before, had it made the attempt.
fn as_told(old: &Plugin, claim: &Claim, leg: &Leg) -> Leg {
    let (mut leg, manifest) = (leg.clone(), old.manifest());
    let memory = claim.memory.as_ref().filter(|_| manifest.needs_memory).map(|memory| &memory.written);
    let told = &mut leg.delivery;
    told.memory = told.memory.take().filter(|_| handed(memory, manifest).is_some());
    told.resume = told.resume.take().filter(|_| handed(claim.resume.as_ref(), manifest).is_some());
    told.notifications = notifications(claim, manifest);
    leg
}

/// Whether the version before can be asked as if the attempt was its own: not where the new version goes on with what only
/// itself has to understand, or where it has something that the old one is not handed.
fn is_fair(claim: &Claim, leg: &Leg, new: &Plugin, old: &Plugin) -> bool {
    let (new, old) = (new.manifest(), old.manifest());
    let is_kept_from_old = |written: Option<&Written>| handed(written, new).is_some() && handed(written, old).is_none();
    let memory = claim.memory.as_ref().filter(|_| new.needs_memory && old.needs_memory);
    let is_kept_from_old =
        is_kept_from_old(memory.map(|memory| &memory.written)) || is_kept_from_old(claim.resume.as_ref());
    leg.resumed.is_none() && !is_kept_from_old
}

impl Acts {
    /// Whether the version did again what it did in the attempt, or did not do again what cannot be chance.
    fn is_worth_comparing(&self, suspect: &Suspect, answers: usize) -> bool {
        match (suspect.manner, &self.end) {
            (_, End::Fault { is_host: true, .. }) => false,
            (Manner::Said, End::Said(end)) => self.asked.len() == answers && is_of(end, Some(suspect.outcome)),
            // A machine that was busy, or is.
            (Manner::Failed { is_limit: true }, end) => matches!(end, End::Fault { .. }),
            (Manner::Failed { is_limit: false }, end) => !matches!(end, End::Fault { is_limit: true, .. }),
            // It wants to go on, or to wait.
            (Manner::Beyond, End::NeedsAnswer) => true,
            (Manner::Beyond, End::Said(end)) => is_of(end, None),
            _ => false,
        }
    }

    /// The actions, the end last, each with what it was told; none for a failure.
    fn actions(&self) -> Vec<(&str, Option<&Answer>)> {
        let effects = self.asked.iter().map(|asked| (asked.action.as_str(), asked.answer.as_ref()));
        let end = match &self.end {
            End::Said(end) => Some((end.as_str(), None)),
            End::NeedsAnswer | End::WrongAnswer | End::Fault { .. } => None,
        };
        effects.chain(end).collect()
    }
}

/// Where two versions first differ in something that the failure may come from.
struct Difference {
    /// From 1.
    step: usize,
    class: Class,
    now: String,
    before: Option<String>,
}

/// What is asked of a place in other words may come to the same: it does where the version goes on after the answer, and where
/// the answer is that of a place that fails whatever it is asked.
fn difference(now: &Acts, before: &Acts, outcome: Outcome) -> Option<Difference> {
    let fails_alike = matches!(&before.end, End::Said(end) if is_of(end, Some(outcome)));
    let (now, before) = (now.actions(), before.actions());
    for (index, &(action, answer)) in now.iter().enumerate() {
        let was = before.get(index).map(|(action, _)| *action);
        let class = match was {
            Some(was) if was == action => continue,
            Some(was) => class(was, action),
            None => Class::Steps,
        };
        let is_same_place = || was.and_then(origin).is_some_and(|was| origin(action) == Some(was));
        if class == Class::Target && answer.is_some_and(is_down) && is_same_place() {
            continue;
        }
        let differs = Difference { step: index + 1, class, now: word(action), before: was.map(word) };
        let is_answered_last = index + 2 == now.len();
        match (class, answer) {
            (Class::Content, None) => return None,
            (Class::Content, Some(answer)) => {
                let is_transient = is_down(answer) || outcome == Outcome::Retry && fails_alike;
                if is_answered_last && !is_transient {
                    return Some(differs);
                }
            }
            _ => return Some(differs),
        }
    }
    None
}

/// The origin that a request goes to.
fn origin(action: &str) -> Option<String> {
    let (kind, holds) = kind(action);
    let url = holds.get("url").filter(|_| kind == "http")?.as_str()?;
    Url::parse(url).ok().map(|url| url.origin().ascii_serialization())
}

/// Whether an answer comes from a place that is out of order, or from none, whatever it is asked.
fn is_down(answer: &Answer) -> bool {
    let is_fault = |fault: &Fault| match fault.reach {
        Reach::Unsent | Reach::Unanswered => true,
        Reach::Refused => fault.status.is_some_and(|status| (400..500).contains(&status)),
        Reach::Denied => false,
    };
    match answer {
        Answer::Http(Ok(Response { status, .. })) => matches!(status, 408 | 425 | 429 | 500..),
        Answer::Mail(Ok(mailed)) => {
            mailed.recipients.iter().all(|recipient| recipient.outcome.as_ref().map_or_else(is_fault, |()| true))
        }
        Answer::Http(Err(fault)) | Answer::Mail(Err(fault)) | Answer::Tool(Err(fault)) | Answer::Other(Err(fault)) => {
            is_fault(fault)
        }
        Answer::Tool(Ok(_)) | Answer::Other(Ok(_)) | Answer::Resumed(_) => false,
    }
}

/// What an action is called, without what it holds.
fn word(action: &str) -> String {
    let (kind, holds) = kind(action);
    match kind.as_str() {
        "done" => "says done".to_owned(),
        "failed" => {
            let kind = holds.get("kind").and_then(Value::as_str).unwrap_or("failed");
            format!("says {kind}")
        }
        "wait" => "waits".to_owned(),
        "http" => "asks for an HTTP request".to_owned(),
        "mail" => "asks for a mail".to_owned(),
        "tool" => "asks for a tool".to_owned(),
        _ => "asks for another effect".to_owned(),
    }
}

impl Difference {
    fn shown(&self, new: &str, old: &str) -> String {
        let Self { step, class, now, before } = self;
        match before.as_ref().filter(|before| *before != now) {
            Some(before) => format!("at step {step} version {new} {now}, where {old} {before}"),
            None if *class == Class::Content => format!("at step {step} version {new} {now} in other words than {old}"),
            None => format!("at step {step} version {new} {now} elsewhere than {old}"),
        }
    }
}
