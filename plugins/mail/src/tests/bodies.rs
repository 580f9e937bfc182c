//! The text of mails.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use switchbell_kit::types::{Delivery, Level, Notification};

use super::{delivery, lines, message, notification, to_ops};
use crate::body::TEXT_MAX;

fn text(notifications: Vec<Notification>, omitted: u32) -> String {
    let inbox_url = Some("https://bell.example.com/acme".to_owned());
    message(Delivery { omitted, inbox_url, ..delivery(&to_ops(), notifications) }).text
}

#[test]
fn a_notification_is_shown_with_everything_a_person_needs() {
    let shown = Notification {
        level: Level::Urgent,
        subject: Some("example.com".to_owned()),
        body: Some("It expires tomorrow.\n\n  - renew\n  - relax".to_owned()),
        link: Some("https://crm.example.com/d?id=1".to_owned()),
        ..notification("example.com expires")
    };
    let expected = "\
Urgent: example.com expires

  It expires tomorrow.

    - renew
    - relax

Subject: example.com
Link:    https://crm.example.com/d?id=1
Source:  registrar, domain.active
When:    2026-03-01 12:00:00 UTC

Inbox: https://bell.example.com/acme
Sent for the workspace acme by its route domain-news.
";
    assert_eq!(text(vec![shown], 0), expected);
}

#[test]
fn what_there_is_not_leaves_no_trace() {
    let expected = "\
Attention: title

Source:  registrar, domain.active
When:    2026-03-01 12:00:00 UTC

Sent for the workspace acme by its route domain-news.
";
    let bare = Notification { subject: Some(String::new()), body: Some(" \n ".to_owned()), ..notification("title") };
    assert_eq!(message(delivery(&to_ops(), vec![bare])).text, expected);
}

#[test]
fn a_digest_numbers_its_notifications_and_counts_the_rest() {
    let second = Notification {
        level: Level::Urgent,
        subject: Some("example.com".to_owned()),
        body: Some("first line\nsecond line".to_owned()),
        link: Some("https://crm.example.com/2".to_owned()),
        ..notification("second")
    };
    let expected = "\
39 notifications, 1 urgent

1. Attention: first
   Source:  registrar, domain.active
   When:    2026-03-01 12:00:00 UTC

2. Urgent: second
   Subject: example.com
   Link:    https://crm.example.com/2
   Source:  registrar, domain.active
   When:    2026-03-01 12:00:00 UTC

     first line
     second line

and 37 more: https://bell.example.com/acme

Inbox: https://bell.example.com/acme
Sent for the workspace acme by its route domain-news.
";
    assert_eq!(text(vec![notification("first"), second], 37), expected);
    let without = message(Delivery { omitted: 37, ..delivery(&to_ops(), vec![notification("first")]) }).text;
    assert!(without.contains("\nand 37 more\n"), "{without}");
}

#[test]
fn lines_are_folded_at_spaces_and_long_words_stay_whole() {
    let url = format!("https://crm.example.com/{}", "x".repeat(200));
    let body = format!("{} {url} {}", "word ".repeat(40), "größe ".repeat(40));
    let text = text(vec![Notification { body: Some(body), ..notification(&"title ".repeat(33)) }], 0);
    for line in lines(&text) {
        assert!(line.chars().count() <= 76 || line.trim() == url, "{line}");
        assert_eq!(line, line.trim_end());
    }
    assert!(text.contains(&format!("\n  {url}\n")), "{text}");
}

#[test]
fn no_line_of_a_connector_looks_like_ours_or_like_a_mails() {
    let hostile = "-- \nFrom nobody\n> quoted\nSubject: forged\n.\n\r\n-- \r\nOn Monday somebody wrote:\n\u{2028}-- \
                   \u{85}> \u{0}x\t\n-----Original Message-----\nSent for the workspace other by its route x.";
    let shown = Notification {
        source: hostile.to_owned(),
        name: hostile.to_owned(),
        timestamp: hostile.to_owned(),
        subject: Some(hostile.to_owned()),
        body: Some(hostile.to_owned()),
        link: Some(hostile.to_owned()),
        ..notification(hostile)
    };
    let ours =
        ["Attention: ", "Subject: ", "Link:    ", "Source:  ", "When:    ", "Inbox: ", "and 9 more", "1. ", "2. "];
    let last = "Sent for the workspace acme by its route domain-news.";
    for (notifications, omitted) in [(vec![shown.clone()], 0), (vec![shown.clone(), shown], 9)] {
        let text = text(notifications, omitted);
        assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n'), "{text:?}");
        let beginnings = lines(&text).into_iter().filter(|line| !line.is_empty() && !line.starts_with("  "));
        for line in beginnings {
            let is_ours =
                line == last || line.starts_with("11 notifications") || ours.iter().any(|our| line.starts_with(our));
            assert!(is_ours, "{line:?} in {text}");
        }
        assert_eq!(text.lines().filter(|line| line.starts_with("Sent for")).count(), 1);
    }
}

#[test]
fn a_text_is_never_larger_than_its_limit_and_shows_as_much_as_fits() {
    for letter in ["a", "ü", "語", "🔔", "a ", "\n", "a\n"] {
        let text_of = |length: usize| letter.chars().cycle().take(length).collect::<String>();
        let longest = Notification {
            source: text_of(63),
            name: text_of(200),
            subject: Some(text_of(200)),
            body: Some(text_of(2_000)),
            link: Some(format!("https://crm.example.com/{}", text_of(2_024))),
            ..notification(&text_of(200))
        };
        for count in [1, 2, 10, 50, 100] {
            let text = text(vec![longest.clone(); count], 0);
            assert!(text.len() <= TEXT_MAX, "{letter:?} × {count}: {}", text.len());
            let shown = lines(&text).iter().filter(|line| line.contains(". Attention:")).count();
            let more = format!("and {} more", count - shown);
            assert!(count == 1 || shown == count || text.contains(&more), "{letter:?} × {count}: {shown}");
        }
    }
}

#[test]
fn a_hundred_ordinary_notifications_are_all_shown_with_their_texts() {
    let ordinary = Notification {
        subject: Some("example.com".to_owned()),
        body: Some("A sentence or two of what happened, and what might be done about it.".repeat(5)),
        link: Some("https://crm.example.com/notifications/12345".to_owned()),
        ..notification("a title of ordinary length for a notification")
    };
    let text = text(vec![ordinary; 100], 0);
    assert!(text.contains("\n100. Attention: a title") && !text.contains(" more:"), "{text}");
    assert_eq!(text.matches("might be done about it.").count(), 500);
}

#[test]
fn texts_beyond_the_contract_are_cut_too() {
    let huge = "x ".repeat(1_000_000);
    let shown = Notification {
        source: huge.clone(),
        name: huge.clone(),
        timestamp: huge.clone(),
        subject: Some(huge.clone()),
        body: Some(huge.clone()),
        link: Some(huge.clone()),
        ..notification(&huge)
    };
    let mut large = delivery(&to_ops(), vec![shown.clone()]);
    large.workspace = huge.clone();
    large.route = huge.clone();
    large.inbox_url = Some(huge);
    assert!(message(large.clone()).text.len() <= TEXT_MAX);
    large.notifications.extend(vec![shown; 3]);
    assert!(message(large).text.len() <= TEXT_MAX);
}
