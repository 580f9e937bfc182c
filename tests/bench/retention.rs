//! What those who write wait for while old notifications go, next to what they wait for otherwise.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use switchbell::inbox::{Ended, Entry, Expiry, Intake, Store};
use switchbell::notification::Level;

use crate::page::fill;
use crate::world::{World, name, notification};
use crate::{ROUNDS, median};

/// Notifications that are there to go in each round.
const OLD: u64 = 100_000;
/// As the server removes them.
const BATCH: u32 = 50;
/// Writes that are timed in each round, a millisecond apart.
const WRITES: u64 = 1_000;

pub async fn run() {
    let world = World::new(1).await;
    println!(
        "\nretention: {WRITES} writes of one event each, a millisecond apart, beside old notifications that go in {BATCH}s"
    );
    let (mut alone, mut beside, mut ratios, mut rates) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let store: Arc<dyn Store> = Arc::new(world.inbox(&format!("retention-{round}.db")));
        fill(&*store, OLD).await;
        let without = writes(&*store, "alone").await;
        let stop = Arc::new(AtomicBool::new(false));
        let removing = tokio::spawn(remove(Arc::clone(&store), Arc::clone(&stop)));
        let with = writes(&*store, "beside").await;
        stop.store(true, Ordering::Relaxed);
        rates.push(removing.await.expect("the removal"));
        ratios.push(with / without);
        alone.push(without);
        beside.push(with);
    }
    println!(
        "  p99 alone {:.2} ms, beside {:.2} ms: {:.2} times; {:.0} notifications went a second",
        median(alone),
        median(beside),
        median(ratios),
        median(rates)
    );
}

/// How long the slowest hundredth of the writes took at least, in milliseconds.
async fn writes(store: &dyn Store, kind: &str) -> f64 {
    let mut times = Vec::new();
    for number in 0..WRITES {
        let mut event = notification(number).event;
        event.event_id = format!("{kind}-{number}");
        let intake = Intake {
            workspace: name("globex"),
            source: name("registrar"),
            received_at: Timestamp::UNIX_EPOCH,
            is_first: false,
            entries: vec![Entry { event, effective_level: Level::Attention, owed: Vec::new(), consumers: Vec::new() }],
            notices: Vec::new(),
            cursor: None,
            ended: Ended::Answered { revision: None, is_backlog: false },
        };
        let began = Instant::now();
        store.accept(intake).await.expect("a write");
        times.push(began.elapsed().as_secs_f64() * 1e3);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    times.sort_by(f64::total_cmp);
    times.get(times.len() * 99 / 100).copied().unwrap_or(f64::NAN)
}

/// Removes what came at the beginning of time until it is told to stop or nothing is left; returns how many went a second.
pub async fn remove(store: Arc<dyn Store>, stop: Arc<AtomicBool>) -> f64 {
    let (began, mut gone) = (Instant::now(), 0);
    while !stop.load(Ordering::Relaxed) {
        let batch = Instant::now();
        let before = Timestamp::UNIX_EPOCH.checked_add(Duration::from_secs(1)).ok();
        let expiry = Expiry { before, ..Expiry::default() };
        let found = store.expiring(&name("acme"), expiry, BATCH).await.expect("a list");
        if found.items.is_empty() {
            break;
        }
        let seqs = found.items.iter().map(|(one, _)| one.seq).collect();
        gone += store.expire(&name("acme"), seqs, Timestamp::UNIX_EPOCH).await.expect("a removal").notifications;
        // As the server leaves the store to others.
        tokio::time::sleep(batch.elapsed()).await;
    }
    gone as f64 / began.elapsed().as_secs_f64()
}
