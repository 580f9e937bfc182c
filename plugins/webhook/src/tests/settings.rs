//! Settings: what is accepted, and every mistake.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::{Value, json};
use switchbell_kit::Guest;
use switchbell_kit::types::Destination;

use super::{KEY, OLD_KEY, URL, settings};
use crate::Webhook;

fn accepted(settings: &Value) -> Destination {
    Webhook::check(settings.to_string()).unwrap_or_else(|problems| panic!("{settings}: {problems:?}"))
}

fn problems(settings: &str) -> Vec<(String, String)> {
    let problems = Webhook::check(settings.to_owned()).expect_err(settings);
    problems.into_iter().map(|problem| (problem.path, problem.message)).collect()
}

/// Good settings with one more.
fn with(name: &str, value: Value) -> Value {
    let mut settings = settings("standard");
    settings[name] = value;
    settings
}

#[test]
fn good_settings_are_accepted_and_labelled_without_showing_a_secret() {
    let cases = [
        (settings("standard"), "webhook"),
        (settings("cloudevents"), "webhook"),
        (settings("cloudevents-binary"), "webhook"),
        (with("url", json!("https://hooks.example.com/very-secret")), "hooks.example.com"),
        (with("url", json!("HTTPS://hooks.example.com:8443/x?y=z")), "hooks.example.com:8443"),
        (with("url", json!("http://127.0.0.1:9000/x")), "127.0.0.1:9000"),
        (with("url", json!("http://localhost/x")), "localhost"),
        (with("url", json!("http://[::1]:9000/x")), "[::1]:9000"),
        (with("signing_key", json!(KEY)), "webhook"),
        (with("signing_key", json!([KEY, OLD_KEY])), "webhook"),
        (with("headers", json!({ "Authorization": KEY, "X-Tag": "a b; c=\"d\"" })), "webhook"),
        (with("headers", json!({})), "webhook"),
        (json!({ "url": URL, "format": "standard", "signing_key": KEY, "algorithm": "ed25519" }), "webhook"),
    ];
    for (settings, label) in cases {
        let destination = accepted(&settings);
        assert_eq!(destination.label, label);
        let [lane] = destination.lanes.as_slice() else { panic!("{destination:?}") };
        assert_eq!((lane.count, lane.in_flight, lane.ordered), (0, 8, false));
        assert!(!lane.key.contains("very-secret"), "{}", lane.key);
    }
    assert_eq!(accepted(&settings("standard")).lanes[0].key, URL);
}

#[test]
fn targets_of_one_url_share_a_lane() {
    let key = |url: &str| accepted(&with("url", json!(url))).lanes[0].key.clone();
    assert_eq!(key("https://a.example/1"), key("https://a.example/1"));
    assert_ne!(key("https://a.example/1"), key("https://a.example/2"));
}

#[test]
fn every_mistake_has_its_place_and_its_remedy() {
    let cases = [
        (with("url", json!(7)), "/url", "write text, not a number"),
        (with("url", json!("")), "/url", "not a URL"),
        (with("url", json!("hooks.example.com/x")), "/url", "not a URL"),
        (with("url", json!("ftp://hooks.example.com/x")), "/url", "not a URL"),
        (with("url", json!("https://")), "/url", "not a URL"),
        (with("url", json!("https://hooks.example.com/a b")), "/url", "not a URL"),
        (with("url", json!("https://a:b@hooks.example.com/")), "/url", "leave out user names"),
        (with("url", json!("https://hooks.example.com/#x")), "/url", "fragments"),
        (with("url", json!("http://hooks.example.com/x")), "/url", "not encrypted"),
        (with("url", json!("http://127.evil.example/x")), "/url", "not encrypted"),
        (with("url", json!("http://127.0.0.1.evil.example/x")), "/url", "not encrypted"),
        (with("url", json!("http://localhost.evil.example/x")), "/url", "not encrypted"),
        (with("url", json!("http://[::2]/x")), "/url", "not encrypted"),
        (with("url", json!(format!("https://a.example/{}", "x".repeat(2_048)))), "/url", "longer than 2048"),
        (with("format", json!("cloudevent")), "/format", "did you mean \"cloudevents\"?"),
        (with("format", json!(["standard"])), "/format", "write text, not a list"),
        (with("signing_key", json!("whsec_c2VjcmV0LXZhbHVlLW9mLTI0LWJ5dGVz")), "/signing_key", "in: sign"),
        (with("signing_key", json!([])), "/signing_key", "a list of 1 to 3"),
        (with("signing_key", json!([KEY, "x"])), "/signing_key/1", "write a secret"),
        (with("signing_key", json!([KEY, KEY])), "/signing_key/1", "named twice"),
        (with("signing_key", json!({ "key": KEY })), "/signing_key", "write a secret"),
        (with("algorithm", json!("ed25519")), "/algorithm", "there is no signing_key"),
        (with("headers", json!("x: y")), "/headers", "write headers by name, not text"),
        (with("headers", json!({ "x y": "z" })), "/headers/x y", "not the name of a header"),
        (with("headers", json!({ "": "z" })), "/headers/", "not the name of a header"),
        (with("headers", json!({ "x\r\ny": "z" })), "/headers/x\r\ny", "not the name of a header"),
        (with("headers", json!({ "a/b": "z" })), "/headers/a~1b", "not the name of a header"),
        (with("headers", json!({ "Host": "z" })), "/headers/Host", "the host's"),
        (with("headers", json!({ "content-length": "1" })), "/headers/content-length", "the host's"),
        (with("headers", json!({ "Proxy-Authorization": "z" })), "/headers/Proxy-Authorization", "the host's"),
        (with("headers", json!({ "Content-Type": "z" })), "/headers/Content-Type", "written by the plugin"),
        (with("headers", json!({ "webhook-id": "z" })), "/headers/webhook-id", "written by the plugin"),
        (with("headers", json!({ "ce-id": "z" })), "/headers/ce-id", "written by the plugin"),
        (with("headers", json!({ "x": 7 })), "/headers/x", "write text, not a number"),
        (with("headers", json!({ "x": "" })), "/headers/x", "visible ASCII"),
        (with("headers", json!({ "x": " y" })), "/headers/x", "visible ASCII"),
        (with("headers", json!({ "x": "a\r\nHost: b" })), "/headers/x", "visible ASCII"),
        (with("headers", json!({ "x": "größe" })), "/headers/x", "visible ASCII"),
        (with("headers", json!({ "x": "y".repeat(1_001) })), "/headers/x", "longer than 1000"),
        (with("headers", json!({ "X": "1", "x": "2" })), "/headers/x", "named twice"),
        (with("retries", json!(3)), "/retries", "unknown setting \"retries\""),
        (with("header", json!({})), "/header", "did you mean \"headers\"?"),
        (json!({ "url": URL }), "", "missing: format"),
        (json!({ "format": "standard" }), "", "missing: url"),
    ];
    for (settings, path, message) in cases {
        match problems(&settings.to_string()).as_slice() {
            [only] => assert!(only.0 == path && only.1.contains(message), "{settings}: {only:?}"),
            other => panic!("{settings}: {other:?}"),
        }
    }
    for settings in ["", "[]", "null", "7", r#"{"url":"x"} y"#] {
        assert!(problems(settings)[0].1.contains("write settings by name"), "{settings}");
    }
}

#[test]
fn there_are_not_too_many_keys_and_headers() {
    let key = |number: usize| format!("switchbell-secret.key-{number}.0123456789abcdef");
    accepted(&with("signing_key", (0..3).map(key).collect()));
    let found = problems(&with("signing_key", (0..4).map(key).collect()).to_string());
    assert!(found.len() == 1 && found[0].1.contains("1 to 3"), "{found:?}");
    let headers = |count: usize| (0..count).map(|number| (format!("x-{number}"), "y")).collect::<BTreeMap<_, _>>();
    accepted(&with("headers", json!(headers(16))));
    let found = problems(&with("headers", json!(headers(17))).to_string());
    assert!(found.len() == 1 && found[0].1.contains("more than 16"), "{found:?}");
}

#[test]
fn every_mistake_is_reported_at_once() {
    let settings = json!({
        "url": "x", "format": "y", "signing_key": ["a", KEY, 1], "algorithm": "md5", "headers": { "host": "z", "a": 1 },
        "more": true,
    });
    let paths: Vec<String> = problems(&settings.to_string()).into_iter().map(|(path, _)| path).collect();
    let expected =
        ["/more", "/url", "/format", "/signing_key/0", "/signing_key/2", "/algorithm", "/headers/a", "/headers/host"];
    assert_eq!(paths, expected);
    let nothing: Vec<String> = problems("{}").into_iter().map(|(_, message)| message).collect();
    assert_eq!(nothing.len(), 2, "{nothing:?}");
}

#[test]
fn a_problem_never_repeats_a_credential() {
    let cases = [
        with("url", json!("https://hooks.example.com/hunter2 ")),
        with("signing_key", json!("whsec_hunter2")),
        with("headers", json!({ "authorization": "hunter2\n" })),
    ];
    for settings in cases {
        assert!(problems(&settings.to_string()).iter().all(|(_, message)| !message.contains("hunter2")));
    }
}

#[test]
fn the_manifest_describes_the_plugin_and_its_settings() {
    let manifest: Value = serde_json::from_str(&Webhook::describe()).unwrap();
    assert_eq!((&manifest["name"], &manifest["repeat"]), (&json!("webhook"), &json!("harmless")));
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(manifest["needs"], json!(["data"]));
    assert_eq!(manifest["wants"], json!({ "http": [], "mail": false, "tools": [] }));
    let properties = manifest["settings"]["properties"].as_object().unwrap();
    assert!(properties.values().all(|property| property["description"].is_string()));
    let names: Vec<_> = properties.keys().map(String::as_str).collect();
    assert_eq!(names, ["algorithm", "format", "headers", "signing_key", "url"]);
}
