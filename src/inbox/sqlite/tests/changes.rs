//! How changes are kept.

use super::*;
use crate::inbox::{Reader as _, Retention as _};

async fn rows(inbox: &SqliteInbox) -> i64 {
    let count = |connection: &Connection| {
        connection.query_row("SELECT count(*) FROM change", [], |row| row.get(0)).map_err(unavailable)
    };
    inbox.read(count).await.unwrap()
}

#[tokio::test]
async fn a_batch_of_alike_changes_costs_a_row() {
    let place = Place::new();
    let inbox = place.open();
    let batch = |from: usize, owed| (from..from + 100).map(|number| entry(&number.to_string(), owed)).collect();
    inbox.accept(intake("acme", batch(0, 0), None)).await.unwrap();
    assert_eq!(rows(&inbox).await, 1);
    inbox.accept(intake("acme", batch(100, 2), None)).await.unwrap();
    assert_eq!(rows(&inbox).await, 4, "the notifications, and the deliveries of each target");
    assert_eq!(inbox.changes(&name("acme"), 0, 1).await.unwrap().last, 400);
}

#[tokio::test]
async fn a_delivery_that_is_moved_and_not_noted_is_no_write() {
    let place = Place::new();
    let inbox = place.open();
    inbox.accept(intake("acme", vec![entry("e1", 1)], None)).await.unwrap();
    let silently = |session: &mut Session| {
        session.connection.execute("UPDATE delivery SET state = 'dead'", []).map(drop).map_err(unavailable)
    };
    let refused = inbox.write(silently).await.unwrap_err().to_string();
    assert!(refused.contains("not noted"), "{refused}");
    assert_eq!(states(&inbox).await, [(State::Pending, 0)]);
    assert_eq!(inbox.changes(&name("acme"), 0, 10).await.unwrap().last, 2);
}

#[tokio::test]
async fn a_write_that_fails_among_others_takes_no_number() {
    let place = Place::new();
    let inbox = place.open();
    let broken = inbox.write(|session: &mut Session| {
        accept::accept(session, &intake("acme", vec![entry("gone", 1)], None), true)?;
        session.write_changes()?;
        Err::<(), _>(InboxError::Unavailable("broken".to_owned()))
    });
    let before = inbox.accept(intake("acme", vec![entry("e1", 1)], None));
    let after = inbox.accept(intake("acme", vec![entry("e2", 1)], None));
    let (before, broken, after) = tokio::join!(before, broken, after);
    assert!(before.is_ok() && broken.is_err() && after.is_ok());
    let told = inbox.changes(&name("acme"), 0, 10).await.unwrap();
    assert!(told.changes.iter().map(|change| change.number).eq(1..=4), "{told:?}");
    let mut follower = inbox.follow(&name("acme")).await.unwrap();
    assert_eq!(*follower.borrow_and_update(), 4);
}

#[tokio::test]
async fn channels_that_nobody_listens_to_are_forgotten() {
    let place = Place::new();
    let inbox = place.open();
    for number in 0..50 {
        drop(inbox.follow(&name(&format!("w{number}"))).await.unwrap());
    }
    let kept = inbox.follow(&name("acme")).await.unwrap();
    assert_eq!(inbox.desk.followers.count(), 1);
    drop(inbox.follow(&name("other")).await.unwrap());
    drop(inbox.follow(&name("acme")).await.unwrap());
    inbox.accept(intake("acme", vec![entry("e1", 0)], None)).await.unwrap();
    assert_eq!((*kept.borrow(), inbox.desk.followers.count()), (1, 1));
}

#[tokio::test]
async fn a_store_from_before_there_were_changes_begins_with_none() {
    let place = Place::new();
    let inbox = place.open();
    inbox.accept(intake("acme", vec![entry("e1", 1)], None)).await.unwrap();
    let clear =
        |session: &mut Session| session.connection.execute("DELETE FROM change", []).map(drop).map_err(unavailable);
    inbox.write(clear).await.unwrap();
    drop(inbox);
    let inbox = place.open();
    let told = inbox.changes(&name("acme"), 0, 10).await.unwrap();
    assert_eq!((told.last, told.is_cut), (0, false));
    inbox.accept(intake("acme", vec![entry("e2", 0)], None)).await.unwrap();
    assert_eq!(inbox.changes(&name("acme"), 0, 10).await.unwrap().last, 1);
    assert_eq!(inbox.workspaces().await.unwrap(), [name("acme")]);
}
