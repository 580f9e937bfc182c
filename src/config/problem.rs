//! What is wrong with a configuration, for a person to read.

use std::fmt;
use std::path::{Path, PathBuf};

use super::{Code, Place};

/// One mistake, or one thing that looks like one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Of what kind it is.
    pub code: Code,
    /// The file, as a person would name it.
    pub file: PathBuf,
    /// Where in the file; none when it is about the file as a whole.
    pub place: Option<Place>,
    /// The path in the file, such as `routes[2].deliver[0].plugin`; empty for the whole.
    pub path: String,
    /// What is wrong and what to write instead. Never holds a secret.
    pub message: String,
    /// The line at that place.
    pub source_line: Option<SourceLine>,
}

/// A line of a file, fit to be shown: short, without control characters, and with what may be a credential masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLine {
    /// The text.
    pub text: String,
    /// How many characters stand before the place in question.
    pub caret: usize,
}

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The configuration cannot be used.
    Error,
    /// It can be used, and probably does not do what was meant.
    Warning,
}

impl Severity {
    /// The word that programs and people read.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

impl Problem {
    /// Its file and place, as editors and terminals find them: `FILE:LINE:COLUMN:`.
    fn locate(&self, out: &mut impl fmt::Write) -> fmt::Result {
        write!(out, "{}:", self.file.display())?;
        self.place.map_or(Ok(()), |place| write!(out, "{}:{}:", place.line, place.column))
    }

    /// The path in the file and what is wrong.
    fn say(&self, out: &mut impl fmt::Write) -> fmt::Result {
        if !self.path.is_empty() {
            write!(out, " {}:", self.path)?;
        }
        write!(out, " {}", self.message)
    }

    /// The line in question and a caret below its place.
    fn point(&self, out: &mut impl fmt::Write) -> fmt::Result {
        if let (Some(place), Some(line)) = (self.place, &self.source_line) {
            writeln!(out, "{:5} | {}", place.line, line.text)?;
            writeln!(out, "      | {}^", " ".repeat(line.caret))?;
        }
        Ok(())
    }

    /// As `switchbell check` shows it (see [`Told`]).
    pub fn told(&self, severity: Severity) -> String {
        let file = self.file.display().to_string();
        let line = self.source_line.as_ref().map(|line| (line.text.as_str(), line.caret));
        let (code, path, message) = (self.code.as_str(), self.path.as_str(), self.message.as_str());
        let place = self.place.map(|place| (place.line, place.column));
        Told { severity: severity.as_str(), code, file: &file, place, path, message, line }.to_string()
    }
}

/// One thing that was found, as `switchbell check` shows it: `FILE:LINE:COLUMN: error: PATH: MESSAGE [CODE]`, and below it the
/// line with a caret.
#[derive(Debug, Clone, Copy)]
pub struct Told<'a> {
    /// How bad it is.
    pub severity: &'a str,
    /// Of what kind it is.
    pub code: &'a str,
    /// The file.
    pub file: &'a str,
    /// Line and column, from 1.
    pub place: Option<(usize, usize)>,
    /// The path in the file; empty for the whole.
    pub path: &'a str,
    /// What is wrong and what to write instead.
    pub message: &'a str,
    /// The line, and how many of its characters stand before the place.
    pub line: Option<(&'a str, usize)>,
}

impl fmt::Display for Told<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:", self.file)?;
        if let Some((line, column)) = self.place {
            write!(out, "{line}:{column}:")?;
        }
        write!(out, " {}:", self.severity)?;
        if !self.path.is_empty() {
            write!(out, " {}:", self.path)?;
        }
        writeln!(out, " {} [{}]", self.message, self.code)?;
        if let (Some((number, _)), Some((line, caret))) = (self.place, self.line) {
            writeln!(out, "{number:5} | {line}")?;
            writeln!(out, "      | {}^", " ".repeat(caret))?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.locate(out)?;
        self.say(out)?;
        writeln!(out)?;
        self.point(out)
    }
}

/// Mistakes and warnings together: file by file, `first` before the others, each from top to bottom.
pub fn in_order<'a>(first: &Path, mistakes: &'a [Problem], warnings: &'a [Problem]) -> Vec<(Severity, &'a Problem)> {
    let mistakes = mistakes.iter().map(|problem| (Severity::Error, problem));
    let mut all: Vec<_> = mistakes.chain(warnings.iter().map(|problem| (Severity::Warning, problem))).collect();
    all.sort_by(|(how, one), (how_other, other)| {
        let key = |how, problem: &'a Problem| (problem.file != first, &problem.file, problem.place, how);
        key(*how, one).cmp(&key(*how_other, other))
    });
    all
}

/// Every mistake of a configuration: the operator's file first, then the workspaces by name, each from top to bottom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    /// The mistakes; never empty.
    pub mistakes: Vec<Problem>,
    /// What is no mistake but deserves a look.
    pub warnings: Vec<Problem>,
    /// How many more mistakes there are than are kept for one file.
    pub omitted: usize,
    /// Whether a file of the configuration could not be read, so that what it says was not judged.
    pub is_unread: bool,
}

impl fmt::Display for Problems {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for mistake in &self.mistakes {
            write!(out, "{mistake}")?;
        }
        if self.omitted > 0 {
            writeln!(out, "and {} more", self.omitted)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
