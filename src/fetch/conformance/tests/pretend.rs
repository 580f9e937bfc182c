//! An outbox in memory that is good but for one fault.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use serde_json::{Value, json};

use crate::clock::{Clock, later};
use crate::fetch::outbox::{Outbox, ReadError};

/// Where it is.
pub(super) const RESOURCE: &str = "acme://notifications";

/// What the outbox does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    /// None: something happens at every moment.
    IsBusy,
    /// None: the oldest event is gone, and that is said.
    HasPruned,
    /// None: it asks for patience now and then.
    IsAskedTooOften,
    CannotBeReached,
    KnowsNoBareUri,
    KnowsNoBoundsAlone,
    KnowsTheWholeTemplateOnly,
    KnowsNothing,
    DumpsItsBacklog,
    HasNoFirstCursor,
    StartsFromTheOldest,
    RefusesReadsAfterACursor,
    AnswersNoText,
    AnswersTooMuch,
    AnswersWords,
    AnswersAMap,
    AnswersFlagsAsTexts,
    WishesInSeconds,
    WishesTheImpossible,
    HasLongCursors,
    ForgetsTheCursor,
    IncludesTheCursor,
    KeepsTheCursor,
    JumpsToTheNewest,
    PutsEventCursorsBefore,
    DecodesNothing,
    DecodesNothingAndUsesPlus,
    TakesAnyCursor,
    DiesOfAnUnknownCursor,
    SaysNothingOfAnUnknownCursor,
    TurnsPagesRound,
    SortsOneWrong,
    MintsIds,
    UsesOneId,
    ChangesData,
    ForgetsWhatWasRead,
    InventsALevel,
    SendsAHugeEvent,
    ShoutsNames,
    HasNoTimeZone,
    WritesNovels,
    SendsActions,
    PutsTheLevelOutside,
    IgnoresMaxEvents,
    IgnoresMaxAge,
    CountsAgeIn32BitsOrFails,
    CountsAgeIn32BitsAndWraps,
    NeverSaysMore,
    AlwaysSaysMore,
    SaysMoreOfAFullPage,
    NeverSaysTruncated,
    AlwaysSaysTruncated,
    WritesToStandardOutput,
    LosesItsMemory,
    DrawsCursorsAnew,
}

#[derive(Debug)]
pub(super) struct Pretend {
    pub(super) fault: Fault,
    pub(super) events: Arc<Mutex<Vec<Value>>>,
    pub(super) reads: u32,
    pub(super) closed: bool,
}

impl Outbox for Pretend {
    fn read<'a>(&'a mut self, uri: &'a str) -> BoxFuture<'a, Result<String, ReadError>> {
        self.reads += 1;
        if self.fault == Fault::IsBusy {
            self.happen(1);
        }
        std::future::ready(self.answer(uri)).boxed()
    }

    fn changed(&mut self) -> BoxFuture<'_, ()> {
        std::future::pending().boxed()
    }

    fn revision(&self) -> Option<String> {
        (self.fault != Fault::CannotBeReached && self.reads > 0).then(|| "2026-07-28".to_owned())
    }

    fn stray(&self) -> Option<String> {
        (self.fault == Fault::WritesToStandardOutput).then(|| "listening".to_owned())
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        self.closed = true;
        if self.fault == Fault::LosesItsMemory {
            self.events.lock().unwrap().clear();
        }
        std::future::ready(()).boxed()
    }
}

impl Pretend {
    fn answer(&self, uri: &str) -> Result<String, ReadError> {
        let unknown = Err(ReadError::NotFound(format!("Resource {uri} not found")));
        let query = uri.strip_prefix(RESOURCE).unwrap().strip_prefix('?').unwrap_or_default();
        let raw: BTreeMap<&str, &str> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
        match (self.fault, raw.len()) {
            (Fault::IsAskedTooOften, _) if self.reads % 3 == 2 => {
                return Err(ReadError::Http { status: 429, retry_after: Some(Duration::from_millis(1)) });
            }
            (Fault::CannotBeReached, _) => return Err(ReadError::Disconnected("`server` exited".to_owned())),
            (Fault::KnowsNothing, _) | (Fault::KnowsTheWholeTemplateOnly, 0 | 2) => return unknown,
            (Fault::KnowsNoBareUri, 0) | (Fault::KnowsNoBoundsAlone, 2) => return unknown,
            _ => {}
        }
        match raw.get("cursor") {
            None => Ok(self.first().to_string()),
            Some(cursor) => self.after(cursor, &raw),
        }
    }

    fn first(&self) -> Value {
        let events = self.events.lock().unwrap();
        let cursor = match self.fault {
            Fault::HasNoFirstCursor => Value::Null,
            Fault::StartsFromTheOldest => self.cursor(0).into(),
            Fault::HasLongCursors => "x".repeat(1_025).into(),
            _ => self.cursor(events.len()).into(),
        };
        let told = if self.fault == Fault::DumpsItsBacklog { events.as_slice() } else { &[] };
        json!({"events": told, "cursor": cursor, "hasMore": self.fault == Fault::AlwaysSaysMore})
    }

    fn after(&self, raw: &str, query: &BTreeMap<&str, &str>) -> Result<String, ReadError> {
        let decodes = !matches!(self.fault, Fault::DecodesNothing | Fault::DecodesNothingAndUsesPlus);
        let decoded = url::form_urlencoded::parse(format!("c={raw}").as_bytes()).next().unwrap().1.into_owned();
        let cursor = if decodes { decoded } else { raw.to_owned() };
        let refused = |message: String| Err(ReadError::Refused { code: -32603, message });
        let events = self.events.lock().unwrap();
        let asked = match (0..999).find(|&position| self.cursor(position) == cursor) {
            Some(position) => position,
            None if self.fault == Fault::TakesAnyCursor => events.len(),
            None if self.fault == Fault::DiesOfAnUnknownCursor => {
                return Err(ReadError::Disconnected("`server` exited".to_owned()));
            }
            None if self.fault == Fault::SaysNothingOfAnUnknownCursor => return refused("Internal error".to_owned()),
            None => return refused(format!("unknown cursor {cursor:?}")),
        };
        drop(events);
        let age_ms: i64 = query["maxAgeMs"].parse().unwrap();
        match self.fault {
            Fault::RefusesReadsAfterACursor => refused("invalid literal for int()".to_owned()),
            Fault::CountsAgeIn32BitsOrFails if i32::try_from(age_ms).is_err() => refused("out of range".to_owned()),
            Fault::AnswersNoText => Err(ReadError::NoText),
            Fault::AnswersTooMuch => Err(ReadError::TooLarge { bytes_max: 1 }),
            Fault::AnswersWords => Ok("no news".to_owned()),
            Fault::AnswersAMap => Ok("{\"events\": {}}".to_owned()),
            _ => Ok(self.page(asked, query["maxEvents"].parse().unwrap(), age_ms).to_string()),
        }
    }

    fn page(&self, asked: usize, limit: usize, age_ms: i64) -> Value {
        let mut stored = self.events.lock().unwrap();
        let newest = stored.len();
        let wraps = self.fault == Fault::CountsAgeIn32BitsAndWraps && i32::try_from(age_ms).is_err();
        // Everything is older than a moment, and younger than a day.
        let is_too_old = (age_ms <= 1 && self.fault != Fault::IgnoresMaxAge) || wraps;
        let pruned = usize::from(self.fault == Fault::HasPruned);
        let start = if is_too_old { newest } else { asked.max(pruned) };
        let from = if self.fault == Fault::IncludesTheCursor { start.saturating_sub(1) } else { start };
        let limit = if self.fault == Fault::IgnoresMaxEvents { newest } else { limit };
        let mut events: Vec<Value> = stored.iter().skip(from).take(limit).cloned().collect();
        let end = from + events.len();
        match self.fault {
            Fault::TurnsPagesRound => events.reverse(),
            Fault::ForgetsWhatWasRead => stored.truncate(asked),
            Fault::MintsIds | Fault::UsesOneId | Fault::ChangesData => {
                for event in &mut events {
                    let minted = fastrand::u64(..);
                    match self.fault {
                        Fault::MintsIds => event["eventId"] = minted.to_string().into(),
                        Fault::UsesOneId => event["eventId"] = "evt".into(),
                        _ => event["data"] = json!({"read": minted}),
                    }
                }
            }
            _ => {}
        }
        let is_full = !events.is_empty() && events.len() == limit;
        let has_more = match self.fault {
            Fault::NeverSaysMore => false,
            Fault::AlwaysSaysMore => true,
            Fault::SaysMoreOfAFullPage => is_full,
            _ => end < newest,
        };
        let truncated = match self.fault {
            Fault::NeverSaysTruncated => false,
            Fault::AlwaysSaysTruncated => true,
            _ => start > asked && !wraps,
        };
        let cursor = match self.fault {
            Fault::ForgetsTheCursor => Value::Null,
            Fault::KeepsTheCursor => self.cursor(asked).into(),
            Fault::JumpsToTheNewest => self.cursor(newest).into(),
            _ => self.cursor(end).into(),
        };
        let mut page = json!({"events": events, "cursor": cursor, "hasMore": has_more, "truncated": truncated});
        match self.fault {
            Fault::WishesInSeconds => page["nextPollMs"] = 60.into(),
            Fault::WishesTheImpossible => page["nextPollMs"] = (-1).into(),
            Fault::AnswersFlagsAsTexts => page["hasMore"] = "false".into(),
            _ => page["nextPollMs"] = 60_000.into(),
        }
        page
    }

    fn cursor(&self, position: usize) -> String {
        let sign = if self.fault == Fault::DecodesNothingAndUsesPlus { '+' } else { ':' };
        let life = if self.fault == Fault::DrawsCursorsAnew && self.closed { "q" } else { "p" };
        format!("{life}{sign}{position}=")
    }

    /// Writes `count` events, each a second after the one before.
    pub(super) fn happen(&self, count: usize) {
        let mut events = self.events.lock().unwrap();
        for index in 0..count {
            let position = events.len() + 1;
            let ago = 999 - position;
            let moment = Clock::system().now() - jiff::SignedDuration::from_secs(i64::try_from(ago).unwrap());
            let block = json!({"level": "info", "title": "A domain", "subject": "a.example", "body": "It is active."});
            let mut event = json!({
                "eventId": format!("evt_{position}"),
                "name": "domain.active",
                "timestamp": moment.to_string(),
                "data": {"position": position},
                "cursor": self.cursor(position - usize::from(self.fault == Fault::PutsEventCursorsBefore)),
                "_meta": {"ai.nimblebrain/notification": block},
            });
            let block = &mut event["_meta"]["ai.nimblebrain/notification"];
            match self.fault {
                Fault::InventsALevel if index == 1 => block["level"] = "critical".into(),
                Fault::WritesNovels => block["title"] = "A".repeat(201).into(),
                Fault::SendsActions => block["actions"] = json!([]),
                Fault::PutsTheLevelOutside => event["level"] = "urgent".into(),
                Fault::SendsAHugeEvent if index == 1 => event["data"] = json!({"text": "x".repeat(70_000)}),
                Fault::ShoutsNames => event["name"] = "DOMAIN_ACTIVE".into(),
                Fault::HasNoTimeZone => {
                    event["timestamp"] = event["timestamp"].as_str().unwrap().trim_end_matches('Z').into();
                }
                Fault::SortsOneWrong if index == 2 => {
                    event["timestamp"] = later(moment, Duration::ZERO).to_string().replace("202", "201").into();
                }
                _ => {}
            }
            events.push(event);
        }
    }
}

pub(super) fn pretend(fault: Fault) -> Pretend {
    let outbox = Pretend { fault, events: Arc::default(), reads: 0, closed: false };
    outbox.happen(2);
    outbox
}
