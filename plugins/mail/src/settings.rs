//! A target's settings: who gets the mail, and its subject line.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use switchbell_kit::fields::Field;
use switchbell_kit::settings::{Checks, pointer};
use switchbell_kit::types::{Destination, Lane, Problem};

use crate::address;
use crate::subject::Template;

/// The most recipients of a target. Each is a transaction of its own; a longer list belongs into the relay, as an alias.
pub(crate) const RECIPIENTS_MAX: usize = 20;

/// The longest template of a subject line, in characters.
pub(crate) const SUBJECT_MAX: usize = 200;

/// The subject line where the settings have none.
const SUBJECT: &str = "{level}: {title}";

/// How many mails of a workspace are sent at once. Relays allow a client few connections, and each mail keeps one.
const IN_FLIGHT_MAX: u32 = 4;

/// Who gets what.
#[derive(Debug, PartialEq)]
pub(crate) struct Target {
    /// The addresses, each once.
    pub(crate) to: Vec<String>,
    /// The subject line.
    pub(crate) subject: Template,
}

impl Target {
    /// Reads settings, or says everything that is wrong with them.
    #[inline(never)]
    pub(crate) fn read(settings: &str) -> Result<Self, Vec<Problem>> {
        let mut checks = Checks::read(settings, 2)?;
        checks.refuse_unknown(&["to", "subject"]);
        let to = recipients(&mut checks);
        let subject = subject(&mut checks);
        checks.end(to.zip(subject).map(|(to, subject)| Self { to, subject }))
    }

    /// What a person calls it, and what paces it.
    ///
    /// What is shared is the relay, so there is one lane. It limits how much is sent at once and keeps no order: a mail that
    /// is tried again must not hold up others, and mails carry their date. A recipient has no lane: one whose mailbox says
    /// "later" would else hold up everybody who shares a target with it.
    pub(crate) fn destination(&self) -> Destination {
        let first = self.to.first().map_or("", String::as_str);
        let label = match self.to.len().saturating_sub(1) {
            0 => first.to_owned(),
            more => format!("{first} and {more} more"),
        };
        let lane = Lane { key: "relay".to_owned(), count: 0, per_seconds: 0, in_flight: IN_FLIGHT_MAX, ordered: false };
        Destination { label, lanes: vec![lane], extras: "{}".to_owned() }
    }
}

/// The recipients, if all are good.
fn recipients(checks: &mut Checks) -> Option<Vec<String>> {
    match checks.fields.get("to").cloned() {
        None => {
            checks.refuse("", "missing: write to, an address or a list of addresses");
            None
        }
        Some(Field::List(items)) => list(checks, &items),
        Some(one) => recipient(checks, &one, "/to").map(|address| vec![address]),
    }
}

fn list(checks: &mut Checks, items: &[Field]) -> Option<Vec<String>> {
    if items.is_empty() {
        checks.refuse("/to", "empty: write at least one address");
        return None;
    }
    if items.len() > RECIPIENTS_MAX {
        let remedy = "use an address of a list, or several targets";
        checks.refuse("/to", format!("more than {RECIPIENTS_MAX} addresses: {remedy}"));
    }
    let mut found: Vec<String> = Vec::new();
    for (number, item) in items.iter().enumerate() {
        let path = pointer(&["to", &number.to_string()]);
        let Some(address) = recipient(checks, item, &path) else { continue };
        match found.iter().position(|known| known.eq_ignore_ascii_case(&address)) {
            Some(first) => checks.refuse(&path, format!("named twice: it is /to/{first} already")),
            None => found.push(address),
        }
    }
    Some(found)
}

fn recipient(checks: &mut Checks, field: &Field, path: &str) -> Option<String> {
    let checked = match field {
        Field::Text(text) => address::check(text).map(|()| text.clone()),
        other => Err(format!("write an address, not {}", other.kind())),
    };
    checked.map_err(|message| checks.refuse(path, message)).ok()
}

fn subject(checks: &mut Checks) -> Option<Template> {
    let text = match checks.fields.get("subject") {
        None => SUBJECT.to_owned(),
        Some(_) => checks.text("subject", length)?,
    };
    let (template, mistakes) = Template::read(&text);
    for mistake in mistakes {
        checks.refuse("/subject", mistake);
    }
    Some(template)
}

fn length(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("empty: leave it out, or write a text".to_owned());
    }
    if text.contains(char::is_control) {
        return Err("more than one line: a subject is one line".to_owned());
    }
    if text.chars().count() > SUBJECT_MAX {
        return Err(format!("longer than {SUBJECT_MAX} characters"));
    }
    Ok(())
}
