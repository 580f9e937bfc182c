//! What is wrong is said as a problem, whoever says it.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::stage::{Answer, Api, As};

fn check(answer: &Answer, status: u16, kind: &str, says: &str) {
    assert_eq!(answer.status, status, "{}", answer.text);
    assert_eq!(answer.media_type, "application/problem+json", "{}", answer.text);
    let problem = answer.json();
    assert_eq!((&problem["status"], &problem["type"]), (&json!(status), &json!(format!("/problems/{kind}"))));
    assert!(problem["title"].is_string(), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains(says), "{problem}");
    assert!(!problem["detail"].as_str().unwrap().contains("deserialize"), "{problem}");
}

#[tokio::test]
async fn a_request_that_makes_no_sense_is_told_what_is_wrong() {
    let api = Api::start().await;
    for (path, status, kind, says) in [
        ("/v1", 404, "unknown", "there is no GET /v1"),
        ("/v1/nothing", 404, "unknown", "there is no GET /v1/nothing"),
        ("/v1/workspaces/acme/nothing/at/all", 404, "unknown", "/v1/openapi.json"),
        ("/v1/workspaces/acme/notifications?unreed=true", 400, "wrong", "unreed: unknown field `unreed`"),
        ("/v1/workspaces/acme/notifications/1?x=1", 400, "wrong", "unknown field `x`"),
        ("/v1/me?x=1", 400, "wrong", "unknown field `x`"),
        ("/v1/configuration?x=1", 400, "wrong", "unknown field `x`"),
        ("/v1/workspaces/acme/notifications?limit=0", 400, "wrong", "limit: 0: ask for 1 to 1000"),
        ("/v1/workspaces/acme/notifications?limit=1001", 400, "wrong", "limit: 1001"),
        ("/v1/workspaces/acme/notifications?limit=1&limit=2", 400, "wrong", "duplicate field `limit`"),
        ("/v1/workspaces/acme/notifications?level=loud", 400, "wrong", "unknown variant `loud`"),
        ("/v1/workspaces/acme/notifications?name=a%20b", 400, "wrong", "name \"a b\": "),
        ("/v1/workspaces/acme/notifications?subject=", 400, "wrong", "subject: 0 characters"),
        ("/v1/workspaces/acme/notifications?since=yesterday", 400, "wrong", "since: \"yesterday\" is no moment"),
        ("/v1/workspaces/acme/notifications?seqs=1,x", 400, "wrong", "\"x\""),
        ("/v1/workspaces/acme/notifications/none", 404, "unknown", "there is nothing here"),
        ("/v1/workspaces/acme/notifications/7", 404, "nothing", "workspace acme has no notification 7"),
        ("/v1/workspaces/acme/deliveries/7", 404, "unknown", "eight hexadecimal digits"),
        ("/v1/workspaces/acme/deliveries/5f3a9c01-7", 404, "nothing", "workspace acme has no delivery 5f3a9c01-7"),
        ("/v1/workspaces/acme/deliveries?state=deed", 400, "wrong", "there is no such state"),
        ("/v1/workspaces/acme/deliveries?route=everythin", 404, "unknown", "did you mean \"everything\"?"),
        ("/v1/workspaces/acme/connectors/crm", 404, "unknown", "there is no connector \"crm\""),
    ] {
        check(&api.get(As::Operator, path).await, status, kind, says);
    }
    check(&api.get(As::Nobody, "/v1/me").await, 401, "unauthenticated", "Authorization: Bearer");
}

#[tokio::test]
async fn a_body_that_makes_no_sense_is_told_what_is_wrong() {
    let api = Api::start().await;
    let long: Vec<u64> = (1..=20_000).collect();
    for (path, body, status, kind, says) in [
        ("/notifications/read", json!({}), 400, "wrong", "0 notifications: name 1 to 1000"),
        ("/notifications/read", json!([[1]]), 400, "wrong", "the body is a list: send an object"),
        ("/notifications/read", json!({"seq": 1}), 400, "wrong", "unknown field `seq`"),
        ("/notifications/read", json!({"seqs": ["1"]}), 400, "wrong", "line 1 column"),
        ("/notifications/read", json!({"seqs": long}), 413, "too-large", "more than 65536 bytes"),
        ("/deliveries/retry", json!({}), 400, "wrong", "name the deliveries to retry"),
        ("/deliveries/5f3a9c01-7/retry", json!({}), 404, "unknown", "workspace acme has no delivery 5f3a9c01-7"),
        ("/explain", json!({"of": {"seq": 7}}), 404, "nothing", "workspace acme has no notification 7"),
        ("/explain", json!({"of": {}}), 400, "wrong", "name a `seq`"),
        ("/explain", json!({"of": {"event": {}, "source": "registrar"}}), 422, "dropped", "would be dropped"),
    ] {
        check(&api.post(As::Operator, &format!("/v1/workspaces/acme{path}"), &body).await, status, kind, says);
    }
    let read = "/v1/workspaces/acme/notifications/read";
    let plain = api.send(api.request(As::Operator, Method::POST, read).body("{\"seqs\":[1]}")).await;
    check(&plain, 415, "media-type", "Content-Type: application/json");
    let broken = api.request(As::Operator, Method::POST, read).header("content-type", "application/json");
    check(&api.send(broken.body("{")).await, 400, "wrong", "the body is not what this takes");
    let delete = api.send(api.request(As::Operator, Method::DELETE, read)).await;
    check(&delete, 405, "method", "DELETE cannot be asked of /v1/workspaces/acme/notifications/read");
    assert_eq!(delete.allow.as_deref(), Some("POST"));
    let none = api.send(api.request(As::Operator, Method::PUT, "/v1/plugins")).await;
    let mut allowed: Vec<&str> = none.allow.as_deref().unwrap().split(',').map(str::trim).collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["GET", "HEAD", "POST"]);
}

#[tokio::test]
async fn files_with_mistakes_and_components_that_are_none_are_refused_with_all_that_is_known() {
    let api = Api::start().await;
    let upload = api.request(As::Operator, Method::POST, "/v1/plugins").header("content-type", "application/wasm");
    let refused = api.send(upload.body("no component")).await;
    check(&refused, 422, "refused", "");
    assert_eq!(refused.json()["refused"]["why"], refused.json()["detail"]);
    let operator = std::fs::read_to_string(api.world.config()).unwrap();
    api.world.write("switchbell.yaml", &format!("{operator}unknown: 1\n"));
    let refused = api.post(As::Operator, "/v1/reload", &json!({})).await;
    check(&refused, 422, "refused", "unknown");
    let mistakes = &refused.json()["refused"]["mistakes"];
    assert_eq!(mistakes[0]["path"], "unknown", "{mistakes}");
    let status = api.get(As::Operator, "/v1/configuration").await.json();
    assert_eq!((&status["isGood"], &status["refused"]["mistakes"]), (&json!(false), mistakes));
}

/// Sends the head of an upload that has a body of so many bytes, and none of it; the status line that comes.
async fn upload_without_a_body(api: &Api, role: As, bytes: u64) -> String {
    let address = api.base.strip_prefix("http://").unwrap();
    let token = api.token(role).unwrap();
    let head = format!(
        "POST /v1/plugins HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/wasm\r\n\
         Content-Length: {bytes}\r\n\r\n"
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut line = [0; 12];
    let read = tokio::time::timeout(Duration::from_secs(60), stream.read_exact(&mut line)).await;
    read.expect("the server waits for the body").unwrap();
    String::from_utf8(line.to_vec()).unwrap()
}

#[tokio::test]
async fn nothing_of_an_upload_is_read_of_whoever_may_not_load_plugins_or_sends_too_much() {
    let api = Api::start().await;
    assert_eq!(upload_without_a_body(&api, As::Admin, 1_000).await, "HTTP/1.1 403");
    assert_eq!(upload_without_a_body(&api, As::Operator, 1 << 40).await, "HTTP/1.1 413");
}
