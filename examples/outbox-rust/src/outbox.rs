//! A durable outbox: one SQLite table that holds the facts a server has to tell, oldest first.
//!
//! Nothing in this file knows MCP. [`add`] writes a row inside a transaction of yours, next to the change it tells about;
//! [`Outbox::read`] answers one poll. Several processes may add and read at once.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, Transaction, TransactionBehavior, named_params};
use serde::Serialize;
use serde_json::{Map, Value, json};

// What hosts take. A row that breaks one of these rules is dropped by the host without a word back, so it is refused
// here, where somebody can still read why.
const NAME_CHARACTERS_MAX: usize = 200;
const LINK_CHARACTERS_MAX: usize = 2048;
const FORBIDDEN_SCHEMES: [&str; 5] = ["javascript", "data", "vbscript", "file", "blob"];
const EVENT_BYTES_MAX: usize = 64 * 1024;

/// Events in an answer when the reader names no number.
const EVENTS_DEFAULT: u32 = 100;
/// One answer holds at most so many events, whatever the reader asks for: 1,000 of ordinary size are about half a MiB.
const EVENTS_MAX: u32 = 1000;
/// Rows are kept as long as the longest replay a host asks for; older ones are pruned as new ones are added.
const KEEP: Duration = Duration::from_secs(90 * 24 * 3600);
/// How long a writer waits for another process to finish its transaction.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS outbox (
    position       INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice, so a cursor never points at another row
    event_id       TEXT NOT NULL UNIQUE,
    name           TEXT NOT NULL,
    timestamp      TEXT NOT NULL,                      -- when the fact happened
    recorded_at_ms INTEGER NOT NULL,                   -- when the row was written: what maxAgeMs counts from
    level          TEXT,
    subject        TEXT,
    title          TEXT,
    body           TEXT,
    link           TEXT,
    data           TEXT NOT NULL                       -- the JSON text of an object
);
CREATE INDEX IF NOT EXISTS outbox_by_age ON outbox (recorded_at_ms);
CREATE TABLE IF NOT EXISTS outbox_itself (
    tag    TEXT NOT NULL,                              -- drawn once; tells this outbox's cursors from another's
    pruned INTEGER NOT NULL                            -- the newest position that was pruned
);
INSERT INTO outbox_itself SELECT lower(hex(randomblob(4))), 0 WHERE NOT EXISTS (SELECT 1 FROM outbox_itself);
";

/// What a fact says. Only the name is required: `Fact { name: "domain.active".into(), ..Fact::default() }`.
#[derive(Clone, Debug, Default)]
pub struct Fact {
    /// Dotted and lower-case, such as `domain.active`.
    pub name: String,
    /// The id the fact has upstream; drawn when left out. Hosts take an id once.
    pub event_id: Option<String>,
    /// When it happened; now when left out.
    pub happened_at: Option<SystemTime>,
    pub level: Option<Level>,
    pub subject: Option<String>,
    pub title: Option<String>,
    pub body: Option<String>,
    /// A URI with a scheme.
    pub link: Option<String>,
    /// A JSON object; `Value::Null` is an empty one.
    pub data: Value,
}

/// How much a fact wants to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Info,
    Attention,
    Urgent,
}

/// What a reader asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// The cursor of an earlier answer; without it the read starts from now.
    pub cursor: Option<String>,
    /// At most so many events.
    pub events_max: Option<u64>,
    /// None written longer ago than this, whatever the cursor says. Hosts ask for 90 days: it does not fit 32 bits.
    pub age_ms_max: Option<u64>,
}

/// One event as hosts read it.
pub type Event = Map<String, Value>;

/// The answer to one poll.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PollResult {
    pub events: Vec<Event>,
    pub cursor: String,
    /// Rows after the asked cursor were skipped, because they are pruned or older than asked for.
    pub truncated: bool,
    pub has_more: bool,
    /// When this server would like to be read next, in milliseconds. This outbox itself has no opinion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_poll_ms: Option<u64>,
}

/// Why a read or a row was not served.
#[derive(Debug)]
pub enum OutboxError {
    /// It was asked wrongly. The text is for the person who reads the other side's log.
    Refused(String),
    /// The database could not do it.
    Database(rusqlite::Error),
}

/// The outbox in a database file. Each call opens it anew, so it may be shared between threads.
#[derive(Clone, Debug)]
pub struct Outbox {
    path: PathBuf,
}

impl Outbox {
    /// Opens the database at `path`, which is created when it is not there.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, OutboxError> {
        let outbox = Self { path: path.into() };
        let mut connection = outbox.connect()?;
        use_write_ahead_log(&connection)?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(SCHEMA)?;
        transaction.commit()?;
        Ok(outbox)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A connection for transactions of your own. Begin them as `Immediate`, so that they wait for one another.
    pub fn connect(&self) -> Result<Connection, OutboxError> {
        let connection = Connection::open(&self.path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        Ok(connection)
    }

    /// The newest position. It grows with every row.
    pub fn newest(&self) -> Result<i64, OutboxError> {
        let newest = "SELECT coalesce(max(position), (SELECT pruned FROM outbox_itself)) FROM outbox";
        Ok(self.connect()?.query_row(newest, (), |row| row.get(0))?)
    }

    /// Answers one poll: the rows strictly after the cursor, oldest first. Without a cursor it starts from now: no
    /// events and a fresh cursor. Refuses a cursor that this outbox never gave.
    pub fn read(&self, query: &Query) -> Result<PollResult, OutboxError> {
        let limit = match query.events_max {
            None => EVENTS_DEFAULT,
            Some(0) => return Err(refused("maxEvents is 0; ask for 1 or more")),
            Some(asked) => u32::try_from(asked).map_or(EVENTS_MAX, |asked| asked.min(EVENTS_MAX)),
        };
        let mut connection = self.connect()?;
        // One transaction, so that every question below is answered from the same moment.
        let moment = connection.transaction()?;
        let (tag, pruned, newest) = moment.query_row(
            "SELECT tag, pruned, coalesce((SELECT max(position) FROM outbox), pruned) FROM outbox_itself",
            (),
            |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)),
        )?;
        let Some(cursor) = query.cursor.as_deref() else {
            return Ok(PollResult::new(Vec::new(), encode(&tag, newest)));
        };
        let asked = decode(cursor, &tag, newest)?;
        let too_old = match query.age_ms_max {
            Some(age_ms) => last_before(&moment, now_ms().saturating_sub_unsigned(age_ms))?,
            None => 0,
        };
        let start = asked.max(pruned).max(too_old);
        // One row more than asked: it tells whether there is more without an empty read later.
        let mut rows = rows_after(&moment, &tag, start, limit + 1)?;
        let has_more = rows.len() > limit as usize;
        if has_more {
            rows.pop();
        }
        let end = rows.last().map_or(start, |(position, _)| *position);
        let events = rows.into_iter().map(|(_, event)| event).collect();
        Ok(PollResult { truncated: start > asked, has_more, ..PollResult::new(events, encode(&tag, end)) })
    }
}

impl PollResult {
    fn new(events: Vec<Event>, cursor: String) -> Self {
        Self { events, cursor, truncated: false, has_more: false, next_poll_ms: None }
    }
}

/// Writes one row in the caller's transaction and returns its position. A row with an id that is there already is not
/// written again; the position of the first one is returned. Refuses what a host would drop.
pub fn add(transaction: &Transaction<'_>, fact: &Fact) -> Result<i64, OutboxError> {
    let recorded_at_ms = now_ms();
    let happened_at_ms = fact.happened_at.map_or(recorded_at_ms, epoch_ms);
    let draw = "SELECT 'evt_' || lower(hex(randomblob(16))), strftime('%Y-%m-%dT%H:%M:%fZ', ? / 1000.0, 'unixepoch')";
    let (drawn, timestamp): (String, String) =
        transaction.query_row(draw, [happened_at_ms], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let event_id = fact.event_id.as_ref().unwrap_or(&drawn);
    check(fact, event_id, &timestamp)?;
    transaction.execute(
        "INSERT INTO outbox (event_id, name, timestamp, recorded_at_ms, level, subject, title, body, link, data)
         VALUES (:event_id, :name, :timestamp, :recorded_at_ms, :level, :subject, :title, :body, :link, :data)
         ON CONFLICT (event_id) DO NOTHING",
        named_params! {
            ":event_id": event_id, ":name": fact.name, ":timestamp": timestamp, ":recorded_at_ms": recorded_at_ms,
            ":level": fact.level.map(Level::as_str), ":subject": fact.subject, ":title": fact.title,
            ":body": fact.body, ":link": fact.link, ":data": object(&fact.data).to_string(),
        },
    )?;
    prune(transaction, recorded_at_ms - KEEP.as_millis() as i64)?;
    Ok(transaction.query_row("SELECT position FROM outbox WHERE event_id = ?", [event_id], |row| row.get(0))?)
}

impl Level {
    pub const ALL: [Self; 3] = [Self::Info, Self::Attention, Self::Urgent];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Attention => "attention",
            Self::Urgent => "urgent",
        }
    }
}

impl FromStr for Level {
    type Err = OutboxError;

    fn from_str(text: &str) -> Result<Self, OutboxError> {
        let known = Self::ALL.into_iter().find(|level| level.as_str() == text);
        known
            .ok_or_else(|| refused(format!("level {text:?}: choose one of {}", Self::ALL.map(Self::as_str).join(", "))))
    }
}

impl fmt::Display for OutboxError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => out.write_str(why),
            Self::Database(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for OutboxError {}

impl From<rusqlite::Error> for OutboxError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

fn refused(why: impl Into<String>) -> OutboxError {
    OutboxError::Refused(why.into())
}

fn check(fact: &Fact, event_id: &str, timestamp: &str) -> Result<(), OutboxError> {
    let is_short = |text: &str| (1..=NAME_CHARACTERS_MAX).contains(&text.chars().count());
    let (name, link) = (&fact.name, fact.link.as_deref());
    if !is_short(name) || name.contains(|character: char| character.is_whitespace() || character.is_control()) {
        return Err(refused(format!(
            "name {name:?}: give 1 to 200 characters without white space, as in domain.active"
        )));
    }
    if !is_short(event_id) || event_id.contains(char::is_control) {
        return Err(refused(format!("event id {event_id:?}: give 1 to 200 characters without control characters")));
    }
    if let Some(link) = link.filter(|link| !is_link(link)) {
        return Err(refused(format!("link {link:?}: give a URI with a scheme, such as acme://domains/1")));
    }
    if !object(&fact.data).is_object() {
        return Err(refused(r#"data: give a JSON object, such as {"campaign": "autumn"}"#));
    }
    match Value::from(event(fact, event_id, timestamp)).to_string().len() {
        ..=EVENT_BYTES_MAX => Ok(()),
        size => Err(refused(format!("the event is {size} bytes; hosts take at most {EVENT_BYTES_MAX}"))),
    }
}

fn is_link(link: &str) -> bool {
    let Some((scheme, rest)) = link.split_once(':') else { return false };
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|character| character.is_ascii_alphanumeric() || "+.-".contains(character))
        && !FORBIDDEN_SCHEMES.iter().any(|forbidden| forbidden.eq_ignore_ascii_case(scheme));
    let is_text = |character: char| !character.is_whitespace() && !character.is_control();
    is_scheme && !rest.is_empty() && rest.chars().all(is_text) && link.chars().count() <= LINK_CHARACTERS_MAX
}

/// The fact as hosts read it. What it does not say is left out.
fn event(fact: &Fact, event_id: &str, timestamp: &str) -> Event {
    let text = |text: &Option<String>| text.as_deref().map(Value::from);
    let notification = said([
        ("subject", text(&fact.subject)),
        ("level", fact.level.map(|level| level.as_str().into())),
        ("title", text(&fact.title)),
        ("body", text(&fact.body)),
        ("link", fact.link.as_deref().map(|link| json!({ "resource": link }))),
    ]);
    let meta = (!notification.is_empty()).then(|| json!({ "ai.nimblebrain/notification": notification }));
    said([
        ("eventId", Some(event_id.into())),
        ("name", Some(fact.name.as_str().into())),
        ("timestamp", Some(timestamp.into())),
        ("data", Some(object(&fact.data))),
        ("_meta", meta),
    ])
}

/// The fields that have a value.
fn said<const FIELDS: usize>(fields: [(&str, Option<Value>); FIELDS]) -> Event {
    fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// `data` with its default.
fn object(data: &Value) -> Value {
    if data.is_null() { json!({}) } else { data.clone() }
}

/// Readers and one writer, in several processes, do not block each other. The file remembers the setting.
fn use_write_ahead_log(connection: &Connection) -> Result<(), rusqlite::Error> {
    let begun = Instant::now();
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            // The very first switch needs the file for itself, and SQLite does not always wait for that.
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && begun.elapsed() < BUSY_TIMEOUT =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            done => return done,
        }
    }
}

/// Rows with their positions.
fn rows_after(moment: &Connection, tag: &str, start: i64, limit: u32) -> Result<Vec<(i64, Event)>, rusqlite::Error> {
    let mut statement = moment.prepare("SELECT * FROM outbox WHERE position > ? ORDER BY position LIMIT ?")?;
    let rows = statement.query_map((start, limit), |row| {
        let position = row.get("position")?;
        let mut event = event(&fact(row)?, &row.get::<_, String>("event_id")?, &row.get::<_, String>("timestamp")?);
        event.insert("cursor".to_owned(), encode(tag, position).into());
        Ok((position, event))
    })?;
    rows.collect()
}

fn fact(row: &Row<'_>) -> Result<Fact, rusqlite::Error> {
    Ok(Fact {
        name: row.get("name")?,
        level: row.get::<_, Option<String>>("level")?.and_then(|level| level.parse().ok()),
        subject: row.get("subject")?,
        title: row.get("title")?,
        body: row.get("body")?,
        link: row.get("link")?,
        data: serde_json::from_str(&row.get::<_, String>("data")?).unwrap_or_default(),
        ..Fact::default()
    })
}

/// An opaque cursor, of characters that no URI and no server reads as something else.
fn encode(tag: &str, position: i64) -> String {
    format!("{tag}-{position}")
}

/// The position in a cursor that `encode` made for this outbox.
fn decode(cursor: &str, tag: &str, newest: i64) -> Result<i64, OutboxError> {
    let position = cursor.strip_prefix(tag).and_then(|rest| rest.strip_prefix('-')?.parse().ok());
    // A position beyond the newest row is from a life of the database that a restored backup has undone.
    position.filter(|position| (0..=newest).contains(position)).ok_or_else(|| {
        refused(format!(
            "unknown cursor {cursor:?}: this outbox never gave it; read without a cursor to start from now"
        ))
    })
}

/// The newest position that was written before that instant, 0 when there is none.
fn last_before(connection: &Connection, at_ms: i64) -> Result<i64, rusqlite::Error> {
    let newest =
        "SELECT position FROM outbox WHERE recorded_at_ms < ? ORDER BY recorded_at_ms DESC, position DESC LIMIT 1";
    Ok(connection.query_row(newest, [at_ms], |row| row.get(0)).optional()?.unwrap_or(0))
}

fn prune(transaction: &Transaction<'_>, before_ms: i64) -> Result<(), rusqlite::Error> {
    match last_before(transaction, before_ms)? {
        0 => Ok(()),
        last => {
            transaction.execute("UPDATE outbox_itself SET pruned = max(pruned, ?)", [last])?;
            transaction.execute("DELETE FROM outbox WHERE position <= ?", [last]).map(drop)
        }
    }
}

fn now_ms() -> i64 {
    epoch_ms(SystemTime::now())
}

/// Milliseconds since 1970; an instant before that counts as its beginning.
fn epoch_ms(at: SystemTime) -> i64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
