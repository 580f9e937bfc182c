//! Tokens from a pretended server. Real ones are asked in the integration tests.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Answers in order, the last again and again, and remembers what was asked.
struct Server {
    answers: Vec<(u16, &'static str)>,
    asked: Mutex<Vec<(Option<String>, String)>>,
    at_once: AtomicUsize,
}

impl Server {
    fn answering(answers: &[(u16, &'static str)]) -> Self {
        Self { answers: answers.to_vec(), asked: Mutex::default(), at_once: AtomicUsize::new(0) }
    }

    fn asked(&self) -> Vec<(Option<String>, String)> {
        self.asked.lock().unwrap().clone()
    }
}

impl Post for Server {
    async fn post(&self, ask: Ask) -> Result<(u16, Vec<u8>), Fault> {
        assert_eq!(self.at_once.fetch_add(1, Ordering::SeqCst), 0, "two at once");
        tokio::task::yield_now().await;
        self.at_once.fetch_sub(1, Ordering::SeqCst);
        let number = self.asked().len();
        self.asked.lock().unwrap().push((ask.authorization, ask.body));
        let (status, body) = self.answers[number.min(self.answers.len() - 1)];
        Ok((status, body.into()))
    }
}

fn client_credentials() -> TokenSource {
    let grant = TokenGrant::ClientCredentials { client_id: "ro:bot".to_owned(), client_secret: "s&cret".to_owned() };
    source(grant)
}

fn refresh_token(first: &str) -> TokenSource {
    source(TokenGrant::RefreshToken {
        client_id: "robot".to_owned(),
        client_secret: None,
        refresh_token: first.to_owned(),
    })
}

fn source(grant: TokenGrant) -> TokenSource {
    let scopes = vec!["read".to_owned(), "write".to_owned()];
    TokenSource {
        token_url: "https://login.example/token".parse().unwrap(),
        private: false,
        grant,
        scopes,
        audience: Some("https://api.example".to_owned()),
    }
}

struct Stage {
    tokens: Tokens,
    clock: Clock,
    _folder: tempfile::TempDir,
}

fn stage() -> Stage {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::manual(Timestamp::UNIX_EPOCH);
    Stage { tokens: Tokens::new(clock.clone(), &folder.path().join("credentials")), clock, _folder: folder }
}

fn name() -> Name {
    "crm".parse().unwrap()
}

#[tokio::test]
async fn a_token_is_fetched_once_for_all_who_wait_and_again_shortly_before_it_ends() {
    let (stage, server) = (
        stage(),
        Server::answering(&[(200, r#"{"access_token":"a1","expires_in":3600}"#), (200, r#"{"access_token":"a2"}"#)]),
    );
    let (name, source) = (name(), client_credentials());
    let get = || stage.tokens.get(&name, &source, &server);
    let (one, other) = tokio::join!(get(), get());
    assert_eq!((one.unwrap(), other.unwrap(), server.asked().len()), ("a1".to_owned(), "a1".to_owned(), 1));
    let (authorization, body) = server.asked().remove(0);
    // `ro%3Abot:s%26cret`
    assert_eq!(authorization.unwrap(), "Basic cm8lM0Fib3Q6cyUyNmNyZXQ=");
    assert_eq!(body, "grant_type=client_credentials&scope=read+write&audience=https%3A%2F%2Fapi.example");
    stage.clock.advance(Duration::from_secs(3539));
    assert_eq!(get().await.unwrap(), "a1");
    stage.clock.advance(Duration::from_secs(1));
    assert_eq!(get().await.unwrap(), "a2");
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn a_token_that_a_destination_refused_is_forgotten_unless_it_is_another_by_now() {
    let (stage, server) =
        (stage(), Server::answering(&[(200, r#"{"access_token":"a1"}"#), (200, r#"{"access_token":"a2"}"#)]));
    let (name, source) = (name(), client_credentials());
    let get = || stage.tokens.get(&name, &source, &server);
    assert_eq!(get().await.unwrap(), "a1");
    stage.tokens.forget(&name, "a1").await;
    assert_eq!(get().await.unwrap(), "a2");
    stage.tokens.forget(&name, "a1").await;
    assert_eq!(get().await.unwrap(), "a2");
}

#[tokio::test]
async fn a_server_that_wants_the_secret_in_the_form_gets_it_there() {
    let (stage, server) =
        (stage(), Server::answering(&[(401, r#"{"error":"invalid_client"}"#), (200, r#"{"access_token":"a1"}"#)]));
    let (name, source) = (name(), client_credentials());
    assert_eq!(stage.tokens.get(&name, &source, &server).await.unwrap(), "a1");
    let (authorization, body) = server.asked().remove(1);
    assert_eq!(authorization, None);
    assert!(body.contains("client_id=ro%3Abot&client_secret=s%26cret"), "{body}");
    stage.tokens.forget(&name, "a1").await;
    stage.tokens.get(&name, &source, &server).await.unwrap();
    assert_eq!(server.asked().len(), 3, "it is remembered");
}

#[tokio::test]
async fn a_refusal_is_told_in_the_servers_words_and_not_asked_for_again_at_once() {
    let (stage, server) = (
        stage(),
        Server::answering(&[
            (400, r#"{"error":"invalid_scope","error_description":"no such\nscope"}"#),
            (200, r#"{"access_token":"a1"}"#),
        ]),
    );
    let (name, source) = (name(), client_credentials());
    let get = || stage.tokens.get(&name, &source, &server);
    let fault = get().await.unwrap_err();
    assert_eq!((fault.reach, fault.code.as_str()), (Reach::Denied, "token-refused"));
    assert!(fault.message.ends_with("for the secret crm: invalid_scope (no such scope)"), "{}", fault.message);
    assert_eq!(get().await.unwrap_err(), fault);
    assert_eq!(server.asked().len(), 1);
    stage.clock.advance(REFUSAL_KEPT);
    assert_eq!(get().await.unwrap(), "a1");
}

#[tokio::test]
async fn a_server_that_quotes_what_it_refuses_does_not_spread_it() {
    const QUOTES: &str = r#"{"error": "invalid_grant", "error_description":
        "s&cret-of-the-robot s%26cret-of-the-robot cm8lM0Fib3Q6cyUyNmNyZXQtb2YtdGhlLXJvYm90 refresh-1"}"#;
    let mut source = refresh_token("refresh-1");
    source.grant = TokenGrant::RefreshToken {
        client_id: "ro:bot".to_owned(),
        client_secret: Some("s&cret-of-the-robot".to_owned()),
        refresh_token: "refresh-1".to_owned(),
    };
    let fault = stage().tokens.get(&name(), &source, &Server::answering(&[(400, QUOTES)])).await.unwrap_err();
    let quoted = "invalid_grant ([secret crm] [secret crm] [secret crm] [secret crm])";
    assert!(fault.message.ends_with(quoted), "{}", fault.message);
}

#[tokio::test]
async fn what_is_neither_token_nor_refusal_may_be_better_later() {
    for answer in [
        (503, "busy"),
        (200, "<html>"),
        (200, r#"{"access_token":"a b"}"#),
        (200, r#"{"access_token":"a","token_type":"mac"}"#),
        (429, r#"{"error":"slow_down"}"#),
    ] {
        let (stage, server) =
            (stage(), Server::answering(&[answer, (200, r#"{"access_token":"a1","expires_in":"60"}"#)]));
        let (name, source) = (name(), client_credentials());
        let fault = stage.tokens.get(&name, &source, &server).await.unwrap_err();
        assert_eq!((fault.reach, fault.code.as_str()), (Reach::Unsent, "token-unavailable"), "{answer:?}");
        assert_eq!(stage.tokens.get(&name, &source, &server).await.unwrap(), "a1");
    }
}

#[tokio::test]
async fn a_refresh_token_that_was_exchanged_is_kept_until_a_person_writes_another() {
    let stage = stage();
    let name = name();
    let server = Server::answering(&[
        (200, r#"{"access_token":"a1","refresh_token":"r2"}"#),
        (200, r#"{"access_token":"a2","refresh_token":"r3"}"#),
        (200, r#"{"access_token":"a3"}"#),
    ]);
    let get = async |first: &str| {
        let anew = Tokens::new(stage.clock.clone(), &stage.tokens.folder);
        anew.get(&name, &refresh_token(first), &server).await.unwrap();
        server.asked().pop().unwrap().1
    };
    assert!(get("r1").await.starts_with("grant_type=refresh_token&refresh_token=r1&client_id=robot"));
    assert!(get("r1").await.contains("refresh_token=r2&"));
    assert!(get("r1").await.contains("refresh_token=r3&"));
    assert!(get("r1").await.contains("refresh_token=r3&"), "it was not exchanged");
    assert!(get("another").await.contains("refresh_token=another&"));
    let kept = std::fs::read_to_string(stage.tokens.folder.join(".secrets/crm.json")).unwrap();
    assert!(!kept.contains("r1"), "{kept}");
}
