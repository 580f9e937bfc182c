//! `switchbell check`: everything that is wrong with the configuration, at once, with the place and the remedy. What the
//! files alone cannot tell is asked of the plugins: whether each loads, and whether it takes the settings of its targets.

mod running;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;

use super::ask::Way;
use super::output::{fail, print_for_people, print_json};
use super::{COULD_NOT_RUN, FOUND_WRONG};
use crate::clock::Clock;
use crate::config::{self, Code, Config, Loaded, Problem, Problems, Transport, process_environment};
use crate::send::effect::Effects;
use crate::send::keys::Keys;
use crate::send::preview::Previewer;
use crate::send::{refusals, settings_mistakes, ungranted};
use crate::wasm::catalog::depot;
use crate::wasm::{Catalog, Sandbox, Settings};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Prints JSON.
    #[arg(long)]
    json: bool,
    /// Counts warnings as mistakes.
    #[arg(long)]
    deny_warnings: bool,
    #[command(flatten)]
    way: Way,
}

/// What was found.
struct Found {
    mistakes: Vec<Problem>,
    warnings: Vec<Problem>,
    omitted: usize,
    /// Whether a file was not judged because it cannot be read: the check could not do its work.
    is_unread: bool,
}

pub(super) async fn run(file: &Path, asked: &Arguments) -> ExitCode {
    if let Some(url) = &asked.way.server {
        return running::run(file, url, asked).await;
    }
    let found = match config::load(file, &process_environment).and_then(Loaded::whole) {
        Ok((config, mut warnings)) => match said_by_plugins(&config).await {
            Ok((mistakes, ungranted)) => {
                warnings.extend(ungranted);
                warnings.extend(missing_programs(&config));
                Found { mistakes, warnings, omitted: 0, is_unread: false }
            }
            Err(code) => return code,
        },
        Err(Problems { mistakes, warnings, omitted, is_unread }) => Found { mistakes, warnings, omitted, is_unread },
    };
    let printed = if asked.json { print_json(&FoundJson::from(&found)) } else { print_for_people(&found.told()) };
    if found.is_unread {
        return ExitCode::from(COULD_NOT_RUN);
    }
    let wrong = !found.mistakes.is_empty() || (asked.deny_warnings && !found.warnings.is_empty());
    if wrong { ExitCode::from(FOUND_WRONG) } else { printed }
}

impl Found {
    fn told(&self) -> String {
        let mut text: String = self.mistakes.iter().map(Problem::to_string).collect();
        if self.omitted > 0 {
            text.push_str(&format!("and {} more\n", self.omitted));
        }
        text.extend(self.warnings.iter().map(|warning| format!("warning: {warning}")));
        let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let mistakes = self.mistakes.len() + self.omitted;
        let verdict = if mistakes == 0 { "the configuration is good".to_owned() } else { count(mistakes, "mistake") };
        let warnings = self.warnings.len();
        let warnings = if warnings == 0 { String::new() } else { format!(", {}", count(warnings, "warning")) };
        text + &format!("{verdict}{warnings}\n")
    }
}

/// What the plugins say: as mistakes files that do not load and settings that a plugin does not take, as warnings what the
/// grants lack and what else the guard would refuse.
async fn said_by_plugins(config: &Config) -> Result<(Vec<Problem>, Vec<Problem>), ExitCode> {
    let sandbox = Sandbox::new(Settings::new(config.plugins.limits)).map_err(fail)?;
    let (catalog, problems) = Catalog::running(&sandbox, &config.plugins, depot::root(&config.store)).await;
    let unloadable = |file: PathBuf, message| Problem {
        code: Code::BadPlugin,
        file,
        place: None,
        path: String::new(),
        message,
        source_line: None,
    };
    let mut mistakes: Vec<Problem> =
        problems.into_iter().map(|problem| unloadable(problem.path, problem.message)).collect();
    // A plugin that did not load is reported once, above.
    mistakes.extend(settings_mistakes(config, &catalog).await);
    let mut warnings = ungranted(config, &catalog);
    let clock = Clock::system();
    let effects = Effects::new(config, &clock).map_err(fail)?;
    let previewer = Previewer { config, catalog: &catalog, effects: &effects, keys: &Keys::of_nothing() };
    // What the grants lack is told already, with the lines to add.
    let is_told = |refused: &Problem| {
        warnings.iter().any(|told| told.file == refused.file && told.path.starts_with(&refused.path))
    };
    let refused: Vec<Problem> = refusals(&previewer, clock.now()).await.into_iter().filter(|it| !is_told(it)).collect();
    warnings.extend(refused);
    Ok((mistakes, warnings))
}

/// Connectors whose program is not on this machine. A warning: it may be there where the server runs.
fn missing_programs(config: &Config) -> Vec<Problem> {
    let mut missing = Vec::new();
    for workspace in config.workspaces.values() {
        for connector in workspace.connectors.values() {
            let Transport::Stdio { run, directory, .. } = &connector.transport else { continue };
            let Some(program) = run.first().filter(|program| !is_there(program, directory)) else { continue };
            missing.push(Problem {
                code: Code::NoProgram,
                file: workspace.file.clone(),
                place: None,
                path: format!("connectors.{}", connector.name),
                message: format!("the program {program:?} is not on this machine: see `run` of the command"),
                source_line: None,
            });
        }
    }
    missing
}

/// As a connection finds it: a path is relative to the folder, a bare name is looked for in PATH.
fn is_there(program: &str, directory: &Path) -> bool {
    if program.contains('/') {
        return directory.join(program).exists();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}

#[derive(Serialize)]
struct FoundJson<'a> {
    mistakes: Vec<ProblemJson<'a>>,
    warnings: Vec<ProblemJson<'a>>,
    omitted: usize,
}

#[derive(Serialize)]
struct ProblemJson<'a> {
    file: &'a Path,
    line: Option<usize>,
    column: Option<usize>,
    path: &'a str,
    message: &'a str,
}

impl<'a> From<&'a Found> for FoundJson<'a> {
    fn from(found: &'a Found) -> Self {
        let json = |problems: &'a [Problem]| problems.iter().map(ProblemJson::from).collect();
        Self { mistakes: json(&found.mistakes), warnings: json(&found.warnings), omitted: found.omitted }
    }
}

impl<'a> From<&'a Problem> for ProblemJson<'a> {
    fn from(problem: &'a Problem) -> Self {
        Self {
            file: &problem.file,
            line: problem.place.map(|place| place.line),
            column: problem.place.map(|place| place.column),
            path: &problem.path,
            message: &problem.message,
        }
    }
}
