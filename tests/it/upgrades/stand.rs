//! A program with one plugin of which there are many versions.

use std::fs;

use serde_json::Value;

use crate::support::{Posting, Server, run, versioned};

/// The file in the folder.
pub const FILE: &str = "plugins/versioned.wasm";

/// A program whose one route delivers by version 1.0.0 of a plugin.
pub struct Stand {
    pub posting: Posting,
}

impl Stand {
    pub async fn new() -> Self {
        Self::with("{ url: \"AT/hook\", wait: 1 }").await
    }

    /// With a gate that holds what is to be approved.
    pub async fn strict() -> Self {
        let stand = Self::new().await;
        let file = fs::read_to_string(stand.path("switchbell.yaml")).unwrap();
        stand.posting.world.write("switchbell.yaml", &file.replace("plugins:\n", "plugins:\n  gate: strict\n"));
        stand
    }

    pub async fn with(settings: &str) -> Self {
        let target = format!("{{ plugin: versioned, id: hook, with: {settings} }}");
        let posting = Posting::new(&["versioned"], "", &[target]).await;
        let stand = Self { posting };
        fs::remove_file(stand.path(FILE)).unwrap();
        stand.put(&versioned("versioned", "1.0.0", "plain"));
        stand
    }

    pub fn path(&self, name: &str) -> std::path::PathBuf {
        self.posting.world.path(name)
    }

    /// Puts a file in the place of the one in the folder, whole.
    pub fn put(&self, bytes: &[u8]) {
        let aside = self.path("plugins/.aside");
        fs::write(&aside, bytes).unwrap();
        fs::rename(aside, self.path(FILE)).unwrap();
    }

    /// Keeps a file beside the folder.
    pub fn aside(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path.display().to_string()
    }

    pub fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        run(&self.posting.world, &self.posting.sink, arguments)
    }

    /// The one plugin, as the server lists it.
    pub fn listed(&self) -> Value {
        let (_, out, error) = self.run(&["plugin", "list", "--json"]);
        let rows: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{error}"));
        rows.as_array().unwrap().iter().find(|row| row["name"] == "versioned").unwrap().clone()
    }

    /// Has an event delivered, and returns what arrived.
    pub async fn deliver(&mut self, server: &mut Server, title: &str) -> (String, String) {
        self.posting.add(&["--title", title]);
        let arrived = self.posting.endpoint.next().await;
        server.wait_for("INFO delivered");
        (arrived.target, arrived.body)
    }

    /// The version and digest of every attempt, newest delivery first.
    pub fn attempts(&self) -> Vec<(String, String)> {
        let (_, out, _) = self.run(&["deliveries", "list", "--json", "--limit", "1000"]);
        let deliveries: Value = serde_json::from_str(&out).unwrap();
        let mut found = Vec::new();
        for delivery in deliveries.as_array().unwrap() {
            for attempt in delivery["attempts"].as_array().unwrap() {
                let text = |key: &str| attempt[key].as_str().unwrap_or_default().to_owned();
                found.push((text("pluginVersion"), text("pluginDigest")));
            }
        }
        found
    }
}

pub fn says(text: &str, expected: &[&str]) {
    for expected in expected {
        assert!(text.contains(expected), "it does not say {expected:?}: {text}");
    }
}
