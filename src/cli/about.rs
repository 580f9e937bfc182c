//! What a question is about: a notification of the inbox, an event from a file, or one made from flags; and when it is supposed
//! to come.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use jiff::civil::DateTime;
use jiff::{Timestamp, ZonedDateTime};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::cli::output::fail;
use crate::notification::Name;
use crate::serve::inquiry::OfJson;

/// Largest file of an event, bytes: more than any event that is accepted.
const FILE_BYTES_MAX: u64 = 1 << 20;

#[derive(Debug, clap::Args)]
#[group(skip)]
pub(super) struct About {
    /// Of the notification with this number.
    #[arg(long, value_name = "SEQ", conflicts_with_all = ["event", "name"])]
    seq: Option<u64>,
    /// Of the event in this file, as an outbox holds it; `-` is standard input.
    #[arg(long, value_name = "FILE", requires = "source", conflicts_with = "name")]
    event: Option<PathBuf>,
    /// Of an event with this name, made from these flags.
    #[arg(long, value_name = "NAME", requires = "source")]
    name: Option<String>,
    /// The connector that the event is from.
    #[arg(long, value_name = "NAME", conflicts_with = "seq")]
    source: Option<Name>,
    /// Its level: info, attention or urgent. The ceiling of the source counts.
    #[arg(long, requires = "name")]
    level: Option<String>,
    /// What it is about.
    #[arg(long, value_name = "TEXT", requires = "name")]
    subject: Option<String>,
    /// Its title.
    #[arg(long, value_name = "TEXT", requires = "name")]
    title: Option<String>,
    /// Its body.
    #[arg(long, value_name = "TEXT", requires = "name")]
    body: Option<String>,
    /// Its link.
    #[arg(long, value_name = "URI", requires = "name")]
    link: Option<String>,
    /// Its data.
    #[arg(long, value_name = "JSON", requires = "name")]
    data: Option<String>,
}

/// An event as an outbox holds it (notifications seed, "The event envelope").
#[derive(Serialize)]
struct EventWire<'a> {
    #[serde(rename = "eventId")]
    event_id: &'a str,
    name: &'a str,
    timestamp: String,
    data: &'a RawValue,
    #[serde(rename = "_meta")]
    meta: Meta<'a>,
}

#[derive(Serialize)]
struct Meta<'a> {
    #[serde(rename = "ai.nimblebrain/notification")]
    block: Block<'a>,
}

#[derive(Serialize)]
struct Block<'a> {
    subject: Option<&'a str>,
    level: Option<&'a str>,
    title: Option<&'a str>,
    body: Option<&'a str>,
    link: Option<Link<'a>>,
}

#[derive(Serialize)]
struct Link<'a> {
    resource: &'a str,
}

impl About {
    /// Whether nothing is said.
    pub(super) fn is_empty(&self) -> bool {
        self.seq.is_none() && self.event.is_none() && self.name.is_none() && self.source.is_none()
    }

    /// What is asked about, or why it cannot be.
    pub(super) fn asked(&self, at: Timestamp) -> Result<OfJson, ExitCode> {
        if self.seq.is_none() && self.event.is_none() && self.name.is_none() {
            return Err(fail("say which: --seq SEQ, --event FILE --source NAME, or --name NAME --source NAME"));
        }
        let text = match (&self.event, &self.name) {
            (Some(file), _) => {
                let wrong = |error| fail(format_args!("--event {}: {error}", file.display()));
                Some(read(file, FILE_BYTES_MAX).map_err(wrong)?)
            }
            (None, Some(name)) => Some(self.made(name, at)?),
            (None, None) => None,
        };
        let event = text.map(RawValue::from_string).transpose();
        let event = event.map_err(|error| fail(format_args!("the event is no JSON: {error}")))?;
        Ok(OfJson { seq: self.seq, event, source: self.source.as_ref().map(Name::to_string) })
    }

    fn made(&self, name: &str, at: Timestamp) -> Result<String, ExitCode> {
        let data = self.data.as_deref().unwrap_or("{}");
        let data: &RawValue =
            serde_json::from_str(data).map_err(|error| fail(format_args!("--data is no JSON: {error}")))?;
        let block = Block {
            subject: self.subject.as_deref(),
            level: self.level.as_deref(),
            title: self.title.as_deref(),
            body: self.body.as_deref(),
            link: self.link.as_deref().map(|resource| Link { resource }),
        };
        let (event_id, timestamp) = ("preview", at.to_string());
        let event = EventWire { event_id, name, timestamp, data, meta: Meta { block } };
        serde_json::to_string(&event).map_err(fail)
    }
}

/// A moment as a person writes it: RFC 3339, or the time on a clock with its zone, `2026-12-01T03:00[Europe/Berlin]`.
///
/// # Errors
/// What to write instead.
pub(super) fn moment(text: &str) -> Result<Timestamp, String> {
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment);
    }
    match text.parse::<ZonedDateTime>() {
        Ok(zoned) => Ok(zoned.timestamp()),
        Err(_) if text.parse::<DateTime>().is_ok() => {
            Err(format!("it does not say where: write {text}Z, or {text}[Europe/Berlin]"))
        }
        Err(error) => {
            Err(format!("write a moment as 2026-12-01T03:00:00Z, or as 2026-12-01T03:00[Europe/Berlin] ({error})"))
        }
    }
}

/// A file's text, or that of standard input.
pub(super) fn read(file: &Path, bytes_max: u64) -> io::Result<String> {
    let mut text = String::new();
    let read = if file == Path::new("-") {
        io::stdin().lock().take(bytes_max + 1).read_to_string(&mut text)?
    } else {
        File::open(file)?.take(bytes_max + 1).read_to_string(&mut text)?
    };
    if u64::try_from(read).is_ok_and(|read| read > bytes_max) {
        return Err(io::Error::other(format!("larger than {bytes_max} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::moment;

    fn check(text: &str, expected: &str) {
        assert_eq!(moment(text).map(|moment| moment.to_string()), Ok(expected.to_owned()), "{text}");
    }

    #[test]
    fn a_moment_is_written_as_people_and_programs_do() {
        check("2026-12-01T03:00:00Z", "2026-12-01T03:00:00Z");
        check("2026-12-01T03:00:00+01:00", "2026-12-01T02:00:00Z");
        check("2026-12-01T03:00[Europe/Berlin]", "2026-12-01T02:00:00Z");
        check("2026-12-01 03:00[Europe/Berlin]", "2026-12-01T02:00:00Z");
    }

    #[test]
    fn what_is_no_moment_says_what_to_write() {
        let said = moment("2026-12-01T03:00").unwrap_err();
        assert!(said.contains("write 2026-12-01T03:00Z, or 2026-12-01T03:00[Europe/Berlin]"), "{said}");
        assert!(moment("tomorrow").unwrap_err().contains("2026-12-01T03:00:00Z"));
    }
}
