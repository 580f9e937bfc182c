//! `history.json`: how a history is written, and what must hold of one that is read.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::history::{History, Kept, Standing, Version};
use super::{HISTORY_BYTES_MAX, is_digest};
use crate::notification::Name;
use crate::text;
use crate::wasm::limits::PLUGIN_BYTES_MAX;
use crate::wasm::manifest::is_semantic_version;

/// What is kept of a reason, characters.
const WHY_LENGTH_MAX: usize = 2_000;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HistoryJson {
    plugins: BTreeMap<String, KeptJson>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptJson {
    active: Option<String>,
    folder: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    watched: Option<String>,
    versions: Vec<VersionJson>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct VersionJson {
    digest: String,
    version: String,
    bytes: u64,
    first_at: String,
    last_active_at: Option<String>,
    standing: StandingJson,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum StandingJson {
    Good,
    Held { why: String },
    Quarantined { why: String, at: String },
}

/// The text of a history.
///
/// # Errors
/// When it would not be read again: it is too large, or something in it is not what it must be.
pub(super) fn write(history: &History) -> io::Result<String> {
    let plugins = history.plugins.iter().map(|(name, kept)| (name.to_string(), KeptJson::from(kept))).collect();
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidInput, format!("no history of plugins: {why}"));
    let text = serde_json::to_string_pretty(&HistoryJson { plugins }).map_err(|error| wrong(error.to_string()))?;
    match read(&text) {
        Ok(_) => Ok(text),
        Err(why) => Err(wrong(why)),
    }
}

/// The history of this text.
///
/// # Errors
/// What is wrong with it, and where.
pub(super) fn read(text: &str) -> Result<History, String> {
    if text.len() > HISTORY_BYTES_MAX {
        return Err(format!("it has more than {HISTORY_BYTES_MAX} bytes"));
    }
    let read: HistoryJson = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut history = History::default();
    for (name, kept) in read.plugins {
        let place = format!("plugins.{}", text::line(&name, 80));
        let name: Name = name.parse().map_err(|error| format!("{place}: {error}"))?;
        history.plugins.insert(name, kept.checked(&place)?);
    }
    Ok(history)
}

impl KeptJson {
    fn checked(self, place: &str) -> Result<Kept, String> {
        let mut known = BTreeSet::new();
        let mut versions = Vec::new();
        for (index, version) in self.versions.into_iter().enumerate() {
            let place = format!("{place}.versions[{index}]");
            let version = version.checked(&place)?;
            if !known.insert(version.digest.clone()) {
                return Err(format!("{place}.digest: is there twice"));
            }
            versions.push(version);
        }
        let active = self.active.map(|active| digest(active, &format!("{place}.active"))).transpose()?;
        if active.as_ref().is_some_and(|active| !known.contains(active)) {
            return Err(format!("{place}.active: is none of its versions"));
        }
        let folder = self.folder.map(|folder| digest(folder, &format!("{place}.folder"))).transpose()?;
        let watched = self.watched.map(|watched| digest(watched, &format!("{place}.watched"))).transpose()?;
        Ok(Kept { active, folder, watched, versions })
    }
}

impl VersionJson {
    fn checked(self, place: &str) -> Result<Version, String> {
        if !is_semantic_version(&self.version) {
            return Err(format!("{place}.version: {:?} is no semantic version", text::line(&self.version, 80)));
        }
        if self.bytes > PLUGIN_BYTES_MAX as u64 {
            return Err(format!("{place}.bytes: is more than a plugin may have"));
        }
        let last_active_at = self.last_active_at.map(|at| moment(&at, &format!("{place}.lastActiveAt"))).transpose()?;
        let reason = |why: String, place: &str| {
            if text::line(&why, WHY_LENGTH_MAX) == why {
                Ok(why)
            } else {
                Err(format!("{place}.why: is no line of text"))
            }
        };
        Ok(Version {
            digest: digest(self.digest, &format!("{place}.digest"))?,
            version: self.version,
            bytes: self.bytes,
            first_at: moment(&self.first_at, &format!("{place}.firstAt"))?,
            last_active_at,
            standing: match self.standing {
                StandingJson::Good => Standing::Good,
                StandingJson::Held { why } => Standing::Held { why: reason(why, &format!("{place}.standing.held"))? },
                StandingJson::Quarantined { why, at } => Standing::Quarantined {
                    why: reason(why, &format!("{place}.standing.quarantined"))?,
                    at: moment(&at, &format!("{place}.standing.quarantined.at"))?,
                },
            },
        })
    }
}

fn digest(digest: String, place: &str) -> Result<String, String> {
    if is_digest(&digest) { Ok(digest) } else { Err(format!("{place}: is no SHA-256 in lower-case hex")) }
}

fn moment(text: &str, place: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| format!("{place}: {:?} is no moment (RFC 3339)", text::line(text, 80)))
}

impl From<&Kept> for KeptJson {
    fn from(kept: &Kept) -> Self {
        let versions = kept.versions.iter().map(VersionJson::from).collect();
        let Kept { active, folder, watched, .. } = kept.clone();
        Self { active, folder, watched, versions }
    }
}

impl From<&Version> for VersionJson {
    fn from(version: &Version) -> Self {
        let why = |why: &str| text::line(why, WHY_LENGTH_MAX);
        Self {
            digest: version.digest.clone(),
            version: version.version.clone(),
            bytes: version.bytes,
            first_at: version.first_at.to_string(),
            last_active_at: version.last_active_at.map(|at| at.to_string()),
            standing: match &version.standing {
                Standing::Good => StandingJson::Good,
                Standing::Held { why: said } => StandingJson::Held { why: why(said) },
                Standing::Quarantined { why: said, at } => {
                    StandingJson::Quarantined { why: why(said), at: at.to_string() }
                }
            },
        }
    }
}
