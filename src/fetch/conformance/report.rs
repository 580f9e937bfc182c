//! What was found: for each rule whether it is kept, and what was seen.

use std::time::Duration;

use super::rules::{Obligation, Rule};

/// Things told about one rule; what is beyond is counted.
const TOLD_MAX: usize = 3;

/// What came of the check.
#[derive(Debug)]
pub struct Report {
    /// The revision of MCP that the server spoke, where it was reached.
    pub revision: Option<String>,
    /// One for each rule, in the order of [`super::RULES`].
    pub findings: Vec<Finding>,
    /// Why the check could not be made, or not to its end.
    pub could_not_run: Option<String>,
    /// Events that were judged.
    pub events: usize,
    /// Reads made.
    pub reads: u32,
    /// How long they took, with the waits between them.
    pub took: Duration,
    /// Whether the check ran out of reads or time, so that rules were not seen.
    pub is_cut: bool,
}

impl Report {
    /// How many findings have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.findings.iter().filter(|finding| finding.verdict == verdict).count()
    }
}

/// What was found about one rule.
#[derive(Debug)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// Whether it is kept.
    pub verdict: Verdict,
    /// What was seen: one text where it is kept, up to four where not.
    pub seen: Vec<String>,
    /// What to change, where something is to be changed.
    pub remedy: Option<&'static str>,
}

/// Whether a rule is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Nothing was there to tell.
    NotSeen,
    /// It is.
    Pass,
    /// A SHOULD is not kept, or something looks as if a MUST were not.
    Warning,
    /// A MUST is not kept.
    Broken,
}

impl Verdict {
    /// As programs read it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotSeen => "not_seen",
            Self::Pass => "kept",
            Self::Warning => "warning",
            Self::Broken => "broken",
        }
    }
}

/// Collects what is seen. For each rule the worst verdict stands.
#[derive(Debug)]
pub(super) struct Ledger {
    findings: Vec<Finding>,
    omitted: Vec<usize>,
}

impl Ledger {
    pub(super) fn new(rules: &[&'static Rule]) -> Self {
        let blank = |rule: &&'static Rule| Finding { rule, verdict: Verdict::NotSeen, seen: Vec::new(), remedy: None };
        Self { findings: rules.iter().map(blank).collect(), omitted: vec![0; rules.len()] }
    }

    /// The rule is kept, as far as this shows. The last text stands.
    pub(super) fn pass(&mut self, rule: &'static Rule, seen: impl Into<String>) {
        if let Some((finding, _)) = self.of(rule)
            && finding.verdict <= Verdict::Pass
        {
            finding.verdict = Verdict::Pass;
            finding.seen = vec![seen.into()];
        }
    }

    /// The rule is not kept.
    pub(super) fn fail(&mut self, rule: &'static Rule, seen: impl Into<String>) {
        self.fail_with(rule, seen, rule.remedy);
    }

    /// The rule is not kept, and what is to be changed is known better.
    pub(super) fn fail_with(&mut self, rule: &'static Rule, seen: impl Into<String>, remedy: &'static str) {
        let verdict = if rule.level == Obligation::Must { Verdict::Broken } else { Verdict::Warning };
        self.tell(rule, verdict, seen.into(), remedy);
    }

    /// It looks as if the rule were not kept, but there may be a good reason.
    pub(super) fn warn(&mut self, rule: &'static Rule, seen: impl Into<String>) {
        self.tell(rule, Verdict::Warning, seen.into(), rule.remedy);
    }

    /// Whether the rule is known not to be kept.
    pub(super) fn has_failed(&self, rule: &'static Rule) -> bool {
        self.findings.iter().any(|finding| finding.rule.id == rule.id && finding.verdict == Verdict::Broken)
    }

    /// What was found, one for each rule.
    pub(super) fn findings(self) -> Vec<Finding> {
        let finish = |(mut finding, omitted): (Finding, usize)| {
            match finding.verdict {
                Verdict::NotSeen => finding.seen.push(finding.rule.needs.to_owned()),
                _ if omitted > 0 => finding.seen.push(format!("and {omitted} more")),
                _ => {}
            }
            finding
        };
        self.findings.into_iter().zip(self.omitted).map(finish).collect()
    }

    fn tell(&mut self, rule: &'static Rule, verdict: Verdict, seen: String, remedy: &'static str) {
        let Some((finding, omitted)) = self.of(rule) else { return };
        if verdict > finding.verdict {
            // What was told of a lesser matter would hide this one.
            *finding = Finding { rule, verdict, seen: Vec::new(), remedy: Some(remedy) };
            *omitted = 0;
        }
        if verdict < finding.verdict || finding.seen.contains(&seen) {
            return;
        }
        if finding.seen.len() < TOLD_MAX { finding.seen.push(seen) } else { *omitted += 1 }
    }

    fn of(&mut self, rule: &Rule) -> Option<(&mut Finding, &mut usize)> {
        self.findings.iter_mut().zip(&mut self.omitted).find(|(finding, _)| finding.rule.id == rule.id)
    }
}
