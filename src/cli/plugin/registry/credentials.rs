//! Credentials of registries, as `docker login`, `podman login` and `oras login` keep them in a file.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::reference::Reference;

/// A user and a password.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) user: String,
    pub(super) password: String,
}

/// What is known about who may use a registry.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Known {
    These(Credentials),
    /// The file, which has none for this registry, or is not there.
    None(PathBuf),
    /// The file leaves them to a program, which is not asked.
    Helper(PathBuf),
}

/// The credentials for the registry of a reference. `environment` looks up environment variables.
///
/// # Errors
/// When the file cannot be read or understood.
pub(super) fn credentials(
    reference: &Reference,
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Known, String> {
    let folder = environment("DOCKER_CONFIG").map(PathBuf::from);
    let home = || PathBuf::from(environment("HOME").unwrap_or_default()).join(".docker");
    let file = folder.unwrap_or_else(home).join("config.json");
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Known::None(file));
        }
        Err(error) => return Err(format!("{}: cannot be read: {error}", file.display())),
    };
    // What a parser quotes of a file with passwords is nobody's business.
    let config: Value = serde_json::from_str(&text)
        .map_err(|error| format!("{}: it is no JSON (line {})", file.display(), error.line()))?;
    let entry = config.get("auths").and_then(Value::as_object).and_then(|auths| {
        let registry = known_as(reference.registry());
        auths.iter().find(|(key, _)| host(key) == registry).map(|(_, entry)| entry)
    });
    let auth = entry.and_then(|entry| entry.get("auth")).and_then(Value::as_str).filter(|auth| !auth.is_empty());
    let Some(auth) = auth else {
        let helper = config.get("credHelpers").and_then(|helpers| helpers.get(reference.registry()));
        let has_helper = helper.is_some() || config.get("credsStore").is_some();
        return Ok(if has_helper { Known::Helper(file) } else { Known::None(file) });
    };
    let decoded = STANDARD.decode(auth).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let pair = decoded.as_deref().and_then(|text| text.trim_end_matches('\0').split_once(':'));
    let (user, password) = pair.ok_or_else(|| {
        format!("{}: auths.{:?}.auth is no user:password in Base64; log in again", file.display(), reference.registry())
    })?;
    Ok(Known::These(Credentials { user: user.to_owned(), password: password.to_owned() }))
}

/// The host that a registry's credentials are kept under.
fn known_as(registry: &str) -> &str {
    if registry == "docker.io" { "index.docker.io" } else { registry }
}

/// The host in a key, which may be a whole URL.
fn host(key: &str) -> &str {
    let rest = key.split_once("://").map_or(key, |(_, rest)| rest);
    rest.split('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(config: Option<&str>, reference: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        if let Some(config) = config {
            std::fs::write(folder.path().join("config.json"), config).unwrap();
        }
        let path = folder.path().as_os_str().to_owned();
        let environment = move |name: &str| (name == "DOCKER_CONFIG").then(|| path.clone());
        match credentials(&reference.parse().unwrap(), &environment) {
            Ok(Known::These(Credentials { user, password })) => format!("{user} {password}"),
            Ok(Known::None(_)) => "none".into(),
            Ok(Known::Helper(_)) => "helper".into(),
            Err(error) => error.replace(&folder.path().display().to_string(), "FOLDER"),
        }
    }

    #[test]
    fn credentials_are_found_as_docker_keeps_them() {
        let config = r#"{"auths":{
            "ghcr.io":{"auth":"bWU6aHVudGVyMjp4"}, "https://index.docker.io/v1/":{"auth":"bWU6eA=="},
            "https://r.example:8443":{"auth":"cjo4NDQz"}, "empty.example":{}, "bad.example":{"auth":"***"}},
            "credHelpers":{"gcr.io":"gcloud"}}"#;
        for (reference, expected) in [
            ("oci://ghcr.io/a:1", "me hunter2:x"),
            ("oci://docker.io/a:1", "me x"),
            ("oci://r.example:8443/a:1", "r 8443"),
            ("oci://r.example/a:1", "none"),
            ("oci://empty.example/a:1", "none"),
            ("oci://gcr.io/a:1", "helper"),
            (
                "oci://bad.example/a:1",
                "FOLDER/config.json: auths.\"bad.example\".auth is no user:password in Base64; log in again",
            ),
        ] {
            assert_eq!(found(Some(config), reference), expected, "{reference}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_or_none_is_told_apart() {
        assert_eq!(found(None, "oci://ghcr.io/a:1"), "none");
        assert_eq!(found(Some(r#"{"credsStore":"desktop"}"#), "oci://ghcr.io/a:1"), "helper");
        assert_eq!(
            found(Some("{\"auths\":\n hunter2"), "oci://ghcr.io/a:1"),
            "FOLDER/config.json: it is no JSON (line 2)"
        );
    }
}
