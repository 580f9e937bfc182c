//! What there is to say of a configuration: what its files say, and what only the plugins, this machine and the inbox can
//! tell. The command and the running server ask alike.

mod unseen;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::config::{Code, Config, Loaded, Located, Problem, Problems, Severity, Transport, in_order};
use crate::inbox::Inbox;
use crate::send::effect::Effects;
use crate::send::keys::Keys;
use crate::send::preview::Previewer;
use crate::send::{refusals, settings_mistakes, ungranted};
use crate::wasm::{Catalog, PluginProblem};

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// The operator's file.
    pub file: PathBuf,
    /// What keeps the configuration, or a workspace of it, from being used.
    pub mistakes: Vec<Problem>,
    /// What can be used and is probably not meant.
    pub warnings: Vec<Problem>,
    /// How many more mistakes there are than are kept.
    pub omitted: usize,
    /// Whether a file could not be read, so that what it says was not judged.
    pub is_unread: bool,
    /// What else was not judged, and why.
    pub not_judged: Vec<NotJudged>,
}

/// Something that was not judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotJudged {
    /// What, such as "the settings of targets".
    pub what: String,
    /// Why.
    pub why: String,
}

impl Findings {
    /// Nothing, about the configuration of this file.
    pub fn none(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            mistakes: Vec::new(),
            warnings: Vec::new(),
            omitted: 0,
            is_unread: false,
            not_judged: Vec::new(),
        }
    }

    /// What is wrong with files that cannot be used.
    pub fn of_problems(file: &Path, problems: Problems) -> Self {
        let mut found = Self::none(file);
        found.add(problems);
        found
    }

    /// What the files say, with the configuration as far as it can be used.
    pub fn of_files(loaded: Loaded) -> (Self, Config) {
        let Loaded { config, warnings, aside, older, .. } = loaded;
        let mut found = Self::none(&config.file);
        found.warnings = warnings;
        aside.into_values().chain(older.into_values()).for_each(|problems| found.add(problems));
        (found, config)
    }

    fn add(&mut self, problems: Problems) {
        let Problems { mistakes, warnings, omitted, is_unread } = problems;
        self.mistakes.extend(mistakes);
        self.warnings.extend(warnings);
        self.omitted += omitted;
        self.is_unread |= is_unread;
    }

    /// Notes something that was not judged.
    pub fn leave_out(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.not_judged.push(NotJudged { what: what.into(), why: why.into() });
    }

    /// Takes in what else was found about the same configuration.
    pub fn join(&mut self, other: Self) {
        self.mistakes.extend(other.mistakes);
        self.warnings.extend(other.warnings);
        self.omitted += other.omitted;
        self.is_unread |= other.is_unread;
        self.not_judged.extend(other.not_judged);
    }

    /// Mistakes and warnings together, file by file, each from top to bottom.
    pub fn in_order(&self) -> Vec<(Severity, &Problem)> {
        in_order(&self.file, &self.mistakes, &self.warnings)
    }
}

/// What a configuration whose files are good is judged with. Nothing is sent, and nothing is stored.
#[derive(Clone, Copy, Debug)]
pub struct Judge<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The plugins that are loaded, and what is wrong with those that are not; none where nobody asks plugins.
    pub plugins: Option<(&'a Catalog, &'a [PluginProblem])>,
    /// Whose guard judges.
    pub effects: &'a Effects,
    /// The store; none where there is none, or nobody asks it.
    pub inbox: Option<&'a dyn Inbox>,
    /// The time.
    pub now: Timestamp,
}

impl Judge<'_> {
    /// What the plugins, this machine and the inbox tell. The places and lines are those of the files as they are now.
    pub async fn judge(&self) -> Findings {
        let mut found = Findings::none(&self.config.file);
        if let Some((catalog, problems)) = self.plugins {
            self.ask_plugins(catalog, problems, &mut found).await;
        }
        found.warnings.extend(missing_programs(self.config));
        if let Some(inbox) = self.inbox {
            unseen::look(self.config, inbox, self.now, &mut found).await;
        }
        self.locate(&mut found);
        found
    }

    async fn ask_plugins(&self, catalog: &Catalog, problems: &[PluginProblem], found: &mut Findings) {
        let unusable = |problem: &PluginProblem| Problem {
            code: Code::BadPlugin,
            file: problem.path.clone(),
            place: None,
            path: String::new(),
            message: problem.message.clone(),
            source_line: None,
        };
        found.mistakes.extend(problems.iter().map(unusable));
        // A plugin that did not load is reported once, above.
        found.mistakes.extend(settings_mistakes(self.config, catalog).await);
        let keys = Keys::of_nothing();
        let previewer = Previewer { config: self.config, catalog, effects: self.effects, keys: &keys };
        let (told, refused) = (ungranted(self.config, catalog), refusals(&previewer, self.now).await);
        found.warnings.extend(without_repetition(told, refused));
    }

    /// Adds the places and the lines to what was found in files.
    fn locate(&self, found: &mut Findings) {
        let mut files: BTreeMap<PathBuf, Located> = BTreeMap::new();
        let ours = |file: &Path| {
            file == self.config.file || self.config.workspaces.values().any(|workspace| workspace.file == file)
        };
        let all = found.mistakes.iter_mut().chain(&mut found.warnings);
        for problem in all.filter(|problem| problem.source_line.is_none() && ours(&problem.file)) {
            let file = files.entry(problem.file.clone());
            let names = || self.config.secrets.keys();
            file.or_insert_with_key(|file| Located::read(file, names())).complete(problem);
        }
    }
}

/// What the grants lack, with the lines to add, and what the guard refuses of the same targets: each is told once. That a
/// secret has no place where it stands is no matter of grants.
fn without_repetition(mut ungranted: Vec<Problem>, refused: Vec<Problem>) -> Vec<Problem> {
    let is_same = |one: &Problem, other: &Problem| one.file == other.file && one.path.starts_with(&other.path);
    let is_misplaced = |problem: &Problem| problem.code == Code::MisplacedSecret;
    let is_outdone = |told: &Problem| {
        !is_misplaced(told) && refused.iter().any(|refused| is_misplaced(refused) && is_same(told, refused))
    };
    ungranted.retain(|told| !is_outdone(told));
    let is_told = |refused: &Problem| ungranted.iter().any(|told| is_same(told, refused));
    let untold: Vec<_> = refused.into_iter().filter(|refused| !is_told(refused)).collect();
    ungranted.into_iter().chain(untold).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(code: Code, path: &str) -> Problem {
        let (file, message) = (PathBuf::from("acme.yaml"), String::new());
        Problem { code, file, place: None, path: path.to_owned(), message, source_line: None }
    }

    #[test]
    fn what_would_be_refused_of_a_target_is_told_once() {
        let ungranted = vec![
            problem(Code::DeliveryRefused, "routes[0].deliver[0].with.webhook"),
            problem(Code::DeliveryRefused, "routes[0].deliver[1].with.subject"),
        ];
        let refused = vec![
            problem(Code::DeliveryRefused, "routes[0].deliver[0].with"),
            problem(Code::MisplacedSecret, "routes[0].deliver[1].with"),
            problem(Code::DeliveryRefused, "routes[0].deliver[2].with"),
        ];
        let found = without_repetition(ungranted, refused);
        let paths: Vec<&str> = found.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(
            paths,
            ["routes[0].deliver[0].with.webhook", "routes[0].deliver[1].with", "routes[0].deliver[2].with"]
        );
    }
}
