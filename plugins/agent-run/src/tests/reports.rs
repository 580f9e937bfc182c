//! The answer as a notice in the inbox.

use alloc::borrow::ToOwned;
use alloc::vec;
use alloc::vec::Vec;

use serde_json::{Value, json};
use switchbell_kit::Guest;
use switchbell_kit::types::{Answer, Notification};

use super::{answered, by_chat, delivery, effect, notification, receipt, with};
use crate::AgentRun;

fn extras(report: bool, notifications: Vec<Notification>, answer: &str) -> Value {
    let settings = with(by_chat(), json!({ "report": report }));
    let said: Answer = answered(200, &json!({ "id": "x", "choices": [{ "message": { "content": answer } }] }));
    let receipt = receipt(AgentRun::step(delivery(&settings, notifications), vec![effect(said)]));
    serde_json::from_str(&receipt.extras).unwrap()
}

#[test]
fn nothing_is_reported_unless_the_settings_say_so() {
    assert_eq!(extras(false, vec![notification("title")], "answer"), json!({}));
    let expected = json!({ "report": { "title": "domain-news: title", "body": "answer\nof two lines" } });
    assert_eq!(extras(true, vec![notification("title")], " answer\nof two lines\n"), expected);
    assert_eq!(extras(true, vec![notification("x")], " \n")["report"]["body"], "The agent ended without a text.");
}

#[test]
fn a_report_has_the_lengths_of_a_notification() {
    let long = notification(&"ä".repeat(200));
    let report = &extras(true, vec![long, notification("b"), notification("c")], &"ö".repeat(3_000))["report"];
    let length = |name: &str| report[name].as_str().unwrap().chars().count();
    assert_eq!((length("title"), length("body")), (200, 2_000));
    assert!(report["title"].as_str().unwrap().ends_with("… (and 2 more)"), "{report}");
    let lines = Notification { title: "two\nlines".to_owned(), ..notification("") };
    assert_eq!(extras(true, vec![lines], "a")["report"]["title"], "domain-news: two lines");
}
