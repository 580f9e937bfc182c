//! What a revoked token does no more, and what it takes along.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

/// What is answered to a request whose body comes only after something has happened to its sender.
async fn late_body(stage: &Stage, path: &str, token: &str, body: (&str, &str), happens: impl FnOnce()) -> String {
    let (media_type, body) = body;
    let mut stream = tokio::net::TcpStream::connect(&stage.address).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\ncontent-type: {media_type}\r\naccept: \
         application/json, text/event-stream\r\ncontent-length: {}\r\nexpect: 100-continue\r\nconnection: close\r\n\r\n",
        stage.address,
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // Only who was let in is asked for the body.
    let mut go_on = [0; 25];
    stream.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(&body.as_bytes()[..1]).await.unwrap();
    happens();
    stream.write_all(&body.as_bytes()[1..]).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap().to_owned()
}

#[tokio::test]
async fn a_token_that_is_revoked_while_its_request_comes_does_nothing() {
    let stage = Stage::start("").await;
    let json = "application/json";
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    for (path, body) in [
        ("/v1/tokens", (json, r#"{"role":"operator"}"#)),
        ("/v1/workspaces/acme/notifications/read", (json, r#"{"seqs":[1]}"#)),
        ("/w/acme/inbox/mark", ("application/x-www-form-urlencoded", "deed=read&seq=1")),
        ("/v1/plugins", ("application/wasm", "no component")),
        ("/plugins/load", ("application/wasm", "no component")),
        ("/mcp", (json, &call)),
    ] {
        let made = stage.token(&["create", "--role", "operator"]);
        let (token, id) = (made["token"].as_str().unwrap(), made["made"]["id"].to_string());
        let kept = late_body(&stage, path, token, body, || {}).await;
        assert!(!kept.contains("401"), "{path}: {kept}");
        let answer = late_body(&stage, path, token, body, || drop(stage.token(&["revoke", &id]))).await;
        assert_eq!(answer, "HTTP/1.1 401 Unauthorized", "{path}");
    }
}

#[tokio::test]
async fn revoking_a_token_says_how_many_it_takes_along() {
    let stage = Stage::start("").await;
    let made = stage.token(&["create", "--role", "operator"]);
    let (token, id) = (made["token"].as_str().unwrap(), made["made"]["id"].to_string());
    let create = stage.to(Method::POST, "/v1/tokens").bearer_auth(token).header(CONTENT_TYPE, "application/json");
    let answer = create.body(r#"{"role":"operator"}"#).send().await.unwrap().text().await.unwrap();
    let below: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(below["made"]["parent"], made["made"]["id"]);
    stage.sign_in(json!({ "token": token })).await;
    let (code, _, said) = run(&stage.world, &stage.sink, &["token", "revoke", &id]);
    assert!(code == 0 && said.contains(", and 2 made from it"), "{code}: {said}");
    problem(stage.get("/v1/me", below["token"].as_str().unwrap()).await, 401).await;
}
