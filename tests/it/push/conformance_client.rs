//! What the seed of the extension asks of a client, run against ours with a server that the test plays.

use std::collections::BTreeSet;

use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{self, StreamExt as _};
use serde_json::{Value, json};
use switchbell::app::App;
use tempfile::TempDir;

use super::conformance_stage::{EXTENSION, app};
use super::scripted::{Script, Scripted};
use crate::support::PATIENCE;

/// Servers that run at once.
const AT_ONCE: usize = 4;

/// A Switchbell with a connector to a push queue.
pub struct Client {
    folder: TempDir,
    app: Option<App>,
}

impl Client {
    /// One that follows the queue there, with these words beside its URL.
    pub async fn start(url: &str, more: &str) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: String| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put(
            "switchbell.yaml",
            "listen: 127.0.0.1:0\nstore: sqlite:data/switchbell.db\nplugins: { directory: plugins/ }\nsecrets:\n  \
             upstream: { file: upstream-token, in: connector, hosts: [127.0.0.1], workspaces: [acme] }\n"
                .to_owned(),
        );
        put("upstream-token", format!("{}\n", more.strip_prefix("token ").unwrap_or("none-of-its-own-at-all")));
        let auth = if more.starts_with("token ") { "auth: { bearer: { secret: upstream } }, " } else { "" };
        put(
            "workspaces/acme.yaml",
            format!(
                "members: {{ admin@example.com: admin }}\nconnectors:\n  queue: {{ url: \"{url}\", {auth}\
                 notifications: {{ push: true }} }}\nconsumers: {{ onward: {{ when: {{ name: \"domain.**\" }} }} }}\n"
            ),
        );
        std::fs::create_dir_all(folder.path().join("plugins")).unwrap();
        let app = Some(app(folder.path()).await);
        Self { folder, app }
    }

    pub async fn restart(&mut self) {
        self.stop().await;
        self.start_again().await;
    }

    pub async fn stop(&mut self) {
        self.app.take().unwrap().stop().await;
    }

    pub async fn start_again(&mut self) {
        self.app = Some(app(self.folder.path()).await);
    }

    /// What it has in its inbox, oldest first, as it was written; the host's own notices are left out.
    pub async fn inbox(&self) -> Vec<(Value, String)> {
        let all = self.items().await;
        all.into_iter().filter(|(item, _)| item["source"] == "queue").collect()
    }

    /// How many events ever joined the queue of its own consumer, which is meant to have all that comes.
    pub async fn handed_on(&self) -> u64 {
        let text = self.get("/v1/workspaces/acme/consumers").await;
        let listed: Value = serde_json::from_str(&text).unwrap();
        listed["items"][0]["joined"].as_u64().unwrap_or_else(|| panic!("no consumer: {text}"))
    }

    async fn get(&self, path: &str) -> String {
        let socket = self.folder.path().join("data/switchbell.db.sock");
        let client = reqwest::Client::builder().unix_socket(socket).no_proxy().build().unwrap();
        client.get(format!("http://switchbell{path}")).send().await.unwrap().text().await.unwrap()
    }

    /// The same with the notices.
    pub async fn items(&self) -> Vec<(Value, String)> {
        let text = self.get("/v1/workspaces/acme/notifications?limit=100").await;
        let page: ListOfRaw = serde_json::from_str(&text).unwrap_or_else(|_| panic!("no list: {text}"));
        let mut items: Vec<_> = page.items.iter().map(|raw| raw.get().to_owned()).collect();
        items.reverse();
        items.into_iter().map(|text| (serde_json::from_str(&text).unwrap(), text)).collect()
    }

    /// The ids of its events, oldest first.
    pub async fn ids(&self) -> Vec<String> {
        self.inbox().await.iter().map(|(item, _)| item["eventId"].as_str().unwrap().to_owned()).collect()
    }

    /// Waits until it has events with these ids, in this order.
    pub async fn until_ids(&self, expected: &[String]) {
        let waited = tokio::time::timeout(PATIENCE, async { while self.ids().await.len() < expected.len() {} }).await;
        let ids = self.ids().await;
        assert!(waited.is_ok(), "only {ids:?}");
        assert_eq!(ids, expected);
    }
}

#[derive(serde::Deserialize)]
struct ListOfRaw<'a> {
    #[serde(borrow)]
    items: Vec<&'a serde_json::value::RawValue>,
}

fn event(id: &str) -> Value {
    json!({
        "eventId": id,
        "sourceId": "computer:local",
        "type": "process.exited",
        "createdAt": "2026-07-20T10:30:00.000Z",
        "content": [{ "type": "text", "text": format!("title of {id}\nmore of it") }],
        "data": { "exitCode": 1 },
    })
}

fn events(ids: &[&str]) -> Vec<Value> {
    ids.iter().map(|id| event(id)).collect()
}

/// A queue with these events, and a Switchbell that follows it.
async fn follow(pending: Vec<Value>) -> (Scripted, Client) {
    with(Script { pending, ..Script::default() }).await
}

async fn with(script: Script) -> (Scripted, Client) {
    let server = Scripted::start(script).await;
    let client = Client::start(&server.url, "").await;
    (server, client)
}

type Case = fn() -> BoxFuture<'static, ()>;

macro_rules! cases {
    ($($name:ident: $body:block)*) => {
        $(async fn $name() $body)*

        const CASES: &[(&str, Case)] = &[$((stringify!($name), || $name().boxed())),*];
    };
}

cases! {
    every_request_declares_the_capability: {
        let (server, _client) = follow(events(&["a"])).await;
        server.until_acknowledged(&["a"]).await;
        server.look(|script| for asked in &script.asked {
            let declared = &asked["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"];
            assert_eq!(declared[EXTENSION], json!({}), "{asked}");
        });
    }
    it_listens_then_retrieves_then_acknowledges: {
        let (server, _client) = follow(events(&["a"])).await;
        server.until_acknowledged(&["a"]).await;
        let methods = server.look(|script| script.methods().join(" "));
        assert!(methods.contains("listen get ack"), "{methods}");
    }
    it_awaits_the_acknowledgement_of_its_stream: {
        let (server, client) = with(Script { pending: events(&["a"]), is_silent: true, ..Script::default() }).await;
        server.until(|script| script.methods().contains(&"listen").then_some(())).await;
        client.ids().await;
        assert!(!server.look(|script| script.methods().contains(&"get")));
        server.speak();
        server.until_acknowledged(&["a"]).await;
    }
    its_filter_is_empty: {
        let (server, _client) = follow(Vec::new()).await;
        let listen = |script: &Script| script.asked.iter().find(|asked| asked["method"] == "subscriptions/listen").cloned();
        let listen = server.until(listen).await;
        assert_eq!(listen["params"]["notifications"], json!({ EXTENSION: {} }));
    }
    it_names_no_consumer_and_no_cursor: {
        let (server, _client) = follow(events(&["a"])).await;
        server.until_acknowledged(&["a"]).await;
        let known = ["limit", "eventIds", "notifications", "_meta"];
        server.look(|script| for asked in &script.asked {
            let mut keys = asked["params"].as_object().unwrap().keys();
            assert!(keys.all(|key| known.contains(&key.as_str())), "{asked}");
        });
    }
    its_limit_is_a_positive_integer: {
        let (server, _client) = follow(Vec::new()).await;
        let get = |script: &Script| script.asked.iter().find(|asked| asked["params"].get("limit").is_some()).cloned();
        assert!(server.until(get).await["params"]["limit"].as_u64().unwrap() > 0);
    }
    it_goes_on_while_there_is_more: {
        let all = ["e", "d", "c", "b", "a"];
        let (server, client) = with(Script { pending: events(&all), page_max: 2, ..Script::default() }).await;
        server.until_acknowledged(&all).await;
        assert_eq!(client.ids().await, all);
    }
    it_acknowledges_every_id_of_a_page: {
        let (server, client) = follow(events(&["a", "b", "c"])).await;
        server.until_acknowledged(&["a", "b", "c"]).await;
        // Nothing is acknowledged that is not in the inbox.
        assert_eq!(client.ids().await, ["a", "b", "c"]);
    }
    it_accepts_and_acknowledges_what_comes_live: {
        let (server, client) = follow(events(&["a"])).await;
        server.until_acknowledged(&["a"]).await;
        server.push(&event("b"), true);
        server.until_acknowledged(&["b"]).await;
        assert_eq!(client.ids().await, ["a", "b"]);
    }
    what_comes_live_and_by_retrieval_is_kept_once: {
        let (server, client) = with(Script { pending: events(&["a"]), is_silent: true, ..Script::default() }).await;
        server.until(|script| script.methods().contains(&"listen").then_some(())).await;
        server.speak();
        server.push(&event("a"), false);
        server.push(&event("b"), true);
        server.push(&event("b"), false);
        server.until_acknowledged(&["a", "b"]).await;
        assert_eq!(client.ids().await, ["a", "b"]);
    }
    an_acknowledgement_that_failed_is_repeated_without_accepting_again: {
        let (server, client) = with(Script { pending: events(&["a"]), acks_to_fail: 2, ..Script::default() }).await;
        server.until_acknowledged(&["a"]).await;
        assert_eq!(client.ids().await, ["a"]);
    }
    an_acknowledgement_whose_answer_was_lost_does_no_harm: {
        let (server, client) = with(Script { pending: events(&["a", "b"]), acks_to_lose: 1, ..Script::default() }).await;
        server.until_acknowledged(&["a", "b"]).await;
        server.push(&event("c"), true);
        server.until_acknowledged(&["c"]).await;
        assert_eq!(client.ids().await, ["a", "b", "c"]);
    }
    an_event_that_makes_no_sense_wedges_nothing: {
        let mut broken = event("broken");
        broken["createdAt"] = json!("some day");
        let (server, client) = follow(vec![broken, event("a")]).await;
        server.until_acknowledged(&["broken", "a"]).await;
        assert_eq!(client.ids().await, ["a"]);
        let items = client.items().await;
        assert!(items.iter().any(|(item, _)| item["source"] == "switchbell"), "the admin is not told: {items:#?}");
    }
    after_a_cut_the_whole_sequence_comes_again: {
        let (server, client) = follow(events(&["a"])).await;
        server.until_acknowledged(&["a"]).await;
        let before = server.look(|script| script.asked.len());
        server.cut();
        server.change(|script| script.pending.push(event("b")));
        server.until_acknowledged(&["b"]).await;
        let methods = server.look(|script| script.methods()[before..].join(" "));
        assert!(methods.contains("listen get ack"), "{methods}");
        assert_eq!(client.ids().await, ["a", "b"]);
    }
    a_refusal_is_no_end_whatever_its_code: {
        for code in [-32_021, -32_003, -32_603] {
            let (server, client) = with(Script { pending: events(&["a"]), to_refuse: (1, code), ..Script::default() }).await;
            server.until_acknowledged(&["a"]).await;
            assert_eq!(client.ids().await, ["a"]);
        }
    }
    a_restart_accepts_nothing_twice: {
        let (server, mut client) = with(Script { pending: events(&["a"]), acks_to_fail: 1, ..Script::default() }).await;
        server.until(|script| script.methods().contains(&"ack").then_some(())).await;
        client.restart().await;
        server.until_acknowledged(&["a"]).await;
        assert_eq!(client.ids().await, ["a"]);
    }
    content_and_data_are_kept: {
        let mut told = event("a");
        told["content"] = json!([
            { "type": "text", "text": "first" },
            { "type": "resource_link", "uri": "acme://thing", "name": "thing" },
            { "type": "image", "data": "aGk=", "mimeType": "image/png" },
        ]);
        let (server, client) = follow(vec![told.clone()]).await;
        server.until_acknowledged(&["a"]).await;
        let (item, _) = client.inbox().await.remove(0);
        assert_eq!((&item["content"], &item["data"]), (&told["content"], &told["data"]));
        assert_eq!((&item["name"], &item["subject"]), (&json!("process.exited"), &json!("computer:local")));
        assert_eq!((&item["title"], &item["level"]), (&json!("first"), &json!("info")));
    }
    data_may_be_left_out_and_content_empty: {
        let mut told = event("a");
        told.as_object_mut().unwrap().remove("data");
        told["content"] = json!([]);
        let (server, client) = follow(vec![told]).await;
        server.until_acknowledged(&["a"]).await;
        let (item, _) = client.inbox().await.remove(0);
        assert_eq!((&item["data"], &item["title"]), (&json!({}), &json!("process.exited")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn our_client_keeps_every_case() {
    let run = |(name, case): &'static (&'static str, Case)| async move { (*name, tokio::spawn(case()).await.is_ok()) };
    let ran: Vec<_> = stream::iter(CASES).map(run).buffer_unordered(AT_ONCE).collect().await;
    let failed: Vec<_> = ran.iter().filter(|(_, is_good)| !is_good).map(|(name, _)| name).collect();
    assert!(failed.is_empty(), "our client breaks {failed:#?}");
    let names: BTreeSet<_> = CASES.iter().map(|(name, _)| name).collect();
    assert_eq!((names.len(), ran.len()), (CASES.len(), CASES.len()));
}
