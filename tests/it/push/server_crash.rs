//! The promise to consumers: killed at any point and started again, the server loses no event that was not acknowledged, and
//! what was acknowledged does not come again.

use std::collections::BTreeSet;

use serde_json::json;

use super::server_stage::{Consumer, GET, ids};
use crate::support::{Outbox, Server, Sink, World, python_outbox, workspace};

struct Crashing {
    sink: Sink,
    world: World,
    outbox: Outbox,
    server: Server,
    token: String,
    /// Rows of the outbox so far.
    rows: usize,
}

impl Crashing {
    async fn start(folder: &std::path::Path) -> Self {
        let outbox = python_outbox(folder);
        let sink = Sink::start().await;
        let world = World::new(&sink, &outbox.commands(), "{}");
        let file = workspace(&World::stdio_connector(), "{}");
        world.write(
            "workspaces/acme.yaml",
            &format!("{file}consumers: {{ triage: {{ when: {{ source: registrar }} }} }}\n"),
        );
        let mut server = Server::start(&world, &sink);
        server.wait_for("bootstrap=true");
        let asked = ["token", "create", "--role", "agent", "--workspace", "acme", "--consumer", "triage"];
        let token = world.json(&sink, &asked)["token"].as_str().unwrap().to_owned();
        Self { sink, world, outbox, server, token, rows: 0 }
    }

    fn consumer(&self) -> Consumer {
        Consumer::at(&format!("{}/mcp", self.server.url()), &self.token)
    }

    fn add(&mut self) {
        self.rows += 1;
        self.outbox.add(&["domain.active", "--title", &format!("event-{}", self.rows)]);
    }

    fn kill(self) -> Self {
        let Self { sink, world, outbox, server, token, rows } = self;
        server.kill();
        let server = Server::start(&world, &sink);
        Self { sink, world, outbox, server, token, rows }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_each_step_it_loses_nothing_and_repeats_nothing_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Crashing::start(folder.path()).await;
    let mut acknowledged = BTreeSet::new();
    for kills in 0..4 {
        let consumer = stage.consumer();
        let mut live = consumer.listen(json!(kills)).await;
        (0..3).for_each(|_| stage.add());
        // Told live, and killed before anything is acknowledged.
        let told = live.told().await;
        if kills == 0 {
            stage = stage.kill();
            while let Some(message) = live.next().await {
                assert!(message["method"].is_string(), "cut off without a result: {message}");
            }
        }
        let consumer = stage.consumer();
        let pending = consumer.pending().await;
        assert!(pending.contains(&told), "{pending:?}");
        assert!(acknowledged.is_disjoint(&BTreeSet::from_iter(pending.clone())), "{pending:?}");
        // Killed after a page was got.
        if kills == 1 {
            stage = stage.kill();
            assert!(stage.consumer().pending().await.starts_with(&pending));
        }
        let first = pending[0].clone();
        stage.consumer().acknowledge(&[&first]).await;
        acknowledged.insert(first);
        // Killed right after an acknowledgement was answered.
        if kills == 2 {
            stage = stage.kill();
        }
    }
    let consumer = stage.consumer();
    let mut live = consumer.listen(json!("end")).await;
    while acknowledged.len() < stage.rows {
        let page = ids(&consumer.result(GET, json!({})).await);
        assert!(acknowledged.is_disjoint(&BTreeSet::from_iter(page.clone())), "{page:?}");
        if page.is_empty() {
            // Still on its way from the outbox: it comes live.
            live.told().await;
            continue;
        }
        consumer.acknowledge(&page.iter().map(String::as_str).collect::<Vec<_>>()).await;
        acknowledged.extend(page);
    }
    assert_eq!(consumer.pending().await, Vec::<String>::new());
}
