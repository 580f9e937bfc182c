//! `switchbell plugin list`: the plugins of the running server, or, when none runs, what the folder holds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;

use super::change::{self, listed};
use super::{DIGEST_DIGITS, granted, sandbox};
use crate::cli::FOUND_WRONG;
use crate::cli::output::{print_for_people, print_json};
use crate::cli::remote::Server;
use crate::cli::table::{aligned, count};
use crate::config::{self, Granted, Used, process_environment};
use crate::notification::Name;
use crate::serve::shapes::{PluginJson, ProbationJson, VersionJson};
use crate::wasm::catalog::{depot, read_file};
use crate::wasm::{Catalog, Plugin, PluginProblem, file_digest};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct List {
    #[command(flatten)]
    server: Server,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// Why a plugin is needed that is not there.
const GONE: &str = "targets use it, and it is not there: put it into the folder, or correct the name";

/// One plugin: a version that runs, a file, or the lack of both.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: String,
    version: Option<String>,
    digest: Option<String>,
    /// Its file; none of a server elsewhere.
    file: Option<PathBuf>,
    state: State,
    /// Why it does not load.
    why: Option<String>,
    /// The targets that use it; none where the configuration is not on this machine.
    used_by: Option<Vec<UsedJson>>,
    /// The other versions that are kept, the newest first; none without a server.
    others: Vec<VersionJson>,
    /// How the version that runs does, while it is on probation.
    probation: Option<ProbationJson>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    Runs,
    Loads,
    DoesNotLoad,
    Missing,
}

#[derive(Debug, Serialize)]
struct UsedJson {
    workspace: String,
    route: String,
    target: Option<String>,
}

pub(super) async fn run(file: &Path, asked: &List) -> ExitCode {
    match asked.server.control(file) {
        Ok(None) => {}
        Ok(Some(control)) => {
            return match change::of_server(&control).await {
                Ok(plugins) => said(asked, &plugins.into_iter().map(elsewhere).collect::<Vec<_>>(), None),
                Err(code) => code,
            };
        }
        Err(code) => return code,
    }
    let known = match granted(file) {
        Ok(known) => known,
        Err(code) => return code,
    };
    let rows = match of_server(file, &known).await {
        Ok(Some(rows)) => rows,
        Ok(None) => match of_folder(file, &known).await {
            Ok(rows) => rows,
            Err(code) => return code,
        },
        Err(code) => return code,
    };
    said(asked, &rows, Some(&known.plugins.directory))
}

/// Prints them; `directory` is the folder of plugins where it is on this machine.
fn said(asked: &List, rows: &[Row], directory: Option<&Path>) -> ExitCode {
    let printed = if asked.json { print_json(&rows) } else { print_for_people(&told(rows, directory)) };
    let is_wrong = rows.iter().any(|row| !matches!(row.state, State::Runs | State::Loads) || row.why.is_some());
    if is_wrong { ExitCode::from(FOUND_WRONG) } else { printed }
}

/// The plugins of the running server; none when none runs.
async fn of_server(file: &Path, known: &Granted) -> Result<Option<Vec<Row>>, ExitCode> {
    // A configuration without a store that can be found has no server.
    let Ok(places) = config::places(file, &process_environment) else { return Ok(None) };
    let Some(plugins) = listed(&places).await? else { return Ok(None) };
    let mut used = used(known);
    let mut rows: Vec<Row> =
        plugins.into_iter().map(|plugin| running(plugin, &known.plugins.directory, &mut used)).collect();
    rows.extend(used.into_iter().map(|(name, used_by)| missing(name, &known.plugins.directory, used_by)));
    rows.retain(|row| row.state != State::Missing || row.why.is_some() || !row.others.is_empty());
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(Some(rows))
}

/// A plugin of a server whose files are not on this machine.
fn elsewhere(of: PluginJson) -> Row {
    let row = running(of, Path::new(""), &mut BTreeMap::new());
    Row { file: None, used_by: None, ..row }
}

fn running(of: PluginJson, directory: &Path, used: &mut BTreeMap<&Name, Vec<UsedJson>>) -> Row {
    let used_by = of.name.parse().ok().and_then(|name: Name| used.remove(&name)).unwrap_or_default();
    let gone = (of.active.is_none() && of.problem.is_none() && !used_by.is_empty()).then(|| GONE.to_owned());
    let state = match (&of.active, &of.problem) {
        (Some(_), _) => State::Runs,
        (None, Some(_)) => State::DoesNotLoad,
        (None, None) => State::Missing,
    };
    Row {
        file: Some(directory.join(format!("{}.wasm", of.name))),
        name: of.name,
        version: of.active.as_ref().map(|active| active.version.clone()),
        digest: of.active.map(|active| active.digest),
        state,
        why: of.problem.or(gone),
        used_by: Some(used_by),
        others: of.others,
        probation: of.probation,
    }
}

/// What the folder holds.
async fn of_folder(file: &Path, known: &Granted) -> Result<Vec<Row>, ExitCode> {
    let sandbox = sandbox(known.plugins.limits)?;
    let directory = &known.plugins.directory;
    let (catalog, problems) = match config::places(file, &process_environment) {
        Ok(places) => Catalog::running(&sandbox, &known.plugins, depot::root(&places.store)).await,
        Err(_) => Catalog::open(&sandbox, directory).await,
    };
    Ok(rows(known, &catalog, problems))
}

fn used(known: &Granted) -> BTreeMap<&Name, Vec<UsedJson>> {
    let mut used: BTreeMap<&Name, Vec<UsedJson>> = BTreeMap::new();
    for one in &known.used {
        used.entry(&one.plugin).or_default().push(UsedJson::from(one));
    }
    used
}

/// What loads, what does not, and what is not there, each by name.
fn rows(known: &Granted, catalog: &Catalog, problems: Vec<PluginProblem>) -> Vec<Row> {
    let directory = &known.plugins.directory;
    let mut used = used(known);
    let mut rows = Vec::new();
    for name in catalog.names() {
        if let Some(plugin) = catalog.get(name) {
            rows.push(loaded(&plugin, directory, used.remove(name).unwrap_or_default()));
        }
    }
    for problem in problems {
        let stem = problem.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let used_by = stem.parse().ok().and_then(|name: Name| used.remove(&name)).unwrap_or_default();
        rows.push(broken(stem.to_owned(), problem, used_by));
    }
    let missing = used.into_iter().map(|(name, used_by)| missing(name, directory, used_by));
    rows.extend(missing);
    rows
}

fn loaded(plugin: &Plugin, directory: &Path, used_by: Vec<UsedJson>) -> Row {
    let name = plugin.manifest().name.to_string();
    Row {
        file: Some(directory.join(format!("{name}.wasm"))),
        name,
        version: Some(plugin.manifest().version.clone()),
        digest: Some(plugin.digest().to_owned()),
        state: State::Loads,
        why: None,
        used_by: Some(used_by),
        others: Vec::new(),
        probation: None,
    }
}

fn broken(name: String, problem: PluginProblem, used_by: Vec<UsedJson>) -> Row {
    Row {
        name,
        version: None,
        digest: read_file(&problem.path).ok().and_then(|bytes| file_digest(&bytes)),
        file: Some(problem.path),
        state: State::DoesNotLoad,
        why: Some(problem.message),
        used_by: Some(used_by),
        others: Vec::new(),
        probation: None,
    }
}

fn missing(name: &Name, directory: &Path, used_by: Vec<UsedJson>) -> Row {
    let file = directory.join(format!("{name}.wasm"));
    Row {
        name: name.to_string(),
        version: None,
        digest: None,
        file: Some(file),
        state: State::Missing,
        why: Some(GONE.to_owned()),
        used_by: Some(used_by),
        others: Vec::new(),
        probation: None,
    }
}

impl From<&Used> for UsedJson {
    fn from(used: &Used) -> Self {
        let target = used.target.as_ref().map(Name::to_string);
        Self { workspace: used.workspace.to_string(), route: used.route.to_string(), target }
    }
}

fn told(rows: &[Row], directory: Option<&Path>) -> String {
    if rows.is_empty() {
        return directory.map_or_else(|| "no plugins\n".to_owned(), |at| format!("no plugins in {}\n", at.display()));
    }
    let mut heading = ["NAME", "VERSION", "DIGEST", "STATE"].map(str::to_owned).to_vec();
    heading.extend(directory.map(|_| "USED BY".to_owned()));
    let table: Vec<Vec<String>> = std::iter::once(heading).chain(rows.iter().map(cells)).collect();
    let place = |row: &Row| row.file.as_ref().map_or_else(|| row.name.clone(), |file| file.display().to_string());
    let reasons = rows.iter().filter_map(|row| Some(format!("{}: {}\n", place(row), row.why.as_deref()?)));
    let reasons: String = reasons.collect();
    let others: String = rows.iter().flat_map(|row| row.others.iter().map(|other| other_version(row, other))).collect();
    let watched = rows.iter().filter_map(|row| Some((row, row.probation.as_ref()?)));
    let watched: String = watched
        .map(|(row, at)| {
            let ended = count(usize::try_from(at.ended).unwrap_or(usize::MAX), "attempt");
            format!("{}: on probation since {}; {ended}, {} at fault\n", row.name, at.since, at.at_fault)
        })
        .collect();
    let more = if others.is_empty() && watched.is_empty() { String::new() } else { format!("\n{watched}{others}") };
    aligned(&table) + &more + if reasons.is_empty() { "" } else { "\n" } + &reasons
}

/// A line about a version that is kept and does not run.
fn other_version(row: &Row, other: &VersionJson) -> String {
    let digest = other.digest.get(..DIGEST_DIGITS).unwrap_or(&other.digest);
    let why = other.why.as_deref().map_or_else(String::new, |why| format!(": {why}"));
    let in_use = if other.in_use { "; attempts that began on it go on" } else { "" };
    let ran = other.last_active_at.as_deref().map_or_else(String::new, |at| format!("; ran until {at}"));
    format!("{} {} ({digest}): {}{why}{ran}{in_use}\n", row.name, other.version, other.standing)
}

fn cells(row: &Row) -> Vec<String> {
    let state = match row.state {
        State::Runs => "runs",
        State::Loads => "loads",
        State::DoesNotLoad => "does not load",
        State::Missing => "missing",
    };
    let digest = row.digest.as_deref().and_then(|digest| digest.get(..DIGEST_DIGITS));
    let or_dash = |text: Option<&str>| text.unwrap_or("-").to_owned();
    let mut cells = vec![row.name.clone(), or_dash(row.version.as_deref()), or_dash(digest), state.to_owned()];
    cells.extend(row.used_by.as_deref().map(users));
    cells
}

fn users(used_by: &[UsedJson]) -> String {
    let routes: BTreeSet<String> = used_by.iter().map(|used| format!("{}: {}", used.workspace, used.route)).collect();
    match routes.len() {
        0 => "no target".to_owned(),
        1..=3 => routes.into_iter().collect::<Vec<_>>().join(", "),
        more => format!("{} of {}", count(used_by.len(), "target"), count(more, "route")),
    }
}
