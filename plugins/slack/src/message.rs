//! What Slack shows for a delivery.
//!
//! Everything a connector wrote stands escaped in `plain_text` objects, where nothing is markup, nothing pings and
//! nothing becomes a link. The only links are an event's own and the inbox's, with labels of our making, in
//! `rich_text` blocks: a link button would show a warning to whoever presses it, unless the app answers interactions.
//! `text` is what a push notification and a screen reader get.

mod digest;
mod single;

use alloc::format;
use alloc::string::String;

use alloc::vec::Vec;

use serde::Serialize;
use switchbell_kit::link;
use switchbell_kit::types::{Delivery, Level};

use crate::escape;

/// The most characters of all blocks together; Slack refuses somewhat more than 13,000 (`msg_blocks_too_long`).
pub(crate) const MESSAGE_MAX: usize = 12_000;
/// The most blocks in a message.
pub(crate) const BLOCKS_MAX: usize = 50;
/// The most characters of a section.
pub(crate) const SECTION_MAX: usize = 3_000;
/// The most characters of a header.
pub(crate) const HEADER_MAX: usize = 150;
/// The most characters of `text`; Slack advises so and cuts it at 40,000.
pub(crate) const TEXT_MAX: usize = 4_000;
/// The most characters of one piece of a context block: names are shorter, a subject may be cut.
const DETAIL_MAX: usize = 250;
/// The most characters of the inbox's address; the host makes short ones.
const INBOX_MAX: usize = 500;

/// The JSON body of a message to the channel, or to wherever a webhook leads; with `thread_ts` as a reply.
pub(crate) fn render(
    channel: Option<&str>,
    thread_ts: Option<&str>,
    delivery: &Delivery,
) -> Result<Vec<u8>, serde_json::Error> {
    let (text, blocks) = match delivery.notifications.as_slice() {
        [notification] if delivery.omitted == 0 => single::render(notification, delivery),
        notifications => digest::render(notifications, delivery),
    };
    let (mrkdwn, unfurl_links, unfurl_media) = (false, false, false);
    serde_json::to_vec(&Message { channel, thread_ts, text, mrkdwn, unfurl_links, unfurl_media, blocks })
}

/// `chat.postMessage`'s arguments (docs.slack.dev/reference/methods/chat.postMessage); a webhook takes the same without
/// the channel.
#[derive(Serialize)]
struct Message<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_ts: Option<&'a str>,
    text: String,
    mrkdwn: bool,
    unfurl_links: bool,
    unfurl_media: bool,
    blocks: Vec<Block>,
}

/// A Block Kit block (docs.slack.dev/reference/block-kit/blocks).
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Header { text: Plain },
    Section { text: Plain },
    Context { elements: Vec<Plain> },
    RichText { elements: [Line; 1] },
}

impl Block {
    fn header(text: String) -> Self {
        Self::Header { text: Plain::new(text) }
    }

    fn section(text: String) -> Self {
        Self::Section { text: Plain::new(text) }
    }

    fn context(texts: impl IntoIterator<Item = String>) -> Self {
        Self::Context { elements: texts.into_iter().map(Plain::new).collect() }
    }

    /// A line with one link.
    fn link(url: &str, label: String) -> Self {
        Self::RichText {
            elements: [Line::RichTextSection { elements: [Element::Link { url: url.into(), text: label }] }],
        }
    }
}

/// A text object in which nothing is markup; `:name:` stays what it is.
#[derive(Serialize)]
struct Plain {
    #[serde(rename = "type")]
    kind: &'static str,
    text: String,
    emoji: bool,
}

impl Plain {
    fn new(text: String) -> Self {
        Self { kind: "plain_text", text, emoji: false }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    RichTextSection { elements: [Element; 1] },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Element {
    Link { url: String, text: String },
}

/// The level at a glance.
fn mark(level: Level) -> &'static str {
    match level {
        Level::Info => "🔵",
        Level::Attention => "🟠",
        Level::Urgent => "🔴",
    }
}

/// Where the notifications are, and by which route they came.
fn origin(delivery: &Delivery) -> [String; 2] {
    [
        escape::line(&format!("workspace {}", delivery.workspace), DETAIL_MAX),
        escape::line(&format!("route {}", delivery.route), DETAIL_MAX),
    ]
}

/// A link to the inbox, if the host serves one.
fn inbox(delivery: &Delivery) -> Option<Block> {
    let url = delivery.inbox_url.as_deref()?;
    let fits = link::host(url).is_some() && escape::length(url) <= INBOX_MAX;
    fits.then(|| Block::link(url, "Open the inbox".into()))
}

/// A link that shows where it leads, if the URL is one that Slack and everybody reads alike.
fn open(url: &str, units_max: usize) -> Option<Block> {
    let host = link::host(url)?;
    let label = format!("Open {}", escape::line(host, LABEL_MAX));
    (escape::length(url) <= units_max).then(|| Block::link(url, label))
}

/// The most characters of a host in a link's label: a DNS name has at most 253, but one that long is not read.
const LABEL_MAX: usize = 70;

/// `text`, from lines of which the first is the most important.
fn fallback(lines: &[String]) -> String {
    let mut text = String::new();
    let mut left = TEXT_MAX;
    for line in lines.iter().filter(|line| !line.is_empty()) {
        let length = escape::length(line) + 1;
        if length > left {
            break;
        }
        left -= length;
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line);
    }
    text
}
