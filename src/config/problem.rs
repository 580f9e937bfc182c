//! What is wrong with a configuration, for a person to read.

use std::fmt;
use std::path::PathBuf;

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

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:", self.file.display())?;
        if let Some(place) = self.place {
            write!(out, "{}:{}:", place.line, place.column)?;
        }
        if !self.path.is_empty() {
            write!(out, " {}:", self.path)?;
        }
        writeln!(out, " {}", self.message)?;
        if let (Some(place), Some(line)) = (self.place, &self.source_line) {
            writeln!(out, "{:5} | {}", place.line, line.text)?;
            writeln!(out, "      | {}^", " ".repeat(line.caret))?;
        }
        Ok(())
    }
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
