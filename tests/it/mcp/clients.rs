//! The official clients, over HTTP and over `switchbell mcp`.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::stage::{Stage, event};
use crate::support::{prepared, root};

#[derive(Clone, Copy, Debug)]
enum Client {
    Python1,
    Python2,
    TypeScript1,
    TypeScript2,
}

impl Client {
    fn words(self) -> Vec<PathBuf> {
        let file = |name: &str| root().join("tests/peers/mcp-clients").join(name);
        let node = |name: &str| {
            prepared("tests/peers/mcp-clients/node_modules", "deps");
            vec!["node".into(), file(name)]
        };
        let python = |path: &str| vec![prepared(path, "deps"), file("python_client.py")];
        match self {
            Self::Python1 => python("tests/peers/fastmcp-2/.venv/bin/python"),
            Self::Python2 => python("examples/outbox-python/.venv/bin/python"),
            Self::TypeScript1 => node("typescript-1.mjs"),
            Self::TypeScript2 => node("typescript-2.mjs"),
        }
    }

    fn revision(self) -> &'static str {
        match self {
            Self::Python1 | Self::TypeScript1 => "2025-11-25",
            Self::Python2 | Self::TypeScript2 => "2026-07-28",
        }
    }

    /// What it got, reaching the server in this way.
    async fn run(self, way: &Value) -> Value {
        let words = self.words();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(way.to_string());
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{self:?} {way}: {said}"))
    }
}

async fn check(client: Client) {
    let stage = Stage::start().await;
    let token = stage.agent().await;
    stage.accept("acme", "crm", ["1", "2", "3"].map(event).to_vec()).await;
    let program = [env!("CARGO_BIN_EXE_switchbell"), "--config", stage.config().to_str().unwrap(), "mcp"].map(str::to_owned);
    for way in [
        json!({ "url": stage.url, "token": token }),
        json!({ "command": program, "environment": { "SWITCHBELL_TOKEN": token } }),
    ] {
        let found = client.run(&way).await;
        assert_eq!(found["server"], "switchbell", "{client:?}");
        if !found["revision"].is_null() {
            assert_eq!(found["revision"], client.revision(), "{client:?}");
        }
        assert_eq!(found["tools"].as_array().unwrap().len(), 3, "{client:?}");
        let listed = &found["listed"];
        assert_eq!(listed["structuredContent"]["items"][2]["eventId"], "3", "{client:?}: {listed}");
        assert_eq!(listed["structuredContent"]["items"][0]["data"]["b"], 1.5, "{client:?}");
        assert!(listed["content"][0]["text"].as_str().unwrap().contains(&event("1").data), "{client:?}");
        assert_eq!(found["acknowledged"]["structuredContent"]["marked"], json!([1]), "{client:?}");
        assert_eq!(found["refused"]["isError"], true, "{client:?}");
        assert_eq!(found["resources"][0]["uri"], "switchbell://notifications", "{client:?}");
        let template = "switchbell://notifications{?cursor,maxEvents,maxAgeMs}";
        assert_eq!(found["templates"][0]["uriTemplate"], template, "{client:?}");
        assert_eq!(found["start"]["events"], json!([]), "{client:?}");
        let page = &found["page"];
        assert_eq!((&page["events"][1]["eventId"], &page["hasMore"]), (&json!("acme:crm:2"), &json!(true)), "{client:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_1_reads_and_acknowledges() {
    check(Client::Python1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_2_reads_and_acknowledges() {
    check(Client::Python2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_typescript_sdk_1_reads_and_acknowledges() {
    check(Client::TypeScript1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_typescript_sdk_2_reads_and_acknowledges() {
    check(Client::TypeScript2).await;
}
