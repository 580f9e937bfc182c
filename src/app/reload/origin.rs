//! Where a configuration comes from: files that are read again, or nowhere.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use crate::config::{Config, Files, FilesRead, Loaded, Problem, Problems, Reading, Texts, read_files};
use crate::notification::Name;

/// Looks up environment variables.
pub type Environment = Arc<dyn Fn(&str) -> Option<OsString> + Send + Sync>;

/// A configuration to start with, and where it came from.
pub struct Origin {
    pub(in crate::app) config: Arc<Config>,
    pub(in crate::app) files: Option<Followed>,
}

/// Files that are followed.
pub(in crate::app) struct Followed {
    pub(in crate::app) environment: Environment,
    pub(in crate::app) files: Files,
    pub(in crate::app) texts: Texts,
    pub(in crate::app) aside: BTreeMap<Name, Problems>,
}

impl std::fmt::Debug for Origin {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Origin").field("config", &self.config.file).finish_non_exhaustive()
    }
}

/// Of a configuration that is there for good: nothing is followed, and it cannot be reloaded.
impl From<Arc<Config>> for Origin {
    fn from(config: Arc<Config>) -> Self {
        Self { config, files: None }
    }
}

impl Origin {
    /// Reads the files, which are followed from then on; with what deserves a look.
    ///
    /// # Errors
    /// Every mistake, when the operator's file has one. A workspace whose own file has mistakes is set aside.
    pub fn read(file: &Path, environment: Environment) -> Result<(Self, Vec<Problem>), Problems> {
        let FilesRead { loaded, files } = read_files(file, &Reading::of_all(&*environment), None);
        let Loaded { config, warnings, aside, texts, older: _ } = loaded?;
        let followed = Followed { environment, files, texts, aside };
        Ok((Self { config: Arc::new(config), files: Some(followed) }, warnings))
    }

    /// The configuration.
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }
}
