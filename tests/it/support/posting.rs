//! A world that posts to an endpoint.

use super::{Endpoint, Outbox, Server, Sink, World, operator, prepared, python_outbox, root, workspace};

/// The program, whose one route posts to an endpoint.
pub struct Posting {
    pub outbox: Outbox,
    pub endpoint: Endpoint,
    pub sink: Sink,
    pub world: World,
    _folder: tempfile::TempDir,
}

impl Posting {
    /// One route to these targets, by these plugins or guests, with these lines of `secrets:`. In targets and secrets `AT`
    /// is the endpoint's URL.
    pub async fn new(plugins: &[&str], secrets: &str, targets: &[String]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let outbox = python_outbox(folder.path());
        let (sink, endpoint) = (Sink::start().await, Endpoint::open().await);
        let world = World::new(&sink, &outbox.commands(), &World::stdio_connector());
        let at = format!("http://{}", endpoint.address);
        let mut grants = String::new();
        for plugin in plugins {
            grants.push_str(&format!("    {plugin}: {{ http: [\"{at}\"] }}\n"));
            let (path, by) = match root().join(format!("plugins/{plugin}")).exists() {
                true => (format!("dist/plugins/{plugin}.wasm"), "plugins"),
                false => (format!("dist/guests/{plugin}.wasm"), "guests"),
            };
            std::fs::copy(prepared(&path, by), world.path(&format!("plugins/{plugin}.wasm"))).unwrap();
        }
        let file = operator(&sink, &outbox.commands()).replace("  grants:\n", &format!("  grants:\n{grants}"));
        world.write("switchbell.yaml", &format!("{file}{}", secrets.replace("AT/", &format!("{at}/"))));
        let all = workspace(&World::stdio_connector(), "{ source: registrar }");
        let (before, _) = all.split_once("      - plugin: slack").unwrap();
        let targets: String = targets.iter().map(|target| format!("      - {target}\n")).collect();
        world.write("workspaces/acme.yaml", &format!("{before}{}", targets.replace("AT/", &format!("{at}/"))));
        Self { outbox, endpoint, sink, world, _folder: folder }
    }

    /// Starts the program.
    pub fn serve(&self) -> Server {
        Server::start(&self.world, &self.sink)
    }

    /// Starts it for the first time: what is added from now on is new.
    pub fn begin(&self) -> Server {
        let mut server = self.serve();
        server.wait_for("bootstrap=true");
        server
    }

    /// Adds an event.
    pub fn add(&self, arguments: &[&str]) {
        self.outbox.add(&[&["domain.active"], arguments].concat());
    }
}
