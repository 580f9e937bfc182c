//! The gate: what a new version of a plugin is asked before anything live is touched, and what becomes of it then.
//!
//! It has every target's settings checked, and makes the last deliveries again without sending anything. What it finds is
//! a [`Report`]; [`Report::verdict`] is the rule.

use std::cmp::Ordering;
use std::time::Duration;

use semver::Version;
use tokio::time::{Instant, timeout_at};

use super::report::{Difference, Mistake, Replays, Report, Settings, Standing, VersionOf, cleaned};
use crate::config::{Config, GateMode, Grant};
use crate::inbox::Recording;
use crate::send::effect::secret::stand_in;
use crate::send::record::Recorded;
use crate::send::replay::Class;
use crate::send::settings::{Placed, placed, refused};
use crate::send::versions::{Compared, compare};
use crate::send::wants::{Reach, difference};
use crate::wasm::{CheckError, Plugin, StepFault};

/// Recordings that are made again: those that are kept of a plugin, and a few more.
pub const RECORDINGS_MAX: usize = 30;

/// The longest an examination takes: somebody may wait for it, and what is slow is seen by then.
pub const EXAMINATION_MAX: Duration = Duration::from_secs(20);

/// Targets whose settings are found to be mistaken, after which no more are checked.
pub const MISTAKES_MAX: usize = 20;

/// A version that wants to take over.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// It.
    pub new: &'a Plugin,
    /// The one that runs; none where the plugin is not loaded.
    pub old: Option<&'a Plugin>,
    /// The plugin's recordings, newest first. Of these at most [`RECORDINGS_MAX`] are made again.
    pub recordings: &'a [Recording],
    /// The routes and grants.
    pub config: &'a Config,
}

/// What becomes of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It takes over.
    Pass,
    /// It takes over once an operator approves it: why.
    Hold(String),
    /// It never takes over: why.
    Refuse(String),
}

/// Finds out what a version does otherwise. Takes at most [`EXAMINATION_MAX`]; what it has no time for is counted.
pub async fn examine(candidate: Candidate<'_>) -> Report {
    examine_until(candidate, Instant::now() + EXAMINATION_MAX).await
}

pub(in crate::send) async fn examine_until(candidate: Candidate<'_>, late_at: Instant) -> Report {
    let Candidate { new, old, config, .. } = candidate;
    let grant = config.plugins.grants.get(&new.manifest().name);
    Report {
        plugin: new.manifest().name.clone(),
        new: VersionOf::from(new),
        old: old.map(VersionOf::from),
        standing: standing(new, old),
        settings: settings(candidate, late_at).await,
        missing: missing(new, old, grant.unwrap_or(&Grant::default())),
        reads_data_first: new.manifest().needs_data && old.is_some_and(|old| !old.manifest().needs_data),
        replays: replays(candidate, late_at).await,
    }
}

/// Versions that cannot be compared, which no plugin has, stand beside each other.
fn standing(new: &Plugin, old: Option<&Plugin>) -> Standing {
    let Some(old) = old else { return Standing::First };
    let version = |plugin: &Plugin| Version::parse(&plugin.manifest().version).ok();
    let order = version(new).zip(version(old)).map(|(new, old)| new.cmp_precedence(&old));
    match order.unwrap_or(Ordering::Equal) {
        Ordering::Less => Standing::Back,
        Ordering::Greater => Standing::Forward,
        Ordering::Equal if new.digest() == old.digest() => Standing::Identical,
        Ordering::Equal => Standing::Rebuilt,
    }
}

/// What it wants and is not granted, without what the old one wanted in vain already.
fn missing(new: &Plugin, old: Option<&Plugin>, grant: &Grant) -> Reach {
    let of = |plugin: &Plugin| difference(&plugin.manifest().wants, grant).missing;
    let (new, old) = (of(new), old.map(of).unwrap_or_default());
    let beyond = |new: Vec<String>, old: &[String]| new.into_iter().filter(|want| !old.contains(want)).collect();
    Reach { http: beyond(new.http, &old.http), mail: new.mail && !old.mail, tools: beyond(new.tools, &old.tools) }
}

async fn settings(candidate: Candidate<'_>, late_at: Instant) -> Settings {
    let Candidate { new, old, config, .. } = candidate;
    let mut settings = Settings::default();
    for placed in placed(config).filter(|placed| placed.target.plugin == new.manifest().name) {
        settings.targets += 1;
        if settings.mistakes.len() >= MISTAKES_MAX {
            settings.unchecked += 1;
            continue;
        }
        match in_time(late_at, mistake(&placed, new, old)).await {
            Some(Ok(mistake)) => settings.mistakes.extend(mistake),
            Some(Err(NotAsked)) | None => settings.unchecked += 1,
        }
    }
    settings
}

/// What comes of work until it is late; none where it is not done by then. What begins late is not begun.
async fn in_time<T>(late_at: Instant, work: impl Future<Output = T>) -> Option<T> {
    if Instant::now() >= late_at { None } else { timeout_at(late_at, work).await.ok() }
}

/// The host could not ask a plugin just now.
struct NotAsked;

async fn mistake(placed: &Placed<'_>, new: &Plugin, old: Option<&Plugin>) -> Result<Option<Mistake>, NotAsked> {
    let error = match new.check(stand_in(&placed.target.settings)).await {
        Ok(_) => return Ok(None),
        Err(CheckError::Fault(StepFault::Host { .. })) => return Err(NotAsked),
        Err(error) => error,
    };
    let old_takes = match old {
        Some(old) => match old.check(stand_in(&placed.target.settings)).await {
            Ok(_) => true,
            Err(CheckError::Fault(StepFault::Host { .. })) => return Err(NotAsked),
            Err(_) => false,
        },
        None => false,
    };
    let said =
        refused(placed, error).iter().map(|problem| cleaned(&problem.to_string())).collect::<Vec<_>>().join("; ");
    Ok(Some(Mistake { said, old_takes }))
}

async fn replays(candidate: Candidate<'_>, late_at: Instant) -> Replays {
    let Candidate { new, old, recordings, .. } = candidate;
    let mut replays = Replays::default();
    for recording in recordings.iter().take(RECORDINGS_MAX) {
        let Ok(recorded) = Recorded::from_json(&recording.content) else {
            replays.unreadable += 1;
            continue;
        };
        let route = cleaned(&recorded.delivery.route);
        match in_time(late_at, compare(recorded, old, new)).await {
            Some(Ok(Compared::Same)) => replays.same += 1,
            Some(Ok(Compared::Limit)) => replays.at_limits += 1,
            Some(Ok(Compared::Differs { divergence, old_failed })) => {
                replays.different.push(Difference::new(recording, route, &divergence, old_failed));
            }
            Some(Err(_)) => replays.unreadable += 1,
            None => replays.not_in_time += 1,
        }
    }
    replays
}

impl Report {
    /// What becomes of the version.
    ///
    /// It is refused where it does worse than the one that runs: it does not take settings that that one takes, or fails
    /// at a delivery where that one does not. In the strict mode it is held for an approval where it does something else
    /// (other words to the same place are nothing else), where its version does not go forward, and where not all could
    /// be looked at. Where none runs, nothing is gained by refusing it.
    pub fn verdict(&self, mode: GateMode) -> Verdict {
        if let Some(why) = self.refused() {
            return Verdict::Refuse(why);
        }
        let reasons = match mode {
            GateMode::Report => Vec::new(),
            GateMode::Strict => self.held(),
        };
        if reasons.is_empty() { Verdict::Pass } else { Verdict::Hold(reasons.join("; ")) }
    }

    fn refused(&self) -> Option<String> {
        let old = self.old.as_ref()?;
        let mistaken: Vec<_> = self.settings.mistakes.iter().filter(|mistake| mistake.old_takes).collect();
        if let Some(first) = mistaken.first() {
            return Some(format!(
                "{} does not take the settings of {} that {} takes: {}",
                self.name(),
                counted(mistaken.len(), "target"),
                old.version,
                first.said
            ));
        }
        let is_worse = |found: &&Difference| found.class == Class::Failed && !found.old_failed;
        let failed: Vec<_> = self.replays.different.iter().filter(is_worse).collect();
        let first = failed.first()?;
        Some(format!(
            "{} fails at {} where {} does not: {}",
            self.name(),
            counted(failed.len(), "recorded delivery"),
            old.version,
            first.reason.as_deref().unwrap_or("it does not say why")
        ))
    }

    fn held(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        let differing = self.replays.different.iter().filter(|found| found.class >= Class::Target).count();
        if differing > 0 {
            let one = counted(differing, "recorded delivery");
            reasons.push(format!("{} does something else with {one}", self.name()));
        }
        reasons.extend(self.standing_told());
        if self.settings.unchecked > 0 && self.settings.mistakes.len() < MISTAKES_MAX {
            let targets = counted(self.settings.unchecked, "target");
            reasons.push(format!("the settings of {targets} could not be checked in time"));
        }
        let Replays { same, different, not_in_time, at_limits, .. } = &self.replays;
        if *not_in_time > 0 {
            reasons.push(format!("{} could not be compared in time", counted(*not_in_time, "recorded delivery")));
        } else if *at_limits > 0 && *same == 0 && different.is_empty() {
            reasons.push("no recorded delivery could be compared: each passed a limit".to_owned());
        }
        reasons
    }

    fn name(&self) -> String {
        format!("{} {}", self.plugin, self.new.version)
    }
}

/// `1 target`, `2 targets`; of what ends in `y`, `ies`.
pub(super) fn counted(count: usize, what: &str) -> String {
    match (count, what.strip_suffix('y')) {
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {what}s"),
    }
}

#[cfg(test)]
mod tests;
