//! The live stream of the real program: `/v1/workspaces/{ws}/stream`.

use reqwest::{Client, Response, StatusCode};
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Outbox, PATIENCE, Server, Sink, World, python_outbox, run};

/// A world with one outbox, which is read quickly.
async fn stage(folder: &std::path::Path) -> (Sink, Outbox, World) {
    let sink = Sink::start().await;
    let outbox = python_outbox(folder);
    let world = World::new(&sink, &outbox.commands(), &World::stdio_connector());
    (sink, outbox, world)
}

/// A server that has read its outbox once: what is added from then on is new.
fn started(world: &World, sink: &Sink) -> (Server, String) {
    let server = Server::start(world, sink);
    let url = server.url();
    (server, url)
}

/// A token of this role, and its number.
pub fn token(world: &World, sink: &Sink, role: &[&str]) -> (String, i64) {
    let made = world.json(sink, &[&["token", "create", "--role"], role].concat());
    let text = made["token"].as_str().unwrap_or_else(|| panic!("no token: {made}")).to_owned();
    (text, made["made"]["id"].as_i64().unwrap_or_else(|| panic!("no id: {made}")))
}

fn client() -> Client {
    // A second call in one process keeps the first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::new()
}

/// A reader of the stream of `acme`.
struct Reader {
    response: Response,
    text: String,
}

async fn open(url: &str, token: &str, last: Option<u64>) -> Response {
    let request = client().get(format!("{url}/v1/workspaces/acme/stream")).bearer_auth(token);
    let request = last.into_iter().fold(request, |request, last| request.header("last-event-id", last));
    request.send().await.unwrap()
}

impl Reader {
    async fn new(url: &str, token: &str, last: Option<u64>) -> Self {
        let response = open(url, token, last).await;
        assert_eq!(response.status(), StatusCode::OK);
        for (header, value) in
            [("content-type", "text/event-stream"), ("cache-control", "no-store"), ("x-accel-buffering", "no")]
        {
            assert_eq!(response.headers()[header], value);
        }
        Self { response, text: String::new() }
    }

    /// The next event: its number, name and data; none when the stream has ended.
    async fn event(&mut self) -> Option<(u64, String, Value)> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                if let (Some(id), Some(name), Some(data)) = (field("id: "), field("event: "), field("data: ")) {
                    return Some((id.parse().unwrap(), name, serde_json::from_str(&data).unwrap()));
                }
            }
            let piece = tokio::time::timeout(PATIENCE, self.response.chunk()).await.expect("nothing comes");
            self.text.push_str(std::str::from_utf8(&piece.ok()??).unwrap());
        }
    }

    /// The numbers and names of what comes up to a notification with this title, and its number in the inbox.
    async fn until(&mut self, title: &str) -> (Vec<(u64, String)>, u64) {
        let mut heard = Vec::new();
        loop {
            let (id, name, data) = self.event().await.expect("an event");
            heard.push((id, name.clone()));
            if name == "notification.created" && data["title"] == title {
                return (heard, data["seq"].as_u64().unwrap());
            }
        }
    }
}

#[tokio::test]
async fn a_reader_hears_what_comes_and_after_a_restart_exactly_what_it_missed() {
    let folder = tempfile::tempdir().unwrap();
    let (mut sink, outbox, world) = stage(folder.path()).await;
    let (mut server, url) = started(&world, &sink);
    server.wait_for("bootstrap=true");
    let (token, _) = token(&world, &sink, &["operator"]);
    let mut reader = Reader::new(&url, &token, None).await;
    let (last, name, _) = reader.event().await.unwrap();
    assert_eq!(name, "ready");
    outbox.add(&["domain.active", "--title", "first"]);
    let (heard, seq) = reader.until("first").await;
    assert!(heard.iter().map(|(id, _)| *id).eq(last + 1..=heard.last().unwrap().0), "{heard:?}");
    let mut last = heard.last().unwrap().0;
    sink.next().await;
    // It is marked, and that is told.
    assert_eq!(run(&world, &sink, &["inbox", "ack", &seq.to_string()]).0, 0);
    loop {
        let (id, name, data) = reader.event().await.expect("an event");
        assert_eq!(id, last + 1);
        last = id;
        if name == "notification.acknowledged" {
            assert_eq!((&data["seq"], &data["by"]), (&seq.into(), &"admin@example.com".into()));
            break;
        }
    }

    let (status, _, said) = server.stop(Signal::TERM);
    assert!(status.success(), "{said}");
    while reader.event().await.is_some() {}
    outbox.add(&["domain.active", "--title", "second"]);
    let (_server, url) = started(&world, &sink);
    let mut reader = Reader::new(&url, &token, Some(last)).await;
    let (heard, _) = reader.until("second").await;
    assert!(heard.iter().map(|(id, _)| *id).eq(last + 1..=heard.last().unwrap().0), "{heard:?}");
    // A number that is none cannot be mended by a browser: it is told to read anew.
    let request = client().get(format!("{url}/v1/workspaces/acme/stream")).bearer_auth(&token);
    let response = request.header("last-event-id", "x").send().await.unwrap();
    assert_eq!(Reader { response, text: String::new() }.event().await.unwrap().1, "reset");
}

#[tokio::test]
async fn a_revoked_token_ends_its_streams_and_opens_none() {
    let folder = tempfile::tempdir().unwrap();
    let (sink, _outbox, world) = stage(folder.path()).await;
    let (_server, url) = started(&world, &sink);
    let (revoked, id) = token(&world, &sink, &["operator"]);
    let (other, _) = token(&world, &sink, &["member"]);
    let mut reader = Reader::new(&url, &revoked, None).await;
    let mut kept = Reader::new(&url, &other, None).await;
    assert_eq!(reader.event().await.unwrap().1, "ready");
    assert_eq!(kept.event().await.unwrap().1, "ready");
    assert_eq!(run(&world, &sink, &["token", "revoke", &id.to_string()]).0, 0);
    while reader.event().await.is_some() {}
    assert_eq!(open(&url, &revoked, None).await.status(), StatusCode::UNAUTHORIZED);
    // The other goes on.
    assert_eq!(run(&world, &sink, &["connector", "poll", "registrar"]).0, 0);
    assert_eq!(open(&url, &other, None).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn an_agent_hears_of_no_delivery_and_who_may_not_read_of_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (mut sink, outbox, world) = stage(folder.path()).await;
    let (mut server, url) = started(&world, &sink);
    server.wait_for("bootstrap=true");
    let (reading, _) = token(&world, &sink, &["agent", "--consumer", "triage", "--scopes", "read"]);
    let (marking, _) = token(&world, &sink, &["agent", "--consumer", "triage", "--scopes", "ack"]);
    assert_eq!(open(&url, &marking, None).await.status(), StatusCode::FORBIDDEN);
    assert_eq!(open(&url, "swb_x", None).await.status(), StatusCode::UNAUTHORIZED);
    let elsewhere = client().get(format!("{url}/v1/workspaces/other/stream")).bearer_auth(&reading);
    assert_eq!(elsewhere.send().await.unwrap().status(), StatusCode::NOT_FOUND);
    let wrong = client().get(format!("{url}/v1/workspaces/acme/stream?after=x")).bearer_auth(&reading);
    assert_eq!(wrong.send().await.unwrap().status(), StatusCode::BAD_REQUEST);

    let mut reader = Reader::new(&url, &reading, None).await;
    outbox.add(&["domain.active", "--title", "first"]);
    sink.next().await;
    outbox.add(&["domain.active", "--title", "second"]);
    let (heard, _) = reader.until("second").await;
    assert!(heard.iter().all(|(_, name)| !name.starts_with("delivery.")), "{heard:?}");
    assert!(heard.last().unwrap().0 > heard.len() as u64, "deliveries have numbers, too: {heard:?}");
}
