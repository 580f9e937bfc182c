//! `switchbell test`: runs the tests of routes in a folder. Nothing is read but files, and nothing is sent.

mod junit;
mod show;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::output::{fail, print_for_people, print_json, tell};
use super::{COULD_NOT_RUN, FOUND_WRONG};
use crate::config::{
    self, Loaded, PluginFolder, Problems, Reading, Secrets, Trial, TrialFile, Workspace, process_environment,
};
use crate::route::trial::{self, Ran};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The folder: every .yaml file in it, and in folders in it, holds tests.
    folder: PathBuf,
    /// Writes what came of it for a build server: JUnit's XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Only tests whose file or name contains this.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// A test that ran.
struct Done<'a> {
    file: &'a TrialFile,
    trial: &'a Trial,
    workspace: &'a Workspace,
    ran: Ran,
}

impl Done<'_> {
    fn is_good(&self) -> bool {
        self.ran.is_good()
    }
}

pub(super) fn run(file: &Path, asked: &Arguments) -> ExitCode {
    match test(file, asked) {
        Ok(code) | Err(code) => code,
    }
}

fn test(file: &Path, asked: &Arguments) -> Result<ExitCode, ExitCode> {
    // Nobody shall take the results of an earlier run for those of one that could not be made.
    if let Some(path) = asked.junit.as_ref().filter(|path| path.symlink_metadata().is_ok_and(|file| file.is_file())) {
        std::fs::remove_file(path).map_err(|error| fail(format_args!("--junit {}: {error}", path.display())))?;
    }
    // Secrets and plugins are where the server runs; routes are tested where they are written.
    let reading =
        Reading { environment: &process_environment, secrets: Secrets::NotRead, plugins: PluginFolder::NotAsked };
    let (config, _) = config::load_with(file, &reading).and_then(Loaded::whole).map_err(told)?;
    let files = config::trials(&asked.folder, &config.workspaces).map_err(told)?;
    let is_asked = |file: &TrialFile, trial: &Trial| {
        asked.filter.as_ref().is_none_or(|text| trial.name.contains(text) || file.file.to_string_lossy().contains(text))
    };
    let mut done = Vec::new();
    for file in &files {
        let Some(workspace) = config.workspaces.get(&file.workspace) else { continue };
        for trial in file.tests.iter().filter(|trial| is_asked(file, trial)) {
            done.push(Done { file, trial, workspace, ran: trial::run(trial, workspace) });
        }
    }
    if done.is_empty() {
        return Err(fail(format_args!("--filter {:?}: no test has that", asked.filter.as_deref().unwrap_or_default())));
    }
    if let Some(path) = &asked.junit {
        let written = std::fs::write(path, junit::xml(&done));
        written.map_err(|error| fail(format_args!("--junit {}: {error}", path.display())))?;
    }
    let printed =
        if asked.json { print_json(&show::TestsJson::of(&done)) } else { print_for_people(&show::text(&done)) };
    Ok(if done.iter().all(Done::is_good) { printed } else { ExitCode::from(FOUND_WRONG) })
}

fn told(problems: Problems) -> ExitCode {
    tell(problems);
    ExitCode::from(COULD_NOT_RUN)
}
