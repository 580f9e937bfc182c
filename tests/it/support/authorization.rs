//! A real authorization server with an MCP server behind it, and a person with a browser.

use std::collections::BTreeMap;
use std::process::Stdio;

use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use reqwest::redirect::Policy;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use url::Url;

use super::{PATIENCE, prepared, root};

/// More pages than a sign-in has.
const PAGES_MAX: usize = 20;

/// The two servers, gone when this is dropped.
pub struct Authorization {
    _child: Child,
    /// Open, because a program that cannot write ends.
    _said: Lines<BufReader<ChildStdout>>,
    client: reqwest::Client,
    control: String,
    /// The authorization server.
    pub issuer: String,
    /// The MCP server.
    pub mcp: String,
    /// The token endpoint that takes assertions.
    pub assertions: String,
}

impl Authorization {
    pub async fn start() -> Self {
        prepared("tests/peers/oauth/node_modules/oidc-provider", "deps");
        let mut command = Command::new("node");
        command.arg(root().join("tests/peers/oauth/server.mjs")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("it does not listen");
        let said: Value = serde_json::from_str(&line.unwrap().expect("it ended")).unwrap();
        let address = |key: &str| said[key].as_str().unwrap().to_owned();
        let (issuer, mcp, control) = (address("issuer"), address("mcp"), address("control"));
        let (assertions, client) = (address("assertions"), redirectless());
        Self { _child: child, _said: lines, client, control, issuer, mcp, assertions }
    }

    /// The grants that were asked for, and the error of each that was refused.
    pub async fn grants(&self) -> Vec<(String, Option<String>)> {
        let answer = self.client.get(format!("{}/grants", self.control)).send().await.unwrap();
        let grants: Vec<Value> = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        grants.iter().map(|grant| (text(&grant["grant"]).unwrap(), text(&grant["error"]))).collect()
    }

    /// How many grants of this kind were given.
    pub async fn given(&self, kind: &str) -> usize {
        self.grants().await.iter().filter(|(grant, error)| grant == kind && error.is_none()).count()
    }

    /// A new private key for assertions by this algorithm of JSON Web Tokens, which is the key's id, too.
    pub async fn key(&self, algorithm: &str) -> String {
        let answer = self.client.post(format!("{}/keys/{algorithm}", self.control)).send().await.unwrap();
        answer.text().await.unwrap()
    }

    /// Closes the authorization server (`down`) or opens it (`up`), or has the MCP server take no token (`deaf`).
    pub async fn turn(&self, way: &str) {
        let answer = self.client.post(format!("{}/authorization/{way}", self.control)).send().await.unwrap();
        assert!(answer.status().is_success());
    }

    /// Ends a token (RFC 7009), as the server's owner would.
    pub async fn revoke(&self, token: &str, client: &str) {
        let form = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs([("token", token), ("client_id", client)])
            .finish();
        let request = self.client.post(format!("{}/token/revocation", self.issuer));
        let request = request.header("content-type", "application/x-www-form-urlencoded").body(form);
        assert!(request.send().await.unwrap().status().is_success());
    }

    /// The status of a request to the MCP server with this token.
    pub async fn status_with(&self, token: &str) -> u16 {
        let message = r#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
            {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "it", "version": "1"}}}"#;
        let request = self.client.post(&self.mcp).bearer_auth(token).body(message);
        let request = request.header("content-type", "application/json");
        let answer = request.header("accept", "application/json, text/event-stream").send().await.unwrap();
        answer.status().as_u16()
    }
}

fn redirectless() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().redirect(Policy::none()).no_proxy().build().unwrap()
}

/// A person who opens the address, fills in every form, and is sent to a page that starts with `back`: its address.
pub async fn sign_in(address: &str, back: &str) -> String {
    Person::default().walk(address, back, false).await
}

/// A person who looks at the first form and turns back.
pub async fn refuse(address: &str, back: &str) -> String {
    Person::default().walk(address, back, true).await
}

/// Opens a page.
pub async fn open(address: &str) -> reqwest::Response {
    redirectless().get(address).send().await.unwrap()
}

struct Person {
    client: reqwest::Client,
    cookies: BTreeMap<String, String>,
}

impl Default for Person {
    fn default() -> Self {
        Self { client: redirectless(), cookies: BTreeMap::new() }
    }
}

impl Person {
    async fn walk(&mut self, address: &str, back: &str, turns_back: bool) -> String {
        let mut url = Url::parse(address).unwrap();
        let mut form = None;
        for _ in 0..PAGES_MAX {
            if url.as_str().starts_with(back) {
                return url.into();
            }
            let answer = self.ask(&url, form.take()).await;
            if let Some(location) = answer.headers().get(LOCATION) {
                url = url.join(location.to_str().unwrap()).unwrap();
                continue;
            }
            let status = answer.status();
            let page = answer.text().await.unwrap();
            assert!(status.is_success(), "{url} answers {status}: {page}");
            if turns_back {
                url = url.join(&format!("{}/abort", url.path())).unwrap();
                continue;
            }
            url = url.join(attribute(&page, "action")).unwrap();
            form = Some(format!("prompt={}&login=ada&password=engine", attribute(&page, "value")));
        }
        panic!("the sign-in has no end");
    }

    async fn ask(&mut self, url: &Url, form: Option<String>) -> reqwest::Response {
        let request = match form {
            Some(form) => {
                let request = self.client.post(url.clone());
                request.header("content-type", "application/x-www-form-urlencoded").body(form)
            }
            None => self.client.get(url.clone()),
        };
        let cookies: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let answer = request.header(COOKIE, cookies.join("; ")).send().await.unwrap();
        for cookie in answer.headers().get_all(SET_COOKIE) {
            let (name, value) = cookie.to_str().unwrap().split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        answer
    }
}

/// The first value of an attribute in a page.
fn attribute<'a>(page: &'a str, name: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("{name}=\"")).unwrap_or_else(|| panic!("no {name} in {page}"));
    rest.split('"').next().unwrap()
}
