//! The promise: what the webhook plugin sends is what receivers' own libraries read.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::process::{Command, Output, Stdio};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::{Outbox, PATIENCE, Server, Sink, World, operator, prepared, python_outbox, root, workspace};

/// Data whose keys are in no order.
const DATA: &str = r#"{"b":1,"a":1.5,"text":"ü"}"#;

/// A request as it arrived.
#[derive(Debug)]
struct Arrived {
    path: String,
    headers: BTreeMap<String, String>,
    body: String,
}

/// An endpoint that takes everything.
struct Endpoint {
    address: SocketAddr,
    arrived: mpsc::UnboundedReceiver<Arrived>,
}

impl Endpoint {
    async fn open() -> Self {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, arrived) = mpsc::unbounded_channel();
        let service = Router::new().fallback(take).with_state(sender);
        tokio::spawn(async move { axum::serve(listener, service).await });
        Self { address, arrived }
    }

    /// The next so many requests, by their paths.
    async fn next(&mut self, count: usize) -> BTreeMap<String, Arrived> {
        let mut found = BTreeMap::new();
        for _ in 0..count {
            let next = tokio::time::timeout(PATIENCE, self.arrived.recv()).await;
            let arrived = next.expect("too few requests came").unwrap();
            found.insert(arrived.path.clone(), arrived);
        }
        found
    }
}

async fn take(
    State(sender): State<mpsc::UnboundedSender<Arrived>>,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> StatusCode {
    let text = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
        (name.to_string(), value.to_str().unwrap().to_owned())
    };
    let headers = headers.iter().map(text).collect();
    sender.send(Arrived { path: uri.path().to_owned(), headers, body }).unwrap();
    StatusCode::ACCEPTED
}

/// What a receiver's library reads.
fn read(how: &str, arrived: &Arrived) -> Value {
    let python = prepared("tests/peers/webhooks/.venv/bin/python", "deps");
    let script = root().join("tests/peers/webhooks/read.py");
    let mut command = Command::new(python);
    command.arg(script).arg(how).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let request = json!({ "headers": arrived.headers, "body": arrived.body });
    child.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    assert!(status.success(), "{how}: {arrived:?}\n{}", String::from_utf8_lossy(&stderr));
    serde_json::from_slice(&stdout).unwrap()
}

/// A world whose one route delivers to the endpoint in each format, digests of what `collect` says.
struct Stage {
    outbox: Outbox,
    endpoint: Endpoint,
    sink: Sink,
    world: World,
    _folder: tempfile::TempDir,
}

async fn stage(collect: &str) -> Stage {
    let folder = tempfile::tempdir().unwrap();
    let outbox = python_outbox(folder.path());
    let (sink, endpoint) = (Sink::start().await, Endpoint::open().await);
    let world = World::new(&sink, &outbox.commands(), &World::stdio_connector());
    let address = endpoint.address;
    let grant = format!("  grants:\n    webhook: {{ http: [\"http://{address}\"] }}\n");
    world.write("switchbell.yaml", &operator(&sink, &outbox.commands()).replace("  grants:\n", &grant));
    let target = |format: &str| {
        let with = format!("{{ url: \"http://{address}/{format}\", format: {format} }}");
        format!("      - {{ plugin: webhook, with: {with}{collect} }}\n")
    };
    let all = workspace(&World::stdio_connector(), "{ source: registrar }");
    let (before, _) = all.split_once("      - plugin: slack").unwrap();
    let targets = ["standard", "cloudevents", "cloudevents-binary"].map(target).concat();
    world.write("workspaces/acme.yaml", &format!("{before}{targets}"));
    std::fs::copy(prepared("dist/plugins/webhook.wasm", "plugins"), world.path("plugins/webhook.wasm")).unwrap();
    Stage { outbox, endpoint, sink, world, _folder: folder }
}

impl Stage {
    fn begin(&self) -> Server {
        let mut server = Server::start(&self.world, &self.sink);
        server.wait_for("bootstrap=true");
        server
    }

    fn add(&self, title: &str) {
        let text = ["--level", "urgent", "--subject", "example.com", "--data", DATA];
        self.outbox.add(&[&["domain.active", "--title", title], &text[..]].concat());
    }
}

#[tokio::test]
async fn an_event_arrives_in_each_format_as_libraries_read_it() {
    let mut stage = stage("").await;
    let _server = stage.begin();
    stage.add("größe \u{1F514} 100%");
    let arrived = stage.endpoint.next(3).await;
    let (structured, binary) = (&arrived["/cloudevents"], &arrived["/cloudevents-binary"]);
    for event in [read("event", structured), read("event", binary)] {
        let attributes = &event["attributes"];
        assert_eq!((&attributes["specversion"], &attributes["type"]), (&json!("1.0"), &json!("domain.active")));
        assert_eq!(attributes["source"], "/switchbell/acme/registrar");
        assert!(attributes["id"].as_str().unwrap().starts_with("acme/registrar/"), "{attributes}");
        assert_eq!((&attributes["subject"], &attributes["level"]), (&json!("example.com"), &json!("attention")));
        assert_eq!((&attributes["title"], &attributes["seq"]), (&json!("größe 🔔 100%"), &json!("1")));
        assert_eq!(event["data"], serde_json::from_str::<Value>(DATA).unwrap());
    }
    let without_type = |event: Value| {
        let mut attributes = event["attributes"].as_object().unwrap().clone();
        attributes.remove("datacontenttype");
        attributes
    };
    assert_eq!(without_type(read("event", structured)), without_type(read("event", binary)), "both say the same");

    let standard = &arrived["/standard"];
    let payload: Value = serde_json::from_str(&standard.body).unwrap();
    assert_eq!((&payload["type"], &payload["data"]["title"]), (&json!("domain.active"), &json!("größe 🔔 100%")));
    let ids: std::collections::BTreeSet<&str> =
        arrived.values().map(|arrived| arrived.headers["webhook-id"].as_str()).collect();
    assert_eq!(ids.len(), 3, "each delivery has an id of its own");
    for arrived in arrived.values() {
        let body = arrived.body.replace(' ', "");
        assert!(body.contains(r#""b":1,"a":1.5,"text":"ü""#), "the keys are not in their order: {body}");
    }
}

#[tokio::test]
async fn a_digest_arrives_as_a_batch() {
    let mut stage = stage(", collect: { by: none, wait: 2s, most: 2 }").await;
    let _server = stage.begin();
    ["one", "two"].iter().for_each(|title| stage.add(title));
    let arrived = stage.endpoint.next(3).await;
    for path in ["/cloudevents", "/cloudevents-binary"] {
        let batch = read("batch", &arrived[path]);
        let titles: Vec<&Value> = batch.as_array().unwrap().iter().map(|event| &event["attributes"]["title"]).collect();
        assert_eq!(titles, ["one", "two"], "{path}");
    }
    let digest: Value = serde_json::from_str(&arrived["/standard"].body).unwrap();
    assert_eq!((&digest["type"], &digest["data"]["omitted"]), (&json!("switchbell.digest"), &json!(0)));
    assert_eq!(digest["data"]["notifications"].as_array().unwrap().len(), 2);
}
