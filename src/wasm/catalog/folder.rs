//! The directory of plugins, watched by looking at it: whatever way a file came there, it is what a look finds that counts.
//!
//! Nothing of the operating system tells about a change, because what does tell misses some: of network file systems, of
//! bind mounts, of links that are swapped. A look costs some microseconds for each file.
//!
//! ```text
//!           the same in two looks, and whole          taken, or refused for good
//!   changed ───────────────────────────────▶ Settled ───────────────────────────▶ at rest until it changes
//!      │                                        ▲ │
//!      └─ cut off: once unchanged for 10 s ─────┘ └─ refused: once more when unchanged for 3 s
//! ```

mod listing;
mod stamp;
#[cfg(test)]
mod tests;
mod watched;
mod whole;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::notification::Name;
use crate::wasm::limits::{PLUGIN_BYTES_MAX, PLUGINS_MAX};

use listing::{Listing, list, named};
use stamp::Stamp;
use watched::Watched;

/// How often to look. A file that is replaced takes effect after two looks.
pub const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How long a file that ends in the middle of something is waited for before it is taken as it is.
pub const INCOMPLETE_PATIENCE: Duration = Duration::from_secs(10);

/// How long a file that was refused must have been unchanged before that is worth telling: it may have been cut where a
/// section ends, or its signature may be on its way.
pub const REFUSED_PATIENCE: Duration = Duration::from_secs(3);

/// The directory of plugins, and what was seen of it. It has one owner. A look reads from the disk, so it is made off
/// the async threads.
#[derive(Debug)]
pub struct Folder {
    directory: PathBuf,
    /// The file system that it was on when it was last taken for what it is.
    device: Option<u64>,
    has_looked: bool,
    unreadable: Option<String>,
    files: BTreeMap<OsString, Watched>,
    problems: BTreeMap<PathBuf, String>,
    /// Where the last look stopped reading; the next begins after it, so that every file has its turn.
    read_last: OsString,
}

/// What a look found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A file has come to rest with bytes, or a signature, that are news.
    Settled {
        /// The plugin that the file is named for.
        name: Name,
        /// The file.
        path: PathBuf,
        /// What is in it.
        bytes: Vec<u8>,
        /// The SHA-256 of that, in lower-case hex.
        digest: String,
        /// The text of `<name>.wasm.minisig` beside it, at most one byte longer than a signature may be.
        signature: Option<String>,
    },
    /// The file of a plugin that was settled is not there any more.
    Gone {
        /// The plugin.
        name: Name,
    },
    /// A file is of no use, which is told once. Nothing is said about a plugin that may run from what was there before.
    Problem {
        /// The file; the directory, when it holds too many.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        message: String,
    },
    /// The directory itself cannot be read, which is told once. It means nothing for the plugins that run.
    Unreadable {
        /// Why, and what to do.
        message: String,
    },
    /// The directory can be read again.
    Readable,
}

/// What to do about a file that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Nothing: it changed a moment ago, and is seen once more when it has rested or changed again.
    Wait,
    /// Say so: it is not going to change by itself.
    Report,
}

impl Folder {
    /// A directory nobody has looked at yet. It need not be there.
    pub fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            device: None,
            has_looked: false,
            unreadable: None,
            files: BTreeMap::new(),
            problems: BTreeMap::new(),
            read_last: OsString::new(),
        }
    }

    /// Looks at the directory, at `now`, and tells what is news.
    ///
    /// The first look takes each whole file that it finds for settled; a server that starts waits for nothing. After that a
    /// file is settled when two looks in a row find it in the same state and reading it leaves it there. What is read in
    /// one look is bounded (64 MiB); the other files have their turn in the next.
    pub fn look(&mut self, now: Instant) -> Vec<Seen> {
        let listing = match list(&self.directory).and_then(|listing| self.not_unmounted(listing)) {
            Ok(listing) => listing,
            Err(message) => return self.unreadable(message),
        };
        let mut seen = Vec::new();
        if self.unreadable.take().is_some() {
            seen.push(Seen::Readable);
        }
        self.device = Some(listing.device);
        self.note(listing.files, now, &mut seen);
        self.judge(now, &mut seen);
        self.has_looked = true;
        seen
    }

    /// Takes note that what was settled last for `name`, with this digest, was refused, and tells whether that is worth
    /// reporting yet. A file that is not refused needs no word.
    pub fn refused(&mut self, name: &Name, digest: &str, now: Instant) -> Patience {
        let watched = self.files.get_mut(OsStr::new(&file_name(name)));
        watched.map_or(Patience::Wait, |watched| watched.refused(digest, now))
    }

    /// Has the file of `name` told of in the next look as if it had just come, even if it did not change.
    pub fn tell_again(&mut self, name: &Name) {
        if let Some(watched) = self.files.get_mut(OsStr::new(&file_name(name))) {
            watched.tell_again();
        }
    }

    /// Whether this is the digest of what was settled last for `name`, and its file is not gone.
    pub fn is_current(&self, name: &Name, digest: &str) -> bool {
        self.files.get(OsStr::new(&file_name(name))).is_some_and(|watched| watched.is_settled_with(digest))
    }

    /// Whether there is a file for `name`.
    pub fn is_watched(&self, name: &Name) -> bool {
        self.files.contains_key(OsStr::new(&file_name(name)))
    }

    /// The problems that there are now, each with its file, as they were told.
    pub fn problems(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.problems.iter().map(|(path, message)| (path.as_path(), message.as_str()))
    }

    /// A file system that is taken away leaves an empty directory, where a directory of plugins was.
    fn not_unmounted(&self, listing: Listing) -> Result<Listing, String> {
        let is_another = self.device.is_some_and(|device| device != listing.device);
        if is_another && listing.files.is_empty() && !self.files.is_empty() {
            return Err("the directory of plugins is empty and on another file system than before: was it unmounted? \
                        Mount it again, or put plugins there"
                .into());
        }
        Ok(listing)
    }

    fn unreadable(&mut self, message: String) -> Vec<Seen> {
        if self.unreadable.as_ref() == Some(&message) {
            return Vec::new();
        }
        self.unreadable = Some(message.clone());
        vec![Seen::Unreadable { message }]
    }

    /// Compares what is there with what was there.
    fn note(&mut self, mut there: Vec<OsString>, now: Instant, seen: &mut Vec<Seen>) {
        // Those that are known keep their place.
        there.sort_by_cached_key(|file| (!self.files.contains_key(file), file.clone()));
        let surplus = there.get(PLUGINS_MAX).map(|file| file.to_string_lossy().into_owned());
        there.truncate(PLUGINS_MAX);
        let mut missed: BTreeSet<OsString> = self.files.keys().cloned().collect();
        for file in there {
            let Some(stamp) = Stamp::of(&self.directory.join(&file)) else { continue };
            missed.remove(&file);
            match self.files.entry(file) {
                Entry::Occupied(mut known) => known.get_mut().note(stamp, now),
                Entry::Vacant(new) => {
                    let name = named(&new.key().to_string_lossy());
                    new.insert(Watched::new(name, stamp, now, !self.has_looked));
                }
            }
        }
        for file in missed {
            self.miss(&file, seen);
        }
        let message = surplus.map(|file| {
            format!("the directory holds more than {PLUGINS_MAX} plugins, and {file} is not loaded; remove some")
        });
        self.problem(&self.directory.clone(), message, seen);
    }

    /// A file that is missed once may be about to be replaced: some programs remove it first.
    fn miss(&mut self, file: &OsStr, seen: &mut Vec<Seen>) {
        if self.files.get_mut(file).is_some_and(Watched::was_there) {
            return;
        }
        let gone = self.files.remove(file).and_then(Watched::settled_name);
        seen.extend(gone.map(|name| Seen::Gone { name }));
        self.problems.remove(&self.directory.join(file));
    }

    /// Reads the files that have come to rest, as many as a look may.
    fn judge(&mut self, now: Instant, seen: &mut Vec<Seen>) {
        let after = (Bound::Excluded(self.read_last.as_os_str()), Bound::Unbounded);
        let until = (Bound::Unbounded, Bound::Included(self.read_last.as_os_str()));
        let turns = self.files.range::<OsStr, _>(after).chain(self.files.range::<OsStr, _>(until));
        let due: Vec<OsString> =
            turns.filter(|(_, watched)| watched.is_due(now)).map(|(file, _)| file.clone()).collect();
        let mut read_bytes = 0;
        for file in due {
            if read_bytes > PLUGIN_BYTES_MAX {
                break;
            }
            let path = self.directory.join(&file);
            let Some(watched) = self.files.get_mut(&file) else { continue };
            let judged = watched.judge(&path, now);
            read_bytes += judged.read_bytes;
            self.problem(&path, judged.problem, seen);
            seen.extend(judged.settled);
            self.read_last = file;
        }
    }

    /// Tells a problem of a file that is not known yet, or forgets the one that is over.
    fn problem(&mut self, path: &Path, message: Option<String>, seen: &mut Vec<Seen>) {
        match message {
            None => drop(self.problems.remove(path)),
            Some(message) if self.problems.get(path) == Some(&message) => {}
            Some(message) => {
                self.problems.insert(path.to_owned(), message.clone());
                seen.push(Seen::Problem { path: path.to_owned(), message });
            }
        }
    }
}

/// The file that a plugin is in.
fn file_name(name: &Name) -> String {
    format!("{name}.wasm")
}
