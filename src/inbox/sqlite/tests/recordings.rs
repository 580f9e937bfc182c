//! Recordings go with what they are about.

use super::*;
use crate::inbox::DeliveryId;

async fn recorded(inbox: &SqliteInbox, seqs: Vec<u64>) {
    let recording = Recording {
        delivery: DeliveryId { store: Arc::clone(&inbox.store.tag), number: 1 },
        attempt: std::num::NonZeroU32::MIN,
        workspace: name("acme"),
        seqs,
        plugin: name("slack"),
        plugin_version: "1.0.0".to_owned(),
        plugin_digest: "0badcafe".to_owned(),
        outcome: Some(Outcome::Delivered),
        at: at(100),
        content: "{}".to_owned(),
    };
    inbox.record(recording).await.unwrap();
}

async fn kept(inbox: &SqliteInbox) -> Vec<Vec<u64>> {
    inbox.recordings(&name("slack")).await.unwrap().into_iter().map(|recording| recording.seqs).collect()
}

#[tokio::test]
async fn a_recording_is_forgotten_with_the_first_notification_of_it_that_is() {
    let place = Place::new();
    let inbox = place.open();
    inbox.accept(intake("acme", vec![entry("e1", 0), entry("e2", 0), entry("e3", 0)], None)).await.unwrap();
    for seqs in [vec![1, 2], vec![2, 3], vec![3]] {
        recorded(&inbox, seqs).await;
    }
    let forget = |seq: i64| {
        move |session: &mut Session| {
            let sql = "DELETE FROM notification WHERE id & ((1 << 40) - 1) = ?1";
            session.connection.execute(sql, [seq]).map(drop).map_err(unavailable)
        }
    };
    inbox.write(forget(1)).await.unwrap();
    assert_eq!(kept(&inbox).await, [vec![3], vec![2, 3]]);
    inbox.write(forget(3)).await.unwrap();
    assert_eq!(kept(&inbox).await, Vec::<Vec<u64>>::new());
    let left = |session: &mut Session| {
        let count = "SELECT count(*) FROM recorded";
        session.connection.query_row(count, [], |row| row.get::<_, i64>(0)).map_err(unavailable)
    };
    assert_eq!(inbox.write(left).await.unwrap(), 0);
}
