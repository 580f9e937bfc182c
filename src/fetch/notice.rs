//! What the host itself tells a workspace about its connectors: notices in the inbox, from the source `switchbell`, that
//! routes may match like anything else. They are about connectors only, never about notices, so that none can bring
//! about another.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::batch::Dropped;
use super::event::{BODY_CHARS_MAX, LINE_CHARS_MAX};
use crate::inbox::change::GAP_NAME;
use crate::notification::{Event, Level, Name};
use crate::text;

/// Distinct reasons that one notice lists; the events of the others are only counted.
pub const REASONS_MAX: usize = 10;

/// Longest reason that is repeated, in characters.
const REASON_CHARS_MAX: usize = 600;

/// Most refused events in one notice.
pub const REFUSED_MAX: usize = 20;

/// Longest reason that is repeated for each of them, in characters.
const REFUSED_CHARS_MAX: usize = 200;

/// An event that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its id, where it has one, and why.
    pub dropped: Dropped,
    /// The SHA-256 of the event as it came, in hex: it is told once, however often it comes.
    pub digest: String,
}

impl Refused {
    /// The event with this JSON text.
    pub fn new(dropped: Dropped, event: &str) -> Self {
        Self { dropped, digest: text::hex(&Sha256::digest(event.as_bytes())) }
    }
}

/// Something an admin should know of a connector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Its events cannot be read.
    Failing {
        /// Failures in a row.
        failures: u32,
        /// Why the last one failed, and what to do.
        reason: String,
    },
    /// A person must sign in again.
    Reauthorize {
        /// What to do.
        reason: String,
    },
    /// It can be read again, after one of the two above was told.
    Recovered {
        /// How many reads had failed.
        failures: u32,
    },
    /// Events were missed.
    Gap {
        /// How often, since the last time this was told.
        gaps: u32,
        /// How it came.
        why: &'static str,
    },
    /// Events broke a rule and were dropped.
    Dropped {
        /// How many, since the last time this was told.
        events: usize,
        /// The reasons, the first [`REASONS_MAX`] of them, each with the number of events.
        reasons: Vec<(String, usize)>,
    },
    /// Events of a push queue broke a rule and were refused: each of them, at most [`REFUSED_MAX`]. It is durable before they
    /// are acknowledged, and the same for the same events.
    Refused {
        /// Which, and why.
        events: Vec<Refused>,
    },
    /// The first answer held events: they are in the inbox, and nobody was told of them.
    Backlog {
        /// How many.
        events: usize,
    },
}

impl Notice {
    /// Its name, which routes match: `connector.failing` and so on.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Failing { .. } => "connector.failing",
            Self::Reauthorize { .. } => "connector.reauthorize",
            Self::Recovered { .. } => "connector.recovered",
            Self::Gap { .. } => GAP_NAME,
            Self::Dropped { .. } | Self::Refused { .. } => "connector.dropped",
            Self::Backlog { .. } => "connector.backlog",
        }
    }

    /// What is bad news needs attention; so does its end, or only those who see everything would learn of it.
    fn level(&self) -> Level {
        match self {
            Self::Backlog { .. } => Level::Info,
            _ => Level::Attention,
        }
    }

    /// The event, about `connector`; `number` tells apart those that are written together.
    pub fn event(&self, connector: &Name, at: Timestamp, number: usize) -> Event {
        let name = self.name();
        Event {
            event_id: self.id(connector, at, number),
            name: name.to_owned(),
            timestamp: at,
            level: self.level(),
            subject: Some(connector.to_string()),
            title: text::line(&format!("{connector}: {}", self.title()), LINE_CHARS_MAX),
            body: Some(text::lines(&self.body(), BODY_CHARS_MAX)),
            link: None,
            data: self.data(connector).to_string(),
            content: None,
        }
    }

    fn id(&self, connector: &Name, at: Timestamp, number: usize) -> String {
        let name = self.name();
        let Self::Refused { events } = self else {
            return format!("{name}:{connector}:{}:{number}", at.as_millisecond());
        };
        let mut digest = Sha256::new();
        events.iter().for_each(|of| digest.update(&of.digest));
        format!("{name}:{connector}:{}", text::hex(&digest.finalize()))
    }

    fn title(&self) -> String {
        match self {
            Self::Failing { .. } => "its events cannot be read".to_owned(),
            Self::Reauthorize { .. } => "a person must sign in again".to_owned(),
            Self::Recovered { .. } => "its events can be read again".to_owned(),
            Self::Gap { .. } => "events were missed".to_owned(),
            Self::Dropped { events: 1, .. } => "an event was dropped".to_owned(),
            Self::Dropped { events, .. } => format!("{events} events were dropped"),
            Self::Refused { events } if events.len() == 1 => "an event was refused".to_owned(),
            Self::Refused { events } => format!("{} events were refused", events.len()),
            Self::Backlog { events: 1 } => "an event from before was not delivered".to_owned(),
            Self::Backlog { events } => format!("{events} events from before were not delivered"),
        }
    }

    fn body(&self) -> String {
        match self {
            Self::Failing { failures, reason } => {
                let reads = if *failures == 1 { "A read".to_owned() } else { format!("{failures} reads in a row") };
                format!("{reads} failed; it goes on being tried. The last reason: {}", cut(reason))
            }
            Self::Reauthorize { reason } => cut(reason),
            Self::Recovered { failures: 1 } => "One read had failed. Reading goes on where it was.".to_owned(),
            Self::Recovered { failures } => {
                format!("{failures} reads in a row had failed. Reading goes on where it was.")
            }
            Self::Gap { gaps: 1, why } => (*why).to_owned(),
            Self::Gap { gaps, why } => format!("{gaps} times. {why}"),
            Self::Dropped { events, reasons } => dropped(*events, reasons),
            Self::Refused { events } => refused(events),
            Self::Backlog { .. } => "The first answer of the outbox held them. They happened before anyone asked, so \
                                     they stand in the inbox and no route was followed."
                .to_owned(),
        }
    }

    fn data(&self, connector: &Name) -> Value {
        let connector = connector.as_str();
        match self {
            Self::Failing { failures, reason } => {
                json!({ "connector": connector, "failures": failures, "reason": cut(reason) })
            }
            Self::Reauthorize { reason } => json!({ "connector": connector, "reason": cut(reason) }),
            Self::Recovered { failures } => json!({ "connector": connector, "failures": failures }),
            Self::Gap { gaps, why } => json!({ "connector": connector, "gaps": gaps, "reason": why }),
            Self::Dropped { events, reasons } => {
                let reason = |(reason, count): &(String, usize)| json!({ "reason": cut(reason), "events": count });
                let reasons: Vec<Value> = reasons.iter().map(reason).collect();
                json!({ "connector": connector, "events": events, "reasons": reasons })
            }
            Self::Refused { events } => {
                let refused =
                    |of: &Refused| json!({ "eventId": of.dropped.event_id, "reason": short(&of.dropped.reason) });
                let each: Vec<Value> = events.iter().map(refused).collect();
                json!({ "connector": connector, "events": events.len(), "refused": each })
            }
            Self::Backlog { events } => json!({ "connector": connector, "events": events }),
        }
    }
}

fn cut(reason: &str) -> String {
    text::line(reason, REASON_CHARS_MAX)
}

fn short(reason: &str) -> String {
    text::line(reason, REFUSED_CHARS_MAX)
}

fn refused(events: &[Refused]) -> String {
    let mut body = String::from("They broke a rule of push queues and will not come again; their author should know:");
    for of in events {
        let id = of.dropped.event_id.as_deref().unwrap_or("one without an id");
        // Writing to a string cannot fail.
        let _ = write!(body, "\n{id}: {}", short(&of.dropped.reason));
    }
    body
}

fn dropped(events: usize, reasons: &[(String, usize)]) -> String {
    let mut body = String::from("They broke a rule of the outbox; its author should know:");
    for (reason, count) in reasons {
        // Writing to a string cannot fail.
        let _ = write!(body, "\n{count} × {}", cut(reason));
    }
    let listed: usize = reasons.iter().map(|(_, count)| count).sum();
    if listed < events {
        let _ = write!(body, "\n{} more for other reasons", events - listed);
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(notice: Notice, name: &str, title: &str, body: &str, data: &str) {
        let at = "2026-09-01T18:42:10Z".parse().unwrap();
        let event = notice.event(&"crm".parse().unwrap(), at, 2);
        assert_eq!((event.name.as_str(), event.title.as_str(), event.body.as_deref()), (name, title, Some(body)));
        assert_eq!(event.data, data);
        assert_eq!(event.event_id, format!("{name}:crm:1788288130000:2"));
        assert_eq!((event.subject.as_deref(), event.timestamp), (Some("crm"), at));
    }

    #[test]
    fn each_notice_says_what_happened_to_whom_and_why() {
        check(
            Notice::Failing { failures: 3, reason: "HTTP 503: the server\n could not answer".to_owned() },
            "connector.failing",
            "crm: its events cannot be read",
            "3 reads in a row failed; it goes on being tried. The last reason: HTTP 503: the server  could not answer",
            r#"{"connector":"crm","failures":3,"reason":"HTTP 503: the server  could not answer"}"#,
        );
        check(
            Notice::Recovered { failures: 7 },
            "connector.recovered",
            "crm: its events can be read again",
            "7 reads in a row had failed. Reading goes on where it was.",
            r#"{"connector":"crm","failures":7}"#,
        );
        check(
            Notice::Gap { gaps: 2, why: "The outbox skipped events." },
            "connector.gap",
            "crm: events were missed",
            "2 times. The outbox skipped events.",
            r#"{"connector":"crm","gaps":2,"reason":"The outbox skipped events."}"#,
        );
        check(
            Notice::Dropped { events: 6, reasons: vec![("data is missing".to_owned(), 4), ("level".to_owned(), 1)] },
            "connector.dropped",
            "crm: 6 events were dropped",
            "They broke a rule of the outbox; its author should know:\n4 × data is missing\n1 × level\n1 more for other \
             reasons",
            r#"{"connector":"crm","events":6,"reasons":[{"events":4,"reason":"data is missing"},{"events":1,"reason":"level"}]}"#,
        );
    }

    #[test]
    fn no_notice_is_larger_than_an_event_may_be() {
        let reason = || "ä".repeat(10_000);
        let reasons = (0..REASONS_MAX).map(|number| (format!("{number}{}", reason()), 1)).collect();
        for notice in [
            Notice::Failing { failures: 1, reason: reason() },
            Notice::Reauthorize { reason: reason() },
            Notice::Dropped { events: usize::MAX, reasons },
        ] {
            let event = notice.event(&"a".repeat(63).parse().unwrap(), Timestamp::MAX, 0);
            assert!(event.title.chars().count() <= LINE_CHARS_MAX && event.data.len() < 20_000, "{event:?}");
            assert!(event.body.is_some_and(|body| body.chars().count() <= BODY_CHARS_MAX));
        }
    }
}
