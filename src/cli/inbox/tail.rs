//! `switchbell inbox tail`: what comes into an inbox, as it comes.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use futures_util::StreamExt;

use super::filters::{Filters, Kind, is_meant};
use super::list::{TITLES, row};
use super::open_places;
use crate::cli::ask::no_server;
use crate::cli::control::{Control, NoAnswer, NoStream};
use crate::cli::output::{NotificationJson, fail, harmless, tell};
use crate::cli::remote::{Server, only};
use crate::cli::serve::Signals;
use crate::cli::workspace;
use crate::clock::Clock;
use crate::notification::Name;
use crate::route::PreparedMatcher;
use crate::serve::shapes::ListJson;
use crate::sse::{Event, Events};

/// How long a server may be silent: it gives a sign of life four times as often.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// How long a server that is away is left alone, more and more.
const AGAIN: [Duration; 4] =
    [Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(5)];

/// Notifications of a backlog that are asked for at a time.
const BACKLOG_PART: u32 = 200;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Tail {
    /// The workspace; may be left out when there is one.
    #[arg(long, value_name = "NAME")]
    workspace: Option<Name>,
    #[command(flatten)]
    kind: Kind,
    /// Begins with the notifications that have a greater number; without it, with what comes from now on.
    #[arg(long, value_name = "SEQ")]
    after: Option<u64>,
    #[command(flatten)]
    server: Server,
    /// Prints a line of JSON for each.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(file: &Path, asked: &Tail) -> ExitCode {
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => return fail(error),
    };
    tokio::select! {
        Err(code) = followed(file, asked) => code,
        () = signals.stop_asked() => ExitCode::SUCCESS,
    }
}

/// Follows for ever, or until it cannot.
async fn followed(file: &Path, asked: &Tail) -> Result<std::convert::Infallible, ExitCode> {
    let named = asked.workspace.as_ref();
    let (control, workspace) = match asked.server.remote()? {
        Some(control) => {
            let workspace = only(&control, named).await?;
            (control, workspace)
        }
        None => {
            let places = open_places(file)?;
            let workspace = workspace(&places.workspaces, named)?;
            (Control::of(&places.store).map_err(|error| no_server(&error))?, workspace)
        }
    };
    let matcher = asked.kind.matcher()?;
    let printer = Printer { is_json: asked.json, widths: Vec::new(), matcher };
    let mut tail = Following { control, workspace, kind: &asked.kind, printer, seq: asked.after, position: None };
    let mut failures = 0;
    loop {
        let was_position = tail.position;
        let why = match tail.stream(failures > 0).await? {
            Ended::Away(why) => why,
            Ended::Silent => "it is silent".to_owned(),
            Ended::Closed => "it ended the connection".to_owned(),
        };
        if tail.position != was_position {
            failures = 0;
        }
        if tail.position.is_none() {
            return Err(fail(format_args!(
                "nothing can be followed: {why}: start `switchbell serve`, or see that it can be reached"
            )));
        }
        if failures == 0 {
            tell(format_args!("switchbell: the server is away ({why}): waiting until it is back"));
        }
        let delay = AGAIN.get(failures).or(AGAIN.last()).copied().unwrap_or_default();
        failures += 1;
        Clock::system().sleep(delay).await;
    }
}

/// How a stream ended.
#[derive(Debug)]
enum Ended {
    Away(String),
    Silent,
    Closed,
}

struct Following<'a> {
    control: Control,
    workspace: Name,
    kind: &'a Kind,
    printer: Printer,
    /// The last notification that was printed, or passed over; none before the first where it begins with what comes.
    seq: Option<u64>,
    /// The number of the last change that was heard of.
    position: Option<u64>,
}

impl Following<'_> {
    /// Reads one stream to its end.
    async fn stream(&mut self, is_back: bool) -> Result<Ended, ExitCode> {
        let path = format!("/v1/workspaces/{}/stream", self.workspace);
        let response = match self.control.stream(&path, self.position).await {
            Ok(response) => response,
            Err(NoStream::Away(why)) => return Ok(Ended::Away(why)),
            Err(NoStream::Refused(why)) => return Err(fail(why)),
        };
        if is_back {
            tell("switchbell: the server is back");
        }
        let (mut bytes, mut events) = (response.bytes_stream(), Events::default());
        loop {
            let Ok(next) = tokio::time::timeout(SILENCE_MAX, bytes.next()).await else { return Ok(Ended::Silent) };
            let Some(Ok(piece)) = next else { return Ok(Ended::Closed) };
            let found = events.push(&piece);
            for event in found.map_err(|_| fail("an event of the stream is longer than any that a server sends"))? {
                if let Some(ended) = self.take(&event).await? {
                    return Ok(ended);
                }
            }
        }
    }

    async fn take(&mut self, event: &Event) -> Result<Option<Ended>, ExitCode> {
        match event.name.as_str() {
            // What was there before is read only once what comes is followed, so that nothing lies between.
            "ready" | "reset" => {
                if let Some(ended) = self.backlog().await? {
                    return Ok(Some(ended));
                }
            }
            "notification.created" => {
                let one = serde_json::from_str(&event.data);
                let other = |error| fail(format_args!("the server is of another version than this command ({error})"));
                self.print(&one.map_err(other)?)?;
            }
            _ => {}
        }
        self.position = event.id.or(self.position);
        Ok(None)
    }

    /// Prints what has a greater number than the last; nothing where it begins with what comes.
    async fn backlog(&mut self) -> Result<Option<Ended>, ExitCode> {
        let Some(seq) = self.seq else { return Ok(None) };
        let mut filters = Filters::behind(self.kind, seq);
        loop {
            let part =
                self.control.get::<ListJson<NotificationJson>>(&filters.path(&self.workspace, BACKLOG_PART)).await;
            let part = match part {
                Ok(part) => part,
                Err(NoAnswer::NotRunning) => return Ok(Some(Ended::Closed)),
                // If it stays so, the next stream is refused, too.
                Err(NoAnswer::Nothing(why) | NoAnswer::Refused(why)) => return Ok(Some(Ended::Away(why))),
            };
            for one in &part.items {
                self.print(one)?;
            }
            match part.next {
                Some(next) => filters.go_on(next),
                None => return Ok(None),
            }
        }
    }

    fn print(&mut self, one: &NotificationJson) -> Result<(), ExitCode> {
        // What came while the backlog was read is told twice.
        if self.seq.is_some_and(|seq| one.seq <= seq) {
            return Ok(());
        }
        self.seq = Some(one.seq);
        self.printer.print(one)
    }
}

/// Prints notifications, each in a line.
struct Printer {
    is_json: bool,
    /// How wide the columns are so far; none before the first line.
    widths: Vec<usize>,
    matcher: Option<PreparedMatcher>,
}

impl Printer {
    fn print(&mut self, one: &NotificationJson) -> Result<(), ExitCode> {
        if !is_meant(self.matcher.as_ref(), one) {
            return Ok(());
        }
        let text = if self.is_json {
            serde_json::to_string(one).map_err(|error| fail(format_args!("cannot print: {error}")))? + "\n"
        } else {
            let title = if self.widths.is_empty() { self.line(&TITLES.map(str::to_owned)) } else { String::new() };
            harmless(&(title + &self.line(&row(one))))
        };
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => Ok(()),
            // Nobody reads on (`| head`).
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(ExitCode::SUCCESS),
            Err(error) => Err(fail(format_args!("cannot print: {error}"))),
        }
    }

    /// Columns that are as wide as the widest cell so far.
    fn line(&mut self, cells: &[String]) -> String {
        self.widths.resize(cells.len(), 0);
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(&mut self.widths) {
            let cell: String = cell.chars().map(|c| if c == '\n' { ' ' } else { c }).collect();
            *width = cell.chars().count().max(*width);
            line.push_str(&format!("{cell:<width$}  ", width = *width));
        }
        line.trim_end().to_owned() + "\n"
    }
}
