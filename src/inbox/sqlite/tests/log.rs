//! The write-ahead log stays bounded, whatever is written and read.

use rusqlite::TransactionBehavior;

use super::super::log::{KEPT_BYTES, READERS_AT, REST_AT};
use super::*;

/// A page of the log with its header.
const PAGE_BYTES: u64 = 4_096 + 24;

/// Pages of the largest group of commits here, generously.
const GROUP_PAGES: u64 = 2_000;

fn log_bytes(place: &Place) -> u64 {
    let mut path = place.path().into_os_string();
    path.push("-wal");
    std::fs::metadata(path).map_or(0, |file| file.len())
}

/// Writes until `pages` pages have gone through the log, with something waiting for the writer all the time; returns the
/// longest that the log was.
async fn write(place: &Place, inbox: &SqliteInbox, round: &str, pages: u64) -> u64 {
    const LARGE_BYTES: usize = 40_000;
    let (mut written, mut longest) = (0, 0);
    while written < pages {
        let intakes = (0..8).map(|number| {
            let mut entry = entry(&format!("{round}-{written}-{number}"), 1);
            entry.event.body = Some("x".repeat(LARGE_BYTES));
            inbox.accept(intake("acme", vec![entry], None))
        });
        for done in futures_util::future::join_all(intakes).await {
            done.unwrap();
        }
        written += 8 * (LARGE_BYTES as u64).div_ceil(4_096);
        longest = longest.max(log_bytes(place));
    }
    longest
}

#[tokio::test]
async fn a_load_that_never_rests_leaves_the_log_bounded() {
    let place = Place::new();
    let inbox = place.open();
    let longest = write(&place, &inbox, "a", 4 * u64::from(REST_AT)).await;
    let bound = (u64::from(REST_AT) + GROUP_PAGES) * PAGE_BYTES;
    assert!(longest <= bound, "{longest} bytes, {bound} at most");
}

#[tokio::test]
async fn a_log_that_grew_while_somebody_read_is_cut_back_afterwards() {
    let place = Place::new();
    let inbox = place.open();
    write(&place, &inbox, "before", 10).await;
    let mut reader = connect_reader(&place.path()).unwrap();
    let reading = reader.transaction_with_behavior(TransactionBehavior::Deferred).unwrap();
    let count = |reading: &Connection| -> i64 {
        reading.query_row("SELECT count(*) FROM notification", [], |row| row.get(0)).unwrap()
    };
    let seen = count(&reading);
    // So many that those who write have waited for the reader, in vain.
    let pages = u64::from(READERS_AT) + 1_000;
    let longest = write(&place, &inbox, "during", pages).await;
    assert!(longest > u64::from(KEPT_BYTES), "what somebody reads is kept: {longest} bytes");
    assert_eq!(count(&reading), seen, "nothing changes for whoever reads");
    drop(reading);
    write(&place, &inbox, "after", 2 * u64::from(REST_AT)).await;
    let left = log_bytes(&place);
    assert!(left <= (u64::from(REST_AT) + GROUP_PAGES) * PAGE_BYTES, "{left} bytes are left");
}

#[tokio::test]
async fn what_was_written_is_there_when_the_log_was_copied_and_the_store_opened_again() {
    let place = Place::new();
    let inbox = place.open();
    write(&place, &inbox, "a", u64::from(REST_AT)).await;
    let count = |connection: &Connection| -> i64 {
        connection.query_row("SELECT count(*) FROM notification", [], |row| row.get(0)).unwrap()
    };
    let before = count(&connect_reader(&place.path()).unwrap());
    drop(inbox);
    assert_eq!(log_bytes(&place), 0, "closing copies the rest");
    let _inbox = place.open();
    assert_eq!(count(&connect_reader(&place.path()).unwrap()), before);
}
