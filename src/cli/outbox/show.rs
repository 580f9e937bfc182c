//! What the check prints.

use serde::Serialize;

use crate::cli::judged::{FindingJson, conclusion, counts, findings, several, wrapped};
use crate::fetch::conformance::{READS_MAX, Report, TIME_MAX, Verdict};
use crate::telemetry::rounded;

/// The report, one line for each rule that is kept.
pub(super) fn for_people(resource: &str, report: &Report) -> String {
    let revision = report.revision.as_ref().map_or_else(String::new, |revision| format!(", MCP {revision}"));
    let mut text = format!("{resource}{revision}\n\n");
    text.push_str(&findings(&report.findings, report.could_not_run.is_none()));
    text.push('\n');
    let counts = format!(
        "{}; {}; {} in {} (at most {READS_MAX}, in {} and the wait)",
        counts(|verdict| report.count(verdict)),
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
    lines.push(conclusion(report.count(Verdict::Broken), report.count(Verdict::NotSeen)));
    lines
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
