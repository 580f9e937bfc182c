//! What is known of a new version of a plugin before it takes over: as a value, as JSON, and as a text.

use super::gate::counted;
use crate::inbox::Recording;
use crate::notification::Name;
use crate::send::replay::{Class, Divergence};
use crate::send::wants::Reach;
use crate::text;
use crate::wasm::Plugin;

mod diff;
mod wire;

/// Differences that are told to a person; the others are counted.
pub const TOLD_MAX: usize = 5;

/// Characters of what a plugin says, and of names.
const SAID_CHARS_MAX: usize = 500;

/// What was found out about a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The plugin.
    pub plugin: Name,
    /// The version that wants to take over.
    pub new: VersionOf,
    /// The one that runs; none where the plugin is not loaded.
    pub old: Option<VersionOf>,
    /// How their versions stand to each other.
    pub standing: Standing,
    /// What it says of its targets' settings.
    pub settings: Settings,
    /// What it wants and is not granted; without what the old one wanted in vain already.
    pub missing: Reach,
    /// Whether it reads payloads, which the old one did not, so that no recording holds them.
    pub reads_data_first: bool,
    /// What it does with the last deliveries.
    pub replays: Replays,
}

/// A version and the file that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionOf {
    /// A semantic version.
    pub version: String,
    /// The SHA-256 of the file, 64 hexadecimal digits in lower case.
    pub digest: String,
}

impl Standing {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Forward => "forward",
            Self::Back => "back",
            Self::Rebuilt => "rebuilt",
            Self::Identical => "identical",
        }
    }
}

impl From<&Plugin> for VersionOf {
    fn from(plugin: &Plugin) -> Self {
        Self { version: plugin.manifest().version.clone(), digest: plugin.digest().to_owned() }
    }
}

/// How a version stands to the one that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There is none.
    First,
    /// It is newer.
    Forward,
    /// It is older.
    Back,
    /// It has the same version and is another file.
    Rebuilt,
    /// It is the same file.
    Identical,
}

/// What a version says of its targets' settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// How many targets it has.
    pub targets: usize,
    /// Those whose settings it does not take.
    pub mistakes: Vec<Mistake>,
    /// How many were not checked, for want of time or because so many were mistaken.
    pub unchecked: usize,
}

/// Settings that a version does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where they stand and what is wrong with them, in one line.
    pub said: String,
    /// Whether the version that runs takes them.
    pub old_takes: bool,
}

/// What a version does with the last deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replays {
    /// How many come out the same.
    pub same: usize,
    /// The others, newest first.
    pub different: Vec<Difference>,
    /// How many were left out because one of the two passed a limit, which tells nothing.
    pub at_limits: usize,
    /// How many were left out for want of time.
    pub not_in_time: usize,
    /// How many were left out because what is recorded cannot be read.
    pub unreadable: usize,
}

/// A recorded delivery that two versions do not make in the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The delivery's id.
    pub delivery: String,
    /// The workspace.
    pub workspace: String,
    /// The route.
    pub route: String,
    /// How far it leads.
    pub class: Class,
    /// The step at which they first differ, from 1.
    pub step: usize,
    /// The two actions as lines of JSON, those of the old version alone with a `-`, of the new one with a `+`, others with
    /// a space before them; long ones are cut, and long stretches that are the same left out. No secret is in them.
    pub lines: Vec<String>,
    /// Why the new version failed, in one line.
    pub reason: Option<String>,
    /// Whether the old version fails at this delivery, so that the new one is compared with what is recorded.
    pub old_failed: bool,
}

impl Difference {
    pub(super) fn new(recording: &Recording, route: String, divergence: &Divergence, old_failed: bool) -> Self {
        Self {
            delivery: recording.delivery.to_string(),
            workspace: recording.workspace.to_string(),
            route,
            class: divergence.class,
            step: divergence.step,
            lines: diff::lines(&divergence.recorded, divergence.now.as_deref()),
            reason: divergence.reason.as_deref().map(cleaned),
            old_failed,
        }
    }
}

/// What a plugin says, in one line.
pub(super) fn cleaned(said: &str) -> String {
    text::line(said, SAID_CHARS_MAX)
}

impl Replays {
    /// How many differ in this way.
    pub fn count(&self, class: Class) -> usize {
        self.different.iter().filter(|found| found.class == class).count()
    }

    fn total(&self) -> usize {
        self.same + self.different.len() + self.at_limits + self.not_in_time + self.unreadable
    }
}

impl Report {
    /// What is odd about its version; none where that goes forward.
    pub fn standing_told(&self) -> Option<String> {
        let (old, new) = (self.old.as_ref()?, &self.new);
        match self.standing {
            Standing::First | Standing::Forward | Standing::Identical => None,
            Standing::Back => Some(format!("version goes back from {} to {}", old.version, new.version)),
            Standing::Rebuilt if old.version == new.version => {
                Some(format!("version {} is another file than the one that runs", new.version))
            }
            Standing::Rebuilt => Some(format!("version {} is not newer than {}", new.version, old.version)),
        }
    }

    /// How many recorded deliveries it makes otherwise, by class; none where it makes all of them alike.
    pub fn differences_told(&self) -> Option<String> {
        (!self.replays.different.is_empty()).then(|| self.counts_told())
    }

    /// As JSON.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(wire::Wire::from(self)).unwrap_or_default()
    }

    /// For a person: what it is, what it says of its settings, and what it does otherwise.
    pub fn told(&self) -> String {
        let mut out = self.head();
        out.extend(self.settings_told());
        if !self.missing.is_empty() {
            out.push(format!("wants what is not granted: {}", self.missing.told()));
        }
        if self.reads_data_first {
            out.push("reads payloads, which the old version did not: no recording holds them".to_owned());
        }
        out.push(self.counts_told());
        for found in self.replays.different.iter().take(TOLD_MAX) {
            out.push(String::new());
            out.extend(found.told());
        }
        let rest = self.replays.different.len().saturating_sub(TOLD_MAX);
        if rest > 0 {
            out.push(String::new());
            out.push(format!("and {} more that {}", rest, if rest == 1 { "differs" } else { "differ" }));
        }
        out.into_iter().map(|line| line + "\n").collect()
    }

    fn head(&self) -> Vec<String> {
        let short = |of: &VersionOf| format!("{} (sha256:{}…)", of.version, of.digest.get(..12).unwrap_or_default());
        let instead = self.old.as_ref().map(|old| format!(", instead of {}", short(old))).unwrap_or_default();
        let head = format!("{} {}{instead}", self.plugin, short(&self.new));
        [head].into_iter().chain(self.standing_told()).collect()
    }

    fn settings_told(&self) -> Vec<String> {
        let Settings { targets, mistakes, unchecked } = &self.settings;
        let taken = targets.saturating_sub(mistakes.len() + unchecked);
        let mut head = format!("settings: {taken} of {} taken", counted(*targets, "target"));
        if *unchecked > 0 {
            head.push_str(&format!(", {unchecked} not checked"));
        }
        let mistake = |mistake: &Mistake| {
            let before = if mistake.old_takes { "" } else { "(not by the old version either) " };
            let before = if self.old.is_some() { before } else { "" };
            format!("  {before}{}", mistake.said)
        };
        [head].into_iter().chain(mistakes.iter().map(mistake)).collect()
    }

    fn counts_told(&self) -> String {
        let replays = &self.replays;
        let classes = Class::ALL.map(|class| (replays.count(class), class.as_str()));
        let rest = [
            (replays.at_limits, "left out at a limit"),
            (replays.not_in_time, "not compared in time"),
            (replays.unreadable, "unreadable"),
        ];
        let parts = [(replays.same, "the same")].into_iter().chain(classes).chain(rest);
        let parts: Vec<String> =
            parts.filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        match parts.as_slice() {
            [] => "no recorded deliveries to compare".to_owned(),
            parts => format!("{} made again: {}", counted(replays.total(), "recorded delivery"), parts.join(", ")),
        }
    }
}

impl Difference {
    fn told(&self) -> Vec<String> {
        let mut head = format!(
            "{} ({}/{}): {} at step {}",
            self.delivery,
            self.workspace,
            self.route,
            self.class.as_str(),
            self.step
        );
        if self.old_failed {
            head.push_str(", compared with what is recorded, since the old version fails there");
        }
        let reason = self.reason.as_ref().map(|reason| format!("  {reason}"));
        [head].into_iter().chain(reason).chain(self.lines.iter().map(|line| format!("  {line}"))).collect()
    }
}

#[cfg(test)]
pub(super) mod sample;
#[cfg(test)]
mod tests;
