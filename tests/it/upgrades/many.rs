//! Many versions and many files, while deliveries go on.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::Signal;

use super::stand::{Stand, says};
use crate::support::{prepared, versioned};

const SWAPS: usize = 10;
const EVENTS_PER_SWAP: usize = 30;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_that_are_swapped_under_load_lose_fail_and_double_nothing() {
    let mut stand = Stand::new().await;
    stand.put(&versioned("versioned", "1.0.0", "content"));
    let files = ["1.0.0", "1.1.0"]
        .map(|version| stand.aside(&format!("{version}.wasm"), &versioned("versioned", version, "content")));
    let server = stand.posting.begin();
    let titles: Vec<String> = (0..SWAPS * EVENTS_PER_SWAP).map(|number| format!("event-{number}")).collect();
    let mut arrived = Vec::new();
    for (swap, some) in titles.chunks(EVENTS_PER_SWAP).enumerate() {
        let mut adding = stand.posting.outbox.add_all(some.to_vec());
        // All of those before, and the first of these; the others are on their way while the version changes.
        while arrived.len() < swap * EVENTS_PER_SWAP + 5 {
            arrived.push(stand.posting.endpoint.next().await.body);
        }
        let (code, out, error) = stand.run(&["plugin", "load", &files[(swap + 1) % 2]]);
        assert_eq!(code, 0, "{out}{error}");
        says(&out, &["runs now; before it "]);
        assert!(adding.wait().unwrap().success());
    }
    while arrived.len() < titles.len() {
        arrived.push(stand.posting.endpoint.next().await.body);
    }
    server.stop(Signal::TERM);
    assert_eq!(stand.posting.endpoint.left(), 0, "something arrived twice");
    let (mut seen, mut by_body) = (BTreeSet::new(), Vec::new());
    for body in &arrived {
        let (title, version) = body.split_once('\n').unwrap();
        seen.insert(title.to_owned());
        by_body.push(version.to_owned());
    }
    assert_eq!(seen, titles.iter().cloned().collect());
    let (code, out, error) = stand.run(&["deliveries", "list", "--json", "--limit", "1000"]);
    assert_eq!(code, 0, "{error}");
    let deliveries: serde_json::Value = serde_json::from_str(&out).unwrap();
    for delivery in deliveries.as_array().unwrap() {
        assert_eq!((&delivery["state"], delivery["attempts"].as_array().unwrap().len()), (&"delivered".into(), 1));
    }
    let mut by_record: Vec<String> = stand.attempts().into_iter().map(|(version, _)| version).collect();
    by_record.sort_unstable();
    by_body.sort_unstable();
    assert_eq!(by_record, by_body, "each attempt names the version that made it");
    by_body.dedup();
    assert_eq!(by_body, ["1.0.0", "1.1.0"]);
}

#[tokio::test]
async fn fifty_files_at_once_are_all_loaded_while_deliveries_go_on() {
    const FILES: usize = 50;
    let mut stand = Stand::new().await;
    let mut server = stand.posting.begin();
    let smallest = fs::read(prepared("dist/guests/smallest.wasm", "guests")).unwrap();
    let place = smallest.windows(10).position(|window| window == br#""smallest""#).unwrap();
    for number in 0..FILES {
        let name = format!("many-{number:03}");
        let mut bytes = smallest.clone();
        bytes[place + 1..place + 9].copy_from_slice(name.as_bytes());
        fs::write(stand.path(&format!("plugins/{name}.wasm")), bytes).unwrap();
    }
    let mut loaded = 0;
    while loaded < FILES {
        server.wait_for("a plugin is loaded");
        loaded += 1;
        if loaded % 10 == 0 {
            let title = format!("beside {loaded}");
            stand.posting.add(&["--title", &title]);
            assert_eq!(stand.posting.endpoint.next().await.body, title);
        }
    }
    let (_, out, _) = stand.run(&["plugin", "list", "--json"]);
    let rows: serde_json::Value = serde_json::from_str(&out).unwrap();
    let runs = rows.as_array().unwrap().iter().filter(|row| row["state"] == "runs").count();
    // With the two that were there.
    assert_eq!(runs, FILES + 2, "{out}");
}

#[tokio::test]
async fn a_file_that_flaps_between_good_versions_comes_to_rest_on_the_last_and_fails_nothing() {
    let mut stand = Stand::new().await;
    let mut server = stand.posting.begin();
    flap(&mut stand, &versioned("versioned", "1.1.0", "content")).await;
    stand.put(&versioned("versioned", "1.2.0", "content"));
    server.wait_for("version=1.2.0");
    assert_eq!(stand.deliver(&mut server, "last").await.1, "last\n1.2.0");
    assert!(stand.attempts().iter().all(|(version, _)| version.starts_with("1.")));
}

#[tokio::test]
async fn a_file_that_flaps_between_good_and_bad_never_stops_what_runs() {
    let mut stand = Stand::new().await;
    let mut server = stand.posting.begin();
    flap(&mut stand, &versioned("versioned", "1.1.0", "describe-traps")).await;
    assert!(stand.attempts().iter().all(|(version, _)| version == "1.0.0"));
    stand.put(&versioned("versioned", "1.2.0", "content"));
    server.wait_for("version=1.2.0");
    assert_eq!(stand.listed()["why"], serde_json::Value::Null);
    assert_eq!(stand.deliver(&mut server, "last").await.1, "last\n1.2.0");
}

/// Puts this and what ran at first into the folder in turn; each time a delivery is made at once.
async fn flap(stand: &mut Stand, other: &[u8]) {
    let first = versioned("versioned", "1.0.0", "plain");
    for turn in 0..16 {
        stand.put(if turn % 2 == 0 { other } else { &first });
        let title = format!("turn {turn}");
        stand.posting.add(&["--title", &title]);
        assert_eq!(stand.posting.endpoint.next().await.body.lines().next(), Some(title.as_str()));
    }
    let (_, out, _) = stand.run(&["deliveries", "list", "--json", "--limit", "1000"]);
    let deliveries: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(deliveries.as_array().unwrap().iter().all(|delivery| delivery["attempts"].as_array().unwrap().len() <= 1));
}
