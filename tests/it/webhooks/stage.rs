//! A world that delivers to an endpoint, and the libraries of receivers.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::{
    Arrived, Endpoint, Outbox, Server, Sink, World, operator, prepared, python_outbox, root, workspace,
};

pub struct Stage {
    pub outbox: Outbox,
    pub endpoint: Endpoint,
    pub sink: Sink,
    pub world: World,
    _folder: tempfile::TempDir,
}

impl Stage {
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

/// What a receiver's library reads.
pub fn read(how: &str, arrived: &Arrived) -> Value {
    verified(how, arrived, "", &json!({})).unwrap_or_else(|why| panic!("{how}: {arrived:?}\n{why}"))
}

/// What a receiver's library reads once it has verified the request by this key; else what it complains of.
pub fn verified(how: &str, arrived: &Arrived, key: &str, more: &Value) -> Result<Value, String> {
    let python = prepared("tests/peers/webhooks/.venv/bin/python", "deps");
    let mut command = Command::new(python);
    command.arg(root().join("tests/peers/webhooks/read.py")).arg(how).env("KEY", key);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let Arrived { method, target, headers, body } = arrived;
    let request = json!({ "method": method, "target": target, "headers": headers, "body": body, "more": more });
    child.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    if !status.success() {
        return Err(String::from_utf8_lossy(&stderr).into_owned());
    }
    Ok(serde_json::from_slice(&stdout).unwrap())
}
