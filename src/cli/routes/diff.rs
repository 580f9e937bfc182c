//! `switchbell routes diff`: the real inbox decided under two configurations. Nothing is written, and a running server does
//! not notice.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use jiff::Timestamp;

use super::super::FOUND_WRONG;
use super::super::output::{fail, print_for_people, print_json};
use super::show::{DiffJson, text};
use super::sides::{self, Sides};
use crate::clock::Clock;
use crate::config::{self, Workspace};
use crate::inbox::sqlite::SqliteInbox;
use crate::inbox::walk::walk;
use crate::inbox::{Inbox, InboxError, Known};
use crate::notification::Name;
use crate::route::diff::{Diff, Fate, Simulation};

#[derive(Debug, clap::Args)]
pub(in super::super) struct Arguments {
    /// The configuration as it is: a switchbell.yaml, or a workspace's file.
    old: PathBuf,
    /// The configuration as it would be: the same kind of file.
    new: PathBuf,
    /// From when on: how long ago (`7d`), or a moment (`2026-11-23T00:00:00Z`).
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = time)]
    since: Time,
    /// Until when, in the same forms; now when left out.
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<Time>,
    /// Only this workspace; of two workspaces' files, whose they are.
    #[arg(long, value_name = "NAME")]
    workspace: Option<Name>,
    /// Also says what would have been sent when, with digests, quiet hours, limits and escalations, as if nothing had been
    /// waiting at the beginning and every attempt succeeded at once.
    #[arg(long)]
    simulate: bool,
    /// Notifications shown of each difference.
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u16).range(..=1_000))]
    limit: u16,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// A moment as arguments say it.
#[derive(Clone, Copy, Debug)]
enum Time {
    Ago(std::time::Duration),
    At(Timestamp),
}

fn time(text: &str) -> Result<Time, String> {
    if let Ok(at) = text.parse() {
        return Ok(Time::At(at));
    }
    config::duration(text).map(Time::Ago).map_err(|why| format!("{why}; or write a moment, as in 2026-11-23T00:00:00Z"))
}

impl Time {
    fn moment(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::Ago(ago) => now.checked_sub(ago).unwrap_or(Timestamp::MIN),
        }
    }
}

/// What was found of one workspace.
pub(super) struct Compared<'a> {
    pub(super) name: &'a Name,
    pub(super) sides: (&'a Workspace, &'a Workspace),
    pub(super) diff: Diff<'a>,
    pub(super) simulation: Option<Simulation>,
    /// The notifications that are shown, by their numbers.
    pub(super) shown: Vec<Known>,
}

impl Compared<'_> {
    /// Whether anything would be delivered otherwise.
    pub(super) fn is_different(&self) -> bool {
        self.diff.totals().different > 0
            || self
                .simulation
                .as_ref()
                .is_some_and(|simulation| self.diff.pairs().iter().any(|pair| !simulation.is_same(pair)))
    }
}

/// Of when notifications are looked at.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) since: Timestamp,
    pub(super) until: Timestamp,
}

pub(super) async fn run(file: &Path, asked: &Arguments) -> ExitCode {
    match diff(file, asked).await {
        Ok(code) | Err(code) => code,
    }
}

async fn diff(file: &Path, asked: &Arguments) -> Result<ExitCode, ExitCode> {
    let now = Clock::system().now();
    let span = Span { since: asked.since.moment(now), until: asked.until.map_or(now, |until| until.moment(now)) };
    if span.since > span.until {
        return Err(fail(format_args!("--since ({}) is later than --until ({})", span.since, span.until)));
    }
    let sides = sides::load(file, [&asked.old, &asked.new], asked.workspace.as_ref())?;
    let inbox = SqliteInbox::open_to_read(&sides.store).map_err(fail)?;
    let mut all = Vec::new();
    for (name, (old, new)) in &sides.both {
        all.push(compare(&inbox, name, (old, new), (span, asked)).await.map_err(fail)?);
    }
    let printed = if asked.json {
        print_json(&DiffJson::of(&all, &sides, span))
    } else {
        print_for_people(&text(&all, &sides, span))
    };
    Ok(if is_different(&all, &sides) { ExitCode::from(FOUND_WRONG) } else { printed })
}

fn is_different(all: &[Compared<'_>], sides: &Sides) -> bool {
    !sides.gone.is_empty() || !sides.new.is_empty() || all.iter().any(Compared::is_different)
}

async fn compare<'a>(
    inbox: &SqliteInbox,
    name: &'a Name,
    (old, new): (&'a Workspace, &'a Workspace),
    (span, asked): (Span, &Arguments),
) -> Result<Compared<'a>, InboxError> {
    let mut diff = Diff::new(old, new, usize::from(asked.limit));
    let mut simulation = asked.simulate.then(|| Simulation::new(old, new));
    walk(inbox, name, (span.since, span.until), |known| {
        let decided = diff.add(known);
        if let Some(simulation) = &mut simulation {
            simulation.add(known, &decided);
        }
    })
    .await?;
    if let Some(simulation) = &mut simulation {
        simulation.end(span.until);
    }
    let shown = shown(inbox, name, &diff).await?;
    Ok(Compared { name, sides: (old, new), diff, simulation, shown })
}

/// The notifications that are shown.
async fn shown(inbox: &SqliteInbox, workspace: &Name, diff: &Diff<'_>) -> Result<Vec<Known>, InboxError> {
    let mut seqs = std::collections::BTreeSet::new();
    for pair in 0..diff.pairs().len() {
        for fate in Fate::DIFFERENT {
            seqs.extend(diff.count(pair, fate).into_iter().flat_map(|count| &count.newest).copied());
        }
    }
    let mut shown = Vec::with_capacity(seqs.len());
    for seq in seqs {
        shown.extend(inbox.known(workspace, seq, 1).await?);
    }
    Ok(shown)
}
