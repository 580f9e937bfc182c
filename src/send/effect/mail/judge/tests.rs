use std::collections::BTreeMap;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::config::{Grant, MailTls, Mailbox, RecipientPattern, Secret, SecretPlace};
use crate::notification::Name;
use crate::send::effect::secret::{Occasion, seal};
use crate::send::keys::Keys;
use crate::wasm::Reach;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn relay() -> MailRelay {
    MailRelay {
        host: "smtp.example.com".to_owned(),
        port: 587,
        tls: MailTls::StartTls,
        sign_in: None,
        from: Mailbox { name: None, address: "bell@example.com".to_owned() },
        recipients: vec![RecipientPattern::Domain("example.com".to_owned())],
    }
}

fn mail() -> Message {
    Message {
        to: vec!["ops@example.com".to_owned()],
        subject: "a subject".to_owned(),
        text: "a text\n".to_owned(),
        thread: None,
        extras: "{}".to_owned(),
    }
}

fn granted() -> Grant {
    Grant { mail: true, workspaces: vec![name("acme")], ..Grant::default() }
}

/// Judges what `build` makes of the placeholder of a secret.
fn judged(workspace: &str, grant: &Grant, build: impl Fn(&str) -> Message) -> Result<AllowedMail, Fault> {
    let secret = Secret::new("https://hooks.example/very-secret".to_owned(), SecretPlace::Url);
    let secrets = BTreeMap::from([(name("hook"), secret)]);
    let occasion = Occasion { keys: &Keys::new(&[7; 32]), delivery: "0badcafe-1", attempt: 1 };
    let sealed = seal(&json!({"hook": {"secret": "hook"}}), &secrets, occasion).unwrap();
    let seen: Value = serde_json::from_str(&sealed.settings).unwrap();
    let (plugin, workspace, route) = (name("mail"), name(workspace), name("news"));
    let permission = Permission {
        plugin: &plugin,
        workspace: &workspace,
        route: &route,
        grant,
        seals: &sealed.seals,
        delivery: "0badcafe-1",
        due_at: Timestamp::UNIX_EPOCH,
        on_behalf_of: "admin@example.com",
    };
    judge(build(seen["hook"].as_str().unwrap()), &permission, &relay())
}

fn allowed(message: Message) -> Result<AllowedMail, Fault> {
    judged("acme", &granted(), |_| message.clone())
}

/// The code and the message of a refusal.
fn refused(judged: Result<AllowedMail, Fault>) -> (String, String) {
    let fault = judged.unwrap_err();
    assert_eq!(fault.reach, Reach::Denied);
    (fault.code, fault.message)
}

#[test]
fn what_is_not_granted_names_the_line_to_add() {
    for (workspace, grant, expected) in [
        ("acme", Grant::default(), "add `mail: true` in switchbell.yaml under plugins.grants.mail"),
        (
            "other",
            granted(),
            "not granted mail in workspace other: the operator may add other in switchbell.yaml to plugins.grants.mail.workspaces",
        ),
    ] {
        let (code, message) = refused(judged(workspace, &grant, |_| mail()));
        assert!(code == "not-granted" && message.contains(expected), "{code}: {message}");
    }
    let everywhere = Grant { mail: true, ..Grant::default() };
    assert!(judged("other", &everywhere, |_| mail()).is_ok());
    let fault = not_configured();
    assert!(fault.code == "not-configured" && fault.message.contains("under the key `mail`"), "{}", fault.message);
}

#[test]
fn each_recipient_is_judged_alone() {
    let to = ["ops@example.com", "else@other.example", "Ops <ops@example.com>", "more@EXAMPLE.com"];
    let judged = allowed(Message { to: to.map(str::to_owned).to_vec(), ..mail() }).unwrap();
    let seen: Vec<_> = judged.recipients.iter().map(|(_, judged)| judged.as_ref().map(ToString::to_string)).collect();
    assert_eq!(seen[0], Ok("ops@example.com".to_owned()));
    assert_eq!(seen[3], Ok("more@EXAMPLE.com".to_owned()));
    let fault = seen[1].as_ref().unwrap_err();
    assert_eq!((fault.reach, fault.code.as_str()), (Reach::Denied, "recipient-not-allowed"));
    assert!(
        fault
            .message
            .contains("add \"else@other.example\" or \"*@other.example\" in switchbell.yaml to mail.recipients")
    );
    assert_eq!(seen[2].as_ref().unwrap_err().code, "address");
    assert!(judged.recipients.iter().zip(to).all(|((text, _), given)| text == given));
}

#[test]
fn what_just_fits_passes() {
    for message in [
        Message { to: vec!["ops@example.com".to_owned(); RECIPIENTS_MAX], ..mail() },
        Message { subject: "s".repeat(SUBJECT_BYTES_MAX), ..mail() },
        Message { subject: String::new(), ..mail() },
        Message { text: "t".repeat(TEXT_BYTES_MAX), ..mail() },
        Message { thread: Some("t".repeat(THREAD_BYTES_MAX)), ..mail() },
        Message { extras: r#"{"list_unsubscribe": null, "later": 1}"#.to_owned(), ..mail() },
        Message { extras: r#"{"list_unsubscribe": "mailto:off@example.com?subject=off"}"#.to_owned(), ..mail() },
    ] {
        assert!(allowed(message.clone()).is_ok(), "{message:?}");
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let unsubscribe = |uri: &str| Message { extras: json!({"list_unsubscribe": uri}).to_string(), ..mail() };
    for (message, expected) in [
        (Message { to: vec![], ..mail() }, "recipients"),
        (Message { to: vec!["ops@example.com".to_owned(); RECIPIENTS_MAX + 1], ..mail() }, "recipients"),
        (Message { subject: "s".repeat(SUBJECT_BYTES_MAX + 1), ..mail() }, "subject"),
        (Message { subject: "two\nlines".to_owned(), ..mail() }, "subject"),
        (Message { subject: "a\r\nBcc: else@other.example".to_owned(), ..mail() }, "subject"),
        (Message { subject: "a\u{85}b".to_owned(), ..mail() }, "subject"),
        (Message { subject: "a\u{2028}b".to_owned(), ..mail() }, "subject"),
        (Message { text: "t".repeat(TEXT_BYTES_MAX + 1), ..mail() }, "text-too-large"),
        (Message { thread: Some("t".repeat(THREAD_BYTES_MAX + 1)), ..mail() }, "thread"),
        (unsubscribe("http://example.com/off"), "list-unsubscribe"),
        (unsubscribe("off"), "list-unsubscribe"),
        (unsubscribe("mailto:"), "list-unsubscribe"),
        (unsubscribe("https://example.com/off\r\nBcc: else@other.example"), "list-unsubscribe"),
        (unsubscribe("https://example.com/a>, <https://example.com/b"), "list-unsubscribe"),
        (unsubscribe(&format!("https://example.com/{}", "a".repeat(UNSUBSCRIBE_BYTES_MAX))), "list-unsubscribe"),
        (Message { extras: r#"{"list_unsubscribe": 1}"#.to_owned(), ..mail() }, "list-unsubscribe"),
    ] {
        let (code, text) = refused(allowed(message));
        assert_eq!(code, expected, "{text}");
    }
}

#[test]
fn no_placeholder_may_stand_anywhere_in_a_mail() {
    type Build = fn(&str) -> Message;
    let builds: [(&str, Build); 6] = [
        ("mail.subject", |secret| Message { subject: format!("a {secret}"), ..mail() }),
        ("mail.text", |secret| Message { text: format!("a {secret}"), ..mail() }),
        ("mail.to", |secret| Message { to: vec![format!("{secret}@example.com")], ..mail() }),
        ("mail.thread", |secret| Message { thread: Some(secret.to_owned()), ..mail() }),
        ("mail.extras", |secret| Message { extras: json!({"later": secret}).to_string(), ..mail() }),
        ("mail.extras.list_unsubscribe", |secret| {
            let uri = format!("https://example.com/{secret}").replace('b', "\\u0062");
            Message { extras: format!("{{\"list_unsubscribe\": \"{uri}\"}}"), ..mail() }
        }),
    ];
    for (place, build) in builds {
        let (code, message) = refused(judged("acme", &granted(), build));
        assert_eq!(
            (code.as_str(), message),
            (
                "secret-place",
                format!("secret hook may not stand in a mail, where no secret has its place, but does in {place}")
            )
        );
    }
}

proptest! {
    #[test]
    fn a_judged_mail_has_lines_of_one_kind(text in ".{0,50}|[\\r\\na]{0,20}", subject in ".{0,50}|[\\x00-\\x7f]{0,20}") {
        if let Ok(judged) = allowed(Message { text, subject, ..mail() }) {
            prop_assert!(!judged.text.contains('\r'));
            prop_assert!(!judged.subject.chars().any(char::is_control));
        }
    }
}
