//! One notification in a message.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use serde_json::{Value, json};
use switchbell_kit::types::{Level, Notification};

use super::{blocks, by_webhook, delivery, is_harmless, links, notification, sent, texts};

fn message(notification: Notification) -> Value {
    sent(delivery(&by_webhook(), vec![notification]))
}

#[test]
fn a_notification_is_shown_with_everything_a_person_needs() {
    let mut shown = delivery(
        &by_webhook(),
        vec![Notification {
            level: Level::Urgent,
            subject: Some("example.com".to_owned()),
            body: Some("It expires tomorrow.\nRenew & relax.".to_owned()),
            link: Some("https://crm.example.com/d?id=1&x=2".to_owned()),
            ..notification("example.com expires")
        }],
    );
    shown.inbox_url = Some("https://bell.example.com/acme".to_owned());
    let plain = |text: &str| json!({ "type": "plain_text", "text": text, "emoji": false });
    let link = |url: &str, text: &str| {
        let link = json!({ "type": "link", "url": url, "text": text });
        json!({ "type": "rich_text", "elements": [{ "type": "rich_text_section", "elements": [link] }] })
    };
    let from = ["registrar", "domain.active", "2026-03-01T12:00:00Z", "workspace acme", "route domain-news"];
    let expected = json!({
        "text": "Urgent: example.com expires\nIt expires tomorrow.\nRenew &amp; relax.",
        "mrkdwn": false,
        "unfurl_links": false,
        "unfurl_media": false,
        "blocks": [
            { "type": "header", "text": plain("example.com expires") },
            { "type": "context", "elements": [plain("🔴 Urgent"), plain("example.com")] },
            { "type": "section", "text": plain("It expires tomorrow.\nRenew &amp; relax.") },
            link("https://crm.example.com/d?id=1&x=2", "Open crm.example.com"),
            { "type": "context", "elements": from.map(plain) },
            link("https://bell.example.com/acme", "Open the inbox"),
        ],
    });
    assert_eq!(sent(shown), expected);
}

#[test]
fn untrusted_text_pings_nobody_links_nothing_and_is_never_markup() {
    let hostile = "<!channel> & <http://evil|x> @here *b* _i_ ~s~ `c` > q :bell: <@U1> <#C1>";
    let shown = Notification {
        source: hostile.to_owned(),
        name: hostile.to_owned(),
        timestamp: hostile.to_owned(),
        subject: Some(hostile.to_owned()),
        body: Some(hostile.to_owned()),
        link: Some("https://evil.example/|x><!channel>".to_owned()),
        ..notification(hostile)
    };
    let mut to_send = delivery(&by_webhook(), vec![shown]);
    to_send.workspace = hostile.to_owned();
    to_send.route = hostile.to_owned();
    to_send.inbox_url = Some("javascript:alert(1)".to_owned());
    let message = sent(to_send);
    for text in texts(&message) {
        assert!(is_harmless(&text), "{text}");
    }
    assert_eq!(links(&message), Vec::<String>::new());
    let written = format!("{message}");
    assert_eq!(message["mrkdwn"], false);
    assert!(!written.contains(r#""type":"mrkdwn""#) && !written.contains("link_names"));
    assert!(message["text"].as_str().unwrap().starts_with("Attention: &lt;!channel&gt; &amp; &lt;http://evil|x&gt;"));
    assert_eq!(
        blocks(&message)[0]["text"]["text"],
        "&lt;!channel&gt; &amp; &lt;http://evil|x&gt; @here *b* _i_ ~s~ `c` &gt; q :bell: &lt;@U1&gt; &lt;#C1&gt;"
    );
}

#[test]
fn a_title_is_whole_in_bold_or_without() {
    for (title, block) in [("a".repeat(150), "header"), ("a".repeat(151), "section"), ("<".repeat(200), "section")] {
        let message = message(notification(&title));
        let first = &blocks(&message)[0];
        assert_eq!(first["type"], block);
        assert_eq!(first["text"]["text"], title.replace('<', "&lt;"));
    }
}

#[test]
fn texts_of_every_kind_and_size_stay_within_the_limits() {
    for letter in ["&", "<", "a", "ß", "語", "🔔", "& ", "a\n"] {
        let text = |length: usize| letter.chars().cycle().take(length).collect::<String>();
        let mut shown = delivery(
            &by_webhook(),
            vec![Notification {
                source: text(63),
                name: text(200),
                subject: Some(text(200)),
                body: Some(text(2_000)),
                link: Some(format!("https://crm.example.com/{}", text(2_024))),
                ..notification(&text(200))
            }],
        );
        shown.workspace = text(63);
        shown.route = text(63);
        shown.inbox_url = Some(format!("https://{}/", "a".repeat(491)));
        sent(shown);
    }
}

#[test]
fn texts_beyond_the_contract_are_cut_too() {
    let text = "<&>".repeat(50_000);
    let mut shown = delivery(
        &by_webhook(),
        vec![Notification {
            source: text.clone(),
            name: text.clone(),
            timestamp: text.clone(),
            subject: Some(text.clone()),
            body: Some(text.clone()),
            link: Some(format!("acme:{text}")),
            ..notification(&text)
        }],
    );
    shown.workspace = text.clone();
    shown.route = text.clone();
    shown.inbox_url = Some(format!("https://bell.example.com/{text}"));
    sent(shown);
}

#[test]
fn an_ordinary_body_is_whole_and_one_of_ampersands_is_cut() {
    let body = |text: &str| {
        let message = message(Notification { body: Some(text.to_owned()), ..notification("title") });
        let sections = blocks(&message).iter().filter(|block| block["type"] == "section");
        sections.map(|block| block["text"]["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(body(&"a".repeat(2_000)), ["a".repeat(2_000)]);
    assert_eq!(body(&"🔔".repeat(2_000)).concat(), "🔔".repeat(2_000));
    let cut = body(&"&".repeat(2_000)).concat();
    assert!(cut.ends_with("&amp;…") && cut.matches("&amp;").count() == 1_199, "{}", cut.len());
    assert_eq!(body(""), Vec::<String>::new());
}

#[test]
fn a_link_that_is_no_web_address_is_text() {
    let cases = ["acme://domain/7", "mailto:ops@example.com", "https://evil.example\\@slack.com/"];
    for link in cases {
        let message = message(Notification { link: Some(link.to_owned()), ..notification("title") });
        assert_eq!(links(&message), Vec::<String>::new());
        assert!(texts(&message).contains(&format!("Link: {link}")), "{message}");
    }
}

#[test]
fn a_links_label_says_where_it_leads() {
    let link = Some("https://slack.com@evil.example/slack.com".to_owned());
    let message = message(Notification { link, ..notification("title") });
    assert!(texts(&message).contains(&"Open evil.example".to_owned()));
}

#[test]
fn each_level_has_a_word_and_a_mark() {
    let cases = [(Level::Info, "🔵 Info"), (Level::Attention, "🟠 Attention"), (Level::Urgent, "🔴 Urgent")];
    for (level, expected) in cases {
        let message = message(Notification { level, ..notification("title") });
        assert_eq!(blocks(&message)[1]["elements"][0]["text"], expected);
        assert_eq!(message["text"], format!("{}: title", expected.split(' ').nth(1).unwrap()));
    }
}
