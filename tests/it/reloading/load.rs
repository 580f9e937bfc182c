//! A hundred reloads while events come in and are delivered: nothing is lost, doubled or told twice.

use std::collections::BTreeMap;

use rustix::process::Signal;
use serde_json::json;

use super::stage::Stage;
use crate::support::PATIENCE;

const RELOADS: usize = 100;
const EVENTS: usize = 300;

/// The workspace's file in its nth version: a route that comes and goes, a ceiling and waits that change, and now and then
/// another way to reach the outbox.
fn version(base: &str, at: &str, number: usize) -> String {
    let mut text = base.to_owned();
    if number.is_multiple_of(2) {
        text.push_str(&format!(
            "  - name: extra\n    owner: admin@example.com\n    when: {{ name: \"domain.*\" }}\n    deliver:\n      - {{ \
             plugin: versioned, id: extra, with: {{ url: \"{at}/extra\" }} }}\n"
        ));
    }
    if number.is_multiple_of(3) {
        text = text.replace("ceiling: attention", "poll: { base: 60ms, floor: 20ms }, ceiling: urgent");
    }
    if number.is_multiple_of(5) {
        text = text.replace("name: everything", "name: all");
    }
    if (number / 10).is_multiple_of(2) { text } else { text.replace("command: outbox", "command: again") }
}

/// What did not come to a good end.
fn left(stage: &Stage) -> String {
    let text = |arguments: &[&str]| stage.run(arguments).1;
    let connectors = text(&["connector", "list"]);
    let inbox = stage.json(&["inbox", "list", "--limit", "1000"]).as_array().unwrap().len();
    let deliveries = stage.json(&["deliveries", "list", "--limit", "1000"]);
    let is_bad = |of: &&serde_json::Value| of["state"] != "delivered";
    let bad: Vec<_> = deliveries.as_array().unwrap().iter().filter(is_bad).take(20).collect();
    format!("{connectors}{inbox} in the inbox\n{bad:#?}")
}

#[tokio::test]
async fn a_hundred_reloads_under_load_lose_and_double_nothing() {
    let mut stage = Stage::new().await;
    let commands = stage.posting.outbox.commands();
    let outbox = commands.strip_prefix("{ ").and_then(|rest| rest.strip_suffix(" }")).unwrap();
    let both = format!("{{ {outbox}, {} }}", outbox.replacen("outbox: {", "again: {", 1));
    stage.edit("switchbell.yaml", &commands, &both);
    let at = format!("http://{}", stage.posting.endpoint.address);
    let base = stage.read("workspaces/acme.yaml");
    let server = stage.begin();
    let titles: Vec<String> = (0..EVENTS).map(|number| format!("event {number}")).collect();
    let mut adding = stage.posting.outbox.add_all(titles.clone());
    for number in 0..RELOADS {
        stage.posting.world.write("workspaces/acme.yaml", &version(&base, &at, number));
        let taken = stage.ask_for_a_reload().await;
        assert_eq!((&taken["aside"], &taken["older"]), (&json!([]), &json!([])), "{taken}");
    }
    assert!(adding.wait().unwrap().success());
    let mut count: BTreeMap<(String, String), usize> = BTreeMap::new();
    let hooks = |count: &BTreeMap<(String, String), usize>| count.keys().filter(|(path, _)| path == "/hook").count();
    while hooks(&count) < EVENTS {
        let Ok(arrived) = tokio::time::timeout(PATIENCE / 2, stage.posting.endpoint.next()).await else {
            panic!("{} of {EVENTS} arrived: {}", hooks(&count), left(&stage));
        };
        *count.entry((arrived.target, arrived.body)).or_default() += 1;
    }
    // A stop waits for what is under way; the next start would find what was left.
    let (status, _, said) = server.stop(Signal::TERM);
    assert!(status.success(), "{said}");
    let mut again = stage.posting.serve();
    again.wait_for("read the outbox");
    stage.add("last");
    let mut last = false;
    while !last {
        let arrived = stage.posting.endpoint.next().await;
        last = (arrived.target.as_str(), arrived.body.as_str()) == ("/hook", "last");
        *count.entry((arrived.target, arrived.body)).or_default() += 1;
    }
    assert!(count.values().all(|times| *times == 1), "something was delivered twice: {count:?}");
    for title in &titles {
        assert!(count.contains_key(&("/hook".to_owned(), title.clone())), "{title} is lost");
    }
    again.stop(Signal::TERM);
}
