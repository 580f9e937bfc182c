//! The steps of an attempt.

use alloc::vec;

use serde_json::json;
use switchbell_kit::Guest;
use switchbell_kit::types::{Action, Answer, Delivery, FailureKind};

use super::{delivery, effect, failure, mailed, message, notification, to_ops};
use crate::Mail;

#[test]
fn the_first_step_sends_to_all_recipients() {
    let settings = json!({ "to": ["b@example.com", "a@example.com"] });
    let message = message(delivery(&settings, vec![notification("title")]));
    assert_eq!(message.to, ["b@example.com", "a@example.com"]);
    assert_eq!((message.subject.as_str(), message.extras.as_str()), ("Attention: title", "{}"));
}

#[test]
fn the_same_mail_is_sent_by_every_attempt() {
    let later = || Delivery {
        attempt: 9,
        now: alloc::borrow::ToOwned::to_owned("2026-03-09T12:00:06Z"),
        cause: alloc::borrow::ToOwned::to_owned("retry"),
        ..delivery(&to_ops(), vec![notification("one"), notification("two")])
    };
    let first = delivery(&to_ops(), vec![notification("one"), notification("two")]);
    assert_eq!(message(first), message(later()));
    assert_eq!(Mail::step(later(), vec![]), Mail::step(later(), vec![]));
}

#[test]
fn an_impossible_input_is_refused_with_a_reason() {
    let ok = || effect(mailed(&[("ops@example.com", Ok(()))]));
    let good = || delivery(&to_ops(), vec![notification("title")]);
    let cases = [
        (good(), vec![ok(), ok()], "several effects"),
        (good(), vec![effect(Answer::Resumed(None))], "something else"),
        (delivery(&to_ops(), vec![]), vec![], "no notification"),
        (delivery(&json!({}), vec![notification("title")]), vec![], "settings are not valid"),
        (delivery(&json!({}), vec![notification("title")]), vec![ok()], "settings are not valid"),
    ];
    for (delivery, past, reason) in cases {
        let failure = failure(Mail::step(delivery, past));
        assert_eq!(failure.kind, FailureKind::Reject);
        assert!(failure.reason.contains(reason), "{}", failure.reason);
    }
}

#[test]
fn a_mail_that_everybody_got_ends_the_attempt() {
    let done = Mail::step(
        delivery(&to_ops(), vec![notification("title")]),
        vec![effect(mailed(&[("ops@example.com", Ok(()))]))],
    );
    let Action::Done(receipt) = done else { panic!("{done:?}") };
    assert_eq!((receipt.reference.as_deref(), receipt.note), (Some("<1@bell.example.com>"), None));
    assert_eq!(receipt.remember, None);
}
