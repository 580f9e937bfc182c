//! Debian's `docker-registry`, the reference implementation of the API.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::Author;
use crate::support::{PATIENCE, versioned};

/// `pusher` with the password `pa:ss`, as `htpasswd -B` writes it and as `docker login` does.
const PASSWORDS: &str = "pusher:$2y$05$D9MMkw/isQ/30OXyswypxOpR8lES/P9cjYTwhXeMQ878JQfkdkBxG\n";
const PUSHER: &str = "cHVzaGVyOnBhOnNz";
const STRANGER: &str = "c3RyYW5nZXI6cGE6c3M=";

/// A registry of the test's own.
struct Registry {
    child: Child,
    address: String,
    _folder: TempDir,
}

impl Registry {
    fn start(auth: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display();
        fs::write(folder.path().join("passwords"), PASSWORDS).unwrap();
        let auth = if auth {
            format!("auth: {{ htpasswd: {{ realm: test, path: {path}/passwords }} }}\n")
        } else {
            String::new()
        };
        let config = format!(
            "version: 0.1\nlog: {{ level: info }}\nstorage: {{ filesystem: {{ rootdirectory: {path}/data }} }}\nhttp: {{ addr: \
             '127.0.0.1:0' }}\n{auth}"
        );
        fs::write(folder.path().join("config.yml"), config).unwrap();
        let mut command = Command::new("docker-registry");
        command.arg("serve").arg(folder.path().join("config.yml")).stdin(Stdio::null()).stdout(Stdio::null());
        let started = command.stderr(Stdio::piped()).spawn();
        let mut child = started.unwrap_or_else(|error| panic!("docker-registry: {error}; run `make deps`"));
        let (sender, lines) = std::sync::mpsc::channel();
        let said = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        std::thread::spawn(move || said.for_each(|line| drop(sender.send(line))));
        let mut seen = Vec::new();
        let address = loop {
            let line = lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no registry came up: {seen:?}"));
            if let Some((_, rest)) = line.split_once("listening on ") {
                break rest.split(['"', ' ']).next().unwrap().to_owned();
            }
            seen.push(line);
        };
        Self { child, address, _folder: folder }
    }

    fn reference(&self, name: &str) -> String {
        format!("oci://{}/{name}", self.address)
    }

    async fn get(&self, path: &str, accept: &str) -> Value {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::new();
        let url = format!("http://{}/v2/{path}", self.address);
        let response = client.get(url).header("accept", accept).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_plugin_that_was_pushed_is_loaded_by_tag_and_by_digest() {
    let (registry, author) = (Registry::start(false), Author::new());
    let pushed = author.pushes(&registry.reference("team/pager:1.2.3"));
    assert_eq!(
        (&pushed["name"], &pushed["version"], &pushed["signed"]),
        (&json!("pager"), &json!("1.2.3"), &json!(false))
    );
    author.loads(&registry.reference("team/pager:1.2.3")).await;
    let by_digest = pushed["byDigest"].as_str().unwrap();
    author.loads(by_digest).await;
    // The tag moves on, the digest does not.
    let first = fs::read(author.file()).unwrap();
    author.writes(&versioned("pager", "1.3.0", "plain"));
    author.pushes(&registry.reference("team/pager:1.2.3"));
    author.loads(&registry.reference("team/pager:1.2.3")).await;
    author.writes(&first);
    author.loads(by_digest).await;
}

#[tokio::test]
async fn the_same_file_is_the_same_artifact_wherever_it_is_pushed() {
    let (registry, other, author) = (Registry::start(false), Registry::start(false), Author::new());
    let digest = |pushed: Value| pushed["byDigest"].as_str().unwrap().split_once('@').unwrap().1.to_owned();
    let first = digest(author.pushes(&registry.reference("pager:1")));
    assert_eq!(digest(author.pushes(&registry.reference("pager:1"))), first);
    assert_eq!(digest(author.pushes(&other.reference("elsewhere/pager:2"))), first);
}

/// The layout of the CNCF's WebAssembly artifact, as `wkg oci push` writes it.
#[tokio::test]
async fn the_artifact_has_the_standard_layout() {
    let (registry, author) = (Registry::start(false), Author::new());
    author.signs("untrusted comment: signature\nRUTx\n");
    let pushed = author.pushes(&registry.reference("pager:1.2.3"));
    assert_eq!(pushed["signed"], json!(true));
    let manifest = registry.get("pager/manifests/1.2.3", "application/vnd.oci.image.manifest.v1+json").await;
    let layer = format!("sha256:{}", pushed["digest"].as_str().unwrap());
    let size = fs::metadata(author.file()).unwrap().len();
    assert_eq!(manifest["schemaVersion"], json!(2));
    assert_eq!(manifest["mediaType"], json!("application/vnd.oci.image.manifest.v1+json"));
    assert_eq!(manifest["config"]["mediaType"], json!("application/vnd.wasm.config.v0+json"));
    let signature = json!({"dev.switchbell.minisig": "untrusted comment: signature\nRUTx\n"});
    let expected = json!([{"mediaType": "application/wasm", "digest": layer, "size": size, "annotations": signature}]);
    assert_eq!(manifest["layers"], expected);
    assert_eq!(manifest["annotations"]["org.opencontainers.image.version"], json!("1.2.3"));
    let config = registry.get(&format!("pager/blobs/{}", manifest["config"]["digest"].as_str().unwrap()), "*/*").await;
    assert_eq!((&config["architecture"], &config["os"]), (&json!("wasm"), &json!("wasip2")));
    assert_eq!((&config["layerDigests"], &config["component"]["target"]), (&json!([layer]), &json!(null)));
    assert_eq!(config["component"]["exports"], json!(["switchbell:delivery/plugin@0.1.0"]));
    let imports = config["component"]["imports"].as_array().unwrap();
    assert!(imports.contains(&json!("switchbell:delivery/types@0.1.0")), "{imports:?}");
}

#[tokio::test]
async fn a_signature_travels_with_the_plugin() {
    const TRUST: &str = "  trust: [\"minisign:RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3\"]\n";
    let (registry, author) = (Registry::start(false), Author::new());
    author.pushes(&registry.reference("pager:unsigned"));
    author.signs("no signature of minisign");
    author.pushes(&registry.reference("pager:signed"));
    for (tag, expected) in [("unsigned", "has no signature"), ("signed", "is no signature of minisign")] {
        let (code, said, world) = author.load_trusting(&registry.reference(&format!("pager:{tag}")), TRUST).await;
        assert_eq!(code, 1, "{said}");
        assert!(said.contains(expected), "it does not say {expected:?}: {said}");
        assert!(!world.path("plugins/pager.wasm").exists());
    }
}

#[tokio::test]
async fn a_registry_with_passwords_takes_the_credentials_that_docker_keeps() {
    let (registry, author) = (Registry::start(true), Author::new());
    let reference = registry.reference("pager:1.2.3");
    let (code, _, error) = author.push(&reference);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("wants credentials, and there are none for it in "), "{error}");
    author.logs_in(&registry.address, STRANGER);
    let (code, _, error) = author.push(&reference);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains(r#"refuses "stranger""#) && !error.contains("pa:ss"), "{error}");
    author.logs_in(&registry.address, PUSHER);
    author.pushes(&reference);
    author.loads(&reference).await;
    author.logs_in("other.example", PUSHER);
    author.cannot_load(&reference, "wants credentials, and there are none for it in ").await;
}

#[tokio::test]
async fn what_is_not_there_or_no_plugin_is_said() {
    let (registry, author) = (Registry::start(false), Author::new());
    author.pushes(&registry.reference("pager:1"));
    author.cannot_load(&registry.reference("pager:2"), "nothing is there by this name (HTTP 404").await;
    author.cannot_load(&registry.reference("pager"), "a tag or a digest is missing at its end, such as :1.2.0").await;
    let missing = format!("pager@sha256:{}", "0".repeat(64));
    author.cannot_load(&registry.reference(&missing), "nothing is there by this name").await;
    author.writes(b"\0asm\x01\0\0\0");
    let (code, _, error) = author.push(&registry.reference("pager:3"));
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("pager.wasm: a core module, not a component"), "{error}");
    author.cannot_load(&registry.reference("pager:3"), "nothing is there by this name").await;
}

#[tokio::test]
async fn a_registry_that_does_not_run_is_said() {
    let author = Author::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let reference = format!("oci://{}/pager:1", listener.local_addr().unwrap());
    drop(listener);
    let (code, _, error) = author.push(&reference);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("the registry cannot be reached: "), "{error}");
}
