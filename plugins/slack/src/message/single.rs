//! One notification.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use switchbell_kit::level;
use switchbell_kit::types::{Delivery, Notification};

use super::{Block, DETAIL_MAX, HEADER_MAX, SECTION_MAX};
use crate::escape;

/// The most characters of a title: 200, each of which may be an entity of five.
const TITLE_MAX: usize = 1_000;
/// The most sections of a body. One holds any ordinary body; two hold one full of entities or of emoji.
const BODY_PARTS_MAX: usize = 2;
/// The most characters of a link shown as a link, as Slack limits URLs; the contract's limit is 2,048.
const LINK_MAX: usize = 2_500;
/// The most characters of the body in `text`.
const TEXT_BODY_MAX: usize = 2_000;

const _: () = assert!(
    TITLE_MAX + BODY_PARTS_MAX * SECTION_MAX + LINK_MAX + 6 * DETAIL_MAX + super::INBOX_MAX + 2 * super::LABEL_MAX
        < super::MESSAGE_MAX,
    "a message can be too long for Slack"
);

/// The fallback text and the blocks.
pub(super) fn render(notification: &Notification, delivery: &Delivery) -> (String, Vec<Block>) {
    let title = escape::line(&notification.title, TITLE_MAX);
    let mut blocks = Vec::new();
    let text = super::fallback(&[
        format!("{}: {title}", level::word(notification.level)),
        notification.body.as_deref().map_or_else(String::new, |body| escape::paragraphs(body, TEXT_BODY_MAX)),
    ]);
    // A header is bold but short. A long title is shown whole instead.
    blocks.push(if escape::length(&title) <= HEADER_MAX { Block::header(title) } else { Block::section(title) });
    blocks.push(Block::context(about(notification)));
    let body = notification.body.as_deref().unwrap_or_default();
    let parts = escape::split(body, SECTION_MAX, BODY_PARTS_MAX);
    blocks.extend(parts.into_iter().filter(|part| !part.trim().is_empty()).map(Block::section));
    if let Some(url) = &notification.link {
        blocks.push(link(url));
    }
    blocks.push(Block::context(from(notification).into_iter().chain(super::origin(delivery))));
    blocks.extend(super::inbox(delivery));
    (text, blocks)
}

/// How loud, and about what.
fn about(notification: &Notification) -> Vec<String> {
    let level = format!("{} {}", super::mark(notification.level), level::word(notification.level));
    let subject = notification.subject.as_deref().map(|subject| escape::line(subject, DETAIL_MAX));
    [Some(level), subject.filter(|subject| !subject.is_empty())].into_iter().flatten().collect()
}

/// Who says so, and when.
fn from(notification: &Notification) -> Vec<String> {
    let texts = [&notification.source, &notification.name, &notification.timestamp];
    texts.into_iter().map(|text| escape::line(text, DETAIL_MAX)).filter(|text| !text.is_empty()).collect()
}

/// The link as a link, or as text where it is of another scheme or not read alike by everybody.
fn link(url: &str) -> Block {
    super::open(url, LINK_MAX).unwrap_or_else(|| Block::section(escape::line(&format!("Link: {url}"), LINK_MAX)))
}
