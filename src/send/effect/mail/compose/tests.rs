use std::collections::BTreeMap;

use jiff::Timestamp;
use lettre::message::Mailbox;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::config::Grant;
use crate::notification::Name;
use crate::send::effect::secret::{Occasion, seal};
use crate::send::keys::Keys;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn mail() -> AllowedMail {
    let (subject, text) = ("a subject".to_owned(), "first\nsecond\n".to_owned());
    AllowedMail { subject, text, thread: None, unsubscribe: None, recipients: Vec::new() }
}

fn letter(mail: &AllowedMail, delivery: &str, due_at: &str) -> Letter {
    let secrets = BTreeMap::new();
    let sealed = seal(&json!({}), &secrets, Occasion { keys: &Keys::new(&[7; 32]), delivery, attempt: 1 }).unwrap();
    let (plugin, workspace, route, grant) = (name("mail"), name("acme"), name("news"), Grant::default());
    let permission = Permission {
        plugin: &plugin,
        workspace: &workspace,
        route: &route,
        grant: &grant,
        seals: &sealed.seals,
        delivery,
        due_at: due_at.parse::<Timestamp>().unwrap(),
        on_behalf_of: "admin@example.com",
    };
    let from = Mailbox::new(Some("Switchbell".to_owned()), "bell@example.com".parse().unwrap());
    Letter::new(mail, &permission, &from)
}

fn written(mail: &AllowedMail) -> String {
    let letter = letter(mail, "0badcafe-1", "2026-09-01T18:42:10.5Z");
    String::from_utf8(letter.to(&"ops@example.com".parse().unwrap()).unwrap()).unwrap()
}

#[test]
fn a_mail_is_written_so() {
    let uri = "https://example.com/off".to_owned();
    let mail = AllowedMail { thread: Some("acme.example".to_owned()), unsubscribe: Some(uri), ..mail() };
    expect_test::expect![[r#"
        Date: Tue, 01 Sep 2026 18:42:10 +0000
        From: Switchbell <bell@example.com>
        Subject: a subject
        Message-ID: <MESSAGE@example.com>
        References: <thread.THREAD@example.com>
        In-Reply-To: <thread.THREAD@example.com>
        Auto-Submitted: auto-generated
        List-Id: <news.acme.example.com>
        List-Unsubscribe: <https://example.com/off>
        MIME-Version: 1.0
        Content-Type: text/plain; charset=utf-8
        To: ops@example.com
        Content-Transfer-Encoding: 7bit

        first
        second"#]]
    .assert_eq(
        &written(&mail)
            .replace("\r\n", "\n")
            .replace(&hash(["message", "acme", "mail", "0badcafe-1"]), "MESSAGE")
            .replace(&hash(["thread", "acme", "mail", "acme.example"]), "THREAD"),
    );
}

#[test]
fn a_mail_is_the_same_in_every_attempt_and_another_for_another_delivery() {
    let once = letter(&mail(), "0badcafe-1", "2026-09-01T18:42:10Z");
    let again = letter(&mail(), "0badcafe-1", "2026-09-01T18:42:10Z");
    let (one, other) = ("ops@example.com".parse().unwrap(), "more@example.com".parse().unwrap());
    assert_eq!(once.to(&one).unwrap(), again.to(&one).unwrap());
    assert_ne!(once.to(&one).unwrap(), once.to(&other).unwrap(), "each sees its own address only");
    assert_eq!(once.message_id(), again.message_id());
    assert_ne!(once.message_id(), letter(&mail(), "0badcafe-2", "2026-09-01T18:42:10Z").message_id());
}

#[test]
fn moments_that_no_mail_can_tell_are_the_nearest_that_it_can() {
    for (due_at, expected) in [
        ("1969-12-31T23:59:59Z", "Date: Thu, 01 Jan 1970 00:00:00 +0000"),
        ("9999-12-30T22:00:00Z", "Date: Thu, 30 Dec 9999 22:00:00 +0000"),
    ] {
        let bytes = letter(&mail(), "0badcafe-1", due_at).to(&"ops@example.com".parse().unwrap()).unwrap();
        assert!(bytes.starts_with(expected.as_bytes()), "{}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn only_short_lines_of_ascii_stand_as_they_are() {
    for (text, expected) in [
        ("plain\n", "7bit"),
        ("a\ttab", "7bit"),
        ("größer als nichts, und sonst alles in ASCII", "quoted-printable"),
        ("日本語の通知がここにあります", "base64"),
        ("\0 and \u{1b}[31m", "base64"),
    ] {
        let written = written(&AllowedMail { text: text.to_owned(), ..mail() });
        assert!(written.contains(&format!("Content-Transfer-Encoding: {expected}\r\n")), "{text:?}: {written}");
    }
    let long = written(&AllowedMail { text: "x".repeat(2000), ..mail() });
    assert!(!long.contains("7bit") && long.lines().all(|line| line.len() <= 78), "{long}");
}

/// The names of the headers, in order.
fn headers(written: &str) -> Vec<&str> {
    let head = written.split("\r\n\r\n").next().unwrap();
    let lines = head.split("\r\n").filter(|line| !line.starts_with(' '));
    lines.map(|line| line.split(": ").next().unwrap()).collect()
}

proptest! {
    #[test]
    fn no_field_adds_a_header_or_breaks_a_line(
        subject in "\\PC{0,200}|[ -~]{0,200}",
        text in ".{0,300}|[\\x00-\\x7f]{0,300}|(.\n){0,99}|[a ]{0,1200}",
        thread in proptest::option::of(".{0,50}|[\\x00-\\x7f]{0,50}"),
    ) {
        let text = text.replace('\r', "\n");
        let plain = written(&AllowedMail { thread: thread.as_ref().map(|_| "t".to_owned()), ..mail() });
        let mail = AllowedMail { subject, text, thread, ..mail() };
        // As it is transmitted.
        let written = format!("{}\r\n", written(&mail));
        prop_assert_eq!(headers(&written), headers(&plain));
        prop_assert!(written.is_ascii());
        for line in written.split("\r\n") {
            prop_assert!(line.len() <= 998 && !line.contains(['\r', '\n', '\0']), "{:?}", line);
        }
    }
}
