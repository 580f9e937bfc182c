//! What a preview is of: a notification of the inbox, an event from a file, or one made from flags.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::cli::FOUND_WRONG;
use crate::cli::output::{fail, tell};
use crate::config::{Config, Workspace};
use crate::fetch::event::{Judged, judge};
use crate::inbox::sqlite::SqliteInbox;
use crate::inbox::{DeliveryId, DeliveryView, Inbox, InboxError, Page, Which};
use crate::notification::{Event, HOST_SOURCE, Level, Name, Notification};
use crate::send::keys::Keys;

/// Largest file of an event, bytes: more than any event that is accepted.
const FILE_BYTES_MAX: u64 = 1 << 20;

#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("of").args(["seq", "event", "name"]).required(true)))]
pub(super) struct Of {
    /// Of the notification with this number.
    #[arg(long, value_name = "SEQ")]
    seq: Option<u64>,
    /// Of the event in this file, as an outbox holds it; `-` is standard input.
    #[arg(long, value_name = "FILE", requires = "source")]
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

/// What was found.
pub(super) struct Found {
    pub(super) notification: Notification,
    /// The deliveries that it is owed already.
    pub(super) owed: Vec<DeliveryView>,
    pub(super) keys: Keys,
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

impl Of {
    /// Finds it, or says why not.
    pub(super) async fn find(&self, config: &Config, workspace: &Workspace, now: Timestamp) -> Result<Found, ExitCode> {
        if let Some(seq) = self.seq {
            return match stored(config, workspace, seq).await {
                Ok(Some(found)) => Ok(found),
                Ok(None) => {
                    let name = &workspace.name;
                    tell(format_args!("switchbell: workspace {name} has no notification {seq}"));
                    Err(ExitCode::from(FOUND_WRONG))
                }
                Err(error) => Err(fail(error)),
            };
        }
        let Some(source) = &self.source else { return Err(fail("--source NAME is needed")) };
        let ceiling = ceiling(workspace, source)?;
        let text = match &self.event {
            Some(file) => {
                read(file, FILE_BYTES_MAX).map_err(|error| fail(format_args!("--event {}: {error}", file.display())))?
            }
            None => self.made(now)?,
        };
        let event = accepted(text)?;
        let effective_level = event.level.capped(ceiling);
        let (workspace, source) = (workspace.name.clone(), source.clone());
        let notification = Notification { workspace, seq: 0, source, received_at: now, effective_level, event };
        Ok(Found { notification, owed: Vec::new(), keys: Keys::of_nothing() })
    }

    fn made(&self, now: Timestamp) -> Result<String, ExitCode> {
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
        let name = self.name.as_deref().unwrap_or_default();
        let (event_id, timestamp) = ("preview", now.to_string());
        let event = EventWire { event_id, name, timestamp, data, meta: Meta { block } };
        serde_json::to_string(&event).map_err(fail)
    }
}

async fn stored(config: &Config, workspace: &Workspace, seq: u64) -> Result<Option<Found>, InboxError> {
    let inbox = SqliteInbox::open_to_read(&config.store)?;
    let Some(notification) = inbox.notification(&workspace.name, seq).await? else { return Ok(None) };
    let page = Page { workspace: workspace.name.clone(), before: None, limit: 1_000 };
    let owed = inbox.deliveries(page, Which { seq: Some(seq), ..Which::default() }).await?;
    Ok(Some(Found { notification, owed, keys: Keys::new(&inbox.key()) }))
}

fn ceiling(workspace: &Workspace, source: &Name) -> Result<Level, ExitCode> {
    if source.as_str() == HOST_SOURCE {
        return Ok(Level::Urgent);
    }
    workspace.connectors.get(source).map(|connector| connector.ceiling).ok_or_else(|| {
        let names = workspace.connectors.keys().map(Name::as_str).collect::<Vec<_>>().join(", ");
        fail(format_args!("--source: unknown connector {source} (there are: {names})"))
    })
}

fn accepted(text: String) -> Result<Event, ExitCode> {
    let event = RawValue::from_string(text).map_err(|error| fail(format_args!("the event is no JSON: {error}")))?;
    match judge(&event) {
        Ok(Judged { event, .. }) => Ok(event),
        Err(reason) => {
            tell(format_args!("switchbell: the event would be dropped: {reason}"));
            Err(ExitCode::from(FOUND_WRONG))
        }
    }
}

/// The id of a delivery that there is none of.
pub(super) fn no_id() -> DeliveryId {
    DeliveryId { store: "00000000".into(), number: 0 }
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
