//! A program whose configuration changes while it runs.

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::support::{Posting, Server, run, versioned};

/// A program whose routes deliver by a plugin that posts.
pub struct Stage {
    pub posting: Posting,
    restless: Option<Restless>,
}

/// Keeps a file of the configuration from ever standing still, so that only who asks for a reload gets one.
struct Restless {
    _ends_when_dropped: Sender<()>,
}

impl Restless {
    fn new(file: PathBuf) -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut time = SystemTime::UNIX_EPOCH;
            while receiver.recv_timeout(Duration::from_millis(50)) == Err(RecvTimeoutError::Timeout) {
                time += Duration::from_secs(1);
                let touched = fs::File::options().write(true).open(&file).map(|file| file.set_modified(time));
                if touched.is_err() {
                    break;
                }
            }
        });
        Self { _ends_when_dropped: sender }
    }
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
        let stage = Self { posting, restless: None };
        stage.posting.world.write("restless.txt", "a-value-that-is-never-used");
        let secret = "secrets:\n  restless: { file: restless.txt, in: sign, workspaces: [acme] }\n";
        stage.edit("switchbell.yaml", "secrets:\n", secret);
        let restless = Some(Restless::new(stage.posting.world.path("restless.txt")));
        Self { restless, ..stage }
    }

    /// The same, following its files by itself.
    pub fn watching(mut self) -> Self {
        self.restless = None;
        self
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

    /// Has the server reload as the command does, without a process for it.
    pub async fn ask_for_a_reload(&self) -> Value {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let socket = self.posting.world.path("data/switchbell.db.sock");
        let client = reqwest::Client::builder().unix_socket(socket).no_proxy().build().unwrap();
        let answer = client.post("http://switchbell/v1/reload").send().await.unwrap();
        let (status, taken) = (answer.status(), answer.text().await.unwrap());
        assert_eq!(status, 200, "{taken}");
        serde_json::from_str(&taken).unwrap()
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        self.posting.world.json(&self.posting.sink, arguments)
    }

    /// Adds an event and returns once it is in the inbox.
    pub fn add(&self, title: &str) {
        self.posting.add(&["--title", title]);
        self.check(&["connector", "poll", "registrar", "--workspace", "acme"], 0, &["registrar: "]);
    }

    /// The next request: its path and its body.
    pub async fn arrived(&mut self) -> (String, String) {
        let arrived = self.posting.endpoint.next().await;
        (arrived.target, arrived.body)
    }

    /// Every delivery, newest first: its route, its state and its next moment.
    pub fn deliveries(&self) -> Vec<(String, String, Value)> {
        let all = self.json(&["deliveries", "list", "--workspace", "acme"]);
        let text = |of: &Value| of.as_str().unwrap().to_owned();
        let one = |of: &Value| (text(&of["route"]), text(&of["state"]), of["dueAt"].clone());
        all.as_array().unwrap().iter().map(one).collect()
    }

    /// The names of what the host itself wrote into the inbox, oldest first.
    pub fn notices(&self) -> Vec<String> {
        let all = self.json(&["inbox", "list", "--limit", "100", "--workspace", "acme"]);
        let is_own = |of: &&Value| of["source"] == "switchbell";
        let mut names: Vec<String> =
            all.as_array().unwrap().iter().filter(is_own).map(|of| of["name"].as_str().unwrap().to_owned()).collect();
        names.reverse();
        names
    }

    /// A line of `/metrics`.
    pub async fn metric(&self, server: &Address, name: &str) -> String {
        let _ = rustls::crypto::ring::default_provider().install_default();
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
