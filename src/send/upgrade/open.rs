//! The start: what ran before runs again, and what came into the folder meanwhile is examined first.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::stream;
use tokio::sync::mpsc;

use super::handle::REQUESTS_MAX;
use super::prepare::{Candidate, Prepared, load, load_kept, prepare};
use super::probation::Probation;
use super::take::{Refused, know};
use super::{Ground, Upgrades, blocking};
use crate::notification::Name;
use crate::wasm::catalog::depot::{self, Depot, DepotError, History, Kept};
use crate::wasm::catalog::folder::{Folder, Seen};
use crate::wasm::{Catalog, Plugin, file_digest};

/// Plugins that are loaded at once: the disk and the step threads are shared by them.
const LOADED_AT_ONCE: usize = 8;

/// Why versions of plugins cannot be kept.
#[derive(Debug)]
pub struct OpenError(DepotError);

impl fmt::Display for OpenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl std::error::Error for OpenError {}

/// A plugin at the start.
struct Start {
    name: Name,
    kept: Kept,
    file: Option<Candidate>,
}

/// What a plugin begins with.
struct Began {
    start: Start,
    /// What runs.
    runs: Option<Plugin>,
    /// The version of the file, where it is examined and does not run yet.
    prepared: Option<Prepared>,
    /// What is wrong with the file, or with the version that ran.
    problem: Option<String>,
}

impl Upgrades {
    /// Opens the depot and looks at the folder for the first time. What ran before runs again. What is new in the folder
    /// passes the gate as if it came while the server runs; where nothing ran before, what loads runs.
    ///
    /// # Errors
    /// When no versions can be kept beside the store.
    pub async fn open(ground: Ground) -> Result<Self, OpenError> {
        let root = depot::root(&ground.config.store);
        let opened = tokio::task::spawn_blocking(move || Depot::open(&root)).await;
        let lost = |lost| Err(DepotError::Folder(depot::root(&ground.config.store), std::io::Error::other(lost)));
        let depot::Opened { depot, history, set_aside } = opened.unwrap_or_else(lost).map_err(OpenError)?;
        if let Some(why) = set_aside {
            tracing::error!("{why}");
        }
        let folder = Folder::new(ground.config.plugins.directory.clone());
        let clock = ground.clock.clone();
        let mut upgrades = Self {
            ground,
            depot,
            history,
            folder,
            catalog: Catalog::default(),
            problems: BTreeMap::new(),
            turns: BTreeMap::new(),
            in_use: BTreeSet::new(),
            stuck: BTreeSet::new(),
            again: BTreeSet::new(),
            dispatcher: None,
            probation: Arc::new(Probation::new(clock)),
            requests: mpsc::channel(REQUESTS_MAX),
        };
        let files = upgrades.first_look().await;
        upgrades.load_all(files).await;
        Ok(upgrades)
    }

    /// Every file of the folder.
    async fn first_look(&mut self) -> BTreeMap<Name, Candidate> {
        let mut files = BTreeMap::new();
        loop {
            let seen = self.look_once().await;
            let mut is_over = true;
            for seen in seen {
                if let Seen::Settled { name, path, bytes, signature, .. } = seen {
                    is_over = false;
                    files.insert(name.clone(), Candidate { name: Some(name), path, bytes, signature });
                } else {
                    self.note_seen(seen);
                }
            }
            if is_over {
                return files;
            }
        }
    }

    /// Looks at the folder, off the async threads.
    pub(super) async fn look_once(&mut self) -> Vec<Seen> {
        let directory = self.ground.config.plugins.directory.clone();
        let mut folder = std::mem::replace(&mut self.folder, Folder::new(directory));
        let looked = blocking(move || {
            let seen = folder.look(Instant::now());
            Ok((folder, seen))
        });
        match looked.await {
            Ok((folder, seen)) => {
                self.folder = folder;
                seen
            }
            Err(error) => {
                tracing::error!(%error, "the folder of plugins cannot be looked at");
                Vec::new()
            }
        }
    }

    async fn load_all(&mut self, mut files: BTreeMap<Name, Candidate>) {
        let mut starts: Vec<Start> = Vec::new();
        let names: BTreeSet<Name> = self.history.plugins.keys().chain(files.keys()).cloned().collect();
        for name in names {
            let kept = self.history.plugins.get(&name).cloned().unwrap_or_default();
            starts.push(Start { file: files.remove(&name), name, kept });
        }
        let (ground, depot) = (&self.ground, &self.depot);
        let began = stream::iter(starts).map(|start| begin(ground, depot, start)).buffer_unordered(LOADED_AT_ONCE);
        let began: Vec<Began> = began.collect().await;
        for began in began {
            self.take_up(began).await;
        }
        if let Err(refused) = self.save().await {
            tracing::error!("{refused}");
        }
        self.tend().await;
    }

    async fn take_up(&mut self, began: Began) {
        let Began { start: Start { name, file, .. }, runs, prepared, problem } = began;
        let path = file.as_ref().map_or_else(|| PathBuf::from(format!("{name}.wasm")), |file| file.path.clone());
        if let Some(problem) = problem {
            tracing::error!("{}: {problem}", path.display());
            self.problems.insert(path, problem);
        }
        let now = self.ground.clock.now();
        let kept = self.history.plugins.entry(name.clone()).or_default();
        kept.active = runs.as_ref().map(|plugin| plugin.digest().to_owned());
        if let Some(plugin) = &runs {
            know(kept, plugin, depot::Standing::Good, now);
            self.catalog = self.catalog.with(plugin.clone());
        }
        match (file, prepared) {
            (Some(file), Some(prepared)) => {
                let came = self.take(&file, prepared, false).await;
                self.note(&file, &came, true).await;
            }
            (Some(file), None) => {
                if let Some(kept) = self.history.plugins.get_mut(&name) {
                    kept.folder = file_digest(&file.bytes);
                }
            }
            // It was there and is not any more.
            (None, _) => {
                if let Some(kept) = self.history.plugins.get_mut(&name) {
                    kept.folder = None;
                }
            }
        }
    }
}

/// The version that ran; where it is lost, the good one that ran last before it, and why.
async fn kept_version(
    ground: &Ground,
    depot: &Depot,
    start: &Start,
    active: &str,
) -> (Option<Plugin>, Option<Refused>) {
    let Start { name, kept, .. } = start;
    let lost = match load_kept(ground, depot, name, active).await {
        Ok(plugin) => return (Some(plugin), None),
        Err(refused) => refused,
    };
    let before = match kept.previous() {
        Some(before) => load_kept(ground, depot, name, &before.digest).await.ok(),
        None => None,
    };
    (before, Some(lost))
}

/// What a plugin begins with.
async fn begin(ground: &Ground, depot: &Depot, start: Start) -> Began {
    let began = |start, runs, problem: Option<Refused>| {
        let problem = problem.map(|refused| refused.why);
        Began { start, runs, prepared: None, problem }
    };
    let digest = start.file.as_ref().and_then(|file| file_digest(&file.bytes));
    let is_removed = start.file.is_none() && start.kept.folder.is_some();
    if is_removed {
        return began(start, None, None);
    }
    let (runs, lost) = match (&start.kept.active, &start.file) {
        // The file is at hand.
        (Some(active), Some(file)) if digest.as_ref() == Some(active) => match load(ground, file).await {
            Ok(plugin) => (Some(plugin), None),
            // Its signature may be kept and not be beside it any more.
            Err(_) => kept_version(ground, depot, &start, active).await,
        },
        (Some(active), _) => kept_version(ground, depot, &start, active).await,
        (None, _) => (None, None),
    };
    // What was refused is looked at again: what was wrong may be mended.
    let is_set_aside = |digest: &String| start.kept.folder.as_ref() == Some(digest) && start.kept.get(digest).is_some();
    let is_known =
        digest.as_ref().is_some_and(|digest| Some(digest) == start.kept.active.as_ref() || is_set_aside(digest));
    let Some(file) = start.file.clone().filter(|_| !is_known || runs.is_none()) else {
        return began(start, runs, lost);
    };
    let catalog = runs.iter().fold(Catalog::default(), |catalog, plugin| catalog.with(plugin.clone()));
    let history = History { plugins: BTreeMap::from([(start.name.clone(), start.kept.clone())]) };
    match prepare(ground, &file, &catalog, (depot, &history)).await {
        Ok(prepared) => Began { start, runs, prepared: Some(prepared), problem: lost.map(|refused| refused.why) },
        Err(refused) => began(start, runs, Some(refused)),
    }
}
