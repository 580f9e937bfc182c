//! Several notifications in one message.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use serde_json::Value;
use switchbell_kit::types::{Delivery, Level, Notification};

use super::{blocks, by_webhook, delivery, links, notification, sent, texts};

fn digest(notifications: Vec<Notification>, omitted: u32) -> Delivery {
    Delivery {
        omitted,
        inbox_url: Some("https://bell.example.com/acme".to_owned()),
        ..delivery(&by_webhook(), notifications)
    }
}

/// All lines of all sections.
fn lines(message: &Value) -> Vec<String> {
    let sections = blocks(message).iter().filter(|block| block["type"] == "section");
    sections.flat_map(|block| block["text"]["text"].as_str().unwrap().lines().map(str::to_owned)).collect()
}

#[test]
fn a_digest_has_a_line_for_each_notification_oldest_first() {
    let second = Notification {
        level: Level::Urgent,
        subject: Some("example.com".to_owned()),
        link: Some("https://crm.example.com/2".to_owned()),
        ..notification("second <!here>\nline")
    };
    let message = sent(digest(vec![notification("first"), second, notification("third")], 0));
    assert_eq!(
        lines(&message),
        [
            "🟠 Attention: first · registrar",
            "🔴 Urgent: second &lt;!here&gt; line (example.com) · registrar",
            "🟠 Attention: third · registrar",
        ]
    );
    assert_eq!(blocks(&message)[0]["text"]["text"], "3 notifications, 1 urgent");
    assert_eq!(links(&message), ["https://crm.example.com/2", "https://bell.example.com/acme"]);
    assert!(message["text"].as_str().unwrap().starts_with("3 notifications, 1 urgent\n🟠 Attention: first"));
    assert!(!texts(&message).iter().any(|text| text.contains("more")));
    assert!(texts(&message).contains(&"route domain-news".to_owned()));
}

#[test]
fn what_is_omitted_is_counted() {
    for (count, omitted, header, more) in [
        (1, 1, "2 notifications", "and 1 more"),
        (100, 250, "350 notifications", "and 250 more"),
        (1, u32::MAX, "4294967296 notifications", "and 4294967295 more"),
    ] {
        let message = sent(digest(vec![notification("title"); count], omitted));
        assert_eq!(blocks(&message)[0]["text"]["text"], header);
        assert!(texts(&message).contains(&more.to_owned()), "{message}");
        assert_eq!(lines(&message).len(), count);
    }
}

#[test]
fn a_hundred_of_the_longest_notifications_have_a_line_each_within_the_limits() {
    for letter in ["<", "&", "a", "語", "🔔"] {
        let longest = Notification {
            subject: Some(letter.repeat(200)),
            link: Some(format!("https://crm.example.com/{}", "x".repeat(2_024))),
            ..notification(&letter.repeat(200))
        };
        let message = sent(digest(vec![longest; 100], 0));
        assert_eq!(lines(&message).len(), 100, "{letter}");
        assert!(lines(&message).iter().all(|line| line.starts_with("🟠 Attention: ") && line.ends_with('…')));
    }
}

#[test]
fn short_links_are_shown_as_long_as_there_is_room() {
    let linked = |number: usize| Notification {
        link: Some(format!("https://crm.example.com/{number}")),
        ..notification("title")
    };
    let message = sent(digest((0..100).map(linked).collect(), 0));
    assert_eq!(lines(&message).len(), 100);
    assert_eq!(links(&message).len(), 21, "twenty links and the inbox's");
}

#[test]
fn every_count_of_notifications_stays_within_the_limits() {
    for count in [2, 3, 10, 20, 21, 50, 99, 100, 101, 500, 5_000] {
        for length in [1, 40, 90, 200] {
            let filled = Notification {
                link: Some(format!("https://crm.example.com/{}", "x".repeat(length))),
                ..notification(&"&".repeat(length))
            };
            let message = sent(digest(vec![filled; count], 0));
            let shown = lines(&message).len();
            assert!(shown == count || texts(&message).contains(&format!("and {} more", count - shown)));
            assert!(shown >= count.min(100), "{shown} of {count}");
        }
    }
}

#[test]
fn few_long_notifications_keep_long_lines_beside_many_short_ones() {
    let mut notifications = vec![notification("short"); 99];
    notifications.push(notification(&"long ".repeat(39)));
    let message = sent(digest(notifications, 0));
    assert!(lines(&message)[99].contains(&"long ".repeat(38)));
}
