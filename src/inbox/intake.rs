//! How a large intake is cut into transactions.

use super::{Entry, Intake};

/// Rows written in one transaction for one intake: notifications and deliveries together. It bounds how long the
/// writer holds the store and how much a failure repeats. One notification may owe more; it is never split.
pub const CHUNK_ROWS_MAX: usize = 1_000;

/// Cuts an intake into chunks of at most [`CHUNK_ROWS_MAX`] rows, each notification with its own deliveries, the
/// notices, the position and how the read went with the last. There is always at least one chunk.
pub fn chunks(intake: Intake) -> Vec<Intake> {
    let Intake { workspace, source, received_at, is_first, entries, notices, cursor, ended } = intake;
    let chunk = |entries| Intake {
        is_first,
        workspace: workspace.clone(),
        source: source.clone(),
        received_at,
        entries,
        notices: Vec::new(),
        cursor: None,
        ended: ended.clone(),
    };
    let mut done = Vec::new();
    let mut open: Vec<Entry> = Vec::new();
    let mut rows = 0;
    for entry in entries {
        let more = 1 + entry.owed.len();
        if rows + more > CHUNK_ROWS_MAX && !open.is_empty() {
            done.push(chunk(std::mem::take(&mut open)));
            rows = 0;
        }
        rows += more;
        open.push(entry);
    }
    let mut last = chunk(open);
    last.cursor = cursor;
    last.notices = notices;
    done.push(last);
    done
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::inbox::{Ended, Owed};
    use crate::notification::{Event, Level};

    fn intake(owed_by_entry: &[usize]) -> Intake {
        let entry = |(number, &owed): (usize, &usize)| Entry {
            event: Event {
                event_id: number.to_string(),
                name: "a".to_owned(),
                timestamp: Timestamp::UNIX_EPOCH,
                level: Level::Info,
                subject: None,
                title: "a".to_owned(),
                body: None,
                link: None,
                data: "{}".to_owned(),
                content: None,
            },
            effective_level: Level::Info,
            owed: vec![
                Owed { route: "r".parse().unwrap(), target: "t".to_owned(), plugin: "p".parse().unwrap() };
                owed
            ],
            consumers: Vec::new(),
        };
        Intake {
            is_first: false,
            workspace: "w".parse().unwrap(),
            source: "s".parse().unwrap(),
            received_at: Timestamp::UNIX_EPOCH,
            entries: owed_by_entry.iter().enumerate().map(entry).collect(),
            notices: vec![entry((0, &0))],
            cursor: Some("end".to_owned()),
            ended: Ended::Answered { revision: None, is_backlog: false },
        }
    }

    fn check(owed_by_entry: &[usize], expected: &[usize]) {
        let chunks = chunks(intake(owed_by_entry));
        assert_eq!(chunks.iter().map(|chunk| chunk.entries.len()).collect::<Vec<_>>(), expected);
        let (last, before) = chunks.split_last().unwrap();
        assert_eq!(last.cursor.as_deref(), Some("end"));
        assert_eq!(last.notices.len(), 1);
        assert!(before.iter().all(|chunk| chunk.cursor.is_none() && chunk.notices.is_empty()));
        let ids = chunks.iter().flat_map(|chunk| &chunk.entries).map(|entry| entry.event.event_id.clone());
        assert!(ids.eq((0..owed_by_entry.len()).map(|number| number.to_string())));
    }

    #[test]
    fn an_intake_without_events_still_carries_its_position() {
        check(&[], &[0]);
    }

    #[test]
    fn chunks_are_full_and_never_over() {
        check(&[0; 1_000], &[1_000]);
        check(&[0; 1_001], &[1_000, 1]);
        check(&[1; 1_001], &[500, 500, 1]);
    }

    #[test]
    fn a_notification_is_never_parted_from_its_deliveries() {
        check(&[0, 1_000, 0], &[1, 1, 1]);
        check(&[998, 2], &[1, 1]);
    }
}
