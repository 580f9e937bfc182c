//! What was seen of a child's output, shared by those who read it and by who waits for an answer: so that an answer
//! which cannot be one is told as what it is, and a flood ends.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::MESSAGE_BYTES_MAX;

/// Bytes on standard output that are no message, between the beginnings of two reads. Lines of log that strayed there
/// are fewer.
const STRAY_BYTES_MAX: usize = 4 << 20;

/// Bytes kept of the first of them.
const STRAY_KEPT_BYTES_MAX: usize = 1_000;

/// Bytes on standard output in all, between the beginnings of two reads: an answer, and much else.
const OUTPUT_BYTES_MAX: usize = 4 * MESSAGE_BYTES_MAX;

/// Bytes on standard error, between the beginnings of two reads. A log that is kept open all day is smaller.
const ERROR_BYTES_MAX: usize = 16 << 20;

/// What ends a connection to a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Alarm {
    /// A line is longer than a message may be.
    TooLong,
    /// An answer cannot be read: why.
    Broken(String),
    /// It writes without end.
    Flood(Flood),
}

/// Where a child writes without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flood {
    Stray,
    Output,
    Error,
}

impl fmt::Display for Flood {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes_max, place) = match self {
            Self::Stray => (STRAY_BYTES_MAX, "of what is not MCP to its standard output"),
            Self::Output => (OUTPUT_BYTES_MAX, "to its standard output"),
            Self::Error => (ERROR_BYTES_MAX, "to its standard error"),
        };
        write!(out, "it wrote more than {bytes_max} bytes {place} since the last read began; let it write less")
    }
}

/// A line that is no message, or the beginning of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stray {
    pub bytes: Vec<u8>,
    pub is_cut: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Seen(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    alarm: watch::Sender<Option<Alarm>>,
    notes: Mutex<Notes>,
    error_bytes: AtomicUsize,
}

#[derive(Debug, Default)]
struct Notes {
    /// The first line that is no message, since the start.
    stray: Option<Stray>,
    /// What came instead of an answer, since the last exchange began.
    instead: Option<String>,
    /// Bytes of a line that has no end yet.
    unfinished: usize,
    stray_bytes: usize,
    output_bytes: usize,
}

impl Seen {
    pub(super) fn new() -> Self {
        let shared =
            Shared { alarm: watch::Sender::new(None), notes: Mutex::default(), error_bytes: AtomicUsize::new(0) };
        Self(Arc::new(shared))
    }

    /// A read, or a handshake, begins: what was seen before counts no more.
    pub(super) fn begin(&self) {
        self.note(|notes| {
            let (stray, unfinished) = (notes.stray.take(), notes.unfinished);
            *notes = Notes { stray, unfinished, ..Notes::default() };
        });
        self.0.error_bytes.store(0, Ordering::Relaxed);
    }

    /// Returns what ends the connection, once there is something.
    pub(super) async fn alarm(&self) -> Alarm {
        let mut alarms = self.0.alarm.subscribe();
        // The sender lives in `self`, so that the channel cannot close while this waits.
        match alarms.wait_for(Option::is_some).await.ok().and_then(|alarm| alarm.clone()) {
            Some(alarm) => alarm,
            None => std::future::pending().await,
        }
    }

    /// What ends the connection, where there is something.
    pub(super) fn standing(&self) -> Option<Alarm> {
        self.0.alarm.borrow().clone()
    }

    /// Returns once there is a flood.
    pub(super) async fn flood(&self) -> Flood {
        match self.alarm().await {
            Alarm::Flood(flood) => flood,
            Alarm::TooLong | Alarm::Broken(_) => std::future::pending().await,
        }
    }

    /// Sounds the alarm; the first stands.
    pub(super) fn sound(&self, alarm: Alarm) {
        self.0.alarm.send_if_modified(|standing| {
            let is_first = standing.is_none();
            if is_first {
                *standing = Some(alarm);
            }
            is_first
        });
    }

    /// So much came on standard output. `unfinished` bytes of it have no end of line yet. Whether it is a flood.
    pub(super) fn output_bytes(&self, count: usize, unfinished: usize) -> bool {
        self.count(Flood::Output, |notes| {
            notes.unfinished = unfinished;
            notes.output_bytes = notes.output_bytes.saturating_add(count);
            notes.output_bytes > OUTPUT_BYTES_MAX
        })
    }

    /// This line is no message. Whether there is a flood of them.
    pub(super) fn stray(&self, line: &[u8]) -> bool {
        self.count(Flood::Stray, |notes| {
            notes.stray.get_or_insert_with(|| {
                let kept = line.get(..STRAY_KEPT_BYTES_MAX);
                Stray {
                    bytes: kept.unwrap_or(line).to_vec(),
                    is_cut: kept.is_some() && line.len() > STRAY_KEPT_BYTES_MAX,
                }
            });
            notes.stray_bytes = notes.stray_bytes.saturating_add(line.len()).saturating_add(1);
            notes.stray_bytes > STRAY_BYTES_MAX
        })
    }

    /// So much came on standard error. Whether it is a flood.
    pub(super) fn error_bytes(&self, count: usize) -> bool {
        let is_flood = self.0.error_bytes.fetch_add(count, Ordering::Relaxed).saturating_add(count) > ERROR_BYTES_MAX;
        if is_flood {
            self.sound(Alarm::Flood(Flood::Error));
        }
        is_flood
    }

    /// Something came that may have been meant as an answer.
    pub(super) fn instead(&self, what: String) {
        self.note(|notes| {
            notes.instead.get_or_insert(what);
        });
    }

    /// What came instead of an answer, where something did.
    pub(super) fn came_instead(&self) -> Option<String> {
        self.note(|notes| {
            let unfinished = || {
                let bytes = notes.unfinished;
                format!("began a line and did not end it ({bytes} bytes); a message is one whole line, flushed at once")
            };
            notes.instead.clone().or_else(|| (notes.unfinished > 0).then(unfinished))
        })
    }

    /// The first line that is no message, where there is one.
    pub(super) fn first_stray(&self) -> Option<Stray> {
        self.note(|notes| notes.stray.clone())
    }

    fn count(&self, flood: Flood, count: impl FnOnce(&mut Notes) -> bool) -> bool {
        let is_flood = self.note(count);
        if is_flood {
            self.sound(Alarm::Flood(flood));
        }
        is_flood
    }

    fn note<T>(&self, note: impl FnOnce(&mut Notes) -> T) -> T {
        note(&mut self.0.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_flood_is_counted_between_the_beginnings_of_two_reads() {
        let seen = Seen::new();
        let half = "x".repeat(STRAY_BYTES_MAX / 2 - 1).into_bytes();
        assert!(!seen.stray(b"first") && !seen.stray(&half));
        seen.begin();
        assert!(!seen.stray(&half) && !seen.stray(&half) && seen.stray(b"z"));
        assert_eq!(seen.flood().await, Flood::Stray);
        assert_eq!(seen.first_stray(), Some(Stray { bytes: b"first".to_vec(), is_cut: false }));

        let seen = Seen::new();
        assert!(!seen.output_bytes(OUTPUT_BYTES_MAX, 0));
        seen.begin();
        assert!(!seen.output_bytes(OUTPUT_BYTES_MAX, 0) && seen.output_bytes(1, 0));
        assert_eq!(seen.flood().await, Flood::Output);

        let seen = Seen::new();
        assert!(!seen.error_bytes(ERROR_BYTES_MAX));
        seen.begin();
        assert!(!seen.error_bytes(ERROR_BYTES_MAX) && seen.error_bytes(1));
        assert_eq!(seen.flood().await, Flood::Error);
    }

    #[tokio::test]
    async fn the_first_alarm_stands() {
        let seen = Seen::new();
        seen.sound(Alarm::TooLong);
        seen.sound(Alarm::Broken("later".to_owned()));
        assert_eq!(seen.alarm().await, Alarm::TooLong);
    }

    #[test]
    fn what_came_instead_is_of_this_exchange() {
        let seen = Seen::new();
        assert_eq!(seen.came_instead(), None);
        seen.output_bytes(5, 5);
        seen.begin();
        assert!(seen.came_instead().unwrap().contains("(5 bytes)"), "half a line is still half a line");
        seen.instead("something".to_owned());
        assert_eq!(seen.came_instead().as_deref(), Some("something"));
        seen.output_bytes(1, 0);
        seen.begin();
        assert_eq!(seen.came_instead(), None);
    }
}
