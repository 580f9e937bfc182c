//! A server with an inbox, and a browser that is signed in.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Browser, Outbox, Server, Sink, World, free_port, python_outbox, run};

/// What an outbox has answered once: events added after that are new.
const BOOTSTRAPPED: &str = "bootstrap=true";

/// A server, what it reads, where it delivers to, and a browser.
pub(super) struct Stage {
    pub(super) browser: Browser,
    pub(super) server: Option<Server>,
    pub(super) outbox: Outbox,
    pub(super) sink: Sink,
    pub(super) world: World,
    _folder: tempfile::TempDir,
}

impl Stage {
    /// The browser is signed in as the operator, by a link, and shows the inbox of `acme`.
    pub(super) async fn new() -> Self {
        Self::with(|_, _| {}).await
    }

    /// The same, with files of the world written before the server starts.
    pub(super) async fn with(prepare: impl FnOnce(&World, &Outbox)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let outbox = python_outbox(folder.path());
        let sink = Sink::start().await;
        let world = World::new(&sink, &outbox.commands(), &World::stdio_connector());
        let address = format!("127.0.0.1:{}", free_port());
        prepare(&world, &outbox);
        let file = fs::read_to_string(world.config()).unwrap();
        world.write("switchbell.yaml", &file.replace("127.0.0.1:0\n", &format!("{address}\n")));
        let mut server = Server::start(&world, &sink);
        server.wait_for(BOOTSTRAPPED);
        let browser = Browser::start(&format!("http://{address}"));
        let mut stage = Self { browser, server: Some(server), outbox, sink, world, _folder: folder };
        let link = stage.link(&["--role", "operator"]);
        stage.run("await page.goto(args); await page.waitForURL('**/w/acme/inbox')", json!(link)).await;
        stage
    }

    /// A link that signs in with such a role.
    pub(super) fn link(&self, role: &[&str]) -> String {
        let (code, out, error) =
            run(&self.world, &self.sink, &[&["token", "create", "--link", "--json"], role].concat());
        assert_eq!(code, 0, "{error}");
        let made: Value = serde_json::from_str(&out).unwrap();
        made["link"].as_str().unwrap().to_owned()
    }

    /// Runs a script in the browser.
    pub(super) async fn run(&mut self, script: &str, args: Value) -> Value {
        self.browser.run(script, args).await
    }

    /// Adds an event, and waits until the page that is shown has its title.
    pub(super) async fn arrives(&mut self, title: &str, more: &[&str]) {
        self.add(title, more);
        self.run("await page.getByRole('link', { name: args }).first().waitFor()", json!(title)).await;
    }

    /// Adds an event.
    pub(super) fn add(&self, title: &str, more: &[&str]) {
        self.outbox.add(&[&["domain.active", "--title", title], more].concat());
    }

    /// Stops the server, as an operator does.
    pub(super) fn stop(&mut self) {
        let (status, _, said) = self.server.take().unwrap().stop(Signal::TERM);
        assert!(status.success(), "{said}");
    }

    /// Starts it again, at the same address.
    pub(super) fn start(&mut self) {
        self.server = Some(Server::start(&self.world, &self.sink));
    }

    /// Ends the browser, which has seen nothing that it should not.
    pub(super) async fn end(mut self) {
        self.browser.has_seen_nothing().await;
        self.browser.end().await;
    }
}
