//! What of an answer a plugin sees, and what becomes of secrets and tokens on the way.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post as posted;

use super::*;
use crate::config::{SecretPlace, SecretValue, TokenGrant};

const BOT: &str = "xoxb-0123456789/abcdef";

fn bearer() -> SecretPlace {
    SecretPlace::Header { name: "authorization".to_owned(), prefix: Some("Bearer".to_owned()) }
}

fn for_this_machine(secret: Secret) -> Secret {
    Secret { hosts: vec![HostPattern::Exact("127.0.0.1".to_owned())], ..secret }
}

#[tokio::test]
async fn headers_with_credentials_and_places_are_left_out_unless_they_are_asked_for() {
    let answer = "HTTP/1.1 302 Found\r\nLocation: /x\r\nSet-Cookie: a=b\r\nWWW-Authenticate: Basic\r\nx-a: 1\r\ncontent-length: 0\r\n\r\n";
    let peer = Peer::open(answer, Then::Stay).await;
    let names = async |extras: &str| {
        let request = Request { extras: extras.to_owned(), ..post(peer.url("/"), "") };
        ask(&client(), SLACK, request).await.unwrap().headers.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(names("{}").await, ["x-a", "content-length"]);
    assert_eq!(names(r#"{"other": 1, "answer_headers": ["Location"]}"#).await, ["location", "x-a", "content-length"]);
    let request = Request { extras: r#"{"answer_headers": 1}"#.to_owned(), ..post(peer.url("/"), "") };
    let fault = ask(&client(), SLACK, request).await.unwrap_err();
    assert_eq!((fault.reach, fault.code.as_str()), (Reach::Denied, "extras"));
}

#[tokio::test]
async fn a_body_in_an_encoding_that_nobody_asked_for_is_left_out() {
    for (encoding, body, truncated) in [("gzip", "", true), ("identity", "ok", false), ("br, identity", "", true)] {
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\ncontent-length: 2\r\n\r\nok");
        let peer = Peer::open(answer, Then::Stay).await;
        let response = ask(&client(), SLACK, post(peer.url("/"), "")).await.unwrap();
        assert_eq!((response.status, response.body.as_slice(), response.truncated), (200, body.as_bytes(), truncated));
    }
}

#[tokio::test]
async fn only_the_secrets_that_a_request_carried_are_masked_in_its_answer() {
    let answer = format!(
        "HTTP/1.1 200 OK\r\nx-echo: {BOT}\r\ncontent-length: {}\r\n\r\n{BOT} xoxb-0123456789%2Fabcdef eG94Yi0wMTIzNDU2Nzg5L2FiY2RlZg== weak",
        BOT.len() + 63
    );
    let peer = Peer::open(answer, Then::Stay).await;
    let weak = Secret { is_weak: true, ..Secret::new("weak".to_owned(), SecretPlace::Query("k".to_owned())) };
    let secrets = BTreeMap::from([
        (name("bot"), for_this_machine(Secret::new(BOT.to_owned(), bearer()))),
        (name("weak"), for_this_machine(weak)),
    ]);
    let body = async |carries: bool| {
        let client = client();
        let response = ask_with(&client, SLACK, &secrets, |placeholder| {
            let mut request = post(peer.url(&format!("/?k={}", placeholder("weak"))), "");
            if carries {
                request.headers.push(("authorization".to_owned(), placeholder("bot")));
            }
            request
        });
        let response = response.await.unwrap();
        (response.headers[0].1.clone(), String::from_utf8(response.body).unwrap())
    };
    assert_eq!(body(true).await, ("[secret bot]".to_owned(), "[secret bot] [secret bot] [secret bot] weak".to_owned()));
    let (header, text) = body(false).await;
    assert_eq!((header.as_str(), text.starts_with(BOT)), (BOT, true));
}

#[tokio::test]
async fn a_cut_shows_no_part_of_a_secret() {
    let text = format!("1234567890 {BOT} {BOT}");
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len());
    let secrets = BTreeMap::from([(name("bot"), for_this_machine(Secret::new(BOT.to_owned(), bearer())))]);
    let (client, peer) = (client(), Peer::open(answer, Then::Stay).await);
    for cut in 0..=text.len() {
        let response = ask_with(&client, SLACK, &secrets, |placeholder| {
            let headers = vec![("authorization".to_owned(), placeholder("bot"))];
            Request { headers, response_max: Some(cut.try_into().unwrap()), ..post(peer.url("/"), "") }
        });
        let response = response.await.unwrap();
        let seen = String::from_utf8(response.body).unwrap();
        let whole = "1234567890 [secret bot] [secret bot]";
        assert!(whole.starts_with(&seen) && response.truncated == (cut < text.len()), "{cut}: {seen:?}");
    }
}

/// An API that takes one token, and a server that gives tokens, counted.
#[derive(Clone, Default)]
struct Api {
    given: Arc<Mutex<u32>>,
    taken: Arc<Mutex<Option<String>>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Api {
    async fn serve(&self) -> SocketAddr {
        let token = posted(|State(api): State<Api>| async move {
            let mut given = api.given.lock().unwrap();
            *given += 1;
            format!(r#"{{"access_token": "token-number-{given}-of-many", "expires_in": 3600}}"#)
        });
        let call = posted(|State(api): State<Api>, headers: HeaderMap| async move {
            let seen = headers["authorization"].to_str().unwrap().to_owned();
            api.seen.lock().unwrap().push(seen.clone());
            let is_taken = *api.taken.lock().unwrap() == Some(seen.clone());
            (if is_taken { StatusCode::OK } else { StatusCode::UNAUTHORIZED }, seen)
        });
        let router = Router::new().route("/token", token).route("/call", call).with_state(self.clone());
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }
}

#[tokio::test]
async fn a_request_refused_with_401_is_made_once_more_with_a_new_token() {
    let api = Api::default();
    *api.taken.lock().unwrap() = Some("Bearer token-number-2-of-many".to_owned());
    let address = api.serve().await;
    let source = TokenSource {
        token_url: format!("http://{address}/token").parse().unwrap(),
        private: false,
        grant: TokenGrant::ClientCredentials { client_id: "robot".to_owned(), client_secret: "secret".to_owned() },
        scopes: Vec::new(),
        audience: None,
    };
    let secret = Secret { value: SecretValue::Token(Box::new(source)), ..Secret::new(String::new(), bearer()) };
    let secrets = BTreeMap::from([(name("crm"), for_this_machine(secret))]);
    let call = async || {
        let client = client();
        let answer = ask_with(&client, SLACK, &secrets, |placeholder| {
            let headers = vec![("authorization".to_owned(), placeholder("crm"))];
            Request { headers, ..post(format!("http://{address}/call"), "") }
        });
        let answer = answer.await.unwrap();
        (answer.status, String::from_utf8(answer.body).unwrap())
    };
    assert_eq!(call().await, (200, "Bearer [secret crm]".to_owned()));
    let numbers = |numbers: &[u32]| {
        numbers.iter().map(|number| format!("Bearer token-number-{number}-of-many")).collect::<Vec<_>>()
    };
    assert_eq!(*api.seen.lock().unwrap(), numbers(&[1, 2]));
    // A second refusal is the plugin's to tell.
    assert_eq!(call().await.0, 401);
    assert_eq!(*api.seen.lock().unwrap(), numbers(&[1, 2, 3, 4]));
}
