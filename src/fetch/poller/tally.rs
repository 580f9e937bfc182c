//! What went wrong with single events, counted, so that a server that goes on misbehaving is told of once an hour and not
//! with every read.

use std::time::Duration;

use jiff::Timestamp;

use crate::clock::later;
use crate::fetch::batch::Dropped;
use crate::fetch::notice::{Notice, REASONS_MAX};

/// Notices of one kind about one connector are at least so far apart. What comes between is counted in the next one.
const APART: Duration = Duration::from_secs(3_600);

const SKIPPED: &str = "The outbox said that it skipped events: it keeps them for a shorter time than passed since the \
                       last read, or reading was bounded by `max_age`.";

/// What was not told yet, and when something was.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    gaps: u32,
    gaps_told_at: Option<Timestamp>,
    dropped: usize,
    reasons: Vec<(String, usize)>,
    dropped_told_at: Option<Timestamp>,
    backlog: usize,
    backlog_told_at: Option<Timestamp>,
}

impl Tally {
    pub(super) fn count_gap(&mut self) {
        self.gaps = self.gaps.saturating_add(1);
    }

    /// Events from before anyone asked.
    pub(super) fn count_backlog(&mut self, events: usize) {
        self.backlog = self.backlog.saturating_add(events);
    }

    pub(super) fn count_dropped(&mut self, dropped: &[Dropped]) {
        self.dropped = self.dropped.saturating_add(dropped.len());
        for reason in dropped.iter().map(|dropped| dropped.reason.clone()) {
            if let Some((_, count)) = self.reasons.iter_mut().find(|(known, _)| *known == reason) {
                *count = count.saturating_add(1);
            } else if self.reasons.len() < REASONS_MAX {
                self.reasons.push((reason, 1));
            }
        }
    }

    /// What is to be told by now; it counts as told.
    pub(super) fn due(&mut self, now: Timestamp) -> Vec<Notice> {
        let mut notices = Vec::new();
        if self.gaps > 0 && is_due(self.gaps_told_at, now) {
            notices.push(Notice::Gap { gaps: std::mem::take(&mut self.gaps), why: SKIPPED });
            self.gaps_told_at = Some(now);
        }
        if self.dropped > 0 && is_due(self.dropped_told_at, now) {
            let (events, reasons) = (std::mem::take(&mut self.dropped), std::mem::take(&mut self.reasons));
            notices.push(Notice::Dropped { events, reasons });
            self.dropped_told_at = Some(now);
        }
        if self.backlog > 0 && is_due(self.backlog_told_at, now) {
            notices.push(Notice::Backlog { events: std::mem::take(&mut self.backlog) });
            self.backlog_told_at = Some(now);
        }
        notices
    }
}

fn is_due(told_at: Option<Timestamp>, now: Timestamp) -> bool {
    told_at.is_none_or(|told_at| later(told_at, APART) <= now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::event::{Field, Reason};

    #[test]
    fn the_first_is_told_at_once_and_the_rest_once_an_hour() {
        let mut tally = Tally::default();
        let start = Timestamp::UNIX_EPOCH;
        let missing = |field| Dropped { event_id: None, reason: Reason::Missing(field).to_string() };
        assert!(tally.due(start).is_empty());
        tally.count_gap();
        tally.count_dropped(&[missing(Field::Data)]);
        assert_eq!(tally.due(start).len(), 2);
        for _ in 0..3 {
            tally.count_gap();
            tally.count_dropped(&[missing(Field::Data), missing(Field::Name)]);
        }
        assert!(tally.due(later(start, APART - Duration::from_secs(1))).is_empty());
        let told = tally.due(later(start, APART));
        assert!(
            matches!(&told[..], [Notice::Gap { gaps: 3, .. }, Notice::Dropped { events: 6, reasons }]
            if reasons.iter().map(|(_, count)| *count).eq([3, 3])),
            "{told:?}"
        );
        assert!(tally.due(Timestamp::MAX).is_empty());
    }

    #[test]
    fn reasons_are_bounded_and_events_are_still_counted() {
        let mut tally = Tally::default();
        let dropped: Vec<_> = (0..1_000)
            .map(|bytes| Dropped { event_id: None, reason: Reason::TooLarge { bytes }.to_string() })
            .collect();
        tally.count_dropped(&dropped);
        match &tally.due(Timestamp::UNIX_EPOCH)[..] {
            [Notice::Dropped { events: 1_000, reasons }] => assert_eq!(reasons.len(), REASONS_MAX),
            other => panic!("{other:?}"),
        }
    }
}
