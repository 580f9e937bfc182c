//! The subject line: the admin's template, filled with what a notification says.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use switchbell_kit::types::{Delivery, Notification};
use switchbell_kit::{level, settings, text};

use crate::write;

/// The longest subject line, in characters. Clients show half of it.
pub(crate) const LINE_MAX: usize = 200;

/// What may stand in braces.
const NAMES: [&str; 6] = ["title", "level", "source", "subject", "name", "count"];

/// A template: what stands in it, in order.
#[derive(Debug, PartialEq)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Debug, PartialEq)]
enum Piece {
    Text(String),
    Field(&'static str),
}

impl Template {
    /// Reads a template, and says what is wrong with it. `{{` and `}}` are braces.
    pub(crate) fn read(template: &str) -> (Self, Vec<String>) {
        let (mut pieces, mut mistakes) = (Vec::new(), Vec::new());
        let mut plain = String::new();
        let mut rest = template;
        while let Some((before, brace, after)) = at_brace(rest) {
            plain.push_str(before);
            rest = after;
            if let Some(after) = rest.strip_prefix(brace) {
                plain.push(brace);
                rest = after;
            } else if brace == '}' {
                mistakes.push("a } without its {: write }} for a brace".to_owned());
            } else if let Some((name, after)) = rest.split_once('}').filter(|(name, _)| !name.contains('{')) {
                rest = after;
                match NAMES.iter().find(|known| **known == name) {
                    Some(known) => {
                        pieces.push(Piece::Text(core::mem::take(&mut plain)));
                        pieces.push(Piece::Field(known));
                    }
                    None => mistakes.push(unknown(name)),
                }
            } else {
                mistakes.push("a { without its }: write {{ for a brace".to_owned());
            }
        }
        plain.push_str(rest);
        pieces.push(Piece::Text(plain));
        (Self(pieces), mistakes)
    }

    /// The subject line of a delivery: one line without control characters. What is filled in is text: braces in it mean
    /// nothing.
    pub(crate) fn fill(&self, delivery: &Delivery) -> String {
        let mut line = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => line.push_str(text),
                Piece::Field(name) => line.push_str(&field(name, delivery)),
            }
        }
        text::cut(&write::line(&line), LINE_MAX)
    }
}

/// What comes before the next brace, the brace, and what comes after it.
fn at_brace(text: &str) -> Option<(&str, char, &str)> {
    let at = text.find(['{', '}'])?;
    let (before, after) = text.split_at_checked(at)?;
    let mut after = after.chars();
    let brace = after.next()?;
    Some((before, brace, after.as_str()))
}

fn unknown(name: &str) -> String {
    let meant = settings::did_you_mean(name, &NAMES);
    let known = NAMES.map(|name| format!("{{{name}}}")).join(" ");
    format!("unknown {{{name}}}{meant} (known: {known}; write {{{{ for a brace)")
}

fn field(name: &str, delivery: &Delivery) -> String {
    match name {
        "title" => title(delivery),
        "level" => level::word(level::loudest(&delivery.notifications)).to_owned(),
        "source" => common(delivery, |notification| Some(&notification.source)).unwrap_or("several sources").to_owned(),
        "name" => common(delivery, |notification| Some(&notification.name)).unwrap_or("several events").to_owned(),
        "subject" => about(delivery).to_owned(),
        _ => total(delivery).to_string(),
    }
}

/// What the mail is about in a line: a notification's title, or what a digest is of.
pub(crate) fn title(delivery: &Delivery) -> String {
    match delivery.notifications.as_slice() {
        [only] if delivery.omitted == 0 => only.title.clone(),
        _ => match common(delivery, |notification| notification.subject.as_deref()) {
            Some(about) => format!("{} notifications about {about}", total(delivery)),
            None => format!("{} notifications", total(delivery)),
        },
    }
}

fn about(delivery: &Delivery) -> &str {
    let some = delivery.notifications.iter().any(|notification| notification.subject.is_some());
    let several = if some { "several subjects" } else { "" };
    common(delivery, |notification| notification.subject.as_deref()).unwrap_or(several)
}

/// How many notifications the delivery stands for.
pub(crate) fn total(delivery: &Delivery) -> u64 {
    u64::try_from(delivery.notifications.len()).unwrap_or(u64::MAX).saturating_add(u64::from(delivery.omitted))
}

/// What all notifications have in common.
pub(crate) fn common<'a>(delivery: &'a Delivery, of: impl Fn(&'a Notification) -> Option<&'a str>) -> Option<&'a str> {
    let mut all = delivery.notifications.iter().map(of);
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}
