//! Settings: what is accepted, and every mistake.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::{Value, json};
use switchbell_kit::Guest;
use switchbell_kit::types::Destination;

use super::{WEBHOOK, by_token};
use crate::Slack;

fn accepted(settings: &Value) -> Destination {
    Slack::check(settings.to_string()).unwrap_or_else(|problems| panic!("{settings}: {problems:?}"))
}

fn problems(settings: &str) -> Vec<(String, String)> {
    let problems = Slack::check(settings.to_string()).expect_err(settings);
    problems.into_iter().map(|problem| (problem.path, problem.message)).collect()
}

#[test]
fn good_settings_are_accepted_and_labelled_without_showing_a_secret() {
    let long_id = format_args!("C{}", "0".repeat(79)).to_string();
    let cases = [
        (json!({ "webhook": WEBHOOK }), "Slack webhook"),
        (json!({ "webhook": "https://hooks.slack.com/services/T0/B0/xyz" }), "Slack webhook"),
        (json!({ "webhook": "http://127.0.0.1:9999/services/T0/B0/xyz" }), "Slack webhook"),
        (json!({ "webhook": "HTTPS://hooks.slack.com/services/T0/B0/xyz?a=b" }), "Slack webhook"),
        (by_token(), "#ops"),
        (json!({ "token": "xoxb-1-2-abc", "channel": "C0123456789" }), "C0123456789"),
        (json!({ "token": "xoxb-1-2-abc", "channel": "#größe-1_a" }), "#größe-1_a"),
        (json!({ "token": "xoxb-1-2-abc", "channel": long_id }), long_id.as_str()),
        (json!({ "token": "x", "channel": "#ops", "api": "http://localhost:8065/api/" }), "#ops"),
        (json!({ "token": "x", "channel": "#ops", "thread": "subject" }), "#ops"),
    ];
    for (settings, label) in cases {
        let destination = accepted(&settings);
        assert_eq!(destination.label, label);
        let [lane] = destination.lanes.as_slice() else { panic!("{destination:?}") };
        assert_eq!((lane.count, lane.per_seconds, lane.in_flight, lane.ordered), (1, 1, 1, true));
        assert!(!lane.key.contains("xoxb") && !lane.key.contains("xyz"), "{}", lane.key);
    }
}

#[test]
fn only_a_target_that_goes_by_subject_has_its_deliveries_made_one_after_the_other() {
    let mut by_subject = by_token();
    by_subject["thread"] = json!("subject");
    assert_eq!(accepted(&by_subject).extras, "{}");
    for settings in [by_token(), json!({ "webhook": WEBHOOK })] {
        assert_eq!(accepted(&settings).extras, r#"{"memory":false}"#);
    }
}

#[test]
fn each_webhook_and_each_channel_of_each_bot_has_a_lane_of_its_own() {
    let settings = [
        json!({ "webhook": WEBHOOK }),
        json!({ "webhook": "https://hooks.slack.com/services/T0/B0/one" }),
        json!({ "webhook": "https://hooks.slack.com/services/T0/B0/two" }),
        json!({ "token": "one", "channel": "#ops" }),
        json!({ "token": "one", "channel": "#dev" }),
        json!({ "token": "two", "channel": "#ops" }),
    ];
    let key = |settings: &Value| accepted(settings).lanes[0].key.clone();
    for (number, first) in settings.iter().enumerate() {
        assert_eq!(key(first), key(first), "the same settings share a lane");
        for second in &settings[number + 1..] {
            assert_ne!(key(first), key(second), "{first} {second}");
        }
    }
    assert_eq!(key(&settings[0]), WEBHOOK);
}

#[test]
fn every_mistake_has_its_place_and_its_remedy() {
    let cases = [
        ("", "", "write settings by name"),
        ("[]", "", "write settings by name"),
        ("null", "", "write settings by name"),
        (r#"{"webhook":"x"} y"#, "", "write settings by name"),
        ("{}", "", "write webhook, or token and channel"),
        (r#"{"webhook":7}"#, "/webhook", "write text, not a number"),
        (r#"{"webhook":null}"#, "/webhook", "write text, not null"),
        (r#"{"webhook":{"secret":"x"}}"#, "/webhook", "write text, not a mapping"),
        (r#"{"webhook":""}"#, "/webhook", "not a URL"),
        (r#"{"webhook":"hooks.slack.com/services/x"}"#, "/webhook", "not a URL"),
        (r#"{"webhook":"ftp://hooks.slack.com/services/x"}"#, "/webhook", "not a URL"),
        (r#"{"webhook":"https://"}"#, "/webhook", "not a URL"),
        (r#"{"webhook":"https:///services/x"}"#, "/webhook", "not a URL"),
        (r#"{"webhook":"https://hooks.slack.com/a b"}"#, "/webhook", "not a URL"),
        (r#"{"webhook":" https://hooks.slack.com/x"}"#, "/webhook", "not a URL"),
        (r#"{"webhook":"https://user:word@hooks.slack.com/x"}"#, "/webhook", "leave out user names"),
        (r#"{"webhook":"https://hooks.slack.com/x#y"}"#, "/webhook", "fragments"),
        (r#"{"webhook":"switchbell-secret.slack.0123"}"#, "/webhook", "not a URL"),
        (r#"{"token":"x"}"#, "/channel", "missing"),
        (r##"{"channel":"#ops"}"##, "/token", "missing"),
        (r##"{"token":"","channel":"#ops"}"##, "/token", "empty"),
        (r##"{"token":"Bearer xoxb","channel":"#ops"}"##, "/token", "not preceded by Bearer"),
        (r##"{"token":"xoxb\nx: y","channel":"#ops"}"##, "/token", "no spaces"),
        (r##"{"token":["x"],"channel":"#ops"}"##, "/token", "write text, not a list"),
        (r#"{"token":"x","channel":"ops"}"#, "/channel", "not a channel"),
        (r#"{"token":"x","channel":""}"#, "/channel", "not a channel"),
        (r##"{"token":"x","channel":"#"}"##, "/channel", "not a channel"),
        (r##"{"token":"x","channel":"#a b"}"##, "/channel", "not a channel"),
        (r##"{"token":"x","channel":"#a\u0000b"}"##, "/channel", "not a channel"),
        (r#"{"token":"x","channel":"C"}"#, "/channel", "not a channel"),
        (r#"{"token":"x","channel":"X0123"}"#, "/channel", "not a channel"),
        (r#"{"token":"x","channel":true}"#, "/channel", "write text, not true or false"),
        (r##"{"token":"x","channel":"#ops","api":"slack.com"}"##, "/api", "not a URL"),
        (r##"{"token":"x","channel":"#ops","thread":"subjects"}"##, "/thread", "did you mean \"subject\"?"),
        (r##"{"token":"x","channel":"#ops","thread":true}"##, "/thread", "write text, not true or false"),
        (r#"{"webhook":"https://hooks.slack.com/x","thread":"subject"}"#, "/thread", "use token and channel"),
        (r##"{"token":"x","chanel":"#ops","channel":"#ops"}"##, "/chanel", "did you mean \"channel\"?"),
        (r##"{"token":"x","channel":"#ops","icon":":bell:"}"##, "/icon", "unknown setting \"icon\""),
        (r##"{"token":"x","channel":"#ops","a/b~c":1}"##, "/a~1b~0c", "unknown setting"),
    ];
    for (settings, path, message) in cases {
        match problems(settings).as_slice() {
            [only] => assert!(only.0 == path && only.1.contains(message), "{settings}: {only:?}"),
            other => panic!("{settings}: {other:?}"),
        }
    }
}

#[test]
fn texts_are_accepted_up_to_their_limit_and_refused_beyond() {
    let url = |length: usize| {
        let mut url = String::from("https://hooks.slack.com/");
        url.extend(core::iter::repeat_n('x', length - url.len()));
        url
    };
    let name = |length: usize| ["#", &"ü".repeat(length - 1)].concat();
    let cases = [
        ("/webhook", json!({ "webhook": url(2_048) }), json!({ "webhook": url(2_049) })),
        (
            "/token",
            json!({ "token": "x".repeat(500), "channel": "#ops" }),
            json!({ "token": "x".repeat(501), "channel": "#ops" }),
        ),
        ("/channel", json!({ "token": "x", "channel": name(80) }), json!({ "token": "x", "channel": name(81) })),
        (
            "/api",
            json!({ "token": "x", "channel": "#ops", "api": url(2_048) }),
            json!({ "token": "x", "channel": "#ops", "api": url(2_049) }),
        ),
    ];
    for (path, fits, exceeds) in cases {
        accepted(&fits);
        let found = problems(&exceeds.to_string());
        assert!(found.len() == 1 && found[0].0 == path && found[0].1.contains("longer than"), "{found:?}");
    }
}

#[test]
fn every_mistake_is_reported_at_once() {
    let settings =
        json!({ "webhook": "x", "token": "a b", "channel": "ops", "api": 1, "thread": true, "colour": "red" });
    let mut paths: Vec<_> = problems(&settings.to_string()).into_iter().map(|(path, _)| path).collect();
    paths.sort();
    paths.dedup();
    assert_eq!(paths, ["/api", "/channel", "/colour", "/thread", "/token", "/webhook"]);
}

#[test]
fn settings_cut_anywhere_are_refused() {
    let settings = json!({ "token": "x", "channel": "#größe", "api": "http://[::1]:1/\u{1F514}" }).to_string();
    for (end, _) in settings.char_indices() {
        assert_eq!(problems(&settings[..end]).len(), 1, "{}", &settings[..end]);
    }
}

#[test]
fn settings_of_any_depth_are_checked() {
    let nested = ["{\"x\":", &"{\"x\":[".repeat(100_000), "1", &"]}".repeat(100_000), "}"].concat();
    assert_eq!(problems(&nested).len(), 2, "unknown, and nothing to deliver to");
}

#[test]
fn a_webhook_and_a_bot_exclude_each_other() {
    let settings = json!({ "webhook": WEBHOOK, "token": "x", "channel": "#ops", "api": "https://slack.com/api" });
    let found = problems(&settings.to_string());
    assert!(found.iter().all(|(_, message)| message.contains("leave this out, or leave out webhook")));
    let paths: Vec<_> = found.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["/token", "/channel", "/api"]);
}

#[test]
fn a_problem_never_repeats_a_credential() {
    let secrets = [
        json!({ "webhook": "https://hooks.slack.com/services/T0/B0/hunter2 " }),
        json!({ "token": "xoxb-hunter2 ", "channel": "#ops" }),
    ];
    for settings in secrets {
        assert!(problems(&settings.to_string()).iter().all(|(_, message)| !message.contains("hunter2")));
    }
}

#[test]
fn the_manifest_describes_the_plugin_and_its_settings() {
    let manifest: Value = serde_json::from_str(&Slack::describe()).unwrap();
    assert_eq!(manifest["name"], "slack");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(manifest["repeat"], "tolerable");
    assert_eq!(manifest["needs"], json!(["memory"]));
    assert_eq!(manifest["wants"], json!({ "http": ["hooks.slack.com", "slack.com"], "mail": false, "tools": [] }));
    let properties = manifest["settings"]["properties"].as_object().unwrap();
    assert!(properties.values().all(|property| property["description"].is_string()));
    let names: Vec<_> = properties.keys().map(String::as_str).collect();
    assert_eq!(names, ["api", "channel", "thread", "token", "webhook"]);
}
