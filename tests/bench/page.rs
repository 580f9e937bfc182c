//! A page of 100 out of an inbox of a million, by what is asked for.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use switchbell::inbox::{Actor, Deed, Ended, Entry, Intake, Mark, Order, Query, Store};
use switchbell::notification::Level;
use switchbell::route::{Matcher, PreparedMatcher};

use crate::median;
use crate::world::{World, name, notification};

pub const NOTIFICATIONS: u64 = 1_000_000;
const BATCH: u64 = 1_000;
const PAGES: usize = 51;
/// One in so many is urgent, and one in so many is unread.
const FEW: u64 = 5_000;

pub async fn run() {
    let world = World::new(1).await;
    let began = Instant::now();
    let store: Arc<dyn Store> = Arc::new(world.inbox("page.db"));
    fill(&*store, NOTIFICATIONS).await;
    println!(
        "\npage: 100 of {NOTIFICATIONS} notifications, {PAGES} times, medians (made in {:.0} s)",
        began.elapsed().as_secs_f64()
    );
    let all = || Query::all(name("acme"), 100);
    let when = |matcher| Some(Arc::new(PreparedMatcher::new(matcher).expect("a matcher")));
    let urgent = Matcher { level: Some(Level::Urgent), ..Matcher::default() };
    let named = Matcher { name: vec!["domain.*".to_owned()], ..Matcher::default() };
    let oldest = Query { order: Order::Oldest, ..all() };
    let middle = Some(NOTIFICATIONS / 2);
    let asked = [
        ("the newest", all()),
        ("the oldest", oldest.clone()),
        ("before the middle", Query { before: middle, ..all() }),
        ("after the middle", Query { after: middle, ..oldest.clone() }),
        ("unread, of which there are few", Query { is_unread: true, ..all() }),
        ("urgent, of which there are few", Query { when: when(urgent.clone()), ..all() }),
        ("urgent and unread", Query { is_unread: true, when: when(urgent), ..all() }),
        ("by name", Query { when: when(named), ..all() }),
        ("by a text that all have", Query { text: Some("MAILBOXES".to_owned()), ..all() }),
        ("by a text that none has", Query { text: Some("nowhere".to_owned()), ..all() }),
    ];
    for (label, query) in asked {
        let mut times = Vec::new();
        let mut found = 0;
        for _ in 0..PAGES {
            let began = Instant::now();
            found = store.list(query.clone()).await.expect("a list").items.len();
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
        println!("  {label:<32} {:>7.2} ms  ({found} found)", median(times));
    }
    let mut times = Vec::new();
    for _ in 0..PAGES {
        let began = Instant::now();
        store.unread(&name("acme"), 1_000).await.expect("a number");
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    println!("  {:<32} {:>7.2} ms", "how many are unread", median(times));
}

/// Fills an inbox with notifications that are all read, but for few.
pub async fn fill(store: &dyn Store, count: u64) {
    let mark = Mark { at: Timestamp::UNIX_EPOCH, by: Actor { name: "a@example.com".to_owned(), is_agent: false } };
    for first in (1..=count).step_by(BATCH as usize) {
        let seqs = first..first + BATCH;
        let intake = Intake {
            workspace: name("acme"),
            source: name("registrar"),
            received_at: Timestamp::UNIX_EPOCH,
            is_first: false,
            entries: seqs.clone().map(entry).collect(),
            notices: Vec::new(),
            cursor: None,
            ended: Ended::Answered { revision: None, is_backlog: false },
        };
        store.accept(intake).await.expect("a write");
        let read = seqs.filter(|seq| seq % FEW != 0).collect();
        store.mark(&name("acme"), read, Deed::Read, mark.clone()).await.expect("a mark");
    }
}

fn entry(seq: u64) -> Entry {
    let event = notification(seq).event;
    let effective_level = match seq {
        _ if seq % FEW == 7 => Level::Urgent,
        _ if seq.is_multiple_of(2) => Level::Attention,
        _ => Level::Info,
    };
    Entry { event, effective_level, owed: Vec::new(), consumers: Vec::new() }
}
