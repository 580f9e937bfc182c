//! What became of a mail, as data: `ok`, `later`, `never`, `denied`, `unsent`, `lost` and `auth` for each recipient.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use serde_json::{Value, json};
use switchbell_kit::Guest;
use switchbell_kit::types::FailureKind::{Reconnect, Reject, Retry, Unknown};
use switchbell_kit::types::{Action, Answer, Delivery, FailureKind, Fault, Reach, Receipt};

use super::{delivery, effect, failure, fault, mailed, notification, to_ops};
use crate::Mail;

fn outcome(word: &str) -> Result<(), Fault> {
    match word {
        "ok" => Ok(()),
        "later" => Err(fault(Reach::Refused, Some(450), "4.2.0 greylisted")),
        "never" => Err(fault(Reach::Refused, Some(550), "5.1.1 no such user")),
        "denied" => Err(fault(Reach::Denied, None, "add it to mail.recipients")),
        "unsent" => Err(fault(Reach::Unsent, None, "connection refused")),
        "refused" => Err(fault(Reach::Refused, None, "no")),
        "lost" => Err(fault(Reach::Unanswered, None, "no answer after the text")),
        "auth" => Err(fault(Reach::Refused, Some(535), "5.7.8 bad credentials")),
        other => panic!("{other}"),
    }
}

/// The delivery to one address for each letter.
fn to(letters: &str, resume: Option<&str>) -> Delivery {
    let addresses: Vec<String> = letters.chars().map(|letter| format!("{letter}@example.com")).collect();
    let settings = json!({ "to": addresses });
    Delivery { resume: resume.map(str::to_owned), ..delivery(&settings, vec![notification("title")]) }
}

/// Whom the first step of an attempt writes to, by letters.
fn written_to(letters: &str, resume: Option<&str>) -> String {
    match Mail::step(to(letters, resume), vec![]) {
        Action::Mail(message) => message.to.iter().filter_map(|address| address.chars().next()).collect(),
        other => panic!("not a mail: {other:?}"),
    }
}

/// What an attempt ends with when it goes so for those it wrote to: `a=ok b=later`.
fn ended(letters: &str, resume: Option<&str>, results: &str) -> Action {
    let parts: Vec<(String, Result<(), Fault>)> = results
        .split_whitespace()
        .map(|result| result.split_once('=').unwrap())
        .map(|(letter, word)| (format!("{letter}@example.com"), outcome(word)))
        .collect();
    let parts: Vec<_> = parts.iter().map(|(address, outcome)| (address.as_str(), outcome.clone())).collect();
    Mail::step(to(letters, resume), vec![effect(mailed(&parts))])
}

fn done(action: Action) -> Receipt {
    match action {
        Action::Done(receipt) => receipt,
        other => panic!("not done: {other:?}"),
    }
}

#[test]
fn the_next_attempt_writes_only_to_those_who_are_left() {
    let cases = [
        ("a=ok b=later", Retry, "b", "b@example.com: 450 4.2.0 greylisted"),
        ("a=ok b=later c=never", Retry, "b", "1 of the recipients still to be tried"),
        ("a=later b=later", Retry, "ab", "2 of the recipients"),
        ("a=unsent b=ok", Retry, "a", "connection refused"),
        ("a=refused b=ok", Retry, "a", "a@example.com: no"),
        ("a=ok b=lost", Unknown, "b", "it is not known who got the mail: b@example.com"),
        ("a=ok b=lost c=later d=never", Unknown, "bc", "b@example.com: no answer"),
        ("a=denied b=later c=ok", Retry, "ab", "b@example.com"),
        ("a=ok b=auth c=never", Reconnect, "b", "does not take our sign-in: 535 5.7.8 bad credentials"),
        ("a=auth b=lost", Unknown, "ab", "b@example.com"),
    ];
    for (results, kind, left, reason) in cases {
        let letters: String = results.split_whitespace().filter_map(|result| result.chars().next()).collect();
        let failure = failure(ended(&letters, None, results));
        assert_eq!(failure.kind, kind, "{results}: {}", failure.reason);
        assert!(failure.reason.contains(reason), "{results}: {}", failure.reason);
        assert_eq!(failure.after_seconds, None, "{results}: others need not wait");
        assert_eq!(written_to(&letters, failure.resume.as_deref()), left, "{results}");
    }
}

#[test]
fn one_good_one_later_and_one_never_end_with_two_who_got_it_once() {
    let first = failure(ended("abc", None, "a=ok b=later c=never"));
    let second = failure(ended("abc", first.resume.as_deref(), "b=later"));
    assert_eq!(written_to("abc", second.resume.as_deref()), "b");
    let receipt = done(ended("abc", second.resume.as_deref(), "b=ok"));
    assert_eq!(receipt.reference.as_deref(), Some("<1@bell.example.com>"));
    let note = "1 of 3 recipients did not get it: c@example.com: 550 5.1.1 no such user";
    assert_eq!(receipt.note.as_deref(), Some(note));
}

#[test]
fn when_nobody_is_left_the_delivery_ends() {
    let partly = done(ended("ab", None, "a=never b=ok"));
    let expected = "1 of 2 recipients did not get it: a@example.com: 550 5.1.1 no such user";
    assert_eq!(partly.note.as_deref(), Some(expected));
    let not_allowed = done(ended("ab", None, "a=denied b=ok"));
    assert!(not_allowed.note.unwrap().contains("a@example.com: add it to mail.recipients"));
    let cases = [
        ("a=never", Reject, "nobody got it: a@example.com: 550 5.1.1 no such user"),
        ("a=never b=never", Reject, "b@example.com: 550"),
        ("a=never b=denied", Reject, "b@example.com: add it to mail.recipients"),
        ("a=denied", Reconnect, "add it to mail.recipients"),
        ("a=denied b=denied", Reconnect, "b@example.com: add it to mail.recipients"),
    ];
    for (results, kind, reason) in cases {
        let letters: String = results.split_whitespace().filter_map(|result| result.chars().next()).collect();
        let failure = failure(ended(&letters, None, results));
        assert_eq!((failure.kind, failure.reason.contains(reason)), (kind, true), "{results}: {}", failure.reason);
    }
}

#[test]
fn recipients_that_the_settings_gained_or_lost_meanwhile_are_taken_as_they_are() {
    let first = failure(ended("abc", None, "a=ok b=later c=never"));
    let resume = first.resume.as_deref();
    assert_eq!(written_to("abcd", resume), "bd");
    let receipt = done(Mail::step(to("ac", resume), vec![]));
    assert_eq!(receipt.reference.as_deref(), Some("<1@bell.example.com>"));
    assert!(receipt.note.unwrap().contains("c@example.com"));
}

#[test]
fn a_recipient_of_whom_nothing_is_said_is_not_forgotten() {
    let failure = failure(ended("ab", None, "a=ok"));
    assert_eq!(failure.kind, Unknown);
    assert_eq!(written_to("ab", failure.resume.as_deref()), "b");
}

#[test]
fn what_is_not_about_one_recipient_keeps_what_was_reached() {
    let cases: [(Reach, Option<u16>, &str, FailureKind, &str); 12] = [
        (Reach::Denied, None, "not-granted", Reconnect, "grant mail"),
        (Reach::Unsent, None, "connect", Retry, "grant mail"),
        (Reach::Refused, Some(421), "smtp", Retry, "421 grant mail"),
        (Reach::Refused, Some(454), "smtp", Retry, "454"),
        (Reach::Refused, None, "smtp", Retry, "grant mail"),
        (Reach::Refused, Some(554), "smtp", Reject, "554"),
        (Reach::Refused, Some(552), "smtp", Reject, "552"),
        (Reach::Refused, Some(530), "smtp", Reconnect, "530"),
        (Reach::Refused, Some(534), "smtp", Reconnect, "534"),
        (Reach::Refused, Some(535), "smtp", Reconnect, "535"),
        (Reach::Unanswered, None, "cut-off", Unknown, "grant mail"),
        (Reach::Unanswered, Some(250), "timeout", Unknown, "250"),
    ];
    for (reach, status, code, kind, reason) in cases {
        let fault = Fault { code: code.to_owned(), after_seconds: Some(9), ..fault(reach, status, "grant mail") };
        let answer = effect(Answer::Mail(Err(fault)));
        let failure = failure(Mail::step(delivery(&to_ops(), vec![notification("title")]), vec![answer]));
        assert_eq!(
            (failure.kind, failure.resume, failure.after_seconds),
            (kind, None, Some(9)),
            "{reach:?} {status:?}"
        );
        assert!(failure.reason.contains(reason), "{}", failure.reason);
    }
}

#[test]
fn a_relays_words_are_one_short_line() {
    let long = fault(Reach::Refused, Some(550), &format!("550-no\r\n550 \u{0}{}", "such user ".repeat(1_000)));
    let answer = effect(mailed(&[("ops@example.com", Err(long))]));
    let reason = failure(Mail::step(delivery(&to_ops(), vec![notification("title")]), vec![answer])).reason;
    assert!(reason.chars().count() <= 500 && !reason.contains(char::is_control), "{reason}");
    assert!(reason.starts_with("nobody got it: ops@example.com: 550-no 550 such user"), "{reason}");
}

#[test]
fn what_is_kept_stays_small_and_what_is_no_progress_counts_as_none() {
    let words = fault(Reach::Refused, Some(550), &"\"語\\".repeat(10_000));
    let addresses: Vec<String> =
        (0..20).map(|number| format!("{number:0>60}@{}example", "label.".repeat(30))).collect();
    let settings = json!({ "to": addresses });
    let mut results: Vec<_> = addresses.iter().map(|address| (address.as_str(), Err(words.clone()))).collect();
    results[0].1 = outcome("later");
    let answer = effect(mailed(&results));
    let failure = failure(Mail::step(delivery(&settings, vec![notification("title")]), vec![answer]));
    let resume = failure.resume.unwrap();
    assert!(resume.len() < 32 * 1024, "{}", resume.len());
    let kept: Value = serde_json::from_str(&resume).unwrap();
    assert_eq!(kept["refused"].as_array().unwrap().len(), 19);
    for resume in ["", "null", "[]", "7", r#"{"accepted":"a@example.com"}"#, r#"{"accepted":[7],"refused":[7,{}]}"#] {
        assert_eq!(written_to("a", Some(resume)), "a", "{resume}");
    }
}
