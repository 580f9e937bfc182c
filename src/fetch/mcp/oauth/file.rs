//! The file of one connector's credential: `<folder of the store>/credentials/<workspace>/<connector>.json`, readable
//! by nobody else, replaced whole.

use std::fmt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::notification::Name;
use crate::private_file::{Lock, PrivateFile, Stamp};

/// The form of the file; one that is newer is not understood.
const VERSION: u32 = 1;

/// Where one connector's credential is kept.
#[derive(Clone, Debug)]
pub struct Credentials {
    file: PrivateFile,
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
        Self { file: PrivateFile::new(folder.join(workspace.as_str()).join(format!("{connector}.json"))) }
    }

    /// The file's state now; none when there is no file.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        self.file.stamp()
    }

    /// What is in the file; none when there is no file.
    ///
    /// # Errors
    /// When it cannot be read: why, and what to do.
    pub(super) fn load(&self) -> Result<Option<(Credential, Stamp)>, String> {
        let path = self.file.path().display();
        let said = |error: &dyn fmt::Display| format!("the credential {path} cannot be read: {error}");
        let Some((text, stamp)) = self.file.read().map_err(|error| said(&error))? else { return Ok(None) };
        // The parser's own message may repeat what is in the file.
        let version: Version = serde_json::from_str(&text).map_err(|_| said(&"it is not a credential"))?;
        if version.version != VERSION {
            return Err(said(&format_args!("its version is {}, this program knows {VERSION}", version.version)));
        }
        let credential = serde_json::from_str(&text).ok().and_then(Written::read);
        let credential = credential.ok_or_else(|| said(&"it is not a credential"))?;
        Ok(Some((credential, stamp)))
    }

    /// Replaces the file; when this returns the credential is on disk. Whoever calls it holds the lock.
    ///
    /// # Errors
    /// When it cannot be written: why.
    pub(super) async fn save(&self, credential: Credential) -> Result<(), String> {
        let said = |error: &dyn fmt::Display| {
            format!("the credential {} cannot be written: {error}", self.file.path().display())
        };
        let text = serde_json::to_string_pretty(&Written::from(credential)).map_err(|error| said(&error))?;
        self.file.replace(text).await.map_err(|error| said(&error))
    }

    /// Waits until nobody else renews the credential: neither here nor in another process.
    ///
    /// # Errors
    /// When it cannot be had: why.
    pub(super) async fn lock(&self) -> Result<Lock, String> {
        self.file.lock().await
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

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
        fs::create_dir_all(file.file.path().parent().unwrap()).unwrap();
        let check = |text: &str, expected: &str| {
            fs::write(file.file.path(), text).unwrap();
            let error = file.load().unwrap_err();
            assert!(error.ends_with(expected) && !error.contains("s3cret"), "{error}");
        };
        check("s3cret", "it is not a credential");
        check(r#"{"version": 1, "access_token": "s3cret"}"#, "it is not a credential");
        check(r#"{"version": 2}"#, "its version is 2, this program knows 1");
    }
}
