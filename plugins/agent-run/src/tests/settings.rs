//! What settings may say, and what is said of those that may not.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::{Value, json};
use switchbell_kit::Guest;

use super::{KEY, by_a2a, by_chat, by_messages, by_responses, by_tool, with};
use crate::AgentRun;
use crate::settings::Agent;

/// The mistakes, each as its pointer and what its message has to contain.
fn check(settings: &Value, expected: &[(&str, &str)]) {
    let problems = AgentRun::check(settings.to_string()).expect_err(&settings.to_string());
    let found: Vec<(String, String)> = problems.into_iter().map(|problem| (problem.path, problem.message)).collect();
    assert_eq!(found.len(), expected.len(), "{settings}: {found:#?}");
    for (path, message) in expected {
        let is_there = found.iter().any(|(found, said)| found == path && said.contains(message));
        assert!(is_there, "{settings}: nothing about {path:?} with {message:?} in {found:#?}");
    }
}

fn agent(settings: &Value) -> Agent {
    Agent::read(&settings.to_string()).unwrap_or_else(|problems| panic!("{settings}: {problems:?}"))
}

#[test]
fn each_protocol_takes_its_own_settings() {
    let poll = json!({ "poll": { "first": "1s", "most": "1m", "give_up": "2h" }, "report": true });
    for settings in [by_a2a(), by_responses()] {
        let agent = agent(&with(settings, poll.clone()));
        assert_eq!((agent.poll.first, agent.poll.most, agent.poll.give_up, agent.report), (1, 60, 7_200, true));
    }
    for settings in [by_responses(), by_chat(), by_messages()] {
        let settings = with(settings, json!({ "max_tokens": 500, "url": "http://localhost:11434/v1/" }));
        let agent = agent(&settings);
        assert_eq!((agent.max_tokens, &*agent.url), (Some(500), "http://localhost:11434/v1"));
    }
    assert_eq!(agent(&by_responses()).url, "https://api.openai.com/v1");
    assert_eq!(agent(&by_messages()).url, "https://api.anthropic.com");
    assert_eq!(agent(&by_tool()).tool.unwrap().name, "start_agent");
    assert_eq!(agent(&with(by_a2a(), json!({ "url": KEY }))).url, KEY);
}

#[test]
fn every_mistake_is_reported_at_once() {
    let settings = json!({
        "protocol": "mcp", "url": "https://agents.example", "model": "gpt-5", "promt": "typo", "connector": "Desk",
        "tool": "", "arguments": { "task": "{prompt}" }, "poll": { "first": "1s" }, "report": "yes",
    });
    check(
        &settings,
        &[
            ("/url", "mcp takes no url: leave it out (it is for a2a, openai, openai-chat, anthropic)"),
            ("/model", "it is for openai, openai-chat, anthropic"),
            ("/poll", "it is for a2a, openai)"),
            ("/promt", "unknown setting \"promt\" (known: protocol, url, prompt,"),
            ("/prompt", "missing"),
            ("/connector", "not a connector"),
            ("/tool", "a tool has a name"),
            ("/arguments", "\"{notification}\""),
            ("/report", "write true or false, not text"),
        ],
    );
}

#[test]
fn what_a_protocol_needs_is_asked_for() {
    check(&json!({}), &[("/protocol", "missing: write a2a, openai, openai-chat, anthropic or mcp")]);
    check(&json!({ "protocol": "smtp", "prompt": "x" }), &[("/protocol", "unknown protocol \"smtp\"")]);
    check(&json!({ "protocol": 1, "prompt": "x" }), &[("/protocol", "write text, not a number")]);
    check(&json!({ "protocol": "a2a" }), &[("/prompt", "missing"), ("/url", "missing")]);
    let model = [("/model", "missing"), ("/api_key", "missing")];
    for protocol in ["openai", "openai-chat", "anthropic"] {
        check(&json!({ "protocol": protocol, "prompt": "x" }), &model);
        check(&json!({ "protocol": protocol, "prompt": "x", "url": "http://localhost:1" }), &model[..1]);
    }
    let tool = [("/connector", "missing"), ("/tool", "missing"), ("/arguments", "missing")];
    check(&json!({ "protocol": "mcp", "prompt": "x" }), &tool);
    for settings in [json!([]), json!("a2a"), json!(null)] {
        check(&settings, &[("", "write settings by name")]);
    }
}

#[test]
fn single_settings_are_checked() {
    let long = "x".repeat(16_001);
    let cases = [
        (json!({ "prompt": "  \n" }), "/prompt", "empty"),
        (json!({ "prompt": long }), "/prompt", "longer than 16000 characters"),
        (json!({ "prompt": null }), "/prompt", "write text, not null"),
        (json!({ "prompt": KEY }), "/prompt", "cannot be a secret"),
        (json!({ "url": "agents.example" }), "/url", "not a URL"),
        (json!({ "url": "https://" }), "/url", "not a URL"),
        (json!({ "url": "ftp://agents.example" }), "/url", "not a URL"),
        (json!({ "url": "https://user@agents.example/" }), "/url", "user names"),
        (json!({ "url": "https://agents.example/#x" }), "/url", "fragments"),
        (json!({ "url": "https://agents.example/a b" }), "/url", "not a URL"),
        (json!({ "api_key": "" }), "/api_key", "a key has no spaces"),
        (json!({ "api_key": "Bearer x" }), "/api_key", "not preceded by Bearer"),
        (json!({ "api_key_header": "x api key" }), "/api_key_header", "not the name of a header"),
        (json!({ "max_tokens": 5 }), "/max_tokens", "a2a takes no max_tokens"),
        (json!({ "poll": "2s" }), "/poll", "write {first: 2s"),
        (json!({ "poll": { "first": 2 } }), "/poll/first", "write a duration as text, not a number"),
        (json!({ "poll": { "first": "500ms" } }), "/poll/first", "not a duration of whole seconds"),
        (json!({ "poll": { "first": "0s" } }), "/poll/first", "at least 1s"),
        (json!({ "poll": { "first": "1m1h" } }), "/poll/first", "not a duration"),
        (json!({ "poll": { "first": "5" } }), "/poll/first", "not a duration"),
        (json!({ "poll": { "first": "" } }), "/poll/first", "not a duration"),
        (json!({ "poll": { "first": "10s", "most": "5s" } }), "/poll/first", "not longer than most"),
        (json!({ "poll": { "most": "2h" } }), "/poll/most", "at most 1h"),
        (json!({ "poll": { "first": "2h" } }), "/poll/first", "at most 1h"),
        (json!({ "poll": { "give_up": "8d" } }), "/poll/give_up", "at most 7d"),
        (json!({ "poll": { "last": "1s" } }), "/poll/last", "known: first, most, give_up"),
    ];
    for (fields, path, message) in cases {
        check(&with(by_a2a(), fields), &[(path, message)]);
    }
    let cases = [
        (json!({ "url": KEY }), "/url", "cannot be a secret"),
        (json!({ "url": "https://a.example/?version=1" }), "/url", "leave out the query"),
        (json!({ "model": "gpt 5" }), "/model", "a name without spaces"),
        (json!({ "model": KEY }), "/model", "cannot be a secret"),
        (json!({ "max_tokens": 0 }), "/max_tokens", "a whole number from 1"),
        (json!({ "max_tokens": 1.5 }), "/max_tokens", "a whole number from 1"),
        (json!({ "max_tokens": "many" }), "/max_tokens", "a whole number from 1"),
    ];
    for (fields, path, message) in cases {
        check(&with(by_chat(), fields), &[(path, message)]);
    }
}

#[test]
fn durations_are_read() {
    let cases = [("2s", 2), ("5m", 300), ("1h30m", 5_400), ("1d12h", 129_600), ("7d", 604_800), ("90s", 90)];
    for (duration, seconds) in cases {
        let agent = agent(&with(by_a2a(), json!({ "poll": { "give_up": duration } })));
        assert_eq!(agent.poll.give_up, seconds, "{duration}");
    }
    let agent = agent(&with(by_a2a(), json!({ "poll": { "first": "10m" } })));
    assert_eq!((agent.poll.first, agent.poll.most), (600, 600), "what was left out gives way");
}

#[test]
fn the_prompt_and_the_notification_need_a_place_among_the_arguments() {
    let good = [
        json!({ "all": "{input}" }),
        json!({ "deep": [{ "a": "{prompt}" }, "{notification}"], "mode": "fast", "n": 1 }),
    ];
    for arguments in good {
        agent(&with(by_tool(), json!({ "arguments": arguments })));
    }
    let bad = [
        json!({}),
        json!({ "{prompt}": "{notification}" }),
        json!({ "a": "say {prompt} {notification}" }),
        json!({ "a": "{prompt}", "b": "{id}" }),
        json!("{input}"),
    ];
    for arguments in bad {
        check(&with(by_tool(), json!({ "arguments": arguments })), &[("/arguments", "{notification}")]);
    }
    check(&with(by_tool(), json!({ "tool": KEY })), &[("/tool", "cannot be a secret")]);
    let secret = json!({ "all": "{input}", "deep": [{ "key": KEY }] });
    check(&with(by_tool(), json!({ "arguments": secret })), &[("/arguments", "no argument can be a secret")]);
    let long = json!({ "all": "{input}", "pad": "x".repeat(20_000) });
    check(&with(by_tool(), json!({ "arguments": long })), &[("/arguments", "longer than 16384 bytes")]);
}

#[test]
fn a_destination_is_told_apart_by_place_and_key_and_shows_no_secret() {
    let destination = |settings: &Value| AgentRun::check(settings.to_string()).unwrap();
    let labels = [
        (by_a2a(), "agent at agents.example"),
        (by_responses(), "gpt-5 at api.openai.com"),
        (by_messages(), "claude-5 at api.anthropic.com"),
        (by_tool(), "tool start_agent of desk"),
        (with(by_a2a(), json!({ "url": KEY })), "agent at a secret URL"),
    ];
    for (settings, label) in labels {
        assert_eq!(destination(&settings).label, label);
    }
    let lane = |settings: &Value| destination(settings).lanes[0].key.clone();
    assert_ne!(lane(&by_responses()), lane(&with(by_responses(), json!({ "api_key": "sk-another-key" }))));
    assert_ne!(lane(&by_responses()), lane(&with(by_responses(), json!({ "model": "gpt-5-mini" }))));
    assert_eq!(lane(&by_responses()), lane(&with(by_responses(), json!({ "prompt": "Other." }))));
    let written_out = format!("{:?}", destination(&with(by_a2a(), json!({ "api_key": "sk-hunter2" }))));
    assert!(!written_out.contains("hunter2"), "{written_out}");
}

#[test]
fn it_describes_itself_as_an_agent_that_is_harmful_to_repeat() {
    let manifest: Value = serde_json::from_str(&AgentRun::describe()).unwrap();
    assert_eq!((&manifest["name"], &manifest["agent"]), (&json!("agent-run"), &json!(true)));
    assert_eq!((&manifest["repeat"], &manifest["needs"]), (&json!("harmful"), &json!(["data"])));
    let known = manifest["settings"]["properties"].as_object().unwrap();
    let said = AgentRun::check(json!({ "protocol": "a2a", "x": 1 }).to_string()).unwrap_err();
    let said = said.into_iter().find(|problem| problem.path == "/x").unwrap().message;
    assert!(known.keys().all(|name| said.contains(name.as_str())), "{said}");
    assert_eq!(known.len(), said.split(", ").count());
}
