//! The file of one connector's credential: `<folder of the store>/credentials/<workspace>/<connector>.json`, readable
//! by nobody else, replaced whole.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::notification::Name;

/// The form of the file; one that is newer is not understood.
const VERSION: u32 = 1;
/// Largest file, in bytes: tokens are a few kilobytes.
const FILE_BYTES_MAX: u64 = 256 << 10;
/// How long another's refresh is waited for: longer than one may take.
const LOCK_TIME_MAX: Duration = Duration::from_secs(75);
/// How often the lock is asked for.
const LOCK_TRY_EVERY: Duration = Duration::from_millis(50);

/// Where one connector's credential is kept.
#[derive(Clone, Debug)]
pub struct Credentials {
    path: PathBuf,
}

/// What was granted, and to whom.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Credential {
    /// The connector's URL, without its query.
    pub url: String,
    /// The authorization server that granted it; none where it says none.
    pub issuer: Option<String>,
    /// The client's id.
    pub client_id: String,
    /// The secret of a client that was registered at the login.
    pub client_secret: Option<String>,
    /// Whether the client was registered at the login, rather than named by the configuration.
    pub is_registered: bool,
    /// The access token.
    pub access_token: String,
    /// What renews it, where it can be renewed.
    pub refresh_token: Option<String>,
    /// When it came.
    pub received_at: Timestamp,
    /// When it ends, where that was said.
    pub expires_at: Option<Timestamp>,
    /// What was granted.
    pub scopes: Vec<String>,
}

/// Tells one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    modified: (i64, i64),
    bytes: u64,
}

/// Nobody else renews the credential while this lives.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

/// A credential as it stands in the file. Moments are RFC 3339.
#[derive(Serialize, Deserialize)]
struct Written {
    version: u32,
    url: String,
    issuer: Option<String>,
    client_id: String,
    client_secret: Option<String>,
    is_registered: bool,
    access_token: String,
    refresh_token: Option<String>,
    received_at: String,
    expires_at: Option<String>,
    scopes: Vec<String>,
}

impl From<Credential> for Written {
    fn from(of: Credential) -> Self {
        Self {
            version: VERSION,
            url: of.url,
            issuer: of.issuer,
            client_id: of.client_id,
            client_secret: of.client_secret,
            is_registered: of.is_registered,
            access_token: of.access_token,
            refresh_token: of.refresh_token,
            received_at: of.received_at.to_string(),
            expires_at: of.expires_at.map(|at| at.to_string()),
            scopes: of.scopes,
        }
    }
}

impl Written {
    fn read(self) -> Option<Credential> {
        Some(Credential {
            url: self.url,
            issuer: self.issuer,
            client_id: self.client_id,
            client_secret: self.client_secret,
            is_registered: self.is_registered,
            access_token: self.access_token,
            refresh_token: self.refresh_token,
            received_at: self.received_at.parse().ok()?,
            expires_at: self.expires_at.map(|at| at.parse()).transpose().ok()?,
            scopes: self.scopes,
        })
    }
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

impl fmt::Debug for Credential {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Credential").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

impl Credentials {
    /// The folder of all credentials, beside this store.
    pub fn folder_of(store: &Path) -> PathBuf {
        store.with_file_name("credentials")
    }

    /// Where the credential of a connector is kept in `folder`.
    pub fn new(folder: &Path, workspace: &Name, connector: &Name) -> Self {
        Self { path: folder.join(workspace.as_str()).join(format!("{connector}.json")) }
    }

    /// The file's state now; none when there is no file.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        fs::metadata(&self.path).ok().map(|found| stamp_of(&found))
    }

    /// What is in the file; none when there is no file.
    ///
    /// # Errors
    /// When it cannot be read: why, and what to do.
    pub(super) fn load(&self) -> Result<Option<(Credential, Stamp)>, String> {
        let said = |error: &dyn fmt::Display| format!("the credential {} cannot be read: {error}", self.path.display());
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(said(&error)),
        };
        let found = file.metadata().map_err(|error| said(&error))?;
        if found.len() > FILE_BYTES_MAX {
            return Err(said(&format_args!("it has more than {FILE_BYTES_MAX} bytes")));
        }
        let text = io::read_to_string(file).map_err(|error| said(&error))?;
        // The parser's own message may repeat what is in the file.
        let version: Version = serde_json::from_str(&text).map_err(|_| said(&"it is not a credential"))?;
        if version.version != VERSION {
            return Err(said(&format_args!("its version is {}, this program knows {VERSION}", version.version)));
        }
        let credential = serde_json::from_str(&text).ok().and_then(Written::read);
        let credential = credential.ok_or_else(|| said(&"it is not a credential"))?;
        Ok(Some((credential, stamp_of(&found))))
    }

    /// Replaces the file; when this returns the credential is on disk. Whoever calls it holds the lock.
    ///
    /// # Errors
    /// When it cannot be written: why.
    pub(super) async fn save(&self, credential: Credential) -> Result<(), String> {
        let (this, path) = (self.clone(), self.path.clone());
        let written = tokio::task::spawn_blocking(move || this.write(credential)).await;
        let written = written.map_err(io::Error::other).and_then(|written| written);
        written.map_err(|error| format!("the credential {} cannot be written: {error}", path.display()))
    }

    fn write(&self, credential: Credential) -> io::Result<()> {
        let folder = self.make_folder()?;
        let text = serde_json::to_string_pretty(&Written::from(credential))?;
        let new = self.path.with_extension("json.new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        File::open(folder)?.sync_all()
    }

    /// Waits until nobody else renews the credential: neither here nor in another process.
    ///
    /// # Errors
    /// When it cannot be had: why.
    pub(super) async fn lock(&self) -> Result<Lock, String> {
        let path = self.path.with_extension("lock");
        let said = |error: &dyn fmt::Display| format!("the lock {} cannot be had: {error}", path.display());
        self.make_folder().map_err(|error| said(&error))?;
        let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = opened.map_err(|error| said(&error))?;
        let taken = async {
            loop {
                match file.try_lock() {
                    Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_TRY_EVERY).await,
                    Err(TryLockError::Error(error)) => return Err(error),
                    Ok(()) => return Ok(()),
                }
            }
        };
        match tokio::time::timeout(LOCK_TIME_MAX, taken).await {
            Ok(Ok(())) => Ok(Lock { _file: file }),
            Ok(Err(error)) => Err(said(&error)),
            Err(_) => Err(said(&"another process holds it")),
        }
    }

    /// The file's folder and the one above it, for nobody else.
    fn make_folder(&self) -> io::Result<&Path> {
        let folder = self.path.parent().unwrap_or(&self.path);
        let all = folder.parent().unwrap_or(folder);
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        for folder in [all, folder] {
            if fs::metadata(folder)?.permissions().mode() & 0o077 != 0 {
                fs::set_permissions(folder, Permissions::from_mode(0o700))?;
            }
        }
        Ok(folder)
    }
}

fn stamp_of(found: &fs::Metadata) -> Stamp {
    Stamp { inode: found.ino(), modified: (found.mtime(), found.mtime_nsec()), bytes: found.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credential(access_token: &str) -> Credential {
        Credential {
            url: "https://mcp.example.com/mcp".to_owned(),
            issuer: Some("https://login.example.com".to_owned()),
            client_id: "bell".to_owned(),
            client_secret: None,
            is_registered: true,
            access_token: access_token.to_owned(),
            refresh_token: Some("r1".to_owned()),
            received_at: Timestamp::UNIX_EPOCH,
            expires_at: None,
            scopes: vec!["read".to_owned()],
        }
    }

    fn kept_in(folder: &Path) -> Credentials {
        Credentials::new(folder, &"acme".parse().unwrap(), &"registrar".parse().unwrap())
    }

    #[tokio::test]
    async fn a_credential_is_kept_for_nobody_else_and_replaced_whole() {
        let place = tempfile::tempdir().unwrap();
        let folder = Credentials::folder_of(&place.path().join("switchbell.db"));
        let file = kept_in(&folder);
        assert_eq!((file.load(), file.stamp()), (Ok(None), None));
        let _lock = file.lock().await.unwrap();
        file.save(credential("a1")).await.unwrap();
        let (found, first) = file.load().unwrap().unwrap();
        assert_eq!((found, file.stamp()), (credential("a1"), Some(first)));
        file.save(credential("a2")).await.unwrap();
        let (found, second) = file.load().unwrap().unwrap();
        assert_eq!(found, credential("a2"));
        assert_ne!(first, second);
        let mode = |path: &str| fs::metadata(folder.join(path)).unwrap().permissions().mode() & 0o777;
        let modes = ["", "acme", "acme/registrar.json", "acme/registrar.lock"].map(mode);
        assert_eq!(modes, [0o700, 0o700, 0o600, 0o600]);
        assert_eq!(fs::read_dir(folder.join("acme")).unwrap().count(), 2);
    }

    #[tokio::test]
    async fn a_file_that_is_no_credential_is_told_without_its_text() {
        let place = tempfile::tempdir().unwrap();
        let file = kept_in(place.path());
        file.make_folder().unwrap();
        let check = |text: &str, expected: &str| {
            fs::write(&file.path, text).unwrap();
            let error = file.load().unwrap_err();
            assert!(error.ends_with(expected) && !error.contains("s3cret"), "{error}");
        };
        check("s3cret", "it is not a credential");
        check(r#"{"version": 1, "access_token": "s3cret"}"#, "it is not a credential");
        check(r#"{"version": 2}"#, "its version is 2, this program knows 1");
    }
}
