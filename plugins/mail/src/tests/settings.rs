//! Settings: what is accepted, and every mistake.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::{Value, json};
use switchbell_kit::Guest;

use crate::Mail;
use crate::settings::{RECIPIENTS_MAX, SUBJECT_MAX};

fn problems(settings: &str) -> Vec<(String, String)> {
    let problems = Mail::check(settings.to_owned()).expect_err(settings);
    problems.into_iter().map(|problem| (problem.path, problem.message)).collect()
}

#[test]
fn good_settings_are_accepted_and_labelled() {
    let local = format!("{}@example.com", "a".repeat(64));
    let many: Vec<String> = (0..RECIPIENTS_MAX).map(|number| format!("a{number}@example.com")).collect();
    let cases = [
        (json!({ "to": "ops@example.com" }), "ops@example.com"),
        (json!({ "to": ["ops@example.com"] }), "ops@example.com"),
        (json!({ "to": ["ops@example.com", "dev@example.com", "x@example.com"] }), "ops@example.com and 2 more"),
        (json!({ "to": "first.last+tag@mail.example.com" }), "first.last+tag@mail.example.com"),
        (json!({ "to": "o'neil_#1@xn--bcher-kva.example" }), "o'neil_#1@xn--bcher-kva.example"),
        (json!({ "to": "root@localhost" }), "root@localhost"),
        (json!({ "to": local }), local.as_str()),
        (json!({ "to": many }), "a0@example.com and 19 more"),
        (json!({ "to": "ops@example.com", "subject": "[bell] {level} {title} {{x}} 100%" }), "ops@example.com"),
        (json!({ "to": "ops@example.com", "subject": "ü".repeat(SUBJECT_MAX) }), "ops@example.com"),
    ];
    for (settings, label) in cases {
        let destination =
            Mail::check(settings.to_string()).unwrap_or_else(|mistakes| panic!("{settings}: {mistakes:?}"));
        assert_eq!(destination.label, label);
        let [lane] = destination.lanes.as_slice() else { panic!("{destination:?}") };
        assert_eq!((lane.key.as_str(), lane.count, lane.in_flight, lane.ordered), ("relay", 0, 4, false));
    }
}

#[test]
fn every_mistake_has_its_place_and_its_remedy() {
    let too_many: Vec<String> = (0..=RECIPIENTS_MAX).map(|number| format!("a{number}@example.com")).collect();
    let cases = [
        ("", "", "write settings by name"),
        ("[]", "", "write settings by name"),
        ("{}", "", "missing: write to"),
        (r#"{"subject":"x"}"#, "", "missing: write to"),
        (r#"{"to":[]}"#, "/to", "empty"),
        (r#"{"to":""}"#, "/to", "not an address"),
        (r#"{"to":7}"#, "/to", "write an address, not a number"),
        (r#"{"to":null}"#, "/to", "write an address, not null"),
        (r#"{"to":{"address":"a@example.com"}}"#, "/to", "write an address, not a mapping"),
        (r#"{"to":["a@example.com",["b@example.com"]]}"#, "/to/1", "write an address, not a list"),
        (r#"{"to":["a@example.com","A@Example.com"]}"#, "/to/1", "named twice: it is /to/0 already"),
        (r#"{"to":"Ops <ops@example.com>"}"#, "/to", "without a name"),
        (r#"{"to":"a@example.com, b@example.com"}"#, "/to", "several as a list"),
        (r#"{"to":"\"a b\"@example.com"}"#, "/to", "the address alone"),
        (r#"{"to":"mailto:ops@example.com"}"#, "/to", "not an address"),
        (r#"{"to":"ops"}"#, "/to", "not an address"),
        (r#"{"to":"@example.com"}"#, "/to", "not an address"),
        (r#"{"to":"ops@"}"#, "/to", "not an address"),
        (r#"{"to":"a@b@example.com"}"#, "/to", "not an address"),
        (r#"{"to":".ops@example.com"}"#, "/to", "not an address"),
        (r#"{"to":"o..ps@example.com"}"#, "/to", "not an address"),
        (r#"{"to":"ops%example.org@example.com"}"#, "/to", "not an address"),
        (r#"{"to":"example.org!ops@example.com"}"#, "/to", "not an address"),
        (r#"{"to":"ops@example..com"}"#, "/to", "not an address"),
        (r#"{"to":"ops@-example.com"}"#, "/to", "not an address"),
        (r#"{"to":"ops@example.com."}"#, "/to", "not an address"),
        (r#"{"to":"ops@[192.0.2.1]"}"#, "/to", "not an address"),
        (r#"{"to":"ops@example.com\r\nBcc: x@example.com"}"#, "/to", "the address alone"),
        (r#"{"to":"ops@example.com\nx"}"#, "/to", "not an address"),
        (r#"{"to":"ops@bücher.example"}"#, "/to", "xn-- form"),
        (r#"{"to":"a@example.com","subject":""}"#, "/subject", "empty"),
        (r#"{"to":"a@example.com","subject":"  "}"#, "/subject", "empty"),
        (r#"{"to":"a@example.com","subject":"a\nb"}"#, "/subject", "one line"),
        (r#"{"to":"a@example.com","subject":["x"]}"#, "/subject", "write text, not a list"),
        (r#"{"to":"a@example.com","subject":"{titel}"}"#, "/subject", "unknown {titel}: did you mean \"title\"?"),
        (r#"{"to":"a@example.com","subject":"{}"}"#, "/subject", "known: {title} {level} {source}"),
        (r#"{"to":"a@example.com","subject":"{ title }"}"#, "/subject", "did you mean \"title\"?"),
        (r#"{"to":"a@example.com","subject":"{title"}"#, "/subject", "a { without its }"),
        (r#"{"to":"a@example.com","subject":"{title{level}"}"#, "/subject", "a { without its }"),
        (r#"{"to":"a@example.com","subject":"title}"}"#, "/subject", "a } without its {"),
        (r#"{"to":"a@example.com","from":"x"}"#, "/from", "unknown setting \"from\""),
        (r#"{"to":"a@example.com","subjekt":"x"}"#, "/subjekt", "did you mean \"subject\"?"),
    ];
    let long = [
        (json!({ "to": too_many }), "/to", "more than 20 addresses"),
        (json!({ "to": format!("{}@example.com", "a".repeat(65)) }), "/to", "not an address"),
        (json!({ "to": format!("a@{}.example", "b".repeat(64)) }), "/to", "not an address"),
        (json!({ "to": format!("a@{}example", "b.".repeat(124)) }), "/to", "longer than 254"),
        (json!({ "to": "a@example.com", "subject": "ü".repeat(SUBJECT_MAX + 1) }), "/subject", "longer than 200"),
    ];
    let long = long.map(|(settings, path, message)| (settings.to_string(), path, message));
    let cases = cases.map(|(settings, path, message)| (settings.to_owned(), path, message));
    for (settings, path, message) in cases.into_iter().chain(long) {
        match problems(&settings).as_slice() {
            [only] => assert!(only.0 == path && only.1.contains(message), "{settings}: {only:?}"),
            other => panic!("{settings}: {other:?}"),
        }
    }
}

#[test]
fn every_mistake_is_reported_at_once() {
    let settings = json!({ "to": ["x", 1, "a@example.com"], "subject": "{a} {b} }", "cc": "y" });
    let paths: Vec<String> = problems(&settings.to_string()).into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["/cc", "/to/0", "/to/1", "/subject", "/subject", "/subject"]);
}

#[test]
fn settings_cut_anywhere_are_refused() {
    let settings = json!({ "to": ["a@example.com"], "subject": "größe {title} \u{1F514}" }).to_string();
    for (end, _) in settings.char_indices() {
        assert_eq!(problems(&settings[..end]).len(), 1, "{}", &settings[..end]);
    }
}

#[test]
fn the_manifest_describes_the_plugin_and_its_settings() {
    let manifest: Value = serde_json::from_str(&Mail::describe()).unwrap();
    assert_eq!(manifest["name"], "mail");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(manifest["repeat"], "tolerable");
    assert_eq!((&manifest["needs"], &manifest["wants"]["mail"]), (&json!([]), &json!(true)));
    let properties = manifest["settings"]["properties"].as_object().unwrap();
    assert!(properties.values().all(|property| property["description"].is_string()));
    assert_eq!(properties.keys().map(String::as_str).collect::<Vec<_>>(), ["subject", "to"]);
}
