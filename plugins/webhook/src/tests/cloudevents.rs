//! CloudEvents 1.0: attributes, structured, batched and binary.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec;

use serde_json::{Value, json};
use switchbell_kit::types::{Delivery, Notification, Request};

use super::{DATA, body, delivery, full, header, json_body, notification, request, settings};

/// The attributes in the headers, decoded.
fn attributes(request: &Request) -> BTreeMap<String, String> {
    let named = |(name, value): &(String, String)| Some((name.strip_prefix("ce-")?.to_owned(), decoded(value)));
    request.headers.iter().filter_map(named).collect()
}

fn decoded(value: &str) -> String {
    let mut bytes = vec![];
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        let mut digit = || char::from(rest.next().unwrap()).to_digit(16).unwrap() as u8;
        bytes.push(if byte == b'%' { digit() * 16 + digit() } else { byte });
    }
    String::from_utf8(bytes).unwrap()
}

fn assert_is_event(event: &Value) {
    let event = event.as_object().unwrap();
    assert_eq!(event["specversion"], "1.0");
    for name in ["id", "source", "type"] {
        assert!(!event[name].as_str().unwrap().is_empty(), "{name}");
    }
    for (name, value) in event {
        assert!(name.len() <= 20 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()));
        let is_text = value.as_str().is_some_and(|text| !text.is_empty() && !text.contains(char::is_control));
        assert!(is_text || name == "data", "{name}: {value}");
    }
}

#[test]
fn a_notification_is_one_event_with_its_data_byte_for_byte() {
    let request = request(delivery(&settings("cloudevents"), vec![full()]));
    assert_eq!(header(&request, "content-type"), Some("application/cloudevents+json; charset=UTF-8"));
    assert!(body(&request).ends_with(&format!("\"data\":{DATA}}}")), "{}", body(&request));
    let event = json_body(&request);
    assert_is_event(&event);
    let mut rest = event.clone();
    rest.as_object_mut().unwrap().remove("data");
    let expected = json!({
        "specversion": "1.0", "id": "acme/registrar/evt/7", "source": "/switchbell/acme/registrar",
        "type": "domain.active", "time": "2026-03-01T12:00:00Z", "subject": "example.com",
        "datacontenttype": "application/json", "level": "attention", "title": "größe 🔔",
        "body": "It is \"active\". Enjoy.", "link": "https://crm.example.com/d?id=1&x=2", "workspaceid": "acme",
        "route": "domain-news", "receivedat": "2026-03-01T12:00:05Z", "seq": "7",
    });
    assert_eq!(rest, expected);
}

#[test]
fn attributes_that_would_be_empty_are_left_out() {
    let bare = Notification { subject: Some(" \n".to_owned()), ..notification("title") };
    let event = json_body(&request(delivery(&settings("cloudevents"), vec![bare])));
    assert_is_event(&event);
    for name in ["subject", "body", "link"] {
        assert_eq!(event.get(name), None, "{name}");
    }
}

#[test]
fn what_is_no_character_is_replaced() {
    let odd = "a\u{0}b\u{fffe}c\u{fdd0}d\u{1ffff}\u{7f}";
    let shown = Notification {
        name: odd.to_owned(),
        event_id: odd.to_owned(),
        subject: Some(odd.to_owned()),
        body: Some(odd.to_owned()),
        ..notification(odd)
    };
    assert_is_event(&json_body(&request(delivery(&settings("cloudevents"), vec![shown.clone()]))));
    let event = request(delivery(&settings("cloudevents-binary"), vec![shown]));
    assert_eq!(attributes(&event)["subject"], "a b\u{fffd}c\u{fffd}d\u{fffd}");
}

#[test]
fn a_digest_is_a_batch_and_says_what_it_leaves_out() {
    for format in ["cloudevents", "cloudevents-binary"] {
        let digest = Delivery { omitted: 37, ..delivery(&settings(format), vec![full(), notification("b")]) };
        let request = request(digest);
        assert_eq!(header(&request, "content-type"), Some("application/cloudevents-batch+json; charset=UTF-8"));
        let batch = json_body(&request);
        let [first, second, rest] = batch.as_array().unwrap().as_slice() else { panic!("{batch}") };
        batch.as_array().unwrap().iter().for_each(assert_is_event);
        assert_eq!((&first["subject"], &second["title"]), (&json!("example.com"), &json!("b")));
        assert_eq!((&rest["type"], &rest["data"]["omitted"]), (&json!("switchbell.omitted"), &json!(37)));
        assert_eq!(rest["id"], "acme/0badcafe-1/omitted");
    }
    let all = request(delivery(&settings("cloudevents"), vec![full(), full()]));
    assert_eq!(json_body(&all).as_array().unwrap().len(), 2, "nothing is left out");
}

#[test]
fn what_does_not_fit_into_a_batch_is_counted_too() {
    let large = Notification { data: Some(format!("{{\"x\":\"{}\"}}", "y".repeat(60_000))), ..notification("a") };
    let batch = json_body(&request(delivery(&settings("cloudevents"), vec![large; 30])));
    let events = batch.as_array().unwrap();
    assert_eq!(events.last().unwrap()["data"]["omitted"], 30 - (events.len() - 1));
}

#[test]
fn in_binary_mode_attributes_are_headers_and_the_body_is_the_data() {
    let structured = json_body(&request(delivery(&settings("cloudevents"), vec![full()])));
    let binary = request(delivery(&settings("cloudevents-binary"), vec![full()]));
    assert_eq!(body(&binary), DATA);
    assert_eq!(header(&binary, "content-type"), Some("application/json"));
    assert_eq!(header(&binary, "ce-title"), Some("gr%C3%B6%C3%9Fe%20%F0%9F%94%94"));
    assert_eq!(header(&binary, "ce-body"), Some("It%20is%20%22active%22.%20Enjoy."));
    assert_eq!(header(&binary, "ce-link"), Some("https://crm.example.com/d?id=1&x=2"));
    let mut expected = structured;
    let event = expected.as_object_mut().unwrap();
    event.remove("data");
    event.remove("datacontenttype");
    assert_eq!(json!(attributes(&binary)), expected, "both modes say the same");
}

#[test]
fn no_header_can_be_added_and_a_percent_sign_stays_one() {
    let hostile = "x\r\nwebhook-id: forged\u{0}\u{85} 100%25 \"";
    let shown = Notification { subject: Some(hostile.to_owned()), ..notification(hostile) };
    let request = request(delivery(&settings("cloudevents-binary"), vec![shown]));
    assert_eq!(attributes(&request)["subject"], "x webhook-id: forged 100%25 \"");
    assert_eq!(header(&request, "webhook-id"), Some("0badcafe-1"));
}

#[test]
fn the_longest_texts_of_every_kind_fit_into_headers() {
    for letter in ["a", "ü", "語", "🔔", "\"", "%"] {
        let text = |length: usize| letter.repeat(length);
        let longest = Notification {
            source: "a".repeat(63),
            event_id: text(200),
            name: text(200),
            subject: Some(text(200)),
            body: Some(text(2_000)),
            link: Some(format!("https://crm.example.com/{}", text(2_024))),
            ..notification(&text(200))
        };
        let mut delivery = delivery(&settings("cloudevents-binary"), vec![longest]);
        delivery.workspace = "a".repeat(63);
        delivery.route = "a".repeat(63);
        let attributes = attributes(&request(delivery));
        assert_eq!((&attributes["title"], &attributes["subject"]), (&text(200), &text(200)));
        assert!(!attributes["body"].is_empty());
        assert_eq!(attributes.contains_key("link"), letter == "a", "{letter}: whole or not at all");
    }
}
