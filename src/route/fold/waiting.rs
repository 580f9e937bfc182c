//! What waits: one notification, or a digest.

use jiff::Timestamp;

use super::{Gone, Matched, Way};
use crate::notification::Level;
use crate::route::timing::{DIGEST_BYTES_MAX, Unless};
use crate::route::{Acknowledged, Subject, Why};

#[derive(Debug)]
pub(super) struct Waiting {
    first: First,
    /// Its key and why it is open; none while it waits alone.
    pub(super) digest: Option<(String, Why)>,
    pub(super) next_at: Timestamp,
    /// Whether its `after` was waited for.
    pub(super) has_waited: bool,
    level: Level,
    /// Those that are named, and those that are only counted where they may be acknowledged.
    pub(super) items: Vec<Item>,
    /// How many are named.
    pub(super) named: u32,
    bytes: u64,
    /// How many are only counted.
    omitted: u32,
}

/// The notification that it was made for.
#[derive(Debug)]
struct First {
    seq: u64,
    received_at: Timestamp,
    source: String,
    name: String,
    subject: Option<String>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) seq: u64,
    bytes: u64,
    is_named: bool,
    acknowledged: Acknowledged,
}

impl Waiting {
    pub(super) fn new(received_at: Timestamp, what: &Matched<'_>) -> Self {
        let first = First {
            seq: what.seq,
            received_at,
            source: what.source.to_owned(),
            name: what.name.to_owned(),
            subject: what.subject.map(str::to_owned),
        };
        let item = Item { seq: what.seq, bytes: what.bytes, is_named: true, acknowledged: Acknowledged::No };
        Self {
            first,
            digest: None,
            next_at: received_at,
            has_waited: false,
            level: what.level,
            items: vec![item],
            named: 1,
            bytes: what.bytes,
            omitted: 0,
        }
    }

    /// What the plan may know of it.
    pub(super) fn subject(&self) -> Subject<'_> {
        Subject {
            received_at: self.first.received_at,
            level: self.level,
            source: &self.first.source,
            name: &self.first.name,
            subject: self.first.subject.as_deref(),
            acknowledged: self.acknowledged(),
        }
    }

    /// Who acknowledged all of it.
    pub(super) fn acknowledged(&self) -> Acknowledged {
        self.items.iter().map(|item| item.acknowledged).min().unwrap_or_default()
    }

    pub(super) fn acknowledge(&mut self, seq: u64, by: Acknowledged) {
        for item in self.items.iter_mut().filter(|item| item.seq == seq) {
            item.acknowledged = item.acknowledged.max(by);
        }
    }

    /// Whether another fits into this digest as a whole.
    pub(super) fn has_room_for(&self, other: &Self, most: u32) -> bool {
        self.named.saturating_add(other.named) <= most && self.bytes.saturating_add(other.bytes) <= DIGEST_BYTES_MAX
    }

    /// Makes one digest of two. What does not fit is only counted, and kept where it may be acknowledged.
    pub(super) fn add(&mut self, other: Self, most: u32, keeps_counted: bool) {
        self.level = self.level.max(other.level);
        self.omitted = self.omitted.saturating_add(other.omitted);
        let mut items = other.items;
        items.sort_by_key(|item| item.seq);
        for mut item in items {
            if item.is_named {
                let fits = self.named < most && self.bytes.saturating_add(item.bytes) <= DIGEST_BYTES_MAX;
                if fits {
                    self.named += 1;
                    self.bytes += item.bytes;
                } else {
                    item.is_named = false;
                    self.omitted = self.omitted.saturating_add(1);
                }
            }
            if item.is_named || keeps_counted {
                self.items.push(item);
            }
        }
    }

    /// How it is sent now. What was acknowledged meanwhile is left out where that makes deliveries needless.
    pub(super) fn sent(&self, at: Timestamp, unless: Option<Unless>) -> Gone {
        let is_left_out = |item: &Item| unless.is_some_and(|unless| unless.is_met(item.acknowledged));
        let mut seqs: Vec<u64> =
            self.items.iter().filter(|item| item.is_named && !is_left_out(item)).map(|item| item.seq).collect();
        if seqs.is_empty() {
            // What is only counted is not needless; it is told of by the first.
            seqs.push(self.first.seq);
        }
        seqs.sort_unstable();
        let way = match (&self.digest, self.has_waited) {
            (Some((_, Why::Collect)), _) => Way::Digest,
            (Some((_, Why::Hold)), _) => Way::Hold,
            (Some((_, Why::Surplus)), _) => Way::Surplus,
            (None, true) => Way::Escalation,
            (None, false) => Way::Alone,
        };
        Gone { at, way, seqs, omitted: self.omitted, level: self.level }
    }

    /// How it ends when it is needless.
    pub(super) fn suppressed(&self, at: Timestamp) -> Gone {
        let mut seqs: Vec<u64> = self.items.iter().filter(|item| item.is_named).map(|item| item.seq).collect();
        seqs.sort_unstable();
        Gone { at, way: Way::Suppressed, seqs, omitted: self.omitted, level: self.level }
    }
}
