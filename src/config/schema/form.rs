//! What a text may look like: a pattern, or one of a few words.

use super::File;
use super::wire::{Many, Schema};
use super::written::Written;

/// A text in which variables may stand, piece by piece, as the operator's file is read (`super::super::variables`).
const PIECES: &str = r"(?:[^$]|\$\$|\$\{[A-Za-z_][A-Za-z0-9_]*(?::[-?][^}]*)?\}|\$(?![$\{]))*";
/// Looks ahead for something that is filled in, be it the `$` of `$$`.
const IS_FILLED_IN: &str = r"(?=[\s\S]*\$[$\{])";
/// Looks ahead for a variable.
const HAS_VARIABLE: &str = r"(?=[\s\S]*\$\{)";
/// Looks ahead for the absence of variables.
const NO_VARIABLE: &str = r"(?![\s\S]*\$\{)";

/// What a text may look like.
#[derive(Debug, Clone)]
pub(in crate::config) struct Form {
    fits: Fits,
    examples: &'static [&'static str],
    /// Whether a whole number without quotes fits too.
    numbers: bool,
}

#[derive(Debug, Clone)]
enum Fits {
    Any,
    /// A regular expression of ECMA-262, which the whole text matches.
    Pattern(String),
    /// One of these words, each with what it means.
    Words(Vec<(&'static str, &'static str)>),
}

impl Form {
    /// Any text.
    pub(in crate::config) const ANY: Self = Self { fits: Fits::Any, examples: &[], numbers: false };

    /// A text that matches the pattern as a whole.
    pub(in crate::config) fn pattern(pattern: impl Into<String>, examples: &'static [&'static str]) -> Self {
        Self { fits: Fits::Pattern(pattern.into()), examples, numbers: false }
    }

    /// A word of this type.
    pub(in crate::config) fn words<T: Words>() -> Self {
        let words = T::words().into_iter().map(|(word, _, about)| (word, about)).collect();
        Self { fits: Fits::Words(words), examples: &[], numbers: false }
    }

    /// The same, and a whole number.
    pub(in crate::config) fn or_number(self) -> Self {
        Self { numbers: true, ..self }
    }

    /// The schema of a value. `wanted` completes "… is wanted here".
    pub(in crate::config) fn schema(&self, wanted: &str, file: File) -> Schema {
        let message = format!("{wanted} is wanted here");
        let texts = self.texts(file);
        match &self.fits {
            Fits::Words(words) => {
                let schema = one_of_words(words, message);
                if file == File::Workspace {
                    schema
                } else {
                    Schema { any_of: vec![schema, variable()], ..Schema::default() }
                }
            }
            _ => Schema {
                types: if self.numbers { Many::List(vec!["string", "integer"]) } else { "string".into() },
                minimum: self.numbers.then_some(0),
                pattern: Some(texts),
                error_message: Some(message),
                examples: self.examples.iter().map(|example| Written::from(*example)).collect(),
                ..Schema::default()
            },
        }
    }

    /// The schema of a key.
    pub(in crate::config) fn schema_of_keys(&self, wanted: &str) -> Schema {
        let schema = self.schema(wanted, File::Workspace);
        Schema { types: "string".into(), minimum: None, ..schema }
    }

    /// The pattern of the texts that fit, variables included.
    fn texts(&self, file: File) -> String {
        match (&self.fits, file) {
            (Fits::Pattern(pattern), File::Server) => format!("^(?:{IS_FILLED_IN}{PIECES}|{pattern})$"),
            (Fits::Pattern(pattern), File::Workspace) => format!("^{NO_VARIABLE}(?:{pattern})$"),
            (_, File::Server) => format!("^{PIECES}$"),
            (_, File::Workspace) => format!("^{NO_VARIABLE}"),
        }
    }

    /// The regular expression that a text matches if it fits, without a word of variables; none where any text fits.
    #[cfg(test)]
    pub(in crate::config) fn bare_pattern(&self) -> Option<String> {
        match &self.fits {
            Fits::Any => None,
            Fits::Pattern(pattern) => Some(format!("^(?:{pattern})$")),
            Fits::Words(words) => {
                let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
                Some(format!("^(?:{})$", words.join("|")))
            }
        }
    }

    /// Texts that fit.
    #[cfg(test)]
    pub(in crate::config) fn examples(&self) -> Vec<&'static str> {
        match &self.fits {
            Fits::Words(words) => words.iter().map(|(word, _)| *word).collect(),
            _ => self.examples.to_vec(),
        }
    }
}

fn one_of_words(words: &[(&'static str, &'static str)], message: String) -> Schema {
    Schema {
        types: "string".into(),
        words: words.iter().map(|(word, _)| *word).collect(),
        words_about: words.iter().map(|(_, about)| *about).collect(),
        error_message: Some(message),
        examples: words.iter().take(1).map(|(word, _)| Written::from(*word)).collect(),
        ..Schema::default()
    }
}

/// Said of a text that is neither what is wanted nor has a variable.
pub(super) const VARIABLE: &str = "a value, or a variable such as `${NAME}`, is wanted here";

/// A text with a variable, where something else than a text is wanted.
fn variable() -> Schema {
    Schema {
        types: "string".into(),
        pattern: Some(format!("^{HAS_VARIABLE}{PIECES}$")),
        pattern_error_message: Some(VARIABLE.to_owned()),
        ..Schema::default()
    }
}

/// The schema, and in the operator's file a text with a variable in its place.
pub(in crate::config) fn or_variable(schema: Schema, file: File) -> Schema {
    match file {
        File::Workspace => schema,
        File::Server => {
            let Schema { pattern, .. } = variable();
            let types = schema.types.list().into_iter().chain(["string"]).collect();
            Schema { types: Many::List(types), pattern, ..schema }
        }
    }
}

/// The pattern of texts without a variable.
pub(in crate::config) fn no_variable() -> String {
    format!("^{NO_VARIABLE}")
}

/// A type whose values are written as one of a few words.
pub(in crate::config) trait Words: Copy + 'static {
    /// Every word, what it stands for, and what it means, in a full sentence.
    fn words() -> Vec<(&'static str, Self, &'static str)>;
}

/// What the word stands for.
pub(in crate::config) fn word<T: Words>(text: &str) -> Option<T> {
    T::words().into_iter().find(|(word, ..)| *word == text).map(|(_, value, _)| value)
}

/// The pattern of a word whatever the case of its letters.
fn any_case(word: &str) -> String {
    let letter = |c: char| {
        if c.is_ascii_alphabetic() {
            format!("[{}{}]", c.to_ascii_lowercase(), c.to_ascii_uppercase())
        } else {
            c.to_string()
        }
    };
    word.chars().map(letter).collect()
}

/// The pattern of any of these words, whatever the case of their letters.
pub(in crate::config) fn one_of(words: &[&str]) -> String {
    words.iter().map(|word| any_case(word)).collect::<Vec<_>>().join("|")
}
