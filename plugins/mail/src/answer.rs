//! What became of the mail: for each recipient, and so for the delivery.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use switchbell_kit::types::{Action, Answer, Failure, FailureKind, Fault, Mailed, Reach, Receipt};
use switchbell_kit::{outcome, text};

use crate::progress::Progress;

/// Replies that mean that the relay does not know us (RFC 4954 section 6).
const NOT_SIGNED_IN: [u16; 3] = [530, 534, 535];

/// A recipient and words about it.
type About = (String, String);

/// Ends the attempt by what came of its mail to the recipients asked for.
pub(crate) fn outcome(progress: Progress, to: &[String], answer: &Answer) -> Action {
    match answer {
        Answer::Mail(Ok(mailed)) => Results::read(progress, to, mailed).end(),
        Answer::Mail(Err(fault)) => of_all(fault),
        _ => outcome::failed(FailureKind::Reject, "the host answered a mail with something else", None),
    }
}

/// What a fault means that is not about one recipient. What is kept of earlier attempts stays.
fn of_all(fault: &Fault) -> Action {
    let kind = match fault.reach {
        Reach::Denied => FailureKind::Reconnect,
        Reach::Unsent => FailureKind::Retry,
        Reach::Refused if is_not_signed_in(fault) => FailureKind::Reconnect,
        Reach::Refused if is_final(fault) => FailureKind::Reject,
        Reach::Refused => FailureKind::Retry,
        Reach::Unanswered => FailureKind::Unknown,
    };
    outcome::failed(kind, &words(fault), fault.after_seconds)
}

fn is_not_signed_in(fault: &Fault) -> bool {
    fault.status.is_some_and(|status| NOT_SIGNED_IN.contains(&status))
}

/// RFC 5321 section 4.2.1: 5yz is for good, 4yz may pass. A refusal without a code is taken as one that may pass.
fn is_final(fault: &Fault) -> bool {
    fault.status.is_some_and(|status| (500..600).contains(&status))
}

/// The relay's own words, with its code in front.
fn words(fault: &Fault) -> String {
    let words = text::one_line(outcome::words(fault));
    match fault.status.map(|status| format!("{status}")) {
        Some(status) if !words.contains(&status) => format!("{status} {words}"),
        _ => words,
    }
}

/// What came of the mail to each.
struct Results {
    /// With what is final added.
    progress: Progress,
    /// Whom the operator does not let us write to. Not kept: the next attempt finds out whether that still holds.
    denied: Vec<About>,
    /// Who is to be tried again.
    later: Vec<About>,
    /// Who may or may not have got it.
    uncertain: Vec<About>,
    /// What the relay said that would not let us in.
    not_signed_in: Option<String>,
}

impl Results {
    fn read(progress: Progress, to: &[String], mailed: &Mailed) -> Self {
        let (denied, later, uncertain) = (Vec::new(), Vec::new(), Vec::new());
        let mut results = Self { progress, denied, later, uncertain, not_signed_in: None };
        for to in to {
            match mailed.recipients.iter().find(|recipient| recipient.address == *to) {
                Some(recipient) => results.add(to, recipient.outcome.as_ref().err()),
                None => results.uncertain.push((to.clone(), "the host does not say what came of it".to_owned())),
            }
        }
        if !results.progress.accepted.is_empty() && !mailed.message_id.is_empty() {
            results.progress.message_id = Some(mailed.message_id.clone());
        }
        results
    }

    fn add(&mut self, to: &str, fault: Option<&Fault>) {
        let Some(fault) = fault else { return self.progress.accepted.push(to.to_owned()) };
        let about = (to.to_owned(), words(fault));
        match fault.reach {
            Reach::Denied => self.denied.push(about),
            Reach::Refused if is_not_signed_in(fault) => {
                self.not_signed_in.get_or_insert_with(|| about.1.clone());
                self.later.push(about);
            }
            Reach::Refused if is_final(fault) => self.progress.refuse(to, &about.1),
            Reach::Unsent | Reach::Refused => self.later.push(about),
            Reach::Unanswered => self.uncertain.push(about),
        }
    }

    /// What is most in need of somebody's attention decides.
    #[inline(never)]
    fn end(self) -> Action {
        if !self.uncertain.is_empty() {
            let reason = format!("it is not known who got the mail: {}", list(&self.uncertain));
            return self.carry_on(FailureKind::Unknown, &reason);
        }
        if let Some(words) = &self.not_signed_in {
            let reason = format!("the relay does not take our sign-in: {words}");
            return self.carry_on(FailureKind::Reconnect, &reason);
        }
        if !self.later.is_empty() {
            let reason = format!("{} of the recipients still to be tried: {}", self.later.len(), list(&self.later));
            return self.carry_on(FailureKind::Retry, &reason);
        }
        end(self.progress, &self.denied)
    }

    /// Fails so that the next attempt leaves out who needs no mail. It names no time to wait: that would hold up the mails
    /// to everybody else.
    fn carry_on(&self, kind: FailureKind, reason: &str) -> Action {
        Action::Failed(Failure { resume: Some(self.progress.write()), ..outcome::failure(kind, reason, None) })
    }
}

/// The end, when nobody is left to be tried.
///
/// If anybody got the mail, it was delivered, and a note says who did not: called a failure, it would invite a person to
/// send it again to those who have it. If nobody did, the relay's words are the reason.
pub(crate) fn end(progress: Progress, denied: &[About]) -> Action {
    let without: Vec<About> = progress.refused.iter().chain(denied).cloned().collect();
    let all = progress.accepted.len() + without.len();
    if !progress.accepted.is_empty() {
        let note = format!("{} of {all} recipients did not get it: {}", without.len(), list(&without));
        let note = (!without.is_empty()).then(|| text::cut(&text::one_line(&note), outcome::REASON_MAX));
        return Action::Done(Receipt { note, ..outcome::receipt(progress.message_id) });
    }
    let kind = if progress.refused.is_empty() { FailureKind::Reconnect } else { FailureKind::Reject };
    outcome::failed(kind, &format!("nobody got it: {}", list(&without)), None)
}

#[inline(never)]
fn list(about: &[About]) -> String {
    let each: Vec<String> = about.iter().map(|(to, words)| format!("{to}: {words}")).collect();
    each.join("; ")
}
