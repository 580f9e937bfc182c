//! Checking settings: every mistake at once, each with its place and its remedy.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::fields::{Field, Fields};
use crate::types::Problem;

/// Settings that are being checked. `path`s are JSON Pointers (RFC 6901) into them.
#[derive(Debug)]
pub struct Checks {
    /// What was written.
    pub fields: Fields,
    problems: Vec<Problem>,
}

impl Checks {
    /// Reads settings so many levels deep; see [`Fields::read`].
    ///
    /// # Errors
    /// They are no JSON object.
    pub fn read(settings: &str, depth: u8) -> Result<Self, Vec<Problem>> {
        match Fields::read(settings.as_bytes(), depth) {
            Ok(fields) => Ok(Self { fields, problems: Vec::new() }),
            Err(error) => Err(vec![Problem {
                path: String::new(),
                message: format!("write settings by name, as a JSON object: {error}"),
            }]),
        }
    }

    /// Whether the setting is there.
    pub fn has(&self, name: &str) -> bool {
        self.fields.get(name).is_some()
    }

    /// Notes a mistake.
    pub fn refuse(&mut self, path: &str, message: impl Into<String>) {
        self.problems.push(Problem { path: path.to_owned(), message: message.into() });
    }

    /// Notes each setting that is none of the known ones.
    #[inline(never)]
    pub fn refuse_unknown(&mut self, known: &[&str]) {
        let names: Vec<String> = self.fields.iter().map(|(name, _)| name.to_owned()).collect();
        for name in names.iter().filter(|name| !known.contains(&name.as_str())) {
            let meant = did_you_mean(name, known);
            self.refuse(&pointer(&[name]), format!("unknown setting {name:?}{meant} (known: {})", known.join(", ")));
        }
    }

    /// The setting as text, if it is there and good.
    pub fn text(&mut self, name: &str, check: impl Fn(&str) -> Result<(), String>) -> Option<String> {
        self.checked(name, &check)
    }

    #[inline(never)]
    fn checked(&mut self, name: &str, check: &dyn Fn(&str) -> Result<(), String>) -> Option<String> {
        let checked = match self.fields.get(name)? {
            Field::Text(text) => check(text).map(|()| text.clone()),
            other => Err(format!("write text, not {}", other.kind())),
        };
        checked.map_err(|message| self.refuse(&pointer(&[name]), message)).ok()
    }

    /// The setting as one of some words, if it is there and good.
    #[inline(never)]
    pub fn word(&mut self, name: &str, known: &[&str]) -> Option<String> {
        self.text(name, |word| {
            let unknown = || format!("not {word:?}{}: write {}", did_you_mean(word, known), known.join(" or "));
            if known.contains(&word) { Ok(()) } else { Err(unknown()) }
        })
    }

    /// What was read, if there was no mistake.
    ///
    /// # Errors
    /// Every mistake.
    #[inline(never)]
    pub fn end<T>(self, read: Option<T>) -> Result<T, Vec<Problem>> {
        match read {
            Some(read) if self.problems.is_empty() => Ok(read),
            _ => Err(self.problems),
        }
    }
}

/// The JSON Pointer of these names, one below the other.
///
/// ```
/// assert_eq!(switchbell_kit::settings::pointer(&["headers", "a/b~c"]), "/headers/a~1b~0c");
/// ```
#[inline(never)]
pub fn pointer(names: &[&str]) -> String {
    names.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect()
}

/// How many letters may be wrong in a word that is near to another: two that changed places are two.
const NEAR_MAX: usize = 2;

/// `: did you mean "channel"?` where one of the words is near, else nothing.
#[inline(never)]
pub fn did_you_mean(word: &str, known: &[&str]) -> String {
    let near = known.iter().map(|known| (distance(word, known), known)).min();
    match near {
        Some((distance, known)) if distance <= NEAR_MAX && distance < known.len() => {
            format!(": did you mean {known:?}?")
        }
        _ => String::new(),
    }
}

/// How many letters have to be put in, left out or changed to get from one word to the other (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    // Words that are so long are not near to any that is known.
    if from.len() > 64 {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (line, letter) in from.chars().enumerate() {
        let mut left = line + 1;
        let mut above_left = line;
        for (cell, other) in row.iter_mut().skip(1).zip(to.chars()) {
            let changed = above_left + usize::from(!letter.eq_ignore_ascii_case(&other));
            above_left = *cell;
            left = changed.min(left + 1).min(*cell + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = line + 1;
        }
    }
    row.last().copied().unwrap_or(usize::MAX)
}

/// Says in a reason what is wrong with settings that passed no check.
#[inline(never)]
pub fn invalid(problems: &[Problem]) -> String {
    match problems {
        [] => "the settings are not valid".to_owned(),
        [first, ..] => format!("the settings are not valid: {}: {}", first.path, first.message),
    }
}

#[cfg(test)]
mod tests {
    use super::{Checks, did_you_mean, distance};

    #[test]
    fn a_word_that_is_near_is_offered() {
        let known = ["title", "level", "source", "subject"];
        let cases = [
            ("titel", ": did you mean \"title\"?"),
            ("Title", ": did you mean \"title\"?"),
            ("subjekt", ": did you mean \"subject\"?"),
            ("lvl", ": did you mean \"level\"?"),
            ("colour", ""),
            ("", ""),
        ];
        for (word, expected) in cases {
            assert_eq!(did_you_mean(word, &known), expected, "{word}");
        }
    }

    #[test]
    fn a_distance_counts_letters() {
        let cases = [("", "", 0), ("a", "", 1), ("", "ab", 2), ("kitten", "sitting", 3), ("größe", "grosse", 3)];
        for (from, to, expected) in cases {
            assert_eq!(distance(from, to), expected, "{from} {to}");
            assert_eq!(distance(to, from), expected, "{to} {from}");
        }
    }

    #[test]
    fn every_mistake_is_kept() {
        let mut checks = Checks::read(r#"{"format":"standart","url":7,"ulr":1}"#, 1).unwrap();
        checks.refuse_unknown(&["format", "url"]);
        assert_eq!(checks.word("format", &["standard", "cloudevents"]), None);
        assert_eq!(checks.text("url", |_| Ok(())), None);
        assert_eq!(checks.text("absent", |_| Ok(())), None);
        let problems = checks.end(Some(())).unwrap_err();
        let found: alloc::vec::Vec<_> =
            problems.iter().map(|problem| (problem.path.as_str(), problem.message.as_str())).collect();
        let expected = [
            ("/ulr", "unknown setting \"ulr\": did you mean \"url\"? (known: format, url)"),
            ("/format", "not \"standart\": did you mean \"standard\"?: write standard or cloudevents"),
            ("/url", "write text, not a number"),
        ];
        assert_eq!(found, expected);
    }
}
