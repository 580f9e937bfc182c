//! The inbox as an outbox.

use std::process::Command;

use serde_json::{Value, json};
use switchbell::notification::{Event, Level};

use super::stage::{Stage, event};

const OUTBOX: &str = "switchbell://notifications";

fn after(cursor: &str, seq: u64) -> String {
    format!("{}-{seq}", cursor.rsplit_once('-').unwrap().0)
}

fn page(cursor: &str, events_max: u32, age_ms: u64) -> String {
    format!("{OUTBOX}?cursor={cursor}&maxEvents={events_max}&maxAgeMs={age_ms}")
}

const QUARTER_MS: u64 = 7_776_000_000;

fn ids(page: &Value) -> Vec<&str> {
    page["events"].as_array().unwrap().iter().map(|event| event["eventId"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_read_starts_from_now_and_later_ones_bring_what_came() {
    let stage = Stage::start().await;
    let token = stage.agent().await;
    let empty = stage.read(&token, OUTBOX).await;
    assert_eq!((ids(&empty), &empty["truncated"], &empty["hasMore"]), (vec![], &json!(false), &json!(false)));
    stage.accept("acme", "crm", vec![event("before")]).await;
    let start = stage.read(&token, &format!("{OUTBOX}?maxEvents=1&maxAgeMs=1")).await;
    assert_eq!(ids(&start), Vec::<&str>::new());
    stage.accept("acme", "crm", vec![event("1"), event("2"), event("3")]).await;
    stage.accept("globex", "crm", vec![event("theirs")]).await;

    let cursor = start["cursor"].as_str().unwrap();
    let first = stage.read(&token, &page(cursor, 2, QUARTER_MS)).await;
    assert_eq!((ids(&first), &first["hasMore"]), (vec!["acme:crm:1", "acme:crm:2"], &json!(true)));
    assert_eq!(first["cursor"], first["events"][1]["cursor"]);
    assert!(first["nextPollMs"].as_u64().is_some_and(|wait| wait > 0));
    let second = stage.read(&token, &page(first["cursor"].as_str().unwrap(), 2, QUARTER_MS)).await;
    assert_eq!(
        (ids(&second), &second["hasMore"], &second["truncated"]),
        (vec!["acme:crm:3"], &json!(false), &json!(false))
    );
    let end = stage.read(&token, &page(second["cursor"].as_str().unwrap(), 2, QUARTER_MS)).await;
    assert_eq!((ids(&end), &end["cursor"], &end["hasMore"]), (vec![], &second["cursor"], &json!(false)));
    let whole = stage.read(&token, &page(&after(cursor, 0), 500, QUARTER_MS)).await;
    assert_eq!(ids(&whole), ["acme:crm:before", "acme:crm:1", "acme:crm:2", "acme:crm:3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_handed_on_as_it_came_at_the_level_of_the_inbox() {
    let stage = Stage::start().await;
    let token = stage.agent().await;
    let bare = Event { subject: None, body: None, link: None, level: Level::Info, ..event(&"x".repeat(200)) };
    stage.accept("acme", "crm", vec![Event { level: Level::Urgent, ..event("one") }, bare]).await;
    let start = stage.read(&token, OUTBOX).await;
    let cursor = after(start["cursor"].as_str().unwrap(), 0);
    let uri = page(&cursor, 100, QUARTER_MS);
    let found = stage.result(&token, "resources/read", json!({ "uri": uri })).await;
    let text = found["contents"][0]["text"].as_str().unwrap();
    assert!(text.contains(&format!("\"data\":{}", event("one").data)), "{text}");
    let found: Value = serde_json::from_str(text).unwrap();
    let one = &found["events"][0];
    assert_eq!((&one["name"], &one["timestamp"]), (&json!("domain.active"), &json!("2026-09-01T18:42:10Z")));
    let block = json!({
        "subject": "a.example", "level": "attention", "title": "title of one", "body": "more\nof it",
        "link": { "resource": "acme://domains/a" },
    });
    assert_eq!(one["_meta"], json!({ "ai.nimblebrain/notification": block }));
    let two = &found["events"][1];
    let digest = ring::digest::digest(&ring::digest::SHA256, format!("acme:crm:{}", "x".repeat(200)).as_bytes());
    let digits: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(two["eventId"], json!(format!("sha256:{digits}")));
    let title = format!("title of {}", "x".repeat(200));
    assert_eq!(two["_meta"], json!({ "ai.nimblebrain/notification": { "level": "info", "title": title } }));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_reader_missed_is_told() {
    let stage = Stage::start().await;
    let token = stage.agent().await;
    stage.accept("acme", "crm", ["1", "2", "3"].map(event).to_vec()).await;
    let start = stage.read(&token, OUTBOX).await;
    let newest = start["cursor"].as_str().unwrap();
    // Too old for this reader.
    let old = stage.read(&token, &page(&after(newest, 1), 100, 0)).await;
    assert_eq!((ids(&old), &old["truncated"], &old["cursor"]), (vec![], &json!(true), &json!(newest)));
    // Of another inbox, or of none: from now on, and something was missed.
    let operator = stage.token(json!({ "role": "operator" })).await;
    let theirs = stage.read(&operator, &format!("{OUTBOX}/globex")).await["cursor"].as_str().unwrap().to_owned();
    // One that is further than this inbox ever was: it was restored from a copy.
    for unknown in ["made-up", &theirs, &after(newest, 99)] {
        let found = stage.read(&token, &page(unknown, 100, QUARTER_MS)).await;
        let told = (ids(&found), &found["truncated"], &found["cursor"]);
        assert_eq!(told, (vec![], &json!(true), &json!(newest)), "{unknown}");
    }
    let known = stage.read(&token, &page(newest, 100, QUARTER_MS)).await;
    assert_eq!(known["truncated"], json!(false));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_kept_any_more_is_told_where_it_was_not_read() {
    let stage = Stage::start().await;
    let token = stage.agent().await;
    stage.accept("acme", "crm", ["1", "2", "3", "4"].map(event).to_vec()).await;
    let start = stage.read(&token, OUTBOX).await;
    let cursor = |seq| after(start["cursor"].as_str().unwrap(), seq);
    let store = rusqlite::Connection::open(stage.folder.path().join("data/switchbell.db")).unwrap();
    store.busy_timeout(crate::support::PATIENCE).unwrap();
    store.execute("DELETE FROM notification WHERE event_id IN ('1', '2')", []).unwrap();
    for (from, truncated) in [(0, true), (1, true), (2, false), (3, false)] {
        let found = stage.read(&token, &page(&cursor(from), 100, QUARTER_MS)).await;
        assert_eq!(found["truncated"], truncated, "{from}: {found}");
        assert_eq!(ids(&found).len() as u64, 4 - from.max(2), "{from}: {found}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inbox_that_was_emptied_tells_only_those_who_missed_something() {
    let stage = Stage::start().await;
    let token = stage.agent().await;
    stage.accept("acme", "crm", ["1", "2", "3", "4"].map(event).to_vec()).await;
    let level = stage.read(&token, OUTBOX).await["cursor"].as_str().unwrap().to_owned();
    let store = rusqlite::Connection::open(stage.folder.path().join("data/switchbell.db")).unwrap();
    store.busy_timeout(crate::support::PATIENCE).unwrap();
    // The oldest stays at first, as if it were owed.
    for gone in ["DELETE FROM notification WHERE event_id <> '1'", "DELETE FROM notification"] {
        store.execute(gone, []).unwrap();
        let fresh = stage.read(&token, OUTBOX).await;
        assert_eq!((&fresh["cursor"], &fresh["truncated"]), (&json!(level), &json!(false)), "{gone}");
        for (from, truncated) in [(2, true), (4, false)] {
            let found = stage.read(&token, &page(&after(&level, from), 100, QUARTER_MS)).await;
            let told = (ids(&found), &found["cursor"], &found["truncated"]);
            assert_eq!(told, (vec![], &json!(level), &json!(truncated)), "{gone} from {from}");
        }
    }
    stage.accept("acme", "crm", vec![event("5")]).await;
    let found = stage.read(&token, &page(&level, 100, QUARTER_MS)).await;
    assert_eq!((ids(&found), &found["truncated"]), (vec!["acme:crm:5"], &json!(false)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_an_error_that_names_it() {
    let stage = Stage::start().await;
    let token = stage.agent().await;
    for (uri, code, says) in [
        (format!("{OUTBOX}?maxEvents=none"), -32602, "maxEvents"),
        (format!("{OUTBOX}?maxEvents=0"), -32602, "maxEvents"),
        (format!("{OUTBOX}?cursor=x&maxAgeMs=-1"), -32602, "maxAgeMs"),
        ("switchbell://other".to_owned(), -32002, "there is no resource"),
        ("acme://notifications".to_owned(), -32002, "list the resources"),
    ] {
        let found = stage.ask(&token, "resources/read", json!({ "uri": uri })).await.json();
        let error = &found["error"];
        assert_eq!(error["code"], code, "{uri}: {found}");
        assert!(error["message"].as_str().unwrap().contains(says), "{uri}: {found}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn our_own_check_of_outboxes_finds_every_rule_kept() {
    let stage = Stage::start().await;
    let token = stage.agent().await;
    stage.accept("acme", "crm", (1..=7).map(|number| event(&number.to_string())).collect()).await;
    let start = stage.read(&token, OUTBOX).await;
    let cursor = after(start["cursor"].as_str().unwrap(), 0);
    let url = stage.url.clone();
    let arguments = ["outbox", "check", "--json", "--resource", OUTBOX, "--url", &url, "--bearer-env", "CHECK_TOKEN"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchbell"));
    command.args(arguments).args(["--cursor", &cursor]).env("CHECK_TOKEN", &token);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let with = |verdict: &str| {
        let rules = report["rules"].as_array().unwrap().iter().filter(|rule| rule["verdict"] == verdict);
        rules.map(|rule| rule["id"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((with("broken"), with("warning")), (vec![], vec![]), "{report:#}");
    assert_eq!((with("not_seen"), output.status.code()), (vec!["stdout"], Some(0)), "{report:#}");
    assert_eq!(report["revision"], "2026-07-28", "{report:#}");
}
