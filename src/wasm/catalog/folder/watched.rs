//! One file of the directory: when it is worth reading, and when it is news.

use std::path::Path;
use std::time::Instant;

use crate::notification::Name;
use crate::wasm::fault::LoadError;
use crate::wasm::load::digest;

use super::stamp::{Content, Stamp, Unreadable, read};
use super::whole::is_whole;
use super::{INCOMPLETE_PATIENCE, Patience, REFUSED_PATIENCE, Seen};

/// One file.
#[derive(Debug)]
pub(super) struct Watched {
    /// The plugin it is named for, or what is wrong with that.
    name: Result<Name, String>,
    /// Its state in the last look; none when that missed it.
    stamp: Option<Stamp>,
    /// When it was first seen in this state.
    since: Instant,
    /// Whether two looks in a row saw this state, or the first of all found it so.
    is_resting: bool,
    /// Whether it is still in the state in which the first look of all found it.
    is_first: bool,
    /// The state that was judged, and what came of it.
    judged: Option<(Stamp, Verdict)>,
    told: Option<Told>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It ends in the middle of something.
    CutOff,
    /// It is a problem that no other look solves.
    Useless,
    /// It was read and settled.
    Settled,
}

/// What was settled last.
#[derive(Debug)]
struct Told {
    digest: String,
    signature: Option<String>,
    refused: Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    No,
    /// It is told of once more when it has rested.
    ForNow,
    ForGood,
}

/// What came of judging a file.
#[derive(Debug, Default)]
pub(super) struct Judged {
    pub(super) settled: Option<Seen>,
    /// The problem that there is with it now.
    pub(super) problem: Option<String>,
    pub(super) read_bytes: usize,
}

impl Judged {
    fn problem(message: String) -> Self {
        Self { problem: Some(message), ..Self::default() }
    }
}

impl Watched {
    pub(super) fn new(name: Result<Name, String>, stamp: Stamp, now: Instant, is_first: bool) -> Self {
        Self { name, stamp: Some(stamp), since: now, is_resting: is_first, is_first, judged: None, told: None }
    }

    /// Takes note of its state in a further look.
    pub(super) fn note(&mut self, stamp: Stamp, now: Instant) {
        if self.stamp == Some(stamp) {
            self.is_resting = true;
        } else {
            (self.stamp, self.since, self.is_resting, self.is_first) = (Some(stamp), now, false, false);
        }
    }

    /// Takes note that a look missed it, and tells whether the look before had not.
    pub(super) fn was_there(&mut self) -> bool {
        self.is_resting = false;
        self.stamp.take().is_some()
    }

    /// Its plugin, if it was ever settled.
    pub(super) fn settled_name(self) -> Option<Name> {
        self.told.and(self.name.ok())
    }

    /// Whether it is to be judged in this look.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        let rested = now.saturating_duration_since(self.since);
        let verdict = self.judged.filter(|(judged, _)| Some(*judged) == self.stamp).map(|(_, verdict)| verdict);
        let is_open = match verdict {
            None => true,
            Some(Verdict::CutOff) => rested >= INCOMPLETE_PATIENCE,
            Some(Verdict::Useless) => false,
            Some(Verdict::Settled) => self.is_refused(Refused::ForNow) && rested >= REFUSED_PATIENCE,
        };
        self.is_resting && is_open
    }

    /// Reads it if need be, and tells what came of that.
    pub(super) fn judge(&mut self, path: &Path, now: Instant) -> Judged {
        let Some(stamp) = self.stamp else { return Judged::default() };
        let name = match &self.name {
            Ok(name) => name.clone(),
            Err(message) => {
                self.judged = Some((stamp, Verdict::Useless));
                return Judged::problem(message.clone());
            }
        };
        let is_settled = |(judged, verdict): &(Stamp, _)| judged.is_same_file(&stamp) && *verdict == Verdict::Settled;
        if self.judged.as_ref().is_some_and(is_settled) && self.is_refused(Refused::No) {
            // The signature of what is in use is nobody's concern.
            self.judged = Some((stamp, Verdict::Settled));
            return Judged::default();
        }
        match read(path, &stamp) {
            Err(Unreadable::Changed) => Judged::default(),
            Err(Unreadable::Because(reason)) => {
                self.judged = None;
                Judged::problem(format!("cannot be read: {reason}"))
            }
            Err(Unreadable::TooLarge) => {
                self.judged = Some((stamp, Verdict::Useless));
                Judged::problem(LoadError::TooLarge.to_string())
            }
            Ok(content) => self.settle(name, path, stamp, content, now),
        }
    }

    fn settle(&mut self, name: Name, path: &Path, stamp: Stamp, content: Content, now: Instant) -> Judged {
        let Content { bytes, signature } = content;
        let read_bytes = bytes.len();
        let rested = now.saturating_duration_since(self.since);
        if rested < INCOMPLETE_PATIENCE && !is_whole(&bytes) {
            self.judged = Some((stamp, Verdict::CutOff));
            return Judged { read_bytes, ..Judged::default() };
        }
        self.judged = Some((stamp, Verdict::Settled));
        let digest = digest(&bytes);
        let is_known = self.told.as_ref().is_some_and(|told| match told.refused {
            _ if told.digest != digest => false,
            Refused::No => true,
            Refused::ForNow => told.signature == signature && rested < REFUSED_PATIENCE,
            Refused::ForGood => told.signature == signature,
        });
        if is_known {
            return Judged { read_bytes, ..Judged::default() };
        }
        self.told = Some(Told { digest: digest.clone(), signature: signature.clone(), refused: Refused::No });
        let settled = Seen::Settled { name, path: path.to_owned(), bytes, digest, signature };
        Judged { settled: Some(settled), problem: None, read_bytes }
    }

    fn is_refused(&self, how: Refused) -> bool {
        self.told.as_ref().is_some_and(|told| told.refused == how)
    }

    /// Whether what was settled last has this digest.
    pub(super) fn is_settled_with(&self, digest: &str) -> bool {
        self.told.as_ref().is_some_and(|told| told.digest == digest)
    }

    /// Takes note that what was settled with this digest was refused.
    pub(super) fn refused(&mut self, digest: &str, now: Instant) -> Patience {
        let is_unchanged = self.stamp.is_some() && self.stamp == self.judged.map(|(stamp, _)| stamp);
        let has_rested = self.is_first || now.saturating_duration_since(self.since) >= REFUSED_PATIENCE;
        // When something else was settled meanwhile, that is what counts.
        let Some(told) = self.told.as_mut().filter(|told| told.digest == digest) else { return Patience::Wait };
        if is_unchanged && has_rested {
            told.refused = Refused::ForGood;
            Patience::Report
        } else {
            told.refused = Refused::ForNow;
            Patience::Wait
        }
    }

    /// Has the next look that finds it at rest tell of it, whatever is in it.
    pub(super) fn tell_again(&mut self) {
        self.judged = None;
        if let Some(told) = &mut self.told {
            told.digest.clear();
        }
    }
}
