//! Reads on behalf of the check: each within what is left of its reads and its time, measured, and judged for what it
//! alone shows.

use std::time::Duration;

use jiff::Timestamp;

use super::page::{self, Known, Page, shortened};
use super::report::{Ledger, Report};
use super::rules as is;
use super::rules::Rule;
use super::{READS_MAX, remedies};
use crate::clock::{Clock, until};
use crate::fetch::address::{self, Bounds};
use crate::fetch::mcp::TEXT_BYTES_MAX;
use crate::fetch::outbox::{Outbox, ReadError};
use crate::telemetry::rounded;

/// `truncated` is a false alarm only where nothing can have been skipped: cursors are minutes old at most.
const NOTHING_IS_SO_OLD: Duration = Duration::from_secs(3_600);

/// A server that asks for more patience is not read again.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(10);

/// Longest URI that a report repeats, in characters.
const URI_CHARS_MAX: usize = 120;

/// Why there is no page.
#[derive(Debug)]
pub(super) enum Missed {
    /// The read failed.
    Failed(ReadError),
    /// The answer is none; the rule it breaks is told.
    NoAnswer,
    /// The check has made all its reads, or used all its time.
    Spent,
}

/// The outbox under test, and what was seen of it.
pub(super) struct Probe<'a> {
    outbox: &'a mut dyn Outbox,
    clock: &'a Clock,
    pub resource: &'a str,
    pub ledger: Ledger,
    pub known: Known,
    /// A cursor that comes from outside, and may be old.
    pub foreign: Option<&'a str>,
    /// Events known.
    pub events: usize,
    began: Timestamp,
    time_max: Duration,
    latency_max: Duration,
    reads: u32,
    slowest: Duration,
    bytes_max: usize,
    is_cut: bool,
    /// Whether the next read makes a connection.
    is_new: bool,
    revision: Option<String>,
    stray: Option<String>,
}

impl<'a> Probe<'a> {
    pub(super) fn new(
        outbox: &'a mut dyn Outbox,
        clock: &'a Clock,
        resource: &'a str,
        time_max: Duration,
        latency_max: Duration,
    ) -> Self {
        Self {
            outbox,
            clock,
            resource,
            ledger: Ledger::new(super::RULES),
            known: Known::ById,
            foreign: None,
            events: 0,
            began: clock.now(),
            time_max,
            latency_max,
            reads: 0,
            slowest: Duration::ZERO,
            bytes_max: 0,
            is_cut: false,
            is_new: true,
            revision: None,
            stray: None,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) async fn sleep(&self, delay: Duration) {
        self.clock.sleep(delay).await;
    }

    /// Ends the connection: the next read makes another.
    pub(super) async fn disconnect(&mut self) {
        // What is behind it will not be known once it is gone.
        self.stray = self.stray.take().or(self.outbox.stray());
        self.outbox.close().await;
        self.is_new = true;
    }

    /// Whether the server was reached: it answered the handshake.
    pub(super) fn is_reached(&self) -> bool {
        self.revision.is_some()
    }

    /// Reads `uri`, whatever comes of it.
    pub(super) async fn read(&mut self, uri: &str) -> Result<Page, Missed> {
        if self.reads >= READS_MAX || self.took() >= self.time_max {
            self.is_cut = true;
            return Err(Missed::Spent);
        }
        self.reads += 1;
        let mut asked = self.clock.now();
        let mut result = self.outbox.read(uri).await;
        if let Err(error) = &result
            && let Some(wait) = error.retry_after().filter(|wait| *wait <= RETRY_AFTER_MAX)
        {
            // A server that is asked too often says so, and breaks no rule.
            self.sleep(wait).await;
            asked = self.clock.now();
            self.reads += 1;
            result = self.outbox.read(uri).await;
        }
        let took = until(asked, self.clock.now());
        self.revision = self.outbox.revision().or(self.revision.take());
        // The first read of a connection starts the server, too.
        if !std::mem::take(&mut self.is_new) {
            self.slowest = self.slowest.max(took);
            if took > self.latency_max {
                let seen = format!("{} took {}", self.shown(uri), rounded(took));
                self.ledger.fail(&is::LATENCY, seen);
            }
        }
        match result {
            Ok(text) => {
                self.ledger.pass(&is::ANSWER_TEXT, "the first content is a text");
                self.bytes_max = self.bytes_max.max(text.len());
                self.ledger.pass(&is::ANSWER_SIZE, format!("the largest has {} bytes", self.bytes_max));
                page::judge(&self.shown(uri), &text, &mut self.ledger).ok_or(Missed::NoAnswer)
            }
            Err(error) => Err(Missed::Failed(error)),
        }
    }

    /// What comes after `cursor`. What goes wrong is told.
    pub(super) async fn after(&mut self, cursor: &str, bounds: Bounds) -> Option<Page> {
        let uri = address::after(self.resource, cursor, bounds);
        let page = match self.read(&uri).await {
            Ok(page) => page,
            Err(missed) => {
                self.tell(self.blamed(cursor, &is::READ_ANSWERED), &uri, &missed);
                return None;
            }
        };
        self.ledger.pass(&is::READ_ANSWERED, "every read after a cursor");
        let is_recent = self.foreign != Some(cursor) && bounds.age_max >= NOTHING_IS_SO_OLD;
        self.judge_bounds(&page, bounds, is_recent);
        match &page.cursor {
            Some(_) => self.ledger.pass(&is::CURSOR_PRESENT, "in every answer"),
            None => self.ledger.fail(&is::CURSOR_PRESENT, format!("the answer to {} has no cursor", page.uri)),
        }
        Some(page)
    }

    fn judge_bounds(&mut self, page: &Page, bounds: Bounds, is_recent: bool) {
        let (found, most) = (page.events.len(), usize::try_from(bounds.events_max).unwrap_or(usize::MAX));
        if found > most {
            self.ledger.fail(&is::MAX_EVENTS, format!("{} brought {found} events", page.uri));
        }
        if is_recent {
            if page.truncated {
                self.ledger.fail(&is::TRUNCATED_FALSE, format!("{}: truncated, and nothing was skipped", page.uri));
            } else {
                self.ledger.pass(&is::TRUNCATED_FALSE, "not said where nothing was skipped");
            }
        }
    }

    /// The rule that a failure after `cursor` is a breach of: a cursor that had to be encoded may not be decoded.
    pub(super) fn blamed(&self, cursor: &str, otherwise: &'static Rule) -> &'static Rule {
        let plain = format!("{}?cursor={cursor}&", self.resource);
        let bounds = Bounds { events_max: 1, age_max: Duration::ZERO };
        let is_verbatim = address::after(self.resource, cursor, bounds).starts_with(&plain);
        if is_verbatim { otherwise } else { &is::CURSOR_ENCODING }
    }

    /// Tells why there was no page, as a breach of `rule` where nothing more exact is known.
    pub(super) fn tell(&mut self, rule: &'static Rule, uri: &str, missed: &Missed) {
        let Missed::Failed(error) = missed else { return };
        let rule = match error {
            ReadError::NoText => &is::ANSWER_TEXT,
            ReadError::TooLarge { .. } => &is::ANSWER_SIZE,
            _ => rule,
        };
        let said = match rule.id {
            id if id == is::CONNECTION.id => remedies::said(error),
            _ => format!("{}: {}", self.shown(uri), remedies::said(error)),
        };
        match remedies::of(error) {
            Some(remedy) => self.ledger.fail_with(rule, said, remedy),
            None => self.ledger.fail(rule, said),
        }
    }

    /// A URI as a report repeats it: what follows the resource, where something does.
    pub(super) fn shown(&self, uri: &str) -> String {
        let query = uri.strip_prefix(self.resource).filter(|query| !query.is_empty()).unwrap_or(uri);
        match query.char_indices().nth(URI_CHARS_MAX) {
            Some((end, _)) => format!("{}…", query.get(..end).unwrap_or_default()),
            None => query.to_owned(),
        }
    }

    /// Whether `page` brings one of `events`.
    pub(super) fn brings<'p>(&self, page: &'p Page, events: &[page::Told]) -> Option<&'p page::Told> {
        let is_there = |told: &&page::Told| events.iter().any(|old| old.key(self.known) == told.key(self.known));
        page.events.iter().find(is_there)
    }

    fn took(&self) -> Duration {
        until(self.began, self.clock.now())
    }

    pub(super) fn report(mut self, could_not_run: Option<String>, is_program: bool) -> Report {
        if self.reads > 1 && self.slowest <= self.latency_max {
            self.ledger
                .pass(&is::LATENCY, format!("the slowest of {} reads took {}", self.reads, rounded(self.slowest)));
        }
        match self.stray.take().or(self.outbox.stray()) {
            Some(stray) => self.ledger.fail(&is::STDOUT, format!("the server wrote {:?}", shortened(&stray))),
            None if is_program && self.is_reached() => self.ledger.pass(&is::STDOUT, "nothing but MCP"),
            None => {}
        }
        if let Some(revision) = &self.revision {
            self.ledger.pass(&is::CONNECTION, format!("MCP {revision}"));
        }
        Report {
            revision: self.revision.clone(),
            events: self.events,
            reads: self.reads,
            took: self.took(),
            is_cut: self.is_cut,
            could_not_run,
            findings: self.ledger.findings(),
        }
    }
}

const _: () = assert!(TEXT_BYTES_MAX == 8 << 20, "the wording of `answer.size` names the limit");
