//! Requests to real listeners, which count connections and remember what they were sent.

mod answers;
mod framing;
mod handed_on;
mod peer;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::clock::Clock;
use crate::config::{Grant, HostPattern, HttpGrant, Secret};
use crate::notification::Name;
use crate::send::effect::secret::{Occasion, seal};
use crate::send::keys::Keys;
use peer::{Peer, Then};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn client() -> HttpClient {
    HttpClient::new().unwrap()
}

fn post(url: String, body: &str) -> Request {
    Request {
        method: "POST".to_owned(),
        url,
        headers: vec![("Content-Type".to_owned(), "text/plain".to_owned())],
        body: body.into(),
        sign: Vec::new(),
        timeout_ms: None,
        response_max: None,
        extras: "{}".to_owned(),
    }
}

/// Who asks.
#[derive(Clone, Copy)]
struct Asks {
    plugin: &'static str,
    workspace: &'static str,
    /// Whether the grant says that the host may be at a private address.
    private: bool,
}

const SLACK: Asks = Asks { plugin: "slack", workspace: "acme", private: false };

/// Makes a request whose very origin is granted.
async fn ask(client: &HttpClient, asks: Asks, request: Request) -> Result<Response, Fault> {
    ask_with(client, asks, &BTreeMap::new(), |_| request.clone()).await
}

/// The same with secrets, of whose placeholders the request is made.
async fn ask_with(
    client: &HttpClient,
    asks: Asks,
    secrets: &BTreeMap<Name, Secret>,
    request: impl Fn(&dyn Fn(&str) -> String) -> Request,
) -> Result<Response, Fault> {
    let settings: Value = secrets.keys().map(|name| (name.to_string(), json!({"secret": name.as_str()}))).collect();
    let occasion = Occasion { keys: &Keys::new(&[7; 32]), delivery: "0badcafe-1", attempt: 1 };
    let sealed = seal(&settings, secrets, occasion).unwrap();
    let seen: Value = serde_json::from_str(&sealed.settings).unwrap();
    let request = request(&|secret| seen[secret].as_str().unwrap().to_owned());
    let url = url::Url::parse(&request.url).unwrap();
    let http = HttpGrant {
        scheme: if url.scheme() == "http" { "http" } else { "https" },
        host: HostPattern::Exact(url.host_str().unwrap().to_owned()),
        port: url.port_or_known_default().unwrap(),
        private: asks.private,
        workspaces: Vec::new(),
    };
    let (plugin, workspace, route) = (name(asks.plugin), name(asks.workspace), name("news"));
    let grant = Grant { http: vec![http], ..Grant::default() };
    let permission = Permission {
        plugin: &plugin,
        workspace: &workspace,
        route: &route,
        grant: &grant,
        seals: &sealed.seals,
        delivery: "0badcafe-1",
        due_at: Timestamp::UNIX_EPOCH,
        on_behalf_of: "admin@example.com",
    };
    let tokens = Tokens::new(Clock::system(), std::path::Path::new("unused"));
    client.perform(request, &permission, &tokens).await
}

async fn asked(client: &HttpClient, asks: Asks, peer: &Peer) -> Response {
    ask(client, asks, post(peer.url("/"), "hello")).await.unwrap()
}

#[tokio::test]
async fn a_request_says_what_the_plugin_asked_and_no_more() {
    let peer = Peer::open(OK, Then::Stay).await;
    ask(&client(), SLACK, post(peer.url("/a b?c=d#e"), "hello")).await.unwrap();
    let head = format!(
        "POST /a%20b?c=d HTTP/1.1\r\ncontent-type: text/plain\r\nuser-agent: switchbell/{}\r\naccept: */*\r\n\
         accept-encoding: identity\r\nhost: {}\r\n",
        env!("CARGO_PKG_VERSION"),
        peer.address
    );
    assert_eq!(peer.requests(), [format!("{head}content-length: 5\r\n\r\nhello")]);
    let mut own = post(peer.url("/"), "");
    own.headers = [("USER-AGENT", "mine"), ("accept", "x/y")].map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec();
    ask(&client(), SLACK, Request { method: "GET".to_owned(), ..own.clone() }).await.unwrap();
    let head = format!("user-agent: mine\r\naccept: x/y\r\naccept-encoding: identity\r\nhost: {}\r\n", peer.address);
    assert_eq!(peer.requests()[1], format!("GET / HTTP/1.1\r\n{head}\r\n"));
    ask(&client(), SLACK, own).await.unwrap();
    assert_eq!(peer.requests()[2], format!("POST / HTTP/1.1\r\n{head}content-length: 0\r\n\r\n"));
}

#[tokio::test]
async fn a_connection_is_kept_for_its_own_plugin_and_workspace() {
    let (client, peer) = (client(), Peer::open(OK, Then::Stay).await);
    let others = [Asks { plugin: "other", ..SLACK }, Asks { workspace: "other", ..SLACK }];
    for (asks, connections) in [(SLACK, 1), (SLACK, 1), (others[0], 2), (others[1], 3), (others[0], 3), (SLACK, 3)] {
        assert_eq!(asked(&client, asks, &peer).await.body, b"ok");
        assert_eq!(peer.connections(), connections, "{} {}", asks.plugin, asks.workspace);
    }
}

#[tokio::test]
async fn a_name_that_leads_to_this_machine_is_refused_where_it_connects() {
    let peer = Peer::open(OK, Then::Stay).await;
    let url = || format!("http://localhost:{}/", peer.address.port());
    let fault = ask(&client(), SLACK, post(url(), "hello")).await.unwrap_err();
    assert_eq!((fault.reach, fault.code.as_str()), (Reach::Denied, "private-address"), "{}", fault.message);
    assert_eq!(peer.connections(), 0);
    let granted = Asks { private: true, ..SLACK };
    assert_eq!(ask(&client(), granted, post(url(), "hello")).await.unwrap().status, 200);
}

#[test]
fn of_public_and_private_addresses_only_the_public_are_connected_to() {
    let addresses = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<SocketAddr>>();
    let check = |found: &[&str], private: bool, connected: Option<&[&str]>| {
        let judged = connection::judged(addresses(found), private).ok();
        assert_eq!(judged, connected.map(addresses), "{found:?} {private}");
    };
    let both = ["10.0.0.1:443", "8.8.8.8:443", "[::1]:443"];
    check(&both, false, Some(&["8.8.8.8:443"]));
    check(&both, true, Some(&both));
    check(&["127.0.0.1:443", "[fd00::1]:443"], false, None);
    check(&[], false, Some(&[]));
}

#[tokio::test]
async fn a_connection_that_was_closed_while_idle_is_not_written_to() {
    let (client, peer) = (client(), Peer::open(OK, Then::Close).await);
    for times in 1..=3 {
        asked(&client, SLACK, &peer).await;
        peer.closed(times).await;
        assert_eq!((peer.connections(), peer.requests().len()), (times, times));
    }
}

#[tokio::test]
async fn a_connection_on_which_something_came_that_nobody_asked_for_is_given_up() {
    let (client, peer) = (client(), Peer::open(format!("{OK}{OK}"), Then::Stay).await);
    for times in 1..=2 {
        asked(&client, SLACK, &peer).await;
        assert_eq!(peer.connections(), times);
    }
}

#[tokio::test]
async fn a_request_that_may_have_been_understood_is_never_sent_again() {
    let (client, peer) = (client(), Peer::open(OK, Then::HangUpOnTheNext).await);
    asked(&client, SLACK, &peer).await;
    let fault = ask(&client, SLACK, post(peer.url("/"), "again")).await.unwrap_err();
    assert_eq!((fault.reach, fault.code.as_str()), (Reach::Unanswered, "no-answer"), "{}", fault.message);
    assert_eq!((peer.connections(), peer.requests().len()), (1, 2));
}

#[tokio::test]
async fn what_cannot_be_reached_was_not_sent() {
    let fault = ask(&client(), SLACK, post("http://127.0.0.1:9/secret".to_owned(), "")).await.unwrap_err();
    assert_eq!((fault.reach, fault.code.as_str()), (Reach::Unsent, "connect"));
    assert!(fault.message.contains("no connection: Connection refused"), "{}", fault.message);
    assert!(!fault.message.contains("secret"), "{}", fault.message);
}

#[tokio::test]
async fn who_answers_late_may_have_understood() {
    let peer = Peer::open("", Then::Stay).await;
    let request = Request { timeout_ms: Some(20), ..post(peer.url("/"), "hello") };
    let fault = ask(&client(), SLACK, request).await.unwrap_err();
    assert_eq!((fault.reach, fault.code.as_str()), (Reach::Unanswered, "timeout"));
}

#[tokio::test]
async fn idle_connections_are_bounded_in_number_and_age() {
    let count = pool::IDLE_PER_ORIGIN_MAX + 8;
    let (client, peer) = (client(), Peer::open_for(OK, Then::Stay, count).await);
    futures_util::future::join_all((0..count).map(|_| asked(&client, SLACK, &peer))).await;
    let pool = &client.0.pool;
    assert_eq!((peer.connections(), pool.count()), (count, pool::IDLE_PER_ORIGIN_MAX));
    let now = tokio::time::Instant::now();
    pool.sweep(now);
    assert_eq!(pool.count(), pool::IDLE_PER_ORIGIN_MAX);
    pool.sweep(now + pool::IDLE_TIME_MAX);
    assert_eq!(pool.count(), 0);
}

#[tokio::test]
async fn tls_is_spoken_with_whom_the_system_trusts_and_the_connection_is_kept() {
    let (peer, trusted) = Peer::open_tls(OK).await;
    let fault = ask(&client(), SLACK, post(peer.url("/"), "hello")).await.unwrap_err();
    assert_eq!((fault.reach, fault.code.as_str()), (Reach::Unsent, "connect"));
    assert!(fault.message.contains("invalid peer certificate"), "{}", fault.message);
    assert_eq!(peer.requests().len(), 0);
    let client = HttpClient::speaking(trusted);
    for _ in 0..3 {
        assert_eq!(asked(&client, SLACK, &peer).await.body, b"ok");
    }
    assert_eq!((peer.connections(), peer.requests().len()), (2, 3), "one was refused, one is kept");
}
