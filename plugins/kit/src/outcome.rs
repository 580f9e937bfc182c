//! The ends of an attempt, in one line each.

use alloc::borrow::ToOwned;
use alloc::string::String;

use crate::text;
use crate::types::{Action, Failure, FailureKind, Fault, Reach, Receipt};

/// The longest reason, in characters: a sentence or two and the other side's own words, not the page they stood on.
pub const REASON_MAX: usize = 500;

/// The delivery was made; `reference` is the destination's own id for it.
pub fn done(reference: Option<String>) -> Action {
    Action::Done(receipt(reference))
}

/// A receipt that says no more than the destination's own id.
pub fn receipt(reference: Option<String>) -> Receipt {
    Receipt { reference, note: None, remember: None, extras: "{}".to_owned() }
}

/// The attempt failed. The reason is put on one line and cut to [`REASON_MAX`] characters.
pub fn failed(kind: FailureKind, reason: &str, after_seconds: Option<u32>) -> Action {
    Action::Failed(failure(kind, reason, after_seconds))
}

/// A failure that carries on with what there is; its reason is made short as that of [`failed`].
#[inline(never)]
pub fn failure(kind: FailureKind, reason: &str, after_seconds: Option<u32>) -> Failure {
    let reason = text::cut(&text::one_line(reason), REASON_MAX);
    Failure { kind, reason, after_seconds, resume: None, extras: "{}".to_owned() }
}

/// The fault in words: its message, else its code.
pub fn words(fault: &Fault) -> &str {
    if fault.message.is_empty() { &fault.code } else { &fault.message }
}

/// The attempt failed because its effect brought no complete answer: repeated unless that cannot help (`denied`), waits for
/// a person (an access token is refused) or might do it twice (`unanswered`).
#[inline(never)]
pub fn fault(fault: &Fault) -> Action {
    let kind = match fault.reach {
        // The authorization server refuses the credential: a person must mend it, and nothing is lost meanwhile.
        Reach::Denied if fault.code == "token-refused" => FailureKind::Reconnect,
        Reach::Denied => FailureKind::Reject,
        Reach::Unsent | Reach::Refused => FailureKind::Retry,
        Reach::Unanswered => FailureKind::Unknown,
    };
    failed(kind, words(fault), fault.after_seconds)
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;
    use alloc::string::String;

    use super::{REASON_MAX, failed, fault};
    use crate::types::{Action, Failure, FailureKind, Fault, Reach};

    fn failure(action: Action) -> Failure {
        match action {
            Action::Failed(failure) => failure,
            other => panic!("not a failure: {other:?}"),
        }
    }

    #[test]
    fn how_far_an_effect_got_decides_whether_it_is_repeated() {
        let cases = [
            (Reach::Denied, "not-granted", FailureKind::Reject),
            (Reach::Denied, "token-refused", FailureKind::Reconnect),
            (Reach::Unsent, "connect", FailureKind::Retry),
            (Reach::Refused, "code", FailureKind::Retry),
            (Reach::Unanswered, "timeout", FailureKind::Unknown),
        ];
        for (reach, code, kind) in cases {
            let answer = Fault {
                reach,
                code: code.to_owned(),
                message: "what happened".to_owned(),
                status: None,
                after_seconds: Some(7),
            };
            let failure = failure(fault(&answer));
            assert_eq!((failure.kind, &*failure.reason, failure.after_seconds), (kind, "what happened", Some(7)));
        }
    }

    #[test]
    fn a_fault_without_a_message_is_named_by_its_code() {
        let answer = Fault {
            reach: Reach::Unsent,
            code: "connect".to_owned(),
            message: String::new(),
            status: None,
            after_seconds: None,
        };
        assert_eq!(failure(fault(&answer)).reason, "connect");
    }

    #[test]
    fn a_reason_is_one_line_of_limited_length() {
        let reason = failure(failed(FailureKind::Retry, &"very long\n".repeat(100), None)).reason;
        assert_eq!(reason.chars().count(), REASON_MAX);
        assert!(reason.starts_with("very long very long") && reason.ends_with('…'));
    }
}
