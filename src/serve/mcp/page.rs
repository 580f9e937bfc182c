//! A read of our outbox: the events after a position, as the notifications seed asks for them.
//!
//! Only what came first-hand is handed on. A notification whose connector is itself another Switchbell's outbox stays here:
//! whoever wants it reads it where it came from. So no event comes back to where it was, over however many Switchbells that
//! read each other, and nothing has to be remembered of its way. Such a connector is known by the scheme that its outbox is
//! declared under, and by the cursor that it answers with, which is kept as it came and shows whose it is even behind a
//! gateway with URIs of its own.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;

use super::cursor::{Tag, is_of_a_switchbell};
use super::outbox::{Asked, SCHEME};
use crate::inbox::{InboxError, Order, QUERY_LIMIT_MAX, Query};
use crate::notification::{Name, Notification};
use crate::serve::Served;
use crate::serve::shapes::LinkJson;

/// Size of the events of one answer, in bytes: half of what our own poller takes.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// Parts of the inbox that one read looks at, where much in it did not come first-hand.
const LOOKS_MAX: usize = 5;

/// Largest event that hosts take, in bytes. The cursor is left out where an event is larger with it.
const EVENT_BYTES_MAX: usize = 64 << 10;

/// When to read again, in milliseconds: the least that hosts wait. A read without news costs next to nothing.
const NEXT_POLL_MS: u32 = 15_000;

/// The poll result (notifications seed).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageJson {
    events: Vec<Box<RawValue>>,
    cursor: String,
    truncated: bool,
    has_more: bool,
    next_poll_ms: u32,
}

/// An event (notifications seed, "The event envelope").
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct EventJson<'a> {
    event_id: String,
    name: &'a str,
    timestamp: String,
    data: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    #[serde(rename = "_meta")]
    meta: MetaJson<'a>,
}

#[derive(Debug, Serialize)]
struct MetaJson<'a> {
    #[serde(rename = "ai.nimblebrain/notification")]
    block: BlockJson<'a>,
}

/// What a host renders and matches on. The level is the one that the inbox goes by.
#[derive(Debug, Serialize)]
struct BlockJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    level: &'a str,
    title: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<LinkJson>,
}

/// Reads.
pub(super) async fn read(served: &Served, workspace: &Name, asked: &Asked) -> Result<PageJson, InboxError> {
    let tag = Tag::new(&served.store.key(), workspace);
    // Before the rest: what comes meanwhile is not taken for something that was skipped.
    let last = served.store.last_seq(workspace).await?;
    match asked.cursor.as_deref().map(|cursor| tag.seq(cursor)) {
        Some(Some(after)) => Walk::from(after, asked, tag).read(served, workspace, last).await,
        // One that was given out elsewhere, or never: what lies between is not known.
        Some(None) => Ok(start(&tag, last, true)),
        None => Ok(start(&tag, last, false)),
    }
}

fn start(tag: &Tag, last: u64, truncated: bool) -> PageJson {
    let cursor = tag.after(last);
    PageJson { events: Vec::new(), cursor, truncated, has_more: false, next_poll_ms: NEXT_POLL_MS }
}

/// The connectors whose outbox is a Switchbell's.
async fn switchbells(served: &Served, workspace: &Name) -> Result<BTreeSet<Name>, InboxError> {
    let config = served.config.borrow().clone();
    let connectors = config.workspaces.get(workspace).into_iter().flat_map(|workspace| workspace.connectors.values());
    let is_ours = |uri: &str| uri.split_once(':').is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case(SCHEME));
    let declared = connectors.filter(|connector| connector.outbox.as_deref().is_some_and(is_ours));
    let mut found: BTreeSet<Name> = declared.map(|connector| connector.name.clone()).collect();
    let readings = served.store.readings(workspace).await?.into_iter();
    let by_cursor = readings.filter(|(_, reading)| reading.cursor.as_deref().is_some_and(is_of_a_switchbell));
    found.extend(by_cursor.map(|(name, _)| name));
    Ok(found)
}

/// A read on its way.
#[derive(Debug)]
struct Walk {
    tag: Tag,
    events_max: usize,
    age_max: Option<SignedDuration>,
    /// What lies behind is still to be read.
    position: u64,
    events: Vec<Box<RawValue>>,
    bytes: usize,
    truncated: bool,
}

/// Why a walk ends.
enum End {
    /// There is no more.
    Reached,
    /// The answer is full.
    Full,
}

impl Walk {
    fn from(position: u64, asked: &Asked, tag: Tag) -> Self {
        let age_max = asked.age_max.and_then(|age| SignedDuration::try_from(age).ok());
        let events_max = asked.events_max as usize;
        Self { tag, events_max, age_max, position, events: Vec::new(), bytes: 0, truncated: false }
    }

    async fn read(mut self, served: &Served, workspace: &Name, last: u64) -> Result<PageJson, InboxError> {
        let from = self.position;
        let left_out = switchbells(served, workspace).await?;
        let now = served.clock.now();
        // An age that leads beyond the first moment leaves nothing out.
        let since = self.age_max.and_then(|age| now.checked_sub(age).ok());
        let mut end = End::Full;
        for _ in 0..LOOKS_MAX {
            end = self.look(served, workspace, since, &left_out).await?;
            match end {
                End::Reached => break,
                End::Full if self.is_full() => break,
                End::Full => {}
            }
        }
        if matches!(end, End::Reached) && (last > self.position || last < from) {
            // All behind it is too old or gone; or this inbox never came so far, and is an older copy of the one that did.
            (self.truncated, self.position) = (true, last);
        }
        let cursor = self.tag.after(self.position);
        let has_more = matches!(end, End::Full);
        Ok(PageJson { events: self.events, cursor, truncated: self.truncated, has_more, next_poll_ms: NEXT_POLL_MS })
    }

    fn is_full(&self) -> bool {
        self.events.len() >= self.events_max || self.bytes >= ANSWER_BYTES_MAX
    }

    /// Reads on, by one part of the inbox.
    async fn look(
        &mut self,
        served: &Served,
        workspace: &Name,
        since: Option<Timestamp>,
        left_out: &BTreeSet<Name>,
    ) -> Result<End, InboxError> {
        // One more than is wanted shows whether there is more.
        let wanted = self.events_max - self.events.len().min(self.events_max);
        let limit = u32::try_from(wanted + 1).unwrap_or(QUERY_LIMIT_MAX).min(QUERY_LIMIT_MAX);
        let after = Some(self.position);
        let all = Query::all(workspace.clone(), limit);
        let listed = served.store.list(Query { after, since, order: Order::Oldest, ..all }).await?;
        for (notification, _) in &listed.items {
            if left_out.contains(&notification.source) {
                self.pass(notification.seq);
                continue;
            }
            let event = event(notification, &self.tag)?;
            let bytes = self.bytes + event.get().len();
            if self.events.len() == self.events_max || (bytes > ANSWER_BYTES_MAX && !self.events.is_empty()) {
                self.bytes = bytes;
                return Ok(End::Full);
            }
            self.pass(notification.seq);
            self.bytes = bytes;
            self.events.push(event);
        }
        match listed.next {
            None => Ok(End::Reached),
            Some(next) => {
                // What it looked at and did not list is too old.
                if next > self.position {
                    (self.truncated, self.position) = (true, next);
                }
                Ok(End::Full)
            }
        }
    }

    /// Numbers have no gaps: what is not there was skipped.
    fn pass(&mut self, seq: u64) {
        self.truncated |= seq != self.position + 1;
        self.position = seq;
    }
}

fn event(of: &Notification, tag: &Tag) -> Result<Box<RawValue>, InboxError> {
    let unspeakable = |error: serde_json::Error| {
        InboxError::Unavailable(format!("notification {} cannot be written as JSON: {error}", of.seq))
    };
    let data: &RawValue = serde_json::from_str(&of.event.data).map_err(unspeakable)?;
    let link = of.event.link.clone().map(|resource| LinkJson { resource });
    let block = BlockJson {
        subject: of.event.subject.as_deref(),
        level: of.effective_level.as_str(),
        title: &of.event.title,
        body: of.event.body.as_deref(),
        link,
    };
    let mut event = EventJson {
        event_id: of.global_id(),
        name: &of.event.name,
        timestamp: of.event.timestamp.to_string(),
        data,
        cursor: Some(tag.after(of.seq)),
        meta: MetaJson { block },
    };
    let mut text = serde_json::to_string(&event).map_err(unspeakable)?;
    if text.len() > EVENT_BYTES_MAX {
        event.cursor = None;
        text = serde_json::to_string(&event).map_err(unspeakable)?;
    }
    RawValue::from_string(text).map_err(unspeakable)
}
