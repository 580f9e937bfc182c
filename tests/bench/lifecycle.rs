//! The life of a delivery in the store alone, from the committed event to the recorded outcome, next to the bare SQLite
//! statements that such a life needs at least: insert the event and the delivery, claim it, mark it done.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use jiff::Timestamp;
use rusqlite::{Connection, params};
use switchbell::clock::Clock;
use switchbell::inbox::book::{Admission, Book, QueueKey, Rule};
use switchbell::inbox::delivery::{Next, Outcome, State};
use switchbell::inbox::{Attempt, Change, Claim, Ended, Entry, Finished, Inbox, Intake, Owed};
use switchbell::route::timing::Timing;

use crate::world::{World, name, notification};
use crate::{ROUNDS, median, rate};

const EVENTS: usize = 40_000;
const BATCH: usize = 100;

pub async fn run() {
    let world = World::new(1).await;
    println!(
        "\nlife of a delivery in the store, {EVENTS} events in batches of {BATCH}, synchronous=FULL ({ROUNDS} rounds)"
    );
    let (mut ours, mut bare, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let theirs = raw(&world.path(&format!("raw-{round}.db")));
        let inbox: Arc<dyn Inbox> = Arc::new(world.inbox(&format!("life-{round}.db")));
        let own = lives(inbox).await;
        ratios.push(100.0 * own / theirs);
        ours.push(own);
        bare.push(theirs);
    }
    println!("  {:>7.0} events/s, bare SQLite {:>7.0} events/s: {:.0} %", median(ours), median(bare), median(ratios));
}

/// Lets everything in.
#[derive(Debug)]
struct Open;

impl Admission for Open {
    fn admit(&self, _: &QueueKey, _: Option<&str>) -> bool {
        true
    }

    fn give_back(&self, _: &QueueKey, _: Option<&str>) {}
}

async fn lives(inbox: Arc<dyn Inbox>) -> f64 {
    let queue = QueueKey { workspace: name("acme"), route: name("news"), target: "t".into() };
    let rule = Rule {
        queue,
        plugin: name("slack"),
        timing: Timing::default(),
        blocked: None,
        is_strict: false,
        goes_on: Vec::new(),
        by_subject: false,
        lanes: Vec::new(),
    };
    let now = Clock::system().now();
    inbox.adopt(Arc::new(Book::new([rule])), Some(Arc::new(Open)), now).await.expect("a book");
    let began = Instant::now();
    let writer = tokio::spawn({
        let inbox = Arc::clone(&inbox);
        async move {
            for first in (0..EVENTS).step_by(BATCH) {
                inbox.accept(intake(first..first + BATCH, now)).await.expect("a write");
            }
        }
    });
    let mut left = EVENTS;
    while left > 0 {
        let news = inbox.news().await;
        left -= news.claims.len();
        let ends = news.claims.into_iter().map(|claim| inbox.finish(finished(claim, now)));
        join_all(ends).await.into_iter().for_each(|end| drop(end.expect("a write")));
    }
    writer.await.expect("the writer");
    rate(EVENTS, began.elapsed())
}

fn intake(numbers: std::ops::Range<usize>, now: Timestamp) -> Intake {
    let entry = |number: usize| {
        let one = notification(number as u64);
        let owed = vec![Owed { route: name("news"), target: "t".to_owned(), plugin: name("slack") }];
        Entry { event: one.event, effective_level: one.effective_level, owed, consumers: Vec::new() }
    };
    Intake {
        is_first: false,
        workspace: name("acme"),
        source: name("registrar"),
        received_at: now,
        entries: numbers.map(entry).collect(),
        notices: Vec::new(),
        cursor: Some("c".to_owned()),
        ended: Ended::Answered { revision: None, is_backlog: false },
    }
}

fn finished(claim: Claim, now: Timestamp) -> Finished {
    Finished {
        id: claim.id,
        fence: claim.fence,
        queue: claim.queue,
        attempt: Attempt {
            number: claim.attempt,
            started_at: now,
            ended_at: now,
            outcome: Outcome::Delivered,
            reason: Some("ok".to_owned()),
            steps: 2,
            plugin_version: Some("0.1.0".to_owned()),
            plugin_digest: Some("0".repeat(64)),
        },
        next: Next { state: State::Delivered, next_at: None },
        reached: true,
        resume: Change::Keep,
        remember: (Change::Keep, 0),
        lanes: Vec::new(),
        notices: Vec::new(),
    }
}

/// The least that such a life needs, in three transactions for each batch.
fn raw(path: &Path) -> f64 {
    let mut connection = Connection::open(path).expect("a database");
    connection.pragma_update(None, "journal_mode", "wal").expect("a log");
    connection.pragma_update(None, "synchronous", "FULL").expect("a mode");
    let schema = "CREATE TABLE event (id INTEGER PRIMARY KEY, source INTEGER, event_id TEXT, body TEXT, UNIQUE (source, event_id));
                  CREATE TABLE delivery (id INTEGER PRIMARY KEY, event INTEGER, state INTEGER, next_at INTEGER);
                  CREATE INDEX due ON delivery (next_at) WHERE state = 0;";
    connection.execute_batch(schema).expect("a schema");
    let body = notification(1).event;
    let body = format!("{}{}{}", body.title, body.body.unwrap_or_default(), body.data);
    let began = Instant::now();
    for first in (0..i64::try_from(EVENTS).expect("a number")).step_by(BATCH) {
        batch(
            &mut connection,
            "INSERT INTO event (source, event_id, body) VALUES (1, ?1, ?2)",
            first,
            |statement, number| statement.execute(params![format!("evt_{number}"), body]).map(drop),
            Some("INSERT INTO delivery (event, state, next_at) VALUES (?1, 0, ?1)"),
        );
        let claim = "UPDATE delivery SET state = 1 WHERE id = ?1";
        batch(&mut connection, claim, first, |statement, number| statement.execute([number + 1]).map(drop), None);
        let done = "UPDATE delivery SET state = 2 WHERE id = ?1";
        batch(&mut connection, done, first, |statement, number| statement.execute([number + 1]).map(drop), None);
    }
    let took: Duration = began.elapsed();
    rate(EVENTS, took)
}

fn batch(
    connection: &mut Connection,
    sql: &str,
    first: i64,
    run: impl Fn(&mut rusqlite::CachedStatement<'_>, i64) -> rusqlite::Result<()>,
    then: Option<&str>,
) {
    let transaction = connection.transaction().expect("a transaction");
    {
        let mut statement = transaction.prepare_cached(sql).expect("a statement");
        let mut second = then.map(|sql| transaction.prepare_cached(sql).expect("a statement"));
        for number in first..first + BATCH as i64 {
            run(&mut statement, number).expect("a row");
            if let Some(second) = &mut second {
                second.execute([number + 1]).expect("a row");
            }
        }
    }
    transaction.commit().expect("a commit");
}
