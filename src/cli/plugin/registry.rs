//! `switchbell plugin push`, and pulling what was pushed: plugins as artifacts of an OCI registry.
//!
//! The form is that of the CNCF's working group on WebAssembly (tag-runtime.cncf.io/wgs/wasm/deliverables/wasm-oci-artifact):
//! an image manifest with a config of type `application/vnd.wasm.config.v0+json` and exactly one layer, the component. So
//! what `wkg oci push` wrote can be pulled, and the other way round. A signature of minisign is an annotation of the layer.
//! Nothing in an artifact depends on when or where it was pushed: the same file gives the same digest.

mod client;
mod credentials;
mod reference;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::sandbox;
use crate::cli::FOUND_WRONG;
use crate::cli::output::{fail, print_for_people, print_json, tell};
use crate::config::{Limits, process_environment};
use crate::wasm::catalog::read_file;
use crate::wasm::catalog::trust::SIGNATURE_BYTES_MAX;
use crate::wasm::{LoadError, PLUGIN_BYTES_MAX, Plugin, file_digest};
use client::{Access, Client};
use credentials::credentials;
use reference::Reference;

/// How a reference to a registry begins.
pub(super) const SCHEME: &str = "oci://";

/// The annotation of the layer that holds the text of the `.minisig` file.
const SIGNATURE: &str = "dev.switchbell.minisig";

const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG_TYPE: &str = "application/vnd.wasm.config.v0+json";
const LAYER_TYPE: &str = "application/wasm";

/// The time that is told where one must be: that of the push would make every push another artifact.
const NO_TIME: &str = "1970-01-01T00:00:00Z";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Push {
    /// The plugin's file, with its signature in FILE.minisig where there is one.
    #[arg(value_name = "FILE")]
    plugin: PathBuf,
    /// Where to: oci://REGISTRY/REPOSITORY:TAG.
    #[arg(value_name = "REFERENCE")]
    to: String,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// A plugin from a registry.
#[derive(Debug)]
pub(super) struct Pulled {
    /// The component, at most as large as a plugin may be.
    pub(super) bytes: Vec<u8>,
    /// The text of its signature.
    pub(super) signature: Option<String>,
}

/// The part of a manifest that matters here (OCI image specification 1.1).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    #[serde(default)]
    layers: Vec<Descriptor>,
    /// Of an index, which a registry may send whatever is accepted.
    manifests: Option<Value>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: String,
    size: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
}

/// What is to be pushed.
struct Artifact {
    config: Vec<u8>,
    manifest: Vec<u8>,
}

/// Pulls a plugin. Every byte is compared with the digest that names it; who may be trusted is another question, which
/// `plugins.trust` and `plugins.pins` answer.
///
/// # Errors
/// What went wrong where, and what to do.
pub(super) async fn pull(reference: &str) -> Result<Pulled, String> {
    let about = |message: String| format!("{reference}: {message}");
    let asked: Reference = reference.parse().map_err(about)?;
    let credentials = credentials(&asked, &process_environment).map_err(about)?;
    let mut client = Client::new(&asked, Access::Pull, credentials).map_err(about)?;
    let text = client.manifest(asked.pointer(), MANIFEST_TYPE).await.map_err(about)?;
    if asked.digest().is_some_and(|digest| digest != digest_of(&text)) {
        return Err(about("the registry sent another manifest than the digest says".into()));
    }
    let mut layer = layer(&text).map_err(about)?;
    let bytes = client.blob(&layer.digest, PLUGIN_BYTES_MAX).await.map_err(about)?;
    if digest_of(&bytes) != layer.digest {
        return Err(about(format!("what the registry sent is not {}", layer.digest)));
    }
    Ok(Pulled { bytes, signature: layer.annotations.remove(SIGNATURE) })
}

/// The one layer of an artifact that is a plugin.
fn layer(manifest: &[u8]) -> Result<Descriptor, String> {
    let manifest: Manifest =
        serde_json::from_slice(manifest).map_err(|error| format!("the registry sent no manifest: {error}"))?;
    if manifest.manifests.is_some() {
        return Err("it is an index of several artifacts; name one of them by its digest".into());
    }
    let found: Vec<&str> = manifest.layers.iter().map(|layer| layer.media_type.as_str()).collect();
    if found != [LAYER_TYPE] {
        let found = if found.is_empty() { "no layer".to_owned() } else { found.join(", ") };
        let found: String = found.chars().take(200).collect();
        return Err(format!(
            "it is no plugin: it has {found:?} where one layer of type {LAYER_TYPE} belongs; push it with switchbell \
             plugin push, or wkg oci push"
        ));
    }
    let layer = manifest.layers.into_iter().next().ok_or("it has no layer")?;
    if layer.size > PLUGIN_BYTES_MAX as u64 {
        return Err(LoadError::TooLarge.to_string());
    }
    reference::checked_digest(&layer.digest)?;
    Ok(layer)
}

pub(super) async fn push(asked: &Push) -> ExitCode {
    match pushed(asked).await {
        Ok(code) | Err(code) => code,
    }
}

async fn pushed(asked: &Push) -> Result<ExitCode, ExitCode> {
    let file = asked.plugin.display();
    let about = |message: String| fail(format_args!("{}: {message}", asked.to));
    let to: Reference = asked.to.parse().map_err(about)?;
    let tag = to.tag_to_push().map_err(about)?;
    let bytes = read_file(&asked.plugin).map_err(|error| fail(format_args!("{file}: cannot be read: {error}")))?;
    let signature = signature(asked)?;
    // What no host loads is not worth pushing.
    let plugin = match sandbox(Limits::default())?.load(bytes.clone()).await {
        Ok(plugin) => plugin,
        Err(error) => {
            tell(format_args!("{file}: {error}"));
            return Ok(ExitCode::from(FOUND_WRONG));
        }
    };
    let artifact = Artifact::of(&plugin, signature.as_deref());
    let credentials = credentials(&to, &process_environment).map_err(about)?;
    let mut client = Client::new(&to, Access::Push, credentials).map_err(about)?;
    for blob in [bytes, artifact.config] {
        client.put_blob(&digest_of(&blob), blob).await.map_err(about)?;
    }
    let digest = digest_of(&artifact.manifest);
    client.put_manifest(tag, MANIFEST_TYPE, artifact.manifest).await.map_err(about)?;
    let by_digest = to.by_digest(&digest);
    if asked.json {
        let manifest = plugin.manifest();
        return Ok(print_json(&json!({
            "name": manifest.name.as_str(), "version": manifest.version, "digest": plugin.digest(),
            "reference": asked.to, "byDigest": by_digest, "signed": signature.is_some(),
        })));
    }
    let signed = if signature.is_some() { ", with its signature" } else { "" };
    let manifest = plugin.manifest();
    Ok(print_for_people(&format!(
        "{} {} is pushed{signed}. This very artifact is {by_digest}\n",
        manifest.name, manifest.version
    )))
}

/// The text of the signature beside the file.
fn signature(asked: &Push) -> Result<Option<String>, ExitCode> {
    let path = format!("{}.minisig", asked.plugin.display());
    match std::fs::read_to_string(&path) {
        Ok(text) if text.len() <= SIGNATURE_BYTES_MAX => Ok(Some(text)),
        Ok(_) => Err(fail(format_args!("{path}: it is too long for a signature of minisign"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(fail(format_args!("{path}: cannot be read: {error}"))),
    }
}

impl Artifact {
    fn of(plugin: &Plugin, signature: Option<&str>) -> Self {
        let manifest = plugin.manifest();
        let layer_digest = format!("sha256:{}", plugin.digest());
        let config = json!({
            "created": NO_TIME,
            "architecture": "wasm",
            "os": "wasip2",
            "layerDigests": [layer_digest],
            "component": { "exports": [plugin.interface()], "imports": plugin.imports(), "target": null },
        });
        let config = config.to_string().into_bytes();
        let descriptor = |media_type: &str, digest: String, size: usize| Descriptor {
            media_type: media_type.to_owned(),
            digest,
            size: size as u64,
            annotations: BTreeMap::new(),
        };
        let mut layer = descriptor(LAYER_TYPE, layer_digest, plugin.size());
        layer.annotations.extend(signature.map(|signature| (SIGNATURE.to_owned(), signature.to_owned())));
        let text = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": descriptor(CONFIG_TYPE, digest_of(&config), config.len()),
            "layers": [layer],
            "annotations": {
                "org.opencontainers.image.title": manifest.name.as_str(),
                "org.opencontainers.image.version": manifest.version,
                "org.opencontainers.image.description": manifest.summary,
            },
        });
        Self { config, manifest: text.to_string().into_bytes() }
    }
}

/// As OCI writes the digest of bytes, none of which are more than a plugin may have.
fn digest_of(bytes: &[u8]) -> String {
    format!("sha256:{}", file_digest(bytes).unwrap_or_default())
}
