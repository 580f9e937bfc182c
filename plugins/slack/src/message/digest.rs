//! Several notifications in one message: a line each, links as long as there is room, and how many more there are.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use switchbell_kit::level;
use switchbell_kit::types::{Delivery, Level, Notification};

use super::{Block, DETAIL_MAX, HEADER_MAX, SECTION_MAX};
use crate::escape;

/// The most characters of all lines together.
const LINES_MAX: usize = 7_500;
/// The most characters of one line, when there is room.
const LINE_MAX: usize = 400;
/// The fewest characters a line is cut to: with less a title says nothing.
const LINE_MIN: usize = 70;
/// The most characters of all links together.
const LINKS_MAX: usize = 2_800;
/// The most links.
const LINK_COUNT_MAX: usize = 20;

const _: () = assert!(
    HEADER_MAX + LINES_MAX + LINKS_MAX + 3 * DETAIL_MAX + super::INBOX_MAX + super::LABEL_MAX < super::MESSAGE_MAX,
    "a digest can be too long for Slack"
);
// Each link ends a section, so does every full section; a section is full when a line does not fit.
const _: () = assert!(
    4 + 2 * LINK_COUNT_MAX + LINES_MAX.div_ceil(SECTION_MAX - LINE_MAX) < super::BLOCKS_MAX,
    "a digest can have too many blocks for Slack"
);

/// The fallback text and the blocks.
pub(super) fn render(notifications: &[Notification], delivery: &Delivery) -> (String, Vec<Block>) {
    let lines = lines(notifications);
    let all = total(notifications.len(), delivery.omitted);
    let more = all.saturating_sub(u64::try_from(lines.len()).unwrap_or(u64::MAX));
    let summary = summary(notifications, all);
    let mut body = Body::default();
    body.blocks.push(Block::header(summary.clone()));
    for (line, notification) in lines.iter().zip(notifications) {
        body.add(line, notification.link.as_deref());
    }
    body.end_section();
    let more = (more > 0).then(|| format!("and {more} more"));
    body.blocks.push(Block::context(more.into_iter().chain(super::origin(delivery))));
    body.blocks.extend(super::inbox(delivery));
    let mut text = alloc::vec![summary];
    text.extend(lines);
    (super::fallback(&text), body.blocks)
}

/// How many notifications the digest stands for.
fn total(shown: usize, omitted: u32) -> u64 {
    u64::try_from(shown).unwrap_or(u64::MAX).saturating_add(u64::from(omitted))
}

/// How many there are, and how many of those at hand are urgent.
fn summary(notifications: &[Notification], all: u64) -> String {
    let urgent = notifications.iter().filter(|notification| notification.level == Level::Urgent).count();
    if urgent == 0 { format!("{all} notifications") } else { format!("{all} notifications, {urgent} urgent") }
}

/// A line for each notification, oldest first; shorter ones when there are many, and fewer when there are very many.
fn lines(notifications: &[Notification]) -> Vec<String> {
    let long = cut_to(notifications, LINE_MAX);
    if sum(&long) <= LINES_MAX {
        return long;
    }
    // One more for the line's end.
    let fair = LINES_MAX / notifications.len().max(1);
    let mut lines = cut_to(notifications, fair.saturating_sub(1).max(LINE_MIN));
    let mut left = LINES_MAX;
    lines.retain(|line| {
        let length = escape::length(line) + 1;
        let fits = length <= left;
        left = if fits { left - length } else { 0 };
        fits
    });
    lines
}

fn cut_to(notifications: &[Notification], units_max: usize) -> Vec<String> {
    notifications.iter().map(|notification| escape::line(&line(notification), units_max)).collect()
}

fn sum(lines: &[String]) -> usize {
    lines.iter().map(|line| escape::length(line) + 1).sum()
}

fn line(notification: &Notification) -> String {
    let Notification { level, title, source, subject, .. } = notification;
    let subject = subject.as_deref().map_or_else(String::new, |subject| format!(" ({subject})"));
    format!("{} {}: {title}{subject} · {source}", super::mark(*level), level::word(*level))
}

/// The blocks being written.
#[derive(Default)]
struct Body {
    blocks: Vec<Block>,
    section: String,
    /// The length of the section.
    units: usize,
    links: usize,
    /// The length of all links.
    link_units: usize,
}

impl Body {
    fn add(&mut self, line: &str, link: Option<&str>) {
        let length = escape::length(line) + 1;
        if self.units + length > SECTION_MAX {
            self.end_section();
        }
        if !self.section.is_empty() {
            self.section.push('\n');
        }
        self.section.push_str(line);
        self.units += length;
        if let Some(block) = link.and_then(|url| self.link(url)) {
            self.end_section();
            self.blocks.push(block);
        }
    }

    /// The link under its line, if there is room for it.
    fn link(&mut self, url: &str) -> Option<Block> {
        let cost = escape::length(url) + super::LABEL_MAX + "Open ".len();
        if self.links == LINK_COUNT_MAX || self.link_units + cost > LINKS_MAX {
            return None;
        }
        let block = super::open(url, LINKS_MAX)?;
        self.links += 1;
        self.link_units += cost;
        Some(block)
    }

    fn end_section(&mut self) {
        self.units = 0;
        if !self.section.is_empty() {
            self.blocks.push(Block::section(core::mem::take(&mut self.section)));
        }
    }
}
