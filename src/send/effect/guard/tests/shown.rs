//! What is shown of a request is what is sent, with names in the place of values.

use super::*;
use crate::wasm::{Part, Signature};

const URL: &str = "https://hooks.example/x";

/// What is shown must be `expected`, and with the value in the place of the mark it must be what is sent.
fn check((mark, value): (&str, &str), expected: &Value, build: impl Fn(&dyn Fn(&str) -> String) -> Request) {
    let sent = judged("acme", build).unwrap();
    for (member, expected) in expected.as_object().unwrap() {
        assert_eq!(&sent.shown["http"][member], expected);
    }
    let filled = |member: &str| sent.shown["http"][member].as_str().unwrap().replace(mark, value);
    assert_eq!((filled("url"), filled("body")), (sent.url, sent.body));
    let headers = sent.shown["http"]["headers"].as_array().cloned().unwrap_or_default();
    assert_eq!(headers.len(), sent.headers.len());
    for header in headers {
        let value = header[1].as_str().unwrap().replace(mark, value);
        assert_eq!(sent.headers[header[0].as_str().unwrap()], value);
    }
}

#[test]
fn a_secret_is_shown_by_its_name_wherever_it_may_stand() {
    check(
        ("[secret hook]", "https://hooks.example/services/T/B/value"),
        &json!({"url": "[secret hook]", "method": "POST", "body": "{}"}),
        |placeholder| request(placeholder("hook")),
    );
    check(
        ("[secret bot]", "xoxb-0123456789abcdef"),
        &json!({"headers": [["authorization", "Bearer [secret bot]"]]}),
        |placeholder| with_header(URL, "Authorization", placeholder("bot")),
    );
    check(
        ("[secret basic]", "cm9ib3Q6cGFzcyB3b3JkIDAxMjM="),
        &json!({"headers": [["authorization", "Basic [secret basic]"]]}),
        |placeholder| with_header(URL, "authorization", placeholder("basic")),
    );
    check(
        ("[secret query]", "a%2Fb%26c%3Dd%200123456789"),
        &json!({"url": "https://hooks.example/x?a=1&api+key=[secret query]&b"}),
        |placeholder| request(format!("{URL}?a=1&api+key={}&b", placeholder("query"))),
    );
    check(
        ("[secret path]", "123%3AAAE%2F..%2Fx%3Fy%23z%2541"),
        &json!({"url": "https://hooks.example/bot[secret path]/send"}),
        |placeholder| request(format!("https://HOOKS.example/bot{}/send", placeholder("path"))),
    );
    check(
        ("[secret body]", r#"R\"0123456789\\abcdef"#),
        &json!({"body": r#"{"auth":{"key":"[secret body]"}}"#}),
        |placeholder| Request {
            body: format!(r#"{{"auth":{{"key":"{}"}}}}"#, placeholder("body")).into_bytes(),
            ..request(URL)
        },
    );
    check(("[secret crm]", TOKEN), &json!({"headers": [["authorization", "Bearer [secret crm]"]]}), |placeholder| {
        with_header(URL, "authorization", placeholder("crm"))
    });
}

#[test]
fn a_signature_is_shown_by_the_name_of_its_key() {
    let build = |placeholder: &dyn Fn(&str) -> String| {
        let signature = Signature {
            marker: "signature-goes-here".to_owned(),
            algorithm: "hmac-sha256".to_owned(),
            encoding: "hex".to_owned(),
            key: placeholder("aws"),
            derive: Vec::new(),
            message: vec![Part::Body],
        };
        Request { sign: vec![signature], ..with_header(URL, "webhook-signature", "v1,signature-goes-here") }
    };
    let sent = judged("acme", build).unwrap();
    assert_eq!(sent.shown["http"]["headers"], json!([["webhook-signature", "v1,[signature by aws]"]]));
    assert_eq!(sent.shown["http"].get("sign"), None);
    assert_eq!(sent.headers["webhook-signature"].len(), 3 + 64);
}

#[test]
fn what_only_looks_like_a_secret_is_shown_as_it_is() {
    let stranger = "switchbell-secret.hook.0000000000000000";
    let sent = judged("acme", |_| with_header(URL, "x", stranger)).unwrap();
    assert_eq!(sent.shown["http"]["headers"], json!([["x", stranger]]));
    assert_eq!(sent.headers["x"], stranger);
}
