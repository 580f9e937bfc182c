//! How workspaces are followed, and what readers hear meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::stage::{Fake, Running, acme};
use crate::serve::stream::places::READERS_PER_TOKEN_MAX;
use crate::serve::stream::reader::{BEAT, Start};

const READERS: usize = 1_000;

#[tokio::test]
async fn a_new_reader_hears_where_it_stands_and_then_what_comes() {
    let fake = Fake::new();
    fake.writes(3);
    let running = Running::over(&fake);
    let mut reader = running.read(Start::Now, true);
    let hint = reader.block().await.unwrap();
    let delay: u64 = hint.strip_prefix("retry: ").unwrap().parse().unwrap();
    assert!((1_000..5_000).contains(&delay));
    assert_eq!(reader.event().await, Some((3, "ready".to_owned(), "{\"number\":3}".to_owned())));
    fake.write();
    let (number, name, data) = reader.event().await.unwrap();
    assert_eq!((number, name.as_str()), (4, "notification.created"));
    assert!(data.starts_with("{\"seq\":4,\"workspaceId\":\"acme\",\"source\":\"registrar\","), "{data}");
    assert!(data.contains(",\"data\":{\"number\": 4},"), "the payload is told as it came: {data}");
    assert!(reader.is_silent().await);
}

#[tokio::test]
async fn a_change_is_rendered_once_for_all_who_read() {
    let fake = Fake::new();
    let running = Running::over(&fake);
    let by = |number: usize| i64::try_from(number / READERS_PER_TOKEN_MAX).ok();
    let mut readers: Vec<_> = (0..READERS).map(|number| running.read_by(by(number), Start::Now, true)).collect();
    for reader in &mut readers {
        assert_eq!(reader.event().await.unwrap().1, "ready");
    }
    let before = fake.lists.load(Ordering::Relaxed);
    fake.write();
    for reader in &mut readers {
        assert_eq!(reader.events(1).await, [(1, "notification.created".to_owned())]);
    }
    assert_eq!(fake.lists.load(Ordering::Relaxed) - before, 1);
    assert_eq!(running.hub.readers(), READERS);
    assert!(running.hub.place(Some(0)).is_err());
    drop(readers);
    assert_eq!(running.hub.readers(), 0);
}

#[tokio::test]
async fn a_reader_hears_a_sign_of_life_when_nothing_happens() {
    let fake = Fake::new();
    let running = Running::over(&fake);
    let mut reader = running.read(Start::Now, false);
    reader.event().await.unwrap();
    assert!(reader.is_silent().await);
    running.clock.advance(BEAT - Duration::from_secs(1));
    assert!(reader.is_silent().await);
    running.clock.advance(Duration::from_secs(1));
    assert_eq!(reader.block().await.as_deref(), Some(":"));
    // What it may not see moves its number, too.
    fake.write();
    assert_eq!(reader.events(1).await, [(1, "notification.created".to_owned())]);
    fake.write();
    fake.write();
    assert_eq!(reader.events(1).await, [(2, "notification.read".to_owned())]);
    assert!(reader.is_silent().await);
    running.clock.advance(BEAT);
    assert_eq!(reader.block().await.as_deref(), Some("id: 3"));
}

#[tokio::test]
async fn a_workspace_that_nobody_reads_is_left_after_a_while() {
    let fake = Fake::new();
    let running = Running::over(&fake);
    let mut reader = running.read(Start::Now, true);
    reader.event().await.unwrap();
    let (topic, level) = running.hub.join(&acme());
    drop(level);
    let is_followed = || Arc::strong_count(&topic) > 2;
    // While somebody reads, however long, it is followed; what is written meanwhile is no reason to go on without readers.
    for _ in 0..3 {
        pass_a_minute(&running).await;
    }
    assert!(is_followed());
    drop(reader);
    for _ in 0..3 {
        fake.write();
        pass_a_minute(&running).await;
    }
    assert_eq!(Arc::strong_count(&topic), 1, "nobody holds it but this test");
    // Who comes back later finds another.
    assert_eq!(running.read(Start::After(0), true).events(3).await.len(), 3);
}

async fn pass_a_minute(running: &Running) {
    settle().await;
    running.clock.advance(Duration::from_secs(60));
    settle().await;
}

/// Lets every task go on as far as it can.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_store_that_cannot_be_read_for_a_while_costs_no_change() {
    let fake = Fake::new();
    let running = Running::over(&fake);
    let mut reader = running.read(Start::Now, true);
    reader.event().await.unwrap();
    fake.is_broken.store(true, Ordering::Relaxed);
    fake.write();
    assert!(reader.is_silent().await);
    fake.is_broken.store(false, Ordering::Relaxed);
    running.clock.advance(Duration::from_secs(1));
    assert_eq!(reader.events(1).await, [(1, "notification.created".to_owned())]);
}
