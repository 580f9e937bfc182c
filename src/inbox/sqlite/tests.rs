//! What every store promises, kept by this one; and what only files can do wrong.

use std::path::PathBuf;

use tempfile::TempDir;

use super::{errors::unavailable, *};
use crate::inbox::book::{QueueKey, Rule};
use crate::inbox::delivery::{Cause, Next, Outcome, State};
use crate::inbox::{Attempt, Change, Claim, Ended, Entry, Owed};
use crate::notification::{Event, Level};
use crate::route::timing::Timing;

mod admission;
mod changes;
mod log;
mod recordings;

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("data/test.db")
    }

    fn open(&self) -> SqliteInbox {
        SqliteInbox::open(&self.path(), at(1_000)).unwrap()
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn entry(event_id: &str, owed: usize) -> Entry {
    let event = Event {
        event_id: event_id.to_owned(),
        name: "domain.active".to_owned(),
        timestamp: at(5),
        level: Level::Urgent,
        subject: Some("a.example".to_owned()),
        title: "a title".to_owned(),
        body: None,
        link: Some("acme://x".to_owned()),
        data: r#"{"b":1,"a":1e400}"#.to_owned(),
        content: None,
    };
    let target = |number: usize| Owed { route: name("news"), target: format!("t{number}"), plugin: name("slack") };
    Entry { event, effective_level: Level::Attention, owed: (0..owed).map(target).collect(), consumers: Vec::new() }
}

fn intake(workspace: &str, entries: Vec<Entry>, cursor: Option<&str>) -> Intake {
    Intake {
        is_first: false,
        workspace: name(workspace),
        source: name("registrar"),
        received_at: at(100),
        entries,
        notices: Vec::new(),
        cursor: cursor.map(str::to_owned),
        ended: Ended::Answered { revision: None, is_backlog: false },
    }
}

fn page(workspace: &str) -> Page {
    Page { workspace: name(workspace), before: None, limit: 1_000 }
}

fn finished(claim: &Claim, outcome: Outcome, next: Next) -> Finished {
    let attempt = Attempt {
        number: claim.attempt,
        started_at: at(100),
        ended_at: at(101),
        outcome,
        reason: Some("because".to_owned()),
        steps: 2,
        plugin_version: Some("1.2.3".to_owned()),
        plugin_digest: Some("ab".to_owned()),
    };
    Finished {
        id: claim.id.clone(),
        fence: claim.fence,
        queue: claim.queue.clone(),
        attempt,
        next,
        reached: true,
        resume: Change::Keep,
        remember: (Change::Keep, 0),
        lanes: Vec::new(),
        notices: Vec::new(),
    }
}

fn queue(target: usize) -> QueueKey {
    QueueKey { workspace: name("acme"), route: name("news"), target: format!("t{target}").into() }
}

/// Claims from the first three targets.
async fn claim(inbox: &SqliteInbox, now: i64, most: u32) -> Result<Claimed, InboxError> {
    let want = |target| Want { queue: queue(target), most, only: None, busy: Vec::new() };
    inbox.claim(at(now), (0..3).map(want).collect()).await
}

async fn claim_one(inbox: &SqliteInbox, now: i64) -> Claim {
    claim(inbox, now, 1).await.unwrap().claims.remove(0)
}

async fn states(inbox: &SqliteInbox) -> Vec<(State, usize)> {
    let views = inbox.deliveries(page("acme"), Which::default()).await.unwrap();
    views.into_iter().map(|view| (view.state, view.attempts.len())).collect()
}

#[tokio::test]
async fn what_was_accepted_is_read_back_as_it_was() {
    let place = Place::new();
    let inbox = place.open();
    let accepted = inbox.accept(intake("acme", vec![entry("e1", 1)], Some("c1"))).await.unwrap();
    assert_eq!(accepted.seqs, [Some(1)]);
    let stored = inbox.notification(&name("acme"), 1).await.unwrap().unwrap();
    assert_eq!(stored.event, entry("e1", 0).event);
    assert_eq!((stored.effective_level, stored.received_at), (Level::Attention, at(100)));
    assert_eq!(inbox.notification(&name("acme"), 2).await.unwrap(), None);
    assert_eq!(inbox.notification(&name("other"), 1).await.unwrap(), None);
    let reading = inbox.reading(&name("acme"), &name("registrar")).await.unwrap();
    assert_eq!(
        (reading.cursor.as_deref(), reading.moved_at, reading.read_at),
        (Some("c1"), Some(at(100)), Some(at(100)))
    );
}

#[tokio::test]
async fn an_event_is_accepted_once_and_the_first_write_wins() {
    let place = Place::new();
    let inbox = place.open();
    let mut other = entry("e1", 1);
    other.event.title = "another title".to_owned();
    let accepted =
        inbox.accept(intake("acme", vec![entry("e1", 1), other.clone(), entry("e2", 0)], None)).await.unwrap();
    assert_eq!(accepted.seqs, [Some(1), None, Some(2)]);
    let again = inbox.accept(intake("acme", vec![other, entry("e3", 0)], None)).await.unwrap();
    assert_eq!(again.seqs, [None, Some(3)], "numbers have no gap where an event was there already");
    assert_eq!(inbox.notification(&name("acme"), 1).await.unwrap().unwrap().event.title, "a title");
    assert_eq!(states(&inbox).await.len(), 1, "a repeated event owes nothing");
}

#[tokio::test]
async fn workspaces_count_and_remember_apart() {
    let place = Place::new();
    let inbox = place.open();
    for workspace in ["acme", "other"] {
        let accepted = inbox.accept(intake(workspace, vec![entry("e1", 0)], None)).await.unwrap();
        assert_eq!(accepted.seqs, [Some(1)]);
    }
    assert_eq!(inbox.notifications(page("other")).await.unwrap().len(), 1);
    assert_eq!(inbox.reading(&name("acme"), &name("registrar")).await.unwrap().cursor, None);
}

#[tokio::test]
async fn numbers_are_gapless_under_concurrent_writes() {
    let place = Place::new();
    let inbox = Arc::new(place.open());
    let write = |task: usize| {
        let inbox = Arc::clone(&inbox);
        tokio::spawn(async move {
            for number in 0..20 {
                // Every second event is one that another task writes too.
                let shared = entry(&format!("shared-{number}"), 0);
                let own = entry(&format!("own-{task}-{number}"), 0);
                inbox.accept(intake("acme", vec![shared, own], None)).await.unwrap();
            }
        })
    };
    for task in (0..8).map(write).collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let seqs: Vec<u64> = inbox.notifications(page("acme")).await.unwrap().iter().map(|one| one.seq).collect();
    assert_eq!(seqs, (1..=180).rev().collect::<Vec<_>>());
}

#[tokio::test]
async fn a_page_ends_before_its_number() {
    let place = Place::new();
    let inbox = place.open();
    let entries = (1..=5).map(|number| entry(&number.to_string(), 0)).collect();
    inbox.accept(intake("acme", entries, None)).await.unwrap();
    let listed = inbox.notifications(Page { before: Some(4), limit: 2, ..page("acme") }).await.unwrap();
    assert_eq!(listed.iter().map(|one| one.seq).collect::<Vec<_>>(), [3, 2]);
}

#[tokio::test]
async fn a_delivery_is_handed_out_once_when_it_is_due() {
    let place = Place::new();
    let inbox = place.open();
    inbox.accept(intake("acme", vec![entry("e1", 3)], None)).await.unwrap();
    let early = claim(&inbox, 99, 10).await.unwrap();
    assert!(early.claims.is_empty());
    assert_eq!(early.next_due[0], (queue(0), Some(at(100))));
    let first = claim(&inbox, 100, 1).await.unwrap();
    assert_eq!((first.claims.len(), &first.next_due[0]), (3, &(queue(0), None)));
    assert!(claim(&inbox, 100, 1).await.unwrap().claims.is_empty());
    let claim = &first.claims[2];
    assert_eq!((claim.attempt.get(), &claim.queue, claim.cause), (1, &queue(2), Cause::First));
    assert_eq!(claim.notifications[0].event.data, r#"{"b":1,"a":1e400}"#);
}

#[tokio::test]
async fn an_outcome_moves_the_delivery_and_is_kept() {
    let place = Place::new();
    let inbox = place.open();
    inbox.accept(intake("acme", vec![entry("e1", 1)], None)).await.unwrap();
    let first = claim_one(&inbox, 100).await;
    let retry = Next { state: State::Retrying, next_at: Some(at(130)) };
    inbox.finish(finished(&first, Outcome::Retry, retry)).await.unwrap();
    assert_eq!(claim(&inbox, 129, 1).await.unwrap().next_due[0].1, Some(at(130)));
    let second = claim_one(&inbox, 130).await;
    assert_eq!((second.attempt.get(), second.cause, second.due_at), (2, Cause::Retry, at(100)));
    inbox.finish(finished(&second, Outcome::Delivered, Next { state: State::Delivered, next_at: None })).await.unwrap();
    let views = inbox.deliveries(page("acme"), Which { seq: Some(1), ..Which::default() }).await.unwrap();
    let outcomes: Vec<Outcome> = views[0].attempts.iter().map(|attempt| attempt.outcome).collect();
    assert_eq!((views[0].state, outcomes), (State::Delivered, vec![Outcome::Retry, Outcome::Delivered]));
    let twice = inbox.finish(finished(&second, Outcome::Delivered, Next { state: State::Dead, next_at: None })).await;
    assert!(matches!(twice, Err(InboxError::NotHeld(_))), "an outcome is recorded once");
}

#[tokio::test]
async fn an_interrupted_attempt_gets_its_number_back() {
    let place = Place::new();
    let inbox = place.open();
    inbox.accept(intake("acme", vec![entry("e1", 1)], None)).await.unwrap();
    let first = claim_one(&inbox, 100).await;
    let back = Next { state: State::Pending, next_at: Some(at(101)) };
    inbox.finish(finished(&first, Outcome::Interrupted, back)).await.unwrap();
    assert_eq!(states(&inbox).await, [(State::Pending, 0)]);
    let again = claim_one(&inbox, 101).await;
    assert_eq!((again.attempt.get(), again.cause, again.begun), (1, Cause::First, None));
}

#[tokio::test]
async fn an_attempt_in_flight_when_the_store_closed_goes_on_and_its_effect_may_have_begun() {
    let place = Place::new();
    let first = place.open();
    first.accept(intake("acme", vec![entry("e1", 2)], None)).await.unwrap();
    let before = claim_one(&first, 100).await;
    drop(first);
    let second = SqliteInbox::open(&place.path(), at(200)).unwrap();
    assert_eq!(states(&second).await, [(State::Waiting, 0), (State::Waiting, 0)]);
    let claims = claim(&second, 200, 10).await.unwrap().claims;
    let again = claims.iter().find(|other| other.id == before.id).unwrap();
    let begun = again.begun.as_ref().unwrap();
    assert_eq!((again.attempt.get(), begun.started_at, begun.cut_off, begun.past.len()), (1, at(100), true, 0));
    let late = Next { state: State::Delivered, next_at: None };
    assert!(second.finish(finished(&before, Outcome::Delivered, late)).await.is_err(), "the old claim is void");
    second.finish(finished(again, Outcome::Delivered, late)).await.unwrap();
}

#[tokio::test]
async fn an_intake_larger_than_a_chunk_is_written_whole() {
    let place = Place::new();
    let inbox = place.open();
    let entries = (0..2_500).map(|number| entry(&number.to_string(), 1)).collect();
    let accepted = inbox.accept(intake("acme", entries, Some("end"))).await.unwrap();
    assert!(accepted.seqs.iter().copied().eq((1..=2_500).map(Some)));
    assert!(inbox.reading(&name("acme"), &name("registrar")).await.unwrap().cursor.is_some());
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_is_named() {
    let place = Place::new();
    let inbox = place.open();
    inbox.accept(intake("acme", vec![entry("e1", 1)], Some("c1"))).await.unwrap();
    let pages = |most: i64| {
        move |session: &mut Session| session.connection.pragma_update(None, "max_page_count", most).map_err(unavailable)
    };
    inbox.write(pages(1)).await.unwrap();
    let big = (0..900).map(|number| entry(&format!("big-{number}"), 0)).collect();
    let refused = inbox.accept(intake("acme", big, Some("c2"))).await.unwrap_err();
    assert!(refused.to_string().contains("the disk is full"), "{refused}");
    let position = inbox.reading(&name("acme"), &name("registrar")).await.unwrap();
    assert_eq!(position.cursor.as_deref(), Some("c1"), "the position never passes what is not written");
    assert_eq!(inbox.notifications(page("acme")).await.unwrap().len(), 1);
    inbox.write(pages(1_000_000)).await.unwrap();
    let accepted = inbox.accept(intake("acme", vec![entry("e2", 0)], None)).await.unwrap();
    assert_eq!(accepted.seqs, [Some(2)], "it goes on where it was once there is space");
}

#[tokio::test]
async fn a_request_that_fails_takes_no_other_with_it() {
    let place = Place::new();
    let inbox = place.open();
    let broken = inbox.write(|connection: &mut Session| {
        accept::accept(connection, &intake("acme", vec![entry("gone", 0)], None), true)?;
        Err::<(), _>(InboxError::Unavailable("broken".to_owned()))
    });
    let panics = inbox.write(|_| -> Result<(), InboxError> { panic!("inside") });
    let good = inbox.accept(intake("acme", vec![entry("e1", 0)], None));
    let (broken, panics, good) = tokio::join!(broken, panics, good);
    assert!(broken.is_err() && panics.is_err());
    assert_eq!(good.unwrap().seqs, [Some(1)]);
}

#[tokio::test]
async fn a_store_is_written_by_one_and_read_by_many() {
    let place = Place::new();
    let writer = place.open();
    let second = SqliteInbox::open(&place.path(), at(0)).unwrap_err();
    assert!(
        matches!(&second, InboxError::InUse(message) if message.contains(&std::process::id().to_string())),
        "{second}"
    );
    let reader = SqliteInbox::open_to_read(&place.path()).unwrap();
    writer.accept(intake("acme", vec![entry("e1", 0)], None)).await.unwrap();
    assert_eq!(reader.notifications(page("acme")).await.unwrap().len(), 1);
    assert!(reader.accept(intake("acme", vec![entry("e2", 0)], None)).await.is_err());
    drop(writer);
    assert!(SqliteInbox::open(&place.path(), at(0)).is_ok(), "a closed store can be opened again");
}

#[test]
fn files_that_are_no_store_are_refused_with_a_remedy() {
    let place = Place::new();
    let error = SqliteInbox::open_to_read(&place.path()).unwrap_err().to_string();
    assert!(error.contains("test.db") && error.contains("switchbell serve"), "{error}");

    std::fs::create_dir_all(place.path().parent().unwrap()).unwrap();
    std::fs::write(place.path(), "this is a text file, not a database, and long enough to be read as one".repeat(20))
        .unwrap();
    let error = SqliteInbox::open(&place.path(), at(0)).unwrap_err().to_string();
    assert!(error.contains("no SQLite database"), "{error}");

    std::fs::remove_file(place.path()).unwrap();
    drop(place.open());
    Connection::open(place.path()).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let error = SqliteInbox::open(&place.path(), at(0)).unwrap_err().to_string();
    assert!(error.contains("schema 99") && error.contains("newer"), "{error}");

    std::fs::remove_file(place.path()).unwrap();
    let foreign = Connection::open(place.path()).unwrap();
    foreign.execute_batch("CREATE TABLE workspace (other TEXT)").unwrap();
    let error = SqliteInbox::open(&place.path(), at(0)).unwrap_err().to_string();
    assert!(error.contains("test.db") && !error.contains("CREATE TABLE"), "{error}");
    drop(foreign);

    let folder_in_the_way = place.folder.path().join("file/x.db");
    std::fs::write(place.folder.path().join("file"), "").unwrap();
    let error = SqliteInbox::open(&folder_in_the_way, at(0)).unwrap_err().to_string();
    assert!(error.contains("x.db"), "{error}");
}

#[tokio::test]
async fn whoever_waits_is_told_of_what_is_owed_and_of_what_is_put_off() {
    let place = Place::new();
    let inbox = place.open();
    inbox.accept(intake("acme", vec![entry("e1", 0)], None)).await.unwrap();
    assert!(inbox.news().now_or_never().is_none(), "nothing is owed");
    inbox.accept(intake("acme", vec![entry("e2", 1)], None)).await.unwrap();
    assert_eq!(inbox.news().await.due, [(queue(0), at(100))]);
    let claim = claim_one(&inbox, 100).await;
    let retry = Next { state: State::Retrying, next_at: Some(at(130)) };
    inbox.finish(finished(&claim, Outcome::Retry, retry)).await.unwrap();
    assert_eq!(inbox.news().await.due, [(queue(0), at(130))]);
}

#[tokio::test]
async fn a_queue_that_cannot_be_read_keeps_no_other_back() {
    let place = Place::new();
    let inbox = place.open();
    inbox.accept(intake("acme", vec![entry("e1", 2)], None)).await.unwrap();
    // Something else changes the file.
    let other = Connection::open(place.path()).unwrap();
    other.execute("UPDATE delivery SET state = 'lost' WHERE id = 1", []).unwrap();
    let claimed = claim(&inbox, 100, 5).await.unwrap();
    assert_eq!(claimed.claims.iter().map(|claim| claim.id.number).collect::<Vec<_>>(), [2]);
    assert_eq!(claimed.next_due[0], (queue(0), Some(at(101))), "it is tried again");
    assert!(claim(&inbox, 100, 5).await.is_err(), "nothing else is due");
}

#[tokio::test]
async fn a_disk_that_turns_read_only_is_named_and_loses_nothing() {
    let place = Place::new();
    let inbox = place.open();
    inbox.accept(intake("acme", vec![entry("e1", 1)], Some("c1"))).await.unwrap();
    let read_only = |on: bool| {
        move |session: &mut Session| session.connection.pragma_update(None, "query_only", on).map_err(unavailable)
    };
    inbox.write(read_only(true)).await.unwrap();
    let refused = inbox.accept(intake("acme", vec![entry("e2", 0)], Some("c2"))).await.unwrap_err();
    assert!(refused.to_string().contains("read-only"), "{refused}");
    assert!(claim(&inbox, 100, 1).await.is_err());
    assert_eq!(inbox.notifications(page("acme")).await.unwrap().len(), 1, "what was written can be read");
}
