//! Standard Webhooks: bodies, ids and signatures.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::ToString;
use alloc::vec;

use serde_json::{Value, json};
use switchbell_kit::types::{Delivery, Notification, Part};

use super::{DATA, KEY, OLD_KEY, URL, body, delivery, full, header, json_body, notification, request, settings};

#[test]
fn a_notification_has_its_names_and_its_data_stays_byte_for_byte() {
    let request = request(delivery(&settings("standard"), vec![full()]));
    assert_eq!((request.method.as_str(), request.url.as_str()), ("POST", URL));
    assert_eq!(header(&request, "content-type"), Some("application/json"));
    let expected = concat!(
        r#"{"type":"domain.active","timestamp":"2026-03-01T12:00:00Z","data":{"seq":7,"workspaceId":"acme","#,
        r#""source":"registrar","eventId":"evt/7","name":"domain.active","timestamp":"2026-03-01T12:00:00Z","#,
        r#""receivedAt":"2026-03-01T12:00:05Z","effectiveLevel":"attention","subject":"example.com","#,
        r#""title":"größe 🔔","body":"It is \"active\".\nEnjoy.","#,
        r#""link":{"resource":"https://crm.example.com/d?id=1&x=2"},"data":"#,
    );
    assert_eq!(body(&request), [expected, DATA, "}}"].concat());
    serde_json::from_slice::<Value>(&request.body).unwrap();
}

#[test]
fn what_there_is_not_is_null() {
    let bare = Notification { data: None, ..notification("title") };
    let data = &json_body(&request(delivery(&settings("standard"), vec![bare])))["data"];
    for name in ["subject", "body", "link", "data"] {
        assert_eq!(data.get(name), Some(&Value::Null), "{name}");
    }
}

#[test]
fn a_digest_has_a_type_of_its_own_and_counts_what_it_leaves_out() {
    let digest = Delivery { omitted: 37, ..delivery(&settings("standard"), vec![full(), notification("b")]) };
    let body = json_body(&request(digest));
    assert_eq!((&body["type"], &body["timestamp"]), (&json!("switchbell.digest"), &json!("2026-03-01T12:00:05Z")));
    let data = &body["data"];
    assert_eq!((&data["omitted"], &data["inboxUrl"]), (&json!(37), &json!("https://bell.example.com/acme")));
    assert_eq!(data["notifications"][0]["subject"], "example.com");
    assert_eq!(data["notifications"][1]["title"], "b");
    let one = Delivery { omitted: 1, ..delivery(&settings("standard"), vec![notification("only")]) };
    assert_eq!(json_body(&request(one))["type"], "switchbell.digest");
}

#[test]
fn what_does_not_fit_into_a_body_is_counted_too() {
    let large = Notification { data: Some(format!("{{\"x\":\"{}\"}}", "y".repeat(60_000))), ..notification("a") };
    for count in [10, 16, 17, 18, 100] {
        let body = json_body(&request(delivery(&settings("standard"), vec![large.clone(); count])));
        let shown = body["data"]["notifications"].as_array().unwrap().len();
        assert_eq!(body["data"]["omitted"], count - shown);
        assert!(shown == count.min(17), "{shown} of {count}");
    }
}

#[test]
fn a_request_is_signed_over_its_id_its_time_and_its_body() {
    let mut signed = settings("standard");
    signed["signing_key"] = json!(KEY);
    let request = request(delivery(&signed, vec![full()]));
    assert_eq!(header(&request, "webhook-id"), Some("0badcafe-1"));
    assert_eq!(header(&request, "webhook-timestamp"), Some("1772366406"));
    let [signature] = request.sign.as_slice() else { panic!("{:?}", request.sign) };
    assert_eq!(header(&request, "webhook-signature").unwrap(), format!("v1,{}", signature.marker));
    assert_eq!((signature.algorithm.as_str(), signature.encoding.as_str()), ("hmac-sha256", "base64"));
    assert_eq!((signature.key.as_str(), signature.derive.len()), (KEY, 0));
    assert_eq!(signature.message, [Part::Bytes(b"0badcafe-1.1772366406.".to_vec()), Part::Body]);
}

#[test]
fn keys_that_change_sign_side_by_side() {
    let mut signed = settings("cloudevents");
    signed["signing_key"] = json!([KEY, OLD_KEY]);
    signed["algorithm"] = json!("ed25519");
    let request = request(delivery(&signed, vec![full()]));
    let [new, old] = request.sign.as_slice() else { panic!("{:?}", request.sign) };
    assert_eq!((new.key.as_str(), old.key.as_str()), (KEY, OLD_KEY));
    assert!(new.algorithm == "ed25519" && new.message == old.message && new.marker != old.marker);
    let expected = format!("v1a,{} v1a,{}", new.marker, old.marker);
    assert_eq!(header(&request, "webhook-signature"), Some(expected.as_str()));
}

#[test]
fn each_format_is_signed_and_without_a_key_none_is() {
    for format in ["standard", "cloudevents", "cloudevents-binary"] {
        let plain = request(delivery(&settings(format), vec![full()]));
        assert!(plain.sign.is_empty() && header(&plain, "webhook-signature").is_none());
        assert_eq!(header(&plain, "webhook-id"), Some("0badcafe-1"), "{format}");
        let mut signed = settings(format);
        signed["signing_key"] = json!(KEY);
        assert_eq!(request(delivery(&signed, vec![full()])).sign.len(), 1, "{format}");
    }
}

#[test]
fn no_event_can_have_a_signature_written_elsewhere() {
    let mut signed = settings("cloudevents-binary");
    signed["signing_key"] = json!([KEY, OLD_KEY]);
    signed["headers"] = json!({ "x-tag": "signature-2-1" });
    let hostile = Notification { title: "signature-0-1 signature-1-2".to_owned(), ..full() };
    let request = request(delivery(&signed, vec![hostile]));
    for signature in &request.sign {
        let found = request.headers.iter().filter(|(_, value)| value.contains(&signature.marker));
        assert_eq!(found.map(|(name, _)| name.as_str()).collect::<vec::Vec<_>>(), ["webhook-signature"]);
    }
}

#[test]
fn a_repeated_attempt_differs_by_its_time_only() {
    let first = delivery(&settings("standard"), vec![full()]);
    let later = Delivery {
        attempt: 3,
        now: "2026-03-01T13:00:00Z".to_string(),
        cause: "retry".to_string(),
        ..delivery(&settings("standard"), vec![full()])
    };
    let (first, later) = (request(first), request(later));
    assert_eq!(first.body, later.body);
    assert_eq!(header(&first, "webhook-id"), header(&later, "webhook-id"));
    assert_ne!(header(&first, "webhook-timestamp"), header(&later, "webhook-timestamp"));
}
