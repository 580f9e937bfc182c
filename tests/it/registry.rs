//! Plugins in OCI registries: Debian's `docker-registry`, with and without credentials, and registries that misbehave.

mod debian;
mod pretended;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::{Sink, TOKEN, World, operator, versioned};

/// A plugin to push, and who pushes it.
struct Author {
    folder: tempfile::TempDir,
}

impl Author {
    fn new() -> Self {
        let author = Self { folder: tempfile::tempdir().unwrap() };
        author.writes(&versioned("pager", "1.2.3", "plain"));
        author
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("pager.wasm")
    }

    fn writes(&self, plugin: &[u8]) {
        fs::write(self.file(), plugin).unwrap();
    }

    fn signs(&self, signature: &str) {
        fs::write(self.folder.path().join("pager.wasm.minisig"), signature).unwrap();
    }

    /// Logs in as `docker login` does: user and password in Base64.
    fn logs_in(&self, registry: &str, auth: &str) {
        let config = format!(r#"{{"auths":{{"{registry}":{{"auth":"{auth}"}}}}}}"#);
        fs::write(self.folder.path().join("config.json"), config).unwrap();
    }

    fn push(&self, to: &str) -> (i32, String, String) {
        let mut command = program(self.folder.path());
        said(command.args(["plugin", "push", "--json"]).arg(self.file()).arg(to))
    }

    /// Pushes, and returns what is said of it.
    fn pushes(&self, to: &str) -> Value {
        let (code, out, error) = self.push(to);
        assert_eq!(code, 0, "{error}");
        serde_json::from_str(&out).unwrap()
    }

    /// Loads from a registry into a folder of plugins of its own.
    async fn load(&self, from: &str) -> (i32, String, World) {
        self.load_trusting(from, "").await
    }

    /// The same, where `plugins` begins with these lines.
    async fn load_trusting(&self, from: &str, plugins: &str) -> (i32, String, World) {
        let sink = Sink::start().await;
        let commands = "{ outbox: { run: [cat], workspaces: [acme] } }";
        let world = World::new(&sink, commands, &World::stdio_connector());
        let config = operator(&sink, commands).replace("plugins:\n", &format!("plugins:\n{plugins}"));
        world.write("switchbell.yaml", &config);
        let mut command = program(self.folder.path());
        command.arg("--config").arg(world.config()).env("SLACK_OPS", sink.webhook()).env("OUTBOX_TOKEN", TOKEN);
        let (code, out, error) = said(command.args(["plugin", "load", from]));
        (code, out + &error, world)
    }

    /// Loads what is there, which is the plugin that this author has.
    async fn loads(&self, from: &str) {
        let (code, said, world) = self.load(from).await;
        assert_eq!(code, 0, "{said}");
        assert!(said.contains("pager"), "{said}");
        let loaded = fs::read(world.path("plugins/pager.wasm")).unwrap();
        assert!(loaded == fs::read(self.file()).unwrap(), "the folder holds another plugin than was pushed");
    }

    async fn cannot_load(&self, from: &str, expected: &str) {
        let (code, said, world) = self.load(from).await;
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(from) && said.contains(expected), "it does not say {expected:?}: {said}");
        assert!(!world.path("plugins/pager.wasm").exists());
    }
}

/// The program, with the credentials in `folder`.
fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchbell"));
    command.current_dir(folder).env("DOCKER_CONFIG", folder).env_remove("SWITCHBELL_CONFIG");
    command
}

fn said(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}
