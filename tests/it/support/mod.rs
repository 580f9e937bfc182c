//! The harness: a folder with a configuration, the program itself, and the worlds around it.

mod agent;
mod authorization;
mod browser;
mod endpoint;
pub mod misbehaving;
mod outbox;
#[path = "../../guests/versioned/patch.rs"]
mod patch;
mod peer;
mod polling;
mod posting;
mod server;
mod sink;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

pub use agent::{Agent, KEY as AGENT_KEY};
pub use authorization::{Authorization, open, refuse, sign_in};
pub use browser::Browser;
pub use endpoint::{Arrived, Endpoint};
pub use outbox::{Outbox, Sdk, TOKEN, python_outbox};
pub use peer::{Over, Peer, Stage, free_port};
pub use polling::Polling;
pub use posting::Posting;
pub use server::{Server, run};
pub use sink::{Reply, Sink};

/// Nothing on one machine takes longer; what does has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The root of the checkout.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A path of the checkout that a make target prepares.
pub fn prepared(path: &str, by: &str) -> PathBuf {
    let path = root().join(path);
    assert!(path.exists(), "{} is missing: run `make {by}`", path.display());
    path
}

/// A plugin of this name and version that does what `tests/guests/versioned` calls by this word.
pub fn versioned(name: &str, version: &str, behaviour: &str) -> Vec<u8> {
    versioned_with(&[("name", name), ("version", version), ("behaviour", behaviour)])
}

/// The guest `versioned` with these fields, of `name`, `version`, `behaviour` and `repeat`.
pub fn versioned_with(fields: &[(&str, &str)]) -> Vec<u8> {
    patch::patch(fs::read(prepared("dist/guests/versioned.wasm", "guests")).unwrap(), fields)
}

/// A folder with a configuration of one workspace, `acme`, whose routes deliver to `sink`.
pub struct World {
    folder: TempDir,
}

impl World {
    /// Writes the operator's file with these `commands`, and the workspace's with these `connectors`. Every event goes
    /// to the sink by the Slack plugin.
    pub fn new(sink: &Sink, commands: &str, connectors: &str) -> Self {
        let world = Self { folder: tempfile::tempdir().unwrap() };
        world.write("workspaces/acme.yaml", &workspace(connectors, "{}"));
        world.write("switchbell.yaml", &operator(sink, commands));
        fs::create_dir_all(world.path("plugins")).unwrap();
        fs::copy(prepared("dist/plugins/slack.wasm", "plugins"), world.path("plugins/slack.wasm")).unwrap();
        world
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file in the folder.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The operator's file.
    pub fn config(&self) -> PathBuf {
        self.path("switchbell.yaml")
    }
}

/// An operator's file: quick polls, the sink granted and its address a secret.
pub fn operator(sink: &Sink, commands: &str) -> String {
    format!(
        "listen: 127.0.0.1:0
store: sqlite:data/switchbell.db
poll: {{ base: 50ms, floor: 20ms, ceiling: 200ms, budget_per_minute: 100000 }}
commands: {commands}
plugins:
  directory: plugins/
  grants:
    slack: {{ http: [\"http://{address}\"] }}
secrets:
  slack-ops: {{ env: SLACK_OPS, in: url, workspaces: [acme] }}
  outbox-token: {{ env: OUTBOX_TOKEN, in: connector, hosts: [127.0.0.1], workspaces: [acme] }}
",
        address = sink.address()
    )
}

/// A workspace's file with one route.
pub fn workspace(connectors: &str, when: &str) -> String {
    format!(
        "members: {{ admin@example.com: admin }}
connectors: {connectors}
routes:
  - name: everything
    owner: admin@example.com
    when: {when}
    deliver:
      - plugin: slack
        with: {{ webhook: {{ secret: slack-ops }} }}
"
    )
}
