//! The promise: killed at any point and started again, it loses no event and no delivery.

use std::collections::BTreeSet;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Outbox, Server, Sink, World, python_outbox};

const EVENTS: usize = 40;
const KILLS: usize = 8;

/// The numbers of the events that arrived at the sink.
fn numbers(messages: &[Value]) -> BTreeSet<usize> {
    let number = |message: &Value| {
        let text = message.to_string();
        let digits: String = text.split("event-").nth(1).unwrap().chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    };
    messages.iter().map(number).collect()
}

fn undelivered(world: &World, sink: &Sink) -> usize {
    let listed = world.json(sink, &["deliveries", "list", "--limit", "1000"]);
    listed.as_array().unwrap().iter().filter(|delivery| delivery["state"] != "delivered").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_again_and_again_it_loses_no_event_and_no_delivery() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = python_outbox(folder.path());
    let mut sink = Sink::start().await;
    let world = World::new(&sink, &outbox.commands(), &World::stdio_connector());
    let mut server = Server::start(&world, &sink);
    server.wait_for("bootstrap=true");
    let adding = std::thread::spawn(move || (1..=EVENTS).for_each(|number| add(&outbox, number)));

    let mut seen = BTreeSet::new();
    for kill in 0..KILLS {
        // Killed while an answer is on its way, while it is recorded, while the next events are written, or at once.
        for _ in 0..kill % 4 {
            if seen.len() < EVENTS {
                seen.extend(numbers(&[sink.next().await]));
            }
        }
        server.kill();
        server = Server::start(&world, &sink);
    }
    adding.join().unwrap();
    while seen.len() < EVENTS {
        seen.extend(numbers(&[sink.next().await]));
    }
    server.stop(Signal::TERM);
    while undelivered(&world, &sink) > 0 {
        let mut server = Server::start(&world, &sink);
        server.wait_for(" delivered ");
        server.stop(Signal::TERM);
    }

    let listed = world.json(&sink, &["inbox", "list", "--limit", "1000"]);
    let seqs: Vec<u64> = listed.as_array().unwrap().iter().map(|one| one["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=EVENTS as u64).rev().collect::<Vec<_>>(), "every event is in the inbox once, without a gap");
    assert_eq!(seen, (1..=EVENTS).collect());
}

fn add(outbox: &Outbox, number: usize) {
    outbox.add(&["domain.active", "--title", &format!("event-{number}")]);
}
