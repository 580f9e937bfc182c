//! The text of one file, and the report about it: every problem with the line it stands on.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::code::Said;
use super::files::Files;
use super::node::{At, Node};
use super::scalar::harmless;
use super::{Place, Problem, SourceLine, mask};

/// Most mistakes, and most warnings, kept for one file: nobody reads more at once.
pub(super) const PROBLEMS_MAX: usize = 500;
/// Longest line that is shown, in characters.
const LINE_CHARS_MAX: usize = 110;
/// Longest line of which a part is shown, in bytes: a longer one was not written by a person, and each look at it costs.
const LINE_BYTES_MAX: usize = 16 << 10;
/// What stands for a masked text.
const MASK: &str = "***";

/// A file and what was found in it.
#[derive(Debug)]
pub(super) struct Report {
    file: PathBuf,
    text: String,
    /// The byte ranges of the lines, without their ends.
    lines: Vec<(usize, usize)>,
    /// The names of secrets that are known before the file is read.
    secrets: BTreeSet<String>,
    /// The places of texts that are never shown, in the order of the file; none until the file was parsed.
    hidden: Option<Vec<(Place, Place)>>,
    /// What is wrong, in the order it was found.
    pub mistakes: Vec<Problem>,
    /// What deserves a look.
    pub warnings: Vec<Problem>,
    /// How many more mistakes were found than are kept.
    pub omitted: usize,
    /// Whether the file could not be read at all.
    pub is_unread: bool,
    /// What was read for it, itself included.
    pub files: Files,
}

impl Report {
    /// A report about a file with this text. `file` is the name a person would use.
    pub(super) fn new(file: PathBuf, text: String) -> Self {
        let lines = line_ranges(&text);
        let (mistakes, warnings) = (Vec::new(), Vec::new());
        let files = Files::default();
        Self {
            file,
            text,
            lines,
            secrets: BTreeSet::new(),
            hidden: None,
            mistakes,
            warnings,
            omitted: 0,
            is_unread: false,
            files,
        }
    }

    /// The file's name.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// The file's text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The lines of the file, without their ends.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|&(start, end)| self.text.get(start..end))
    }

    /// Tells the report the names of secrets, which may be shown where a secret is asked for.
    pub(super) fn know_secrets<'n>(&mut self, names: impl Iterator<Item = &'n str>) {
        self.secrets.extend(names.map(str::to_owned));
    }

    /// Tells the report what stands where, so that it can show lines without what is secret in them.
    pub(super) fn know(&mut self, root: &Node) {
        self.hidden = Some(mask::hidden(root, &self.secrets));
    }

    /// Whether further mistakes are only counted.
    pub(super) fn is_full(&self) -> bool {
        self.mistakes.len() >= PROBLEMS_MAX
    }

    /// Reports a mistake in one place.
    pub(super) fn mistake(&mut self, at: &At, said: impl Into<Said>) {
        if self.is_full() {
            self.omitted += 1;
            return;
        }
        let problem = self.problem(at, said.into());
        self.mistakes.push(problem);
    }

    /// Reports a mistake of the file as a whole.
    pub(super) fn mistake_in_whole(&mut self, said: impl Into<Said>) {
        let (file, Said { code, text }) = (self.file.clone(), said.into());
        self.mistakes.push(Problem { code, file, place: None, path: String::new(), message: text, source_line: None });
    }

    /// Reports what is no mistake but deserves a look.
    pub(super) fn warning(&mut self, at: &At, said: impl Into<Said>) {
        if self.warnings.len() < PROBLEMS_MAX {
            let problem = self.problem(at, said.into());
            self.warnings.push(problem);
        }
    }

    fn problem(&self, at: &At, Said { code, text }: Said) -> Problem {
        let (file, path) = (self.file.clone(), at.path.to_string());
        let place = (at.place != Place::NOWHERE).then_some(at.place);
        let source_line = place.and_then(|place| self.source_line(place));
        Problem { code, file, place, path, message: text, source_line }
    }

    fn line(&self, index: usize) -> Option<&str> {
        let &(start, end) = self.lines.get(index)?;
        self.text.get(start..end)
    }

    /// The line at a place, fit to be shown.
    pub(super) fn source_line(&self, place: Place) -> Option<SourceLine> {
        let line = self.line(place.line.checked_sub(1)?)?;
        if line.trim().is_empty() || line.len() > LINE_BYTES_MAX {
            return None;
        }
        let mut masked = vec![false; line.chars().count()];
        match &self.hidden {
            Some(hidden) => mask::places(&mut masked, line, place.line, hidden),
            None if self.is_guarded(place.line - 1) => mask::value(&mut masked, line),
            None => {}
        }
        mask::urls(&mut masked, line);
        Some(shown(line, &masked, place.column.saturating_sub(1)))
    }

    /// Whether a line of a file that could not be parsed stands under a key that may hold a credential, judged by its
    /// indentation.
    fn is_guarded(&self, index: usize) -> bool {
        let mut indentation = usize::MAX;
        for line in (0..=index).rev().filter_map(|index| self.line(index)) {
            let depth = line.chars().take_while(|c| matches!(c, ' ' | '\t')).count();
            if line.trim().is_empty() || (indentation != usize::MAX && depth >= indentation) {
                continue;
            }
            let own = indentation == usize::MAX;
            indentation = depth;
            let words = if own { line } else { line.split(':').next().unwrap_or(line) };
            let mut words = words.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
            if words
                .any(|word| matches!(word, "secrets" | "env" | "with" | "auth" | "run") || mask::names_credential(word))
            {
                return true;
            }
            if indentation == 0 {
                break;
            }
        }
        false
    }
}

/// Splits as YAML does (§5.4): CR LF, LF and CR each end a line.
fn line_ranges(text: &str) -> Vec<(usize, usize)> {
    let mut lines = Vec::new();
    let mut start = 0;
    let bytes = text.as_bytes();
    for (index, &byte) in bytes.iter().enumerate() {
        let in_pair = byte == b'\n' && index > 0 && bytes.get(index - 1) == Some(&b'\r');
        if in_pair {
            start = index + 1;
        } else if matches!(byte, b'\n' | b'\r') {
            lines.push((start, index));
            start = index + 1;
        }
    }
    lines.push((start, text.len()));
    lines
}

/// The line with its masked runs replaced, cut around the caret.
fn shown(line: &str, masked: &[bool], column: usize) -> SourceLine {
    let mut text = String::new();
    let mut caret = None;
    let mut in_mask = false;
    for (index, (c, &is_masked)) in line.chars().zip(masked).enumerate() {
        if index == column && !(is_masked && in_mask) {
            caret = Some(text.chars().count());
        }
        if index == column && is_masked && in_mask {
            caret = Some(text.chars().count() - MASK.len());
        }
        match (is_masked, in_mask) {
            (true, false) => text.push_str(MASK),
            (false, _) => text.push(if c == '\t' { ' ' } else { c }),
            (true, true) => {}
        }
        in_mask = is_masked;
    }
    let caret = caret.unwrap_or_else(|| text.chars().count());
    let text = harmless(&text).into_owned();
    if text.chars().count() <= LINE_CHARS_MAX {
        return SourceLine { text, caret };
    }
    let skipped = caret.saturating_sub(LINE_CHARS_MAX * 2 / 3);
    let mut cut: String = text.chars().skip(skipped).take(LINE_CHARS_MAX).collect();
    if text.chars().nth(skipped + LINE_CHARS_MAX).is_some() {
        cut.push('…');
    }
    if skipped == 0 {
        return SourceLine { text: cut, caret };
    }
    SourceLine { text: format!("…{cut}"), caret: caret - skipped + 1 }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn check(text: &str, line: usize, column: usize, expected: &str) {
        let mut report = Report::new("x.yaml".into(), text.to_owned());
        let _parsed = parse::parse(&mut report);
        let shown = report.source_line(Place { line, column }).unwrap();
        assert_eq!(format!("{}\n{}^", shown.text, " ".repeat(shown.caret)), expected);
    }

    #[test]
    fn a_caret_stands_under_the_place() {
        check("poll:\r\n  bäse: 1s\r\n", 2, 9, "  bäse: 1s\n        ^");
    }

    #[test]
    fn credentials_are_masked_and_the_caret_follows() {
        check(
            "secrets: { a: { env: HUNTER2, in: url } }\n",
            1,
            31,
            "secrets: { a: { env: ***, in: url } }\n                          ^",
        );
        check("secrets:\n  a: { value: hunter2 }\n", 2, 17, "  a: { value: *** }\n              ^");
        check(
            "commands: { a: { env: { KEY: 'hunter 2' } } }\n",
            1,
            18,
            "commands: { a: { env: { KEY: *** } } }\n                 ^",
        );
        check(
            "secrets: { a: { command: [pass, hunter2], weak: true } }\n",
            1,
            1,
            "secrets: { a: { command: [***, ***], weak: true } }\n^",
        );
        check(
            "secrets: { a: { oauth: { grant: client_credentials, client_id: bell, client_secret: { env: HUNTER2 } } } }\n",
            1,
            1,
            "secrets: { a: { oauth: { grant: client_credentials, client_id: bell, client_secret: { env: *** } } } }\n^",
        );
        check(
            "secrets: { a: { oauth: { token_url: 'https://u:p@a.example/t/hunter2', issuer: hunter2hunter2hunter2 } } }\n",
            1,
            1,
            "secrets: { a: { oauth: { token_url: 'https://***@a.example/***', issuer: *** } } }\n^",
        );
        check(
            "secrets: { a: { oauth: { key: hunter2, hint: hunter2 } } }\n",
            1,
            1,
            "secrets: { a: { oauth: { key: ***, hint: *** } } }\n^",
        );
        check("mail: { relay: u:p@a.example, password: hunter2 }\n", 1, 1, "mail: { relay: ***, password: *** }\n^");
        check("mail: { relay: 'a.example:25', user: bell }\n", 1, 1, "mail: { relay: 'a.example:25', user: bell }\n^");
        check("with: { hook: abcdefghijklmnop, to: x y }\n", 1, 1, "with: { hook: ***, to: x y }\n^");
        check("a: { token: hunter2 }\n", 1, 1, "a: { token: *** }\n^");
    }

    #[test]
    fn names_and_paths_are_no_credentials() {
        check(
            "secrets: { slack-ops-production: { env: SLACK_OPS, in: url }, b: { file: /run/secrets/slack_webhook_production } }\n",
            1,
            1,
            "secrets: { slack-ops-production: { env: SLACK_OPS, in: url }, b: { file: /run/secrets/slack_webhook_production…\n^",
        );
        check(
            "secrets: { a: { file: ./keys/slack-2026.pem } }\n",
            1,
            1,
            "secrets: { a: { file: ./keys/slack-2026.pem } }\n^",
        );
        check("secrets: { a: { file: aGVsbG8/d29ybGQ } }\n", 1, 1, "secrets: { a: { file: *** } }\n^");
        check("secrets: { a: { file: /x7f9k2m4p6q8r1s3t5 } }\n", 1, 1, "secrets: { a: { file: *** } }\n^");
        check("secrets: { a: { file: hunter2 } }\n", 1, 1, "secrets: { a: { file: *** } }\n^");
        let used = |name: &str| {
            format!("secrets: {{ relay-of-production: {{}} }}\nmail: {{ password: {{ secret: {name} }} }}\n")
        };
        check(&used("relay-of-production"), 2, 1, "mail: { password: { secret: relay-of-production } }\n^");
        check(&used("relay-of-prodution"), 2, 1, "mail: { password: { secret: relay-of-prodution } }\n^");
        check(&used("hunter2"), 2, 1, "mail: { password: { secret: *** } }\n^");
        check("with: { hook: { secret: short-name } }\n", 1, 1, "with: { hook: { secret: short-name } }\n^");
        check("with: { hook: { secret: hunter2hunter2hunter2 } }\n", 1, 1, "with: { hook: { secret: *** } }\n^");
    }

    #[test]
    fn urls_are_shown_up_to_their_host() {
        check("url: https://u:p@a.example/key?x=1\n", 1, 1, "url: https://***@a.example/***\n^");
        check("url: 'http://a.example'\n", 1, 1, "url: 'http://a.example'\n^");
        check("r: acme://n/m?x=1\n", 1, 1, "r: acme://n/m?***\n^");
        check("s: postgres://u:p@h/d\n", 1, 1, "s: postgres://***@h/d\n^");
        check("hosts: [u:p@a.example, a.example/key, b.example]\n", 1, 1, "hosts: [***, ***, b.example]\n^");
        check("u: [http://[::1]/key, x]\n", 1, 1, "u: [http://[::1]/***, x]\n^");
    }

    #[test]
    fn a_file_that_cannot_be_parsed_shows_no_value_under_a_guarded_key() {
        check("secrets:\n  a:\n    env: hunter2: x\n", 3, 17, "    env: ***\n         ^");
        check("name: a: b\n", 1, 8, "name: a: b\n       ^");
    }

    #[test]
    fn long_lines_are_cut_around_the_caret() {
        let text = format!("a: [{}]\n", "x, ".repeat(100));
        let mut report = Report::new("x.yaml".into(), text);
        let _parsed = parse::parse(&mut report);
        let shown = report.source_line(Place { line: 1, column: 200 }).unwrap();
        assert!(shown.text.chars().count() <= LINE_CHARS_MAX + 2);
        assert_eq!(shown.text.chars().nth(shown.caret), Some('x'));
    }
}
