//! What became of each plugin: which version runs, which ran before, which are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;

use crate::notification::Name;
use crate::wasm::text::one_line;

/// Versions of a plugin that are kept besides the active one and those in use: the last that ran or are held.
pub const VERSIONS_KEPT: usize = 5;

/// Versions of a plugin that are kept only because attempts that wait began with them: the newest of them. A version is a
/// file of up to 32 MiB; an attempt whose version is gone goes on with the active one.
pub const IN_USE_KEPT_MAX: usize = 20;

/// Versions in quarantine that stay known though their files are not kept: a line each.
const QUARANTINED_KNOWN_MAX: usize = 20;

/// Known versions that a message names.
const NAMED_MAX: usize = 10;

/// Digits of a digest that tell it from others for a person.
const DIGITS_SHOWN: usize = 12;

/// What became of every plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// By name; also those whose file is gone, while a version of them is kept.
    pub plugins: BTreeMap<Name, Kept>,
}

/// What became of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The digest of the version that runs; none when none does.
    pub active: Option<String>,
    /// The digest of the file in the folder of plugins that was acted on last, whatever came of it.
    pub folder: Option<String>,
    /// The digest of the version that the active one is compared with, while that is on probation.
    pub watched: Option<String>,
    /// The versions that are known, oldest first, each digest once.
    pub versions: Vec<Version>,
}

/// A version of a plugin: one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The SHA-256 of the file in lower-case hex.
    pub digest: String,
    /// What it says its version is: a semantic version.
    pub version: String,
    /// The size of the file.
    pub bytes: u64,
    /// When it was seen first.
    pub first_at: Timestamp,
    /// When it became the active version last, or ceased to be; none when it never was.
    pub last_active_at: Option<Timestamp>,
    /// Whether it may run.
    pub standing: Standing,
}

/// Whether a version may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It may.
    Good,
    /// It waits for somebody to approve it.
    Held {
        /// What it would do otherwise than the version that runs.
        why: String,
    },
    /// It was at fault, and runs again only when somebody loads it.
    Quarantined {
        /// What it did.
        why: String,
        /// When.
        at: Timestamp,
    },
}

/// Why a text names no version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FindError {
    /// It is the version or the beginning of the digest of none.
    Unknown {
        /// The text.
        asked: String,
        /// The versions there are, oldest first.
        known: Vec<String>,
    },
    /// It is that of several.
    Ambiguous {
        /// The text.
        asked: String,
        /// Those it fits, oldest first.
        fitting: Vec<String>,
    },
}

impl fmt::Display for FindError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { asked, known } if known.is_empty() => {
                write!(out, "unknown version {asked:?}: no version of this plugin is kept")
            }
            Self::Unknown { asked, known } => write!(out, "unknown version {asked:?} (there are: {})", named(known)),
            Self::Ambiguous { asked, fitting } => {
                write!(out, "{asked:?} is more than one version ({}): name it by more of its digest", named(fitting))
            }
        }
    }
}

impl std::error::Error for FindError {}

/// The newest of these, which come last.
fn named(versions: &[String]) -> String {
    let omitted = versions.len().saturating_sub(NAMED_MAX);
    let shown: Vec<&str> = versions.iter().skip(omitted).map(String::as_str).collect();
    let shown = shown.join(", ");
    if omitted == 0 { shown } else { format!("{shown} and {omitted} older") }
}

impl Version {
    /// What tells it from others: the version and the beginning of the digest, such as `1.2.0 (9f2c41d07ab3)`.
    pub fn label(&self) -> String {
        let digits = self.digest.get(..DIGITS_SHOWN).unwrap_or(&self.digest);
        format!("{} ({digits})", self.version)
    }

    /// When it counted last: when it ran, or else was seen.
    fn last_at(&self) -> Timestamp {
        self.last_active_at.map_or(self.first_at, |active| active.max(self.first_at))
    }
}

impl Kept {
    /// The digests of the versions to keep: the active one; the last [`VERSIONS_KEPT`] others that ran or are held; and
    /// the last [`IN_USE_KEPT_MAX`] others of those `in_use`.
    pub fn to_keep(&self, in_use: &BTreeSet<String>) -> BTreeSet<String> {
        let mut newest: Vec<&Version> = self.versions.iter().rev().collect();
        // The order of the list decides between equals.
        newest.sort_by_key(|version| std::cmp::Reverse(version.last_at()));
        let mut keep: BTreeSet<String> = self.active.iter().chain(&self.watched).cloned().collect();
        let counts =
            |version: &Version| version.last_active_at.is_some() || matches!(version.standing, Standing::Held { .. });
        let mut add = |max: usize, fits: &dyn Fn(&Version) -> bool| {
            let fitting = newest.iter().filter(|version| fits(version) && !keep.contains(&version.digest));
            let digests: Vec<String> = fitting.take(max).map(|version| version.digest.clone()).collect();
            keep.extend(digests);
        };
        add(VERSIONS_KEPT, &counts);
        add(IN_USE_KEPT_MAX, &|version| in_use.contains(&version.digest));
        keep
    }

    /// Forgets the versions that are not among these digests. The last `QUARANTINED_KNOWN_MAX` in quarantine stay known, so
    /// that they do not come again by themselves.
    pub fn forget_others(&mut self, keep: &BTreeSet<String>) {
        let is_quarantined = |version: &Version| matches!(version.standing, Standing::Quarantined { .. });
        let quarantined = self.versions.iter().rev().filter(|version| is_quarantined(version));
        let quarantined: BTreeSet<String> =
            quarantined.take(QUARANTINED_KNOWN_MAX).map(|version| version.digest.clone()).collect();
        self.versions.retain(|version| keep.contains(&version.digest) || quarantined.contains(&version.digest));
    }

    /// The version that is active.
    pub fn active(&self) -> Option<&Version> {
        self.get(self.active.as_deref()?)
    }

    /// The version with this digest.
    pub fn get(&self, digest: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.digest == digest)
    }

    /// The version to go back to: of the good ones that ran, the one that did last besides the active one.
    pub fn previous(&self) -> Option<&Version> {
        let is_active = |version: &Version| self.active.as_ref() == Some(&version.digest);
        let ran = self.versions.iter().filter(|version| version.last_active_at.is_some());
        // Of equals the last in the list.
        ran.filter(|version| !is_active(version) && version.standing == Standing::Good)
            .max_by_key(|version| version.last_active_at)
    }

    /// The version that a person names by its version, or by its digest or the beginning of that.
    ///
    /// # Errors
    /// When it is none of them, or more than one; the message names those there are.
    pub fn find(&self, version_or_digest: &str) -> Result<&Version, FindError> {
        let asked = version_or_digest.trim();
        let digits = asked.to_ascii_lowercase();
        let is_it = |version: &&Version| version.version == asked || version.digest.starts_with(&digits);
        let fitting: Vec<&Version> = self.versions.iter().filter(|_| !asked.is_empty()).filter(is_it).collect();
        let labels = |versions: &[&Version]| versions.iter().map(|version| version.label()).collect();
        let asked = || one_line(asked, 100);
        match fitting.as_slice() {
            [only] => Ok(only),
            [] => Err(FindError::Unknown { asked: asked(), known: labels(&self.versions.iter().collect::<Vec<_>>()) }),
            several => Err(FindError::Ambiguous { asked: asked(), fitting: labels(several) }),
        }
    }
}
