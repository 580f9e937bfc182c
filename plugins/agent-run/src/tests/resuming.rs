//! A run is begun once: whatever happens after that, it is asked for.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use serde_json::{Value, json};
use switchbell_kit::Guest;
use switchbell_kit::types::FailureKind::{Retry, Unknown};
use switchbell_kit::types::{Action, Answer, Delivery, Failure};

use super::{after, answered, body, by_a2a, by_responses, effect, failure, header, request, usual, with};
use crate::AgentRun;

fn running() -> Answer {
    answered(200, &json!({ "id": "resp_1", "status": "in_progress", "output": [] }))
}

/// Follows a run that never ends through one attempt: the pauses, and how the attempt ends.
fn follow(settings: &Value, attempt: u32, resume: &mut Option<String>) -> (Vec<u32>, u32, Failure) {
    let (mut pauses, mut steps) = (Vec::new(), 0);
    let mut past: Vec<Answer> = vec![];
    loop {
        steps += 1;
        let delivery = Delivery { attempt, ..usual(settings, resume.as_deref()) };
        match AgentRun::step(delivery, past.iter().cloned().map(effect).collect()) {
            Action::Http(_) => past.push(running()),
            Action::Wait(pause) => {
                pauses.push(pause.seconds);
                *resume = pause.resume;
                past = vec![Answer::Resumed(resume.clone())];
            }
            Action::Failed(failure) => {
                if failure.resume.is_some() {
                    resume.clone_from(&failure.resume);
                }
                return (pauses, steps, failure);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn pauses_grow_to_the_most_and_attempts_stay_within_their_steps() {
    let mut resume = None;
    let (pauses, steps, failure) = follow(&by_responses(), 1, &mut resume);
    assert!(steps <= 60, "{steps} of the host's 64");
    assert!(pauses.is_sorted() && pauses[0] == 2 && pauses.ends_with(&[300, 300]), "{pauses:?}");
    assert_eq!((failure.kind, failure.resume), (Retry, None));
    assert!(failure.reason.contains("run resp_1 goes on"), "{}", failure.reason);
    let (later, steps, failure) = follow(&by_responses(), 2, &mut resume);
    assert!(steps <= 60 && later.iter().all(|pause| *pause == 300), "{later:?}");
    assert_eq!(failure.kind, Retry);
}

#[test]
fn a_run_that_never_ends_is_given_up_and_still_kept() {
    let settings = with(by_responses(), json!({ "poll": { "first": "1s", "most": "10s", "give_up": "25s" } }));
    let mut resume = None;
    let (pauses, _, failure) = follow(&settings, 1, &mut resume);
    assert_eq!(pauses.iter().sum::<u32>(), 25, "{pauses:?}");
    assert_eq!(failure.kind, Unknown);
    assert!(failure.reason.contains("run resp_1 still goes on"), "{}", failure.reason);
    // Whoever tries again asks for the same run, from the beginning of the pauses.
    let (again, _, _) = follow(&settings, 2, &mut resume);
    assert_eq!(again, pauses);
}

#[test]
fn a_later_attempt_asks_for_the_run_and_begins_none() {
    for (protocol, settings) in [("a2a", by_a2a()), ("openai", by_responses())] {
        let begun = json!({ "protocol": protocol, "run": "run-1", "attempt": 1, "polls": 3, "waited": 9, "ended": 0 });
        for cause in ["retry", "repeat", "manual"] {
            let delivery = Delivery { attempt: 2, cause: cause.into(), ..usual(&settings, Some(&format!("{begun}"))) };
            let asked = request(AgentRun::step(delivery, vec![]));
            assert!(asked.method == "GET" || body(&asked)["method"] == "GetTask", "{asked:?}");
        }
    }
}

#[test]
fn a_run_begun_over_another_protocol_is_told_and_not_begun_again() {
    let begun = r#"{"protocol":"a2a","run":"task-1","ended":0}"#;
    let failure = failure(after(&by_responses(), Some(begun), vec![]));
    assert_eq!((failure.kind, failure.resume.as_deref()), (Unknown, Some("null")));
    assert!(failure.reason.contains("run task-1 was begun over a2a"), "{}", failure.reason);
}

#[test]
fn after_a_run_that_ended_a_person_gets_another_one() {
    let ended = Some(r#"{"ended":1}"#);
    let responses = request(after(&by_responses(), ended, vec![]));
    assert_eq!(header(&responses, "idempotency-key"), Some("5f3a9c01-17.2"));
    assert_eq!(body(&request(after(&by_a2a(), ended, vec![])))["params"]["message"]["messageId"], "5f3a9c01-17.2");
}

#[test]
fn what_cannot_be_read_is_as_good_as_nothing() {
    for resume in ["null", "{}", "", "[]", "nonsense", r#"{"run":5}"#, r#"{"perhaps":true}"#] {
        let started = request(after(&by_responses(), Some(resume), vec![]));
        assert_eq!(started.method, "POST", "{resume}");
    }
}
