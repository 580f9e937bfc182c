//! `switchbell plugin list`: the folder of plugins.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;

use super::{granted, sandbox};
use crate::cli::FOUND_WRONG;
use crate::cli::output::{print_for_people, print_json};
use crate::cli::table::{aligned, count};
use crate::config::{Granted, Used};
use crate::notification::Name;
use crate::wasm::catalog::read_file;
use crate::wasm::{Catalog, Plugin, PluginProblem, file_digest};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct List {
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// Hexadecimal digits of a digest that a list shows.
const DIGEST_DIGITS: usize = 12;

/// One plugin: a file, or the lack of one.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: String,
    version: Option<String>,
    digest: Option<String>,
    file: PathBuf,
    state: State,
    /// Why it does not load.
    why: Option<String>,
    used_by: Vec<UsedJson>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
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
    let known = match granted(file) {
        Ok(known) => known,
        Err(code) => return code,
    };
    let sandbox = match sandbox(known.plugins.limits) {
        Ok(sandbox) => sandbox,
        Err(code) => return code,
    };
    let (catalog, problems) = Catalog::open(&sandbox, &known.plugins.directory).await;
    let rows = rows(&known, &catalog, problems);
    let printed = if asked.json { print_json(&rows) } else { print_for_people(&told(&rows, &known)) };
    let is_wrong = rows.iter().any(|row| row.state != State::Loads);
    if is_wrong { ExitCode::from(FOUND_WRONG) } else { printed }
}

/// What loads, what does not, and what is not there, each by name.
fn rows(known: &Granted, catalog: &Catalog, problems: Vec<PluginProblem>) -> Vec<Row> {
    let directory = &known.plugins.directory;
    let mut used: BTreeMap<&Name, Vec<UsedJson>> = BTreeMap::new();
    for one in &known.used {
        used.entry(&one.plugin).or_default().push(UsedJson::from(one));
    }
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
        file: directory.join(format!("{name}.wasm")),
        name,
        version: Some(plugin.manifest().version.clone()),
        digest: Some(plugin.digest().to_owned()),
        state: State::Loads,
        why: None,
        used_by,
    }
}

fn broken(name: String, problem: PluginProblem, used_by: Vec<UsedJson>) -> Row {
    Row {
        name,
        version: None,
        digest: read_file(&problem.path).ok().and_then(|bytes| file_digest(&bytes)),
        file: problem.path,
        state: State::DoesNotLoad,
        why: Some(problem.message),
        used_by,
    }
}

fn missing(name: &Name, directory: &Path, used_by: Vec<UsedJson>) -> Row {
    let file = directory.join(format!("{name}.wasm"));
    let why = Some("targets use it, and it is not there: put it into the folder, or correct the name".to_owned());
    Row { name: name.to_string(), version: None, digest: None, file, state: State::Missing, why, used_by }
}

impl From<&Used> for UsedJson {
    fn from(used: &Used) -> Self {
        let target = used.target.as_ref().map(Name::to_string);
        Self { workspace: used.workspace.to_string(), route: used.route.to_string(), target }
    }
}

fn told(rows: &[Row], known: &Granted) -> String {
    if rows.is_empty() {
        return format!("no plugins in {}\n", known.plugins.directory.display());
    }
    let heading = ["NAME", "VERSION", "DIGEST", "STATE", "USED BY"].map(str::to_owned).to_vec();
    let table: Vec<Vec<String>> = std::iter::once(heading).chain(rows.iter().map(cells)).collect();
    let reasons = rows.iter().filter_map(|row| Some(format!("{}: {}\n", row.file.display(), row.why.as_deref()?)));
    let reasons: String = reasons.collect();
    aligned(&table) + if reasons.is_empty() { "" } else { "\n" } + &reasons
}

fn cells(row: &Row) -> Vec<String> {
    let state = match row.state {
        State::Loads => "loads",
        State::DoesNotLoad => "does not load",
        State::Missing => "missing",
    };
    let digest = row.digest.as_deref().and_then(|digest| digest.get(..DIGEST_DIGITS));
    let routes: BTreeSet<String> =
        row.used_by.iter().map(|used| format!("{}: {}", used.workspace, used.route)).collect();
    let used_by = match routes.len() {
        0 => "no target".to_owned(),
        1..=3 => routes.into_iter().collect::<Vec<_>>().join(", "),
        more => format!("{} of {}", count(row.used_by.len(), "target"), count(more, "route")),
    };
    let or_dash = |text: Option<&str>| text.unwrap_or("-").to_owned();
    vec![row.name.clone(), or_dash(row.version.as_deref()), or_dash(digest), state.to_owned(), used_by]
}
