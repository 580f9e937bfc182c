//! What is wrong with the configuration that is looked at, as far as it shows while it is used.

use serde::{Deserialize, Serialize};

use super::Inquiry;
use crate::config::{Code, Problem};
use crate::send::preview::Previewer;
use crate::send::{refusals, settings_mistakes, ungranted};

/// What is wrong, as `switchbell check` prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedJson {
    /// What does not work.
    pub mistakes: Vec<ProblemJson>,
    /// What deserves a look.
    pub warnings: Vec<ProblemJson>,
    /// How many more mistakes there are.
    pub omitted: usize,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemJson {
    /// Its kind.
    pub code: String,
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The column, from 1.
    pub column: Option<usize>,
    /// The path in the file.
    pub path: String,
    /// What is wrong, and what to do.
    pub message: String,
}

impl From<&Problem> for ProblemJson {
    fn from(of: &Problem) -> Self {
        Self {
            code: of.code.as_str().to_owned(),
            file: of.file.display().to_string(),
            line: of.place.map(|place| place.line),
            column: of.place.map(|place| place.column),
            path: of.path.clone(),
            message: of.message.clone(),
        }
    }
}

impl Inquiry {
    /// What the plugins and the guard say of the configuration that is used: plugins that do not load and settings that a
    /// plugin does not take are mistakes, what would be refused is a warning. Files are not read.
    pub async fn check(&self) -> CheckedJson {
        let current = self.current();
        let (config, catalog) = (&*current.config, &current.catalog);
        let directory = &config.plugins.directory;
        let unloadable = self.not_loaded().await.into_iter().map(|(name, message)| Problem {
            code: Code::BadPlugin,
            file: directory.join(format!("{name}.wasm")),
            place: None,
            path: String::new(),
            message,
            source_line: None,
        });
        let mut mistakes: Vec<Problem> = unloadable.collect();
        mistakes.extend(settings_mistakes(config, catalog).await);
        let mut warnings = ungranted(config, catalog);
        let previewer = Previewer { config, catalog, effects: &self.effects, keys: &self.keys };
        let refused = refusals(&previewer, self.clock.now()).await;
        // What the grants lack is told already, with the lines to add.
        let is_told = |refused: &Problem| {
            warnings.iter().any(|told| told.file == refused.file && told.path.starts_with(&refused.path))
        };
        let untold: Vec<Problem> = refused.into_iter().filter(|refused| !is_told(refused)).collect();
        warnings.extend(untold);
        let json = |problems: &[Problem]| problems.iter().map(ProblemJson::from).collect();
        CheckedJson { mistakes: json(&mistakes), warnings: json(&warnings), omitted: 0 }
    }
}
