//! The notification and its parts: plain values, no serialisation, no I/O.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

/// A name of a workspace, connector, route, plugin or secret: 1–63 of a–z, 0–9 and inner hyphens.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

/// The source of the host's own notices; no connector has this name.
pub const HOST_SOURCE: &str = "switchbell";

/// The key in the `_meta` of what a Switchbell hands on from its queues, by which another knows that it did not come first-hand.
pub const HANDED_ON: &str = "switchbell/handed-on";

/// Why a text is no [`Name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAName;

impl fmt::Display for NotAName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a name is 1 to 63 of a-z, 0-9 and inner hyphens")
    }
}

impl std::error::Error for NotAName {}

impl Name {
    /// The text of the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let fits =
            (1..=63).contains(&text.len()) && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-');
        if fits { Ok(Self(text.into())) } else { Err(NotAName) }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", &*self.0)
    }
}

impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// How loudly a notification asks for attention (notifications seed, "The ai.nimblebrain/notification block").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Worth knowing.
    Info,
    /// Somebody should look.
    Attention,
    /// Somebody should look now.
    Urgent,
}

impl Level {
    /// Every level, quietest first.
    pub const ALL: [Self; 3] = [Self::Info, Self::Attention, Self::Urgent];

    /// The seed's spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Attention => "attention",
            Self::Urgent => "urgent",
        }
    }

    /// The level with the seed's spelling `text`.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == text)
    }

    /// This level, capped by a source's ceiling.
    #[must_use]
    pub fn capped(self, ceiling: Self) -> Self {
        self.min(ceiling)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// An event that passed every rule, normalised, before the inbox has numbered it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The source's own id, 1–200 characters: the key of deduplication.
    pub event_id: String,
    /// The dotted name, 1–200 characters, no white space.
    pub name: String,
    /// When the fact happened.
    pub timestamp: Timestamp,
    /// The level the source gave; `info` when it gave none.
    pub level: Level,
    /// What it is about, at most 200 characters.
    pub subject: Option<String>,
    /// One line, at most 200 characters, never empty.
    pub title: String,
    /// At most 2,000 characters; lines end in `\n`.
    pub body: Option<String>,
    /// A URI with a scheme, at most 2,048 characters.
    pub link: Option<String>,
    /// The payload: the JSON text of an object, byte for byte as it came.
    pub data: String,
    /// What a push queue brought beside it: the JSON text of an array of MCP content blocks, as they came, but for inline media
    /// that is too large. None of what came from an outbox.
    pub content: Option<String>,
}

/// One entry of a workspace's inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The workspace whose inbox it is in.
    pub workspace: Name,
    /// Its number there, from 1, without gaps.
    pub seq: u64,
    /// The connector it came from.
    pub source: Name,
    /// When the host accepted it.
    pub received_at: Timestamp,
    /// The event's level, capped by the ceiling its source had at that time.
    pub effective_level: Level,
    /// What the source said.
    pub event: Event,
}

impl Notification {
    /// Its id beyond its inbox: [`global_id`].
    pub fn global_id(&self) -> String {
        global_id(&self.workspace, &self.source, &self.event.event_id)
    }
}

/// Longest id of an event, in characters (the rules of an event).
const ID_CHARS_MAX: usize = 200;

/// The id of an event wherever a Switchbell hands it on, the same for ever and for no other event of this server:
/// `<workspace>:<source>:<eventId>`, or `sha256:` and that text's digest in hex where it would be too long.
pub fn global_id(workspace: &Name, source: &Name, event_id: &str) -> String {
    let id = format!("{workspace}:{source}:{event_id}");
    if id.chars().nth(ID_CHARS_MAX).is_none() {
        return id;
    }
    let digest = Sha256::digest(id.as_bytes());
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_lower_case_and_hyphenated_inside_only() {
        for good in ["a", "acme", "a-1", &"x".repeat(63)] {
            assert!(good.parse::<Name>().is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a_b", "a.b", "ä", &"x".repeat(64)] {
            assert!(bad.parse::<Name>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_ceiling_only_ever_lowers_a_level() {
        for level in Level::ALL {
            for ceiling in Level::ALL {
                let capped = level.capped(ceiling);
                assert!(capped <= level && capped <= ceiling);
                assert!(capped == level || capped == ceiling);
            }
        }
    }

    #[test]
    fn an_id_that_would_be_too_long_is_a_digest() {
        let (acme, crm): (Name, Name) = ("acme".parse().unwrap(), "crm".parse().unwrap());
        assert_eq!(global_id(&acme, &crm, "evt_1"), "acme:crm:evt_1");
        let longest = "ä".repeat(ID_CHARS_MAX - "acme:crm:".len());
        assert_eq!(global_id(&acme, &crm, &longest), format!("acme:crm:{longest}"));
        let digest = global_id(&acme, &crm, &"x".repeat(ID_CHARS_MAX));
        assert_eq!(digest.len(), "sha256:".len() + 64);
        assert!(digest.starts_with("sha256:"));
        assert_ne!(digest, global_id(&crm, &acme, &"x".repeat(ID_CHARS_MAX)));
    }
}
