//! A program whose configuration changes while it runs.

use std::fs;

use serde_json::Value;

use crate::support::{Posting, Server, run, versioned};

/// A program whose routes deliver by a plugin that posts.
pub struct Stage {
    pub posting: Posting,
}

/// A target that posts to `/hook`, with what stands besides.
pub fn target(more: &str) -> String {
    format!("{{ plugin: versioned, id: hook, with: {{ url: \"AT/hook\" }}{more} }}")
}

impl Stage {
    pub async fn new() -> Self {
        Self::with(&target("")).await
    }

    /// With this one target.
    pub async fn with(target: &str) -> Self {
        Self::behaving("plain", target).await
    }

    /// With a plugin that does what the guest calls by this word.
    pub async fn behaving(behaviour: &str, target: &str) -> Self {
        let posting = Posting::new(&["versioned"], "", &[target.to_owned()]).await;
        fs::write(posting.world.path("plugins/versioned.wasm"), versioned("versioned", "1.0.0", behaviour)).unwrap();
        Self { posting }
    }

    pub fn read(&self, file: &str) -> String {
        fs::read_to_string(self.posting.world.path(file)).unwrap()
    }

    /// Writes a file with one text in the place of another.
    pub fn edit(&self, file: &str, from: &str, to: &str) {
        let text = self.read(file);
        assert!(text.contains(from), "{from:?} is not in {text}");
        self.posting.world.write(file, &text.replacen(from, to, 1));
    }

    /// Adds a route that sends what matches to another path.
    pub fn add_route(&self, name: &str, path: &str) {
        let at = format!("http://{}", self.posting.endpoint.address);
        let route = format!(
            "  - name: {name}\n    owner: admin@example.com\n    when: {{ source: registrar }}\n    deliver:\n      - \
             {{ plugin: versioned, id: {name}, with: {{ url: \"{at}{path}\" }} }}\n"
        );
        self.posting.world.write("workspaces/acme.yaml", &(self.read("workspaces/acme.yaml") + &route));
    }

    pub fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        run(&self.posting.world, &self.posting.sink, arguments)
    }

    pub fn check(&self, arguments: &[&str], code: i32, says: &[&str]) -> String {
        let (found, out, error) = self.run(arguments);
        let said = format!("{out}{error}");
        assert_eq!(found, code, "{arguments:?} said: {said}");
        for text in says {
            assert!(said.contains(text), "{arguments:?} does not say {text:?}: {said}");
        }
        said
    }

    /// Reloads, and says what changed.
    pub fn reload(&self) -> Value {
        let (code, out, error) = self.run(&["reload", "--json"]);
        assert_eq!(code, 0, "{out}{error}");
        serde_json::from_str::<Value>(&out).unwrap()["taken"].take()
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        self.posting.world.json(&self.posting.sink, arguments)
    }

    /// Adds an event and returns once it is in the inbox.
    pub fn add(&self, title: &str) {
        self.posting.add(&["--title", title]);
        self.check(&["connector", "poll", "registrar"], 0, &["registrar: "]);
    }

    /// The next request: its path and its body.
    pub async fn arrived(&mut self) -> (String, String) {
        let arrived = self.posting.endpoint.next().await;
        (arrived.target, arrived.body)
    }

    /// Every delivery, newest first: its route, its state and its next moment.
    pub fn deliveries(&self) -> Vec<(String, String, Value)> {
        let all = self.json(&["deliveries", "list"]);
        let text = |of: &Value| of.as_str().unwrap().to_owned();
        let one = |of: &Value| (text(&of["route"]), text(&of["state"]), of["dueAt"].clone());
        all.as_array().unwrap().iter().map(one).collect()
    }

    /// The names of what the host itself wrote into the inbox, oldest first.
    pub fn notices(&self) -> Vec<String> {
        let all = self.json(&["inbox", "list", "--limit", "100"]);
        let is_own = |of: &&Value| of["source"] == "switchbell";
        let mut names: Vec<String> =
            all.as_array().unwrap().iter().filter(is_own).map(|of| of["name"].as_str().unwrap().to_owned()).collect();
        names.reverse();
        names
    }

    /// A line of `/metrics`.
    pub async fn metric(&self, server: &Address, name: &str) -> String {
        let text = reqwest::get(format!("http://{}/metrics", server.0)).await.unwrap().text().await.unwrap();
        let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).map(str::to_owned);
        line.unwrap_or_else(|| panic!("{name} is not in {text}"))
    }

    pub fn begin(&self) -> Server {
        self.posting.begin()
    }

    /// Starts it, and says where it listens.
    pub fn begin_at(&self) -> (Server, Address) {
        let mut server = crate::support::Server::spawn_serving(&self.posting.world, &self.posting.sink);
        let ready = server.wait_for(" ready ");
        let at = ready.split_once("listen=").unwrap().1.split_whitespace().next().unwrap().to_owned();
        server.wait_for("bootstrap=true");
        (server, Address(at))
    }
}

/// Where a server listens.
pub struct Address(String);
