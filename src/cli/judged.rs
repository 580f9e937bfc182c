//! What was found of rules, as checks of other people's servers print it: 80 columns for people, JSON for programs.

use serde::Serialize;

use crate::fetch::conformance::{Finding, Verdict};

/// Columns of the report.
const COLUMNS: usize = 80;

/// Columns before what was seen of a rule that is kept.
const MARGIN: usize = 32;

/// Columns before the lines that say more: few, so that a line of code fits behind them.
const INDENT: usize = 4;

/// What was found, one line for each rule that is kept. Where nothing could be seen, a list of it would hide why.
pub(super) fn findings(findings: &[Finding], with_not_seen: bool) -> String {
    let mut text = String::new();
    let mut remedy_before = None;
    for finding in findings {
        if finding.verdict != Verdict::NotSeen || with_not_seen {
            text.push_str(&told(finding, remedy_before));
            remedy_before = finding.remedy.or(remedy_before);
        }
    }
    text
}

/// How many rules were kept and not, in words.
pub(super) fn counts(count: impl Fn(Verdict) -> usize) -> String {
    let warnings = several(count(Verdict::Warning), "warning");
    let (kept, broken, not_seen) = (count(Verdict::Pass), count(Verdict::Broken), count(Verdict::NotSeen));
    format!("{kept} kept, {broken} broken, {warnings}, {not_seen} not seen")
}

/// What follows from how many MUSTs are broken and how many rules were not seen.
pub(super) fn conclusion(broken: usize, not_seen: usize) -> String {
    match (broken, not_seen) {
        (0, 0) => "No MUST is broken.".to_owned(),
        (0, _) => "No MUST that was seen is broken.".to_owned(),
        (1, _) => "1 MUST is broken.".to_owned(),
        (broken, _) => format!("{broken} MUSTs are broken."),
    }
}

/// `count` things.
pub(super) fn several(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn told(finding: &Finding, remedy_before: Option<&str>) -> String {
    let word = match finding.verdict {
        Verdict::Pass => "kept",
        Verdict::NotSeen => "not seen",
        Verdict::Warning => "warning",
        Verdict::Broken => "BROKEN",
    };
    let rule = finding.rule;
    let head = format!("{word:<9}{:<23}", rule.id);
    let seen = finding.seen.iter();
    if finding.verdict <= Verdict::Pass {
        let first = seen.map(String::as_str).next().unwrap_or_default();
        return format!("{head}{}\n", cut(first, COLUMNS - MARGIN));
    }
    let mut text = format!("{head}{}\n", rule.level.as_str());
    let labelled = |label: &str, what: &str| wrapped(&format!("{label:<8}{what}"), INDENT, INDENT + 8);
    text.push_str(&labelled("rule", rule.wording));
    text.extend(seen.map(|seen| labelled("seen", seen)));
    let remedy = finding.remedy.map(|remedy| if remedy_before == Some(remedy) { "as above" } else { remedy });
    text.extend(remedy.map(|remedy| labelled("remedy", remedy)));
    text
}

fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    text.chars().take(chars_max - 1).chain(['…']).collect()
}

/// Lines of at most [`COLUMNS`], the first indented by `first`, the others by `rest`. A word that is longer is broken.
pub(super) fn wrapped(text: &str, first: usize, rest: usize) -> String {
    let mut lines = String::new();
    let (mut line, mut room) = (" ".repeat(first), COLUMNS - first);
    for word in text.split_inclusive(' ') {
        let chars = word.trim_end().chars().count();
        if chars > room && chars <= COLUMNS - rest {
            lines.push_str(&format!("{}\n", line.trim_end()));
            (line, room) = (" ".repeat(rest), COLUMNS - rest);
        }
        for next in word.chars() {
            if room == 0 && next != ' ' {
                lines.push_str(&format!("{}\n", line.trim_end()));
                (line, room) = (" ".repeat(rest), COLUMNS - rest);
            }
            if room > 0 {
                line.push(next);
                room -= 1;
            }
        }
    }
    format!("{lines}{}\n", line.trim_end())
}

/// One rule in a report for programs.
#[derive(Serialize)]
pub(super) struct FindingJson<'a> {
    id: &'a str,
    level: &'a str,
    rule: &'a str,
    verdict: &'a str,
    seen: &'a [String],
    remedy: Option<&'a str>,
}

impl<'a> From<&'a Finding> for FindingJson<'a> {
    fn from(of: &'a Finding) -> Self {
        Self {
            id: of.rule.id,
            level: of.rule.level.as_str(),
            rule: of.rule.wording,
            verdict: of.verdict.as_str(),
            seen: &of.seen,
            remedy: of.remedy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_the_columns_and_lose_nothing() {
        let text = format!("seen    {} a {}", "word ".repeat(40), "x".repeat(200));
        let lines = wrapped(&text, INDENT, INDENT + 8);
        assert!(lines.lines().all(|line| line.chars().count() <= COLUMNS), "{lines}");
        let without_spaces = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        assert_eq!(without_spaces(&lines), without_spaces(&text));
        assert!(lines.lines().skip(1).all(|line| line.starts_with(&" ".repeat(INDENT + 8)) && !line.ends_with(' ')));
    }
}
