//! The operator's file.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::super::code::Code;
use super::super::load::Folder;
use super::super::loaded::Reading;
use super::super::raw::{RawCommand, RawPoll, RawServer};
use super::super::read::{Map, Named, Placed};
use super::super::source::Report;
use super::super::values::{Span, show};
use super::super::{Access, MailRelay, Plugins, Poll, Retention, ToolGrant, Transport, suggest};
use super::access;
use super::catalog::{self, Entry};
use super::mail;
use super::plugins;
use super::retention;
use super::secret::{self, Rule};
use crate::notification::Name;

/// Shortest wait between two reads that an operator may choose.
const POLL_FLOOR_MIN: Duration = Duration::from_millis(10);
/// Longest wait between two reads: a day.
const POLL_CEILING_MAX: Duration = Duration::from_secs(86_400);
/// How far back an outbox may be asked to replay: ten years.
const POLL_AGE_MAX: Duration = Duration::from_secs(3_650 * 86_400);

/// Reads of one workspace in a minute, unless the operator says otherwise.
const READS_PER_MINUTE_DEFAULT: u32 = 60;

/// What the operator's file says, as far as it is good: what the workspaces' files are checked against.
#[derive(Debug)]
pub(in crate::config) struct Server {
    pub listen: SocketAddr,
    pub access: Access,
    pub store: PathBuf,
    /// The folder of the workspaces' files, as a person would name it.
    pub workspaces: Option<Placed<PathBuf>>,
    pub poll: Poll,
    pub retention: Retention,
    pub reads_per_minute_max: u32,
    pub commands: BTreeMap<Name, Command>,
    pub catalog: BTreeMap<Name, Entry>,
    pub plugins: Plugins,
    pub mail: Option<MailRelay>,
    /// The tools that plugins are granted, with their places.
    pub tools: Vec<Placed<ToolGrant>>,
    /// The plugins' folder as written, and the names of the plugins in it; none when it cannot be read.
    pub plugins_there: Option<(String, BTreeSet<Name>)>,
    /// The plugins of which the server keeps versions beside its store: one whose file was removed is not unknown.
    pub plugins_kept: BTreeSet<Name>,
    pub secrets: BTreeMap<Name, Rule>,
    /// Every place where a workspace is named.
    pub mentions: Vec<Placed<Name>>,
}

impl Server {
    /// Whether there is a plugin of this name, as far as is known.
    pub(in crate::config) fn has_plugin(&self, name: &str) -> bool {
        let there = self.plugins_there.as_ref();
        there.is_none_or(|(_, names)| names.iter().any(|plugin| plugin.as_str() == name))
    }
}

/// A program that connectors may start.
#[derive(Debug)]
pub(in crate::config) struct Command {
    pub run: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// The folder it is started in.
    pub directory: PathBuf,
    /// Who may use it; none when that is unusable and was reported.
    pub workspaces: Option<Vec<Name>>,
}

/// Checks the operator's file. What is wrong is reported and left out, so that the rest can be checked.
pub(in crate::config) fn server(raw: RawServer, folder: &Folder, reading: &Reading<'_>, report: &mut Report) -> Server {
    let mut mentions = Vec::new();
    let plugins::Checked { plugins, there, mail: granted, tools } =
        plugins::check(raw.plugins, folder, (reading.plugins, &mut mentions), report);
    let commands = commands(raw.commands, folder, &mut mentions, report);
    let secrets = secret::check(raw.secrets, folder, reading, &mut mentions, report);
    let mail = mail::check(raw.mail, &mail::Known { granted: &granted, secrets: &secrets }, report);
    let known = catalog::Known { folder, commands: &commands, secrets: &secrets };
    let catalog = catalog::check(raw.catalog, &known, &mut mentions, report);
    let store: PathBuf = raw.store.map(|store| folder.absolute.join(&store.0)).unwrap_or_default();
    let reads_per_minute_max = raw.poll.as_ref().and_then(|poll| poll.budget.as_ref());
    let reads_per_minute_max = reads_per_minute_max.map_or(READS_PER_MINUTE_DEFAULT, |most| most.0);
    let poll = raw.poll.map_or_else(Poll::default, |raw| poll(raw, report));
    let listen = raw.listen.as_ref().map(|listen| (&listen.at, listen.0));
    Server {
        access: access::check(listen, raw.public_url, raw.trusted_proxies, report),
        listen: raw.listen.map_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)), |listen| listen.0),
        workspaces: raw.workspaces.and_then(|path| {
            let value = path_of(&path.at, &path.value.0, report).map(|path| folder.shown.join(path))?;
            Some(Placed { at: path.at, value })
        }),
        retention: retention::server(raw.retention, poll.age_max, folder, report),
        reads_per_minute_max,
        poll,
        commands,
        catalog,
        plugins,
        mail,
        tools,
        plugins_there: there,
        plugins_kept: plugins::kept(&store),
        store,
        secrets,
        mentions,
    }
}

/// A path in the file.
pub(in crate::config) fn path_of(at: &super::super::node::At, text: &str, report: &mut Report) -> Option<PathBuf> {
    let objection = if text.is_empty() || text.contains('\0') {
        "the path of a folder or file is wanted here"
    } else if text == "~" || text.starts_with("~/") {
        "`~` is not read in paths: write the path from the root, or `${HOME}/…`"
    } else {
        return Some(PathBuf::from(text));
    };
    report.mistake(at, Code::BadPath.says(objection));
    None
}

fn poll(raw: Placed<RawPoll>, report: &mut Report) -> Poll {
    let RawPoll { base, floor, ceiling, max_events, chained_reads, max_age, budget: _, given: _ } = raw.value;
    within(floor.as_ref(), POLL_FLOOR_MIN, POLL_CEILING_MAX, report);
    within(ceiling.as_ref(), POLL_FLOOR_MIN, POLL_CEILING_MAX, report);
    within(max_age.as_ref(), Duration::from_secs(60), POLL_AGE_MAX, report);
    in_order(base.as_ref(), floor.as_ref(), ceiling.as_ref(), report);
    let default = Poll::default();
    Poll {
        base: base.map_or(default.base, |base| base.0),
        floor: floor.map_or(default.floor, |floor| floor.0),
        ceiling: ceiling.map_or(default.ceiling, |ceiling| ceiling.0),
        events_max: max_events.map_or(default.events_max, |most| most.0),
        chained_reads_max: chained_reads.map_or(default.chained_reads_max, |most| most.0),
        age_max: max_age.map_or(default.age_max, |age| age.0),
    }
}

/// Whether a duration, if there is one, is within bounds; reported otherwise.
pub(super) fn within(span: Option<&Placed<Span>>, least: Duration, most: Duration, report: &mut Report) -> bool {
    let Some(span) = span.filter(|span| !(least..=most).contains(&span.0)) else { return true };
    let message = format!("{} is out of bounds: write {} to {}", show(span.0), show(least), show(most));
    report.mistake(&span.at, Code::OutOfBounds.says(message));
    false
}

fn in_order(
    base: Option<&Placed<Span>>,
    floor: Option<&Placed<Span>>,
    ceiling: Option<&Placed<Span>>,
    report: &mut Report,
) {
    let (Some(base), Some(floor), Some(ceiling)) = (base, floor, ceiling) else { return };
    let all = format!("floor {}, base {}, ceiling {}", show(floor.0), show(base.0), show(ceiling.0));
    if floor.0 > base.0 {
        report.mistake(
            &base.at,
            Code::OutOfOrder.says(format!("the base is below the floor ({all}): raise base or lower floor")),
        );
    }
    if base.0 > ceiling.0 {
        report.mistake(
            &ceiling.at,
            Code::OutOfOrder.says(format!("the ceiling is below the base ({all}): raise ceiling or lower base")),
        );
    }
}

fn commands(
    raw: Option<Placed<Map<Name, RawCommand>>>,
    folder: &Folder,
    mentions: &mut Vec<Placed<Name>>,
    report: &mut Report,
) -> BTreeMap<Name, Command> {
    let entries = raw.map_or_else(Vec::new, |map| map.value.0);
    let checked = entries.into_iter().map(|Named { name, at: _, value }| {
        let command = value.map(|raw| command(raw, folder, mentions, report));
        (name, command.unwrap_or_else(|| Command::unusable(folder)))
    });
    checked.collect()
}

impl Command {
    /// Whether a workspace may use it.
    pub(super) fn is_granted_to(&self, workspace: &Name) -> bool {
        self.workspaces.as_ref().is_none_or(|names| names.contains(workspace))
    }

    /// How it is reached.
    pub(super) fn transport(&self) -> Transport {
        Transport::Stdio { run: self.run.clone(), env: self.env.clone(), directory: self.directory.clone() }
    }

    fn unusable(folder: &Folder) -> Self {
        Self { run: Vec::new(), env: BTreeMap::new(), directory: folder.absolute.clone(), workspaces: None }
    }
}

fn command(raw: Placed<RawCommand>, folder: &Folder, mentions: &mut Vec<Placed<Name>>, report: &mut Report) -> Command {
    let mut command = Command::unusable(folder);
    if let Some(run) = raw.value.run {
        let has_program = run.first().is_some_and(|program| !program.0.is_empty());
        if !has_program {
            report.mistake(&run.at, "a program is missing: write a list such as `[python, server.py]`");
        }
        for text in run.iter().filter(|text| text.0.contains('\0')) {
            report.mistake(&text.at, "an argument cannot hold the character NUL");
        }
        command.run = run.value.into_iter().map(|text| text.value.0).collect();
    }
    for Named { name, at, value } in raw.value.env.map_or_else(Vec::new, |env| env.value.0) {
        if name.0 == "SWITCHBELL_WORKSPACE" {
            report.mistake(
                &at,
                Code::NoEffect.says("Switchbell sets this variable itself, to the workspace's name: remove it"),
            );
        }
        let Some(value) = value else { continue };
        if value.0.contains('\0') {
            report.mistake(&value.at, "a variable cannot hold the character NUL");
        }
        command.env.insert(name.0, value.value.0);
    }
    if raw.value.workspaces.is_some() || !raw.value.given.has("workspaces") {
        command.workspaces = Some(mentioned(raw.value.workspaces, mentions));
    }
    command
}

/// The names in a list of workspaces, noted as mentions.
pub(super) fn mentioned(list: Option<Placed<Vec<Placed<Name>>>>, mentions: &mut Vec<Placed<Name>>) -> Vec<Name> {
    let list = list.map_or_else(Vec::new, |list| list.value);
    let names = list.iter().map(|name| name.value.clone()).collect();
    mentions.extend(list);
    names
}

/// Warns of workspaces that are named but not there.
pub(in crate::config) fn mentioned_workspaces(server: &Server, names: &BTreeSet<&Name>, report: &mut Report) {
    for mention in server.mentions.iter().filter(|mention| !names.contains(&mention.value)) {
        let hint = suggest::hint(mention.as_str(), names.iter().map(|name| name.as_str()), "workspaces");
        report.warning(
            &mention.at,
            Code::UnknownWorkspace.says(format!("there is no workspace {:?}{hint}", mention.as_str())),
        );
    }
}
