//! What the check prints: 80 columns for people, JSON for programs.

use serde::Serialize;

use crate::fetch::conformance::{Finding, READS_MAX, Report, TIME_MAX, Verdict};
use crate::telemetry::rounded;

/// Columns of the report.
const COLUMNS: usize = 80;

/// Columns before what was seen of a rule that is kept.
const MARGIN: usize = 32;

/// Columns before the lines that say more: few, so that a line of code fits behind them.
const INDENT: usize = 4;

/// The report, one line for each rule that is kept.
pub(super) fn for_people(resource: &str, report: &Report) -> String {
    let revision = report.revision.as_ref().map_or_else(String::new, |revision| format!(", MCP {revision}"));
    let mut text = format!("{resource}{revision}\n\n");
    let mut remedy_before = None;
    for finding in &report.findings {
        // Where nothing could be seen, a list of it would hide why.
        if finding.verdict != Verdict::NotSeen || report.could_not_run.is_none() {
            text.push_str(&told(finding, remedy_before));
            remedy_before = finding.remedy.or(remedy_before);
        }
    }
    text.push('\n');
    let count = |verdict| report.count(verdict);
    let several = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let counts = format!(
        "{} kept, {} broken, {}, {} not seen; {}; {} in {} (at most {READS_MAX}, in {} and the wait)",
        count(Verdict::Pass),
        count(Verdict::Broken),
        several(count(Verdict::Warning), "warning"),
        count(Verdict::NotSeen),
        several(report.events, "event"),
        several(report.reads.try_into().unwrap_or(usize::MAX), "read"),
        rounded(report.took),
        rounded(TIME_MAX),
    );
    text.push_str(&wrapped(&counts, 0, 0));
    for line in conclusions(report) {
        text.push_str(&wrapped(&line, 0, 0));
    }
    text
}

/// What follows from it all.
fn conclusions(report: &Report) -> Vec<String> {
    if let Some(why) = &report.could_not_run {
        let is_told = report.findings.iter().any(|finding| finding.seen.contains(why));
        let why = if is_told { "see above" } else { why };
        return vec![format!("The check could not be made: {why}.")];
    }
    let mut lines = Vec::new();
    if report.is_cut {
        lines.push("The check ran out of reads or time; what is not seen may be for that.".to_owned());
    }
    if report.events == 0 && report.reads > 0 {
        lines.push(
            "No event was seen. Make some happen with --trigger 'COMMAND' (three or more, at once), wait for some with \
             --wait 1m, or start from an older position with --cursor CURSOR."
                .to_owned(),
        );
    }
    lines.push(match (report.count(Verdict::Broken), report.count(Verdict::NotSeen)) {
        (0, 0) => "No MUST is broken.".to_owned(),
        (0, _) => "No MUST that was seen is broken.".to_owned(),
        (1, _) => "1 MUST is broken.".to_owned(),
        (broken, _) => format!("{broken} MUSTs are broken."),
    });
    lines
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
fn wrapped(text: &str, first: usize, rest: usize) -> String {
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

/// The report as programs read it (docs/outbox.md).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReportJson<'a> {
    resource: &'a str,
    revision: Option<&'a str>,
    could_not_run: Option<&'a str>,
    kept: usize,
    broken: usize,
    warnings: usize,
    not_seen: usize,
    events: usize,
    reads: u32,
    reads_max: u32,
    took_ms: u64,
    cut: bool,
    rules: Vec<FindingJson<'a>>,
}

#[derive(Serialize)]
struct FindingJson<'a> {
    id: &'a str,
    level: &'a str,
    rule: &'a str,
    verdict: &'a str,
    seen: &'a [String],
    remedy: Option<&'a str>,
}

impl<'a> ReportJson<'a> {
    pub(super) fn new(resource: &'a str, report: &'a Report) -> Self {
        Self {
            resource,
            revision: report.revision.as_deref(),
            could_not_run: report.could_not_run.as_deref(),
            kept: report.count(Verdict::Pass),
            broken: report.count(Verdict::Broken),
            warnings: report.count(Verdict::Warning),
            not_seen: report.count(Verdict::NotSeen),
            events: report.events,
            reads: report.reads,
            reads_max: READS_MAX,
            took_ms: u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX),
            cut: report.is_cut,
            rules: report.findings.iter().map(FindingJson::from).collect(),
        }
    }
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
