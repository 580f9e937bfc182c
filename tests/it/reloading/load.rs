//! A hundred reloads while events come in and are delivered: nothing is lost, doubled or told twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use switchbell::app::{App, Origin};
use switchbell::clock::Clock;
use switchbell::telemetry::Nobody;

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

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_reloads_under_load_lose_and_double_nothing() {
    let mut stage = Stage::new().await;
    let commands = stage.posting.outbox.commands();
    let again = commands.replacen("{ outbox: {", "again: {", 1);
    let both = format!("{}, {}", commands.trim_end_matches(" }"), again);
    stage.edit("switchbell.yaml", &commands, &both);
    let at = format!("http://{}", stage.posting.endpoint.address);
    let base = stage.read("workspaces/acme.yaml");
    let environment = Arc::new(|name: &str| (name != "HOME").then(|| "http://127.0.0.1:9/a-long-value".into()));
    let (origin, _) = Origin::read(&stage.posting.world.config(), environment).unwrap();
    let mut app = App::start(origin, Clock::system(), Arc::new(Nobody)).await.unwrap();
    stage.check(&["connector", "poll", "registrar"], 0, &[]);

    let titles: Vec<String> = (0..EVENTS).map(|number| format!("event {number}")).collect();
    let mut adding = stage.posting.outbox.add_all(titles.clone());
    for number in 0..RELOADS {
        stage.posting.world.write("workspaces/acme.yaml", &version(&base, &at, number));
        let taken = app.reload().reload().await.unwrap();
        assert!(taken.aside.is_empty() && taken.older.is_empty(), "{taken:?}");
    }
    assert!(adding.wait().unwrap().success());
    let mut count: BTreeMap<(String, String), usize> = BTreeMap::new();
    let hooks = |count: &BTreeMap<(String, String), usize>| count.keys().filter(|(path, _)| path == "/hook").count();
    while hooks(&count) < EVENTS {
        let arrived = tokio::time::timeout(PATIENCE, stage.posting.endpoint.next()).await.unwrap();
        *count.entry((arrived.target, arrived.body)).or_default() += 1;
    }
    assert!(count.values().all(|times| *times == 1), "something was delivered twice: {count:?}");
    for title in &titles {
        assert!(count.contains_key(&("/hook".to_owned(), title.clone())), "{title} is lost");
    }
    app.stop().await;
    app = App::start(
        Origin::read(&stage.posting.world.config(), Arc::new(|_: &str| Some("http://127.0.0.1:9/a-long-value".into())))
            .unwrap()
            .0,
        Clock::system(),
        Arc::new(Nobody),
    )
    .await
    .unwrap();
    assert_eq!(stage.posting.endpoint.left(), 0, "a start finds nothing that was left");
    app.stop().await;
}
