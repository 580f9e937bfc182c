//! The program as a client of a push queue, over HTTP.

use serde::Deserialize;

use super::client_stage::{Peer, Step};
use crate::support::{Server, Sink, World, run};

/// What no reader of JSON into values gives back.
const DATA: &str = r#"{ "b":1.0,"a":1e400, "n":123456789012345678901234567890, "é":"\u0041" }"#;
const CONTENT: &str = r#"[ {"type":"text", "text":"exited with 1\nand more"},{"x":1.0,"type":"later"}]"#;

/// What of a notification can be read whatever its data is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct One {
    source: String,
    event_id: String,
    name: String,
    title: String,
    body: Option<String>,
}

/// The ids in the inbox that came from the queue, oldest first.
fn ids(world: &World, sink: &Sink) -> Vec<String> {
    let (_, listed, _) = run(world, sink, &["inbox", "list", "--limit", "1000", "--json"]);
    let listed: Vec<One> = serde_json::from_str(&listed).unwrap();
    listed.into_iter().rev().filter(|one| one.source == "shell").map(|one| one.event_id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_pending_and_what_comes_live_arrives_byte_for_byte() {
    let (peer, sink) = (Peer::start().await, Sink::start().await);
    let world = World::new(&sink, "{}", &peer.connector());
    peer.emit("pending", &format!(r#","content":{CONTENT},"data":{DATA}"#));
    let server = Server::start(&world, &sink);
    peer.drained().await;
    peer.emit("live", &format!(r#","data":{DATA},"content":{CONTENT}"#));
    peer.drained().await;
    assert_eq!(ids(&world, &sink), ["pending", "live"]);
    let (_, listed, _) = run(&world, &sink, &["inbox", "list", "--json"]);
    assert_eq!((listed.matches(DATA).count(), listed.matches(CONTENT).count()), (2, 2), "{listed}");
    let listed: Vec<One> = serde_json::from_str(&listed).unwrap();
    let said: Vec<_> = listed.iter().map(|one| (one.name.as_str(), one.title.as_str(), one.body.as_deref())).collect();
    assert_eq!(said, [("process.exited", "exited with 1", Some("and more")); 2]);
    assert_eq!(peer.undeclared(), 0, "every request says what we speak");
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_cut_off_is_opened_anew_and_nothing_is_missed() {
    let (peer, sink) = (Peer::start().await, Sink::start().await);
    let world = World::new(&sink, "{}", &peer.connector());
    let server = Server::start(&world, &sink);
    for number in 1..=3_usize {
        peer.listened(number).await;
        peer.cut();
        peer.emit(&format!("e{number}"), "");
    }
    peer.drained().await;
    assert_eq!(ids(&world, &sink), ["e1", "e2", "e3"]);
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_each_step_it_loses_nothing_and_has_nothing_twice() {
    let (peer, sink) = (Peer::start().await, Sink::start().await);
    let world = World::new(&sink, "{}", &peer.connector());
    let steps = [Step::Get, Step::Answered, Step::AckBefore, Step::AckAfter];
    let mut expected = Vec::new();
    for (number, step) in steps.into_iter().enumerate() {
        for event in 0..3 {
            expected.push(format!("e{number}-{event}"));
            peer.emit(expected.last().unwrap(), &format!(r#","data":{DATA}"#));
        }
        peer.stand_at(Some(step));
        let server = Server::spawn_serving(&world, &sink);
        peer.stood().await;
        server.kill();
        peer.stand_at(None);
        let server = Server::start(&world, &sink);
        peer.drained().await;
        server.kill();
        assert_eq!(ids(&world, &sink), expected, "{step:?}");
    }
    let mut acked = peer.acked();
    acked.dedup();
    assert_eq!(acked, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_fetches_without_a_server_and_sees_how_it_does() {
    let (peer, sink) = (Peer::start().await, Sink::start().await);
    let world = World::new(&sink, "{}", &peer.connector());
    peer.emit("a", "");
    peer.emit("bad", r#","data":7"#);
    let polled = world.json(&sink, &["connector", "poll", "shell"]);
    assert_eq!((&polled["events"], &polled["new"], &polled["dropped"]), (&2.into(), &1.into(), &1.into()), "{polled}");
    assert_eq!(peer.acked(), ["a", "bad"]);
    assert!(!peer.log().iter().any(|method| method == super::server_stage::LISTEN), "nobody is thrown out for it");
    let listed = world.json(&sink, &["inbox", "list"]);
    assert_eq!(listed[0]["name"], "connector.dropped", "{listed}");
    assert_eq!(listed[0]["data"]["refused"][0]["eventId"], "bad", "{listed}");
}
