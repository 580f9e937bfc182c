//! A running server with a token for each role.

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use crate::support::{Outbox, Server, Sink, World, python_outbox, workspace};

/// A role that a token was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum As {
    Nobody,
    Operator,
    Admin,
    Member,
    /// An agent that may read and acknowledge.
    Agent,
    /// An agent that may only read.
    Reader,
}

impl As {
    pub const ALL: [Self; 6] = [Self::Nobody, Self::Operator, Self::Admin, Self::Member, Self::Agent, Self::Reader];

    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Nobody => &[],
            Self::Operator => &["--role", "operator"],
            Self::Admin => &["--role", "admin", "--workspace", "acme"],
            Self::Member => &["--role", "member", "--workspace", "acme", "--member", "member@example.com"],
            Self::Agent => &["--role", "agent", "--workspace", "acme", "--consumer", "triage"],
            Self::Reader => &["--role", "agent", "--workspace", "acme", "--consumer", "watch", "--scopes", "read"],
        }
    }
}

pub struct Api {
    pub world: World,
    pub sink: Sink,
    pub outbox: Outbox,
    pub server: Server,
    pub base: String,
    client: reqwest::Client,
    tokens: Vec<(As, String)>,
    _folder: tempfile::TempDir,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub media_type: String,
    pub allow: Option<String>,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }
}

impl Api {
    /// A server whose one outbox was read once, with the workspaces `acme` and `beta`.
    pub async fn start() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let outbox = python_outbox(folder.path());
        let sink = Sink::start().await;
        let world = World::new(&sink, &outbox.commands(), &World::stdio_connector());
        let text = workspace(&World::stdio_connector(), "{ source: registrar }");
        let members = "{ admin@example.com: admin, member@example.com: member }";
        let text = text.replace("{ admin@example.com: admin }", members);
        let consumers = "consumers: { triage: { when: { name: \"domain.**\" } } }\n";
        world.write("workspaces/acme.yaml", &format!("{consumers}{text}"));
        world.write("workspaces/beta.yaml", "members: { admin@example.com: admin }\n");
        let mut server = Server::spawn_serving(&world, &sink);
        let ready = server.wait_for(" ready ");
        let address = ready.split("listen=").nth(1).unwrap().split_whitespace().next().unwrap();
        let base = format!("http://{address}");
        server.wait_for("bootstrap=true");
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut api = Self { world, sink, outbox, server, base, client, tokens: Vec::new(), _folder: folder };
        for role in As::ALL.into_iter().filter(|role| *role != As::Nobody) {
            let made = api.world.json(&api.sink, &[&["token", "create"], role.arguments()].concat());
            api.tokens.push((role, made["token"].as_str().unwrap().to_owned()));
        }
        api
    }

    pub fn token(&self, role: As) -> Option<&str> {
        self.tokens.iter().find(|(known, _)| *known == role).map(|(_, token)| token.as_str())
    }

    pub fn request(&self, role: As, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.base));
        match self.token(role) {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub async fn send(&self, request: RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let (media_type, allow) = (header("content-type").unwrap_or_default(), header("allow"));
        Answer { status: response.status(), media_type, allow, text: response.text().await.unwrap() }
    }

    pub async fn get(&self, role: As, path: &str) -> Answer {
        self.send(self.request(role, Method::GET, path)).await
    }

    pub async fn post(&self, role: As, path: &str, body: &Value) -> Answer {
        let request = self.request(role, Method::POST, path).header("content-type", "application/json");
        self.send(request.body(body.to_string())).await
    }

    /// What the operator gets from a path of `acme`.
    pub async fn acme(&self, path: &str) -> Value {
        let answer = self.get(As::Operator, &format!("/v1/workspaces/acme{path}")).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        answer.json()
    }

    /// Adds an event, and returns once it was delivered.
    pub async fn deliver(&mut self, title: &str) {
        self.outbox.add(&["domain.active", "--title", title]);
        self.post(As::Operator, "/v1/workspaces/acme/connectors/registrar/poll", &json!({})).await;
        self.sink.next().await;
        self.server.wait_for("INFO delivered");
    }
}
