//! Subject lines and threads.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use serde_json::json;
use switchbell_kit::types::{Delivery, Level, Notification};

use super::{delivery, message, notification, to_ops};

fn subject(template: Option<&str>, notifications: Vec<Notification>) -> String {
    let mut settings = to_ops();
    if let Some(template) = template {
        settings["subject"] = json!(template);
    }
    message(delivery(&settings, notifications)).subject
}

fn about(subject: &str) -> Notification {
    Notification { subject: Some(subject.to_owned()), ..notification("title") }
}

#[test]
fn a_template_is_filled() {
    let one = || Notification { level: Level::Urgent, ..about("example.com") };
    let cases = [
        (None, "Urgent: title"),
        (Some("[bell] {title}"), "[bell] title"),
        (Some("{source} {name} {subject} {count}"), "registrar domain.active example.com 1"),
        (Some("{{title}} {title}{level}"), "{title} titleUrgent"),
        (Some("}}{{{title}"), "}{title"),
        (Some("plain"), "plain"),
    ];
    for (template, expected) in cases {
        assert_eq!(subject(template, vec![one()]), expected);
    }
    assert_eq!(subject(Some("about {subject}!"), vec![notification("title")]), "about !");
}

#[test]
fn a_digest_is_named_by_what_its_notifications_have_in_common() {
    let other = Notification { source: "crm".to_owned(), name: "lead.new".to_owned(), ..about("b") };
    let template = Some("{level} {title} | {source} | {name} | {subject} | {count}");
    let cases = [
        (
            vec![about("a"), Notification { level: Level::Urgent, ..about("a") }],
            "Urgent 2 notifications about a | registrar | domain.active | a | 2",
        ),
        (
            vec![about("a"), other],
            "Attention 2 notifications | several sources | several events | several subjects | 2",
        ),
        (vec![notification("x"), notification("y")], "Attention 2 notifications | registrar | domain.active | | 2"),
    ];
    for (notifications, expected) in cases {
        assert_eq!(subject(template, notifications), expected);
    }
    let more = Delivery { omitted: 37, ..delivery(&to_ops(), vec![about("a")]) };
    assert_eq!(message(more).subject, "Attention: 38 notifications about a");
}

#[test]
fn no_header_can_be_added_and_nothing_hides() {
    let hostile = "x\r\nBcc: everybody@example.com\r\n\r\nbody\u{0}\u{1b}[2J\u{85}\u{2028}y\u{202e}z\u{200b}";
    let shown = Notification {
        source: hostile.to_owned(),
        name: hostile.to_owned(),
        subject: Some(hostile.to_owned()),
        ..notification(hostile)
    };
    for template in [None, Some("{source} {name} {subject} {title}")] {
        let subject = subject(template, vec![shown.clone()]);
        assert!(!subject.contains(|letter: char| letter.is_control()), "{subject:?}");
        assert!(!subject.contains(['\u{2028}', '\u{202e}', '\u{200b}']), "{subject:?}");
        assert!(subject.contains("x Bcc: everybody@example.com body [2J yz"), "{subject:?}");
    }
}

#[test]
fn what_is_filled_in_is_not_a_template() {
    assert_eq!(subject(Some("{title}"), vec![notification("{source} {{ }} {")]), "{source} {{ }} {");
}

#[test]
fn a_subject_line_is_short() {
    for title in ["a".repeat(10_000), "ü ".repeat(10_000), "🔔".repeat(10_000)] {
        let subject = subject(Some("{title}{title}"), vec![notification(&title)]);
        assert!(subject.chars().count() == 200 && subject.ends_with('…'), "{subject}");
    }
}

#[test]
fn mails_of_one_route_and_subject_are_a_thread() {
    let thread = |route: &str, subjects: &[&str]| {
        let notifications = subjects.iter().map(|subject| about(subject)).collect();
        message(Delivery { route: route.to_owned(), ..delivery(&to_ops(), notifications) }).thread
    };
    let one = thread("news", &["example.com"]).unwrap();
    assert_eq!(Some(&one), thread("news", &["example.com", "example.com"]).as_ref());
    assert_ne!(Some(&one), thread("news", &["example.org"]).as_ref());
    assert_ne!(Some(&one), thread("other", &["example.com"]).as_ref());
    assert_ne!(thread("a", &["b\",\"c"]), thread("a\",\"b", &["c"]));
    assert_eq!(thread("news", &["a", "b"]), None);
    assert_eq!(message(delivery(&to_ops(), vec![notification("of no subject")])).thread, None);
    let again =
        Delivery { attempt: 7, now: "2026-03-02T00:00:00Z".to_owned(), ..delivery(&to_ops(), vec![about("a")]) };
    assert_eq!(message(again).thread, message(delivery(&to_ops(), vec![about("a")])).thread);
    assert!(!format!("{one:?}").contains("\\n"));
}
