//! What is wrong with the configuration that is looked at, as far as it shows while it is used.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Inquiry;
use crate::config::{Problem, Severity, Told};
use crate::findings::{Findings, Judge};
use crate::wasm::PluginProblem;

/// What was found, as `switchbell check --json` prints it (docs/check.md).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckedJson {
    /// Errors and warnings, file by file, each from top to bottom.
    pub findings: Vec<FindingJson>,
    /// How many errors there are, with those that are omitted.
    pub errors: usize,
    /// How many warnings there are.
    pub warnings: usize,
    /// How many more errors there are than are listed.
    pub omitted: usize,
    /// What was not judged.
    pub not_judged: Vec<NotJudgedJson>,
}

/// One error or warning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FindingJson {
    /// `error` or `warning`.
    pub severity: String,
    /// Its kind.
    pub code: String,
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The column, from 1, in characters.
    pub column: Option<usize>,
    /// The path in the file; empty for the whole.
    pub path: String,
    /// What is wrong, and what to do.
    pub message: String,
    /// The line, fit to be shown.
    pub source_line: Option<String>,
    /// How many characters of it stand before the place.
    pub caret: Option<usize>,
}

/// Something that was not judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NotJudgedJson {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

impl FindingJson {
    /// As people are shown it.
    pub fn told(&self) -> String {
        let Self { severity, code, file, path, message, .. } = self;
        let line = self.source_line.as_deref().zip(self.caret);
        Told { severity, code, file, place: self.line.zip(self.column), path, message, line }.to_string()
    }
}

impl From<(Severity, &Problem)> for FindingJson {
    fn from((severity, of): (Severity, &Problem)) -> Self {
        Self {
            severity: severity.as_str().to_owned(),
            code: of.code.as_str().to_owned(),
            file: of.file.display().to_string(),
            line: of.place.map(|place| place.line),
            column: of.place.map(|place| place.column),
            path: of.path.clone(),
            message: of.message.clone(),
            source_line: of.source_line.as_ref().map(|line| line.text.clone()),
            caret: of.source_line.as_ref().map(|line| line.caret),
        }
    }
}

impl From<&Findings> for CheckedJson {
    fn from(found: &Findings) -> Self {
        let not_judged = found.not_judged.iter();
        Self {
            findings: found.in_order().into_iter().map(FindingJson::from).collect(),
            errors: found.mistakes.len() + found.omitted,
            warnings: found.warnings.len(),
            omitted: found.omitted,
            not_judged: not_judged.map(|it| NotJudgedJson { what: it.what.clone(), why: it.why.clone() }).collect(),
        }
    }
}

impl Inquiry {
    /// What the plugins, the machine and the inbox say of the configuration that is used. What its files say was told when they
    /// were read; places and lines are those of the files as they are now.
    pub async fn check(&self) -> CheckedJson {
        let current = self.current();
        let (config, catalog) = (&*current.config, &current.catalog);
        let directory = &config.plugins.directory;
        let not_loaded = self.not_loaded().await.into_iter();
        let problems: Vec<PluginProblem> = not_loaded
            .map(|(name, message)| PluginProblem { path: directory.join(format!("{name}.wasm")), message })
            .collect();
        let judge = Judge {
            config,
            plugins: Some((catalog, &problems)),
            effects: &self.effects,
            inbox: self.inbox.as_deref(),
            now: self.clock.now(),
        };
        CheckedJson::from(&judge.judge().await)
    }
}
