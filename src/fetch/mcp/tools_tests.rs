//! Calls of tools over connections that behave, and misbehave.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, json};

use super::called::trouble;
use super::http_tests::{Got, Site, common, json_answer, legacy, modern, result, secret};
use super::tools::Caller;
use super::*;
use crate::config::{Auth, Poll, Transport};
use crate::notification::Level;
use crate::tools::{Call, Said, Stage, Trouble};

/// Long enough to be masked in what a plugin is handed.
const TOKEN: &str = "s3cret-token-of-a-connector";

fn caller(url: &str) -> Caller {
    let connector = Connector {
        is_of_catalog: false,
        name: "registrar".parse().unwrap(),
        transport: Transport::Http {
            url: url.parse().unwrap(),
            auth: Auth::Bearer("token".parse().unwrap()),
            headers: BTreeMap::new(),
            private: false,
        },
        outbox: None,
        push: None,
        not_polled: None,
        ceiling: Level::Info,
        poll: Poll::default(),
    };
    let secrets = BTreeMap::from([("token".parse().unwrap(), secret(TOKEN))]);
    let way = Way::new(&"acme".parse().unwrap(), &connector, &common(&secrets, Times::default())).unwrap();
    Caller::new(way, &connector)
}

async fn call(caller: &Caller, time_max: Duration) -> Result<Said, Trouble> {
    let (workspace, connector) = ("acme".parse().unwrap(), "registrar".parse().unwrap());
    let (tool, arguments) = ("restart", Map::from_iter([("domain".to_owned(), json!("a.example"))]));
    let (on_behalf_of, delivery) = ("admin@example.com", "0badcafe-1");
    let call = Call { workspace: &workspace, connector: &connector, tool, arguments, on_behalf_of, delivery, time_max };
    caller.call(call).await
}

const PATIENT: Duration = Duration::from_secs(30);

/// What a call comes to whose request is answered so, by a server of either time.
async fn answered(answer: impl Fn(&Got) -> Response + Copy + Send + Sync + 'static) -> [Result<Said, Trouble>; 2] {
    let before = Site::start(move |got, _| legacy(got, "s-1", answer)).await;
    let since = Site::start(move |got, _| modern(got, answer)).await;
    let mut came = Vec::new();
    for site in [&before, &since] {
        let caller = caller(&site.url);
        came.push(call(&caller, PATIENT).await);
        caller.close().await;
    }
    came.try_into().unwrap()
}

async fn check(
    answer: impl Fn(&Got) -> Response + Copy + Send + Sync + 'static,
    expected: (Stage, &str, Option<u16>, Option<u64>),
) {
    for came in answered(answer).await {
        let Trouble { stage, code, status, retry_after, message } = came.unwrap_err();
        assert_eq!((stage, code.as_str(), status, retry_after.map(|wait| wait.as_secs())), expected, "{message}");
        assert!(!message.is_empty() && !message.contains(TOKEN), "{message}");
    }
}

#[tokio::test]
async fn statuses_of_http_say_how_far_a_call_got() {
    let plain = |status: u16| StatusCode::from_u16(status).unwrap().into_response();
    check(move |_| plain(403), (Stage::Refused, "http-403", Some(403), None)).await;
    check(move |_| plain(401), (Stage::Refused, "http-401", Some(401), None)).await;
    check(move |_| plain(500), (Stage::Unanswered, "http-500", Some(500), None)).await;
    check(move |_| plain(502), (Stage::Unanswered, "http-502", Some(502), None)).await;
    let asked = |status: StatusCode| (status, [("retry-after", "17")]).into_response();
    check(move |_| asked(StatusCode::TOO_MANY_REQUESTS), (Stage::Refused, "http-429", Some(429), Some(17))).await;
    check(move |_| asked(StatusCode::SERVICE_UNAVAILABLE), (Stage::Refused, "http-503", Some(503), Some(17))).await;
}

#[tokio::test]
async fn an_answer_that_is_none_leaves_it_open_whether_it_was_done() {
    check(|_| json_answer(200, &json!({"what": "nothing"})), (Stage::Unanswered, "not-mcp", None, None)).await;
    check(|got| result(got, json!({"content": 7})), (Stage::Unanswered, "not-mcp", None, None)).await;
}

#[tokio::test]
async fn a_tool_that_wants_a_person_is_refused() {
    let site = Site::start(|got, _| {
        modern(got, |got| result(got, json!({"resultType": "input_required", "requestState": "s"})))
    })
    .await;
    let caller = caller(&site.url);
    let refused = call(&caller, PATIENT).await.unwrap_err();
    assert_eq!((refused.stage, refused.code.as_str()), (Stage::Refused, "input-required"));
    caller.close().await;
}

#[tokio::test]
async fn what_a_tool_says_is_handed_on_without_the_connectors_token() {
    let answer = |got: &Got| {
        let token = got.headers["authorization"].to_str().unwrap().to_owned();
        let content = json!([{"type": "text", "text": format!("asked with {token}")}]);
        result(
            got,
            json!({"resultType": "complete", "content": content, "structuredContent": {"list": [token, 1]}, "isError": true}),
        )
    };
    for came in answered(answer).await {
        let said = came.unwrap();
        assert!(said.is_error);
        assert_eq!(said.content["content"][0]["text"], "asked with Bearer ***");
        assert_eq!(said.content["structuredContent"], json!({"list": ["Bearer ***", 1]}));
        assert_eq!(said.content.len(), 2);
    }
}

#[tokio::test]
async fn a_server_says_in_its_own_words_why_it_refuses_without_the_token() {
    let answer = |got: &Got| {
        let error = json!({"code": -32601, "message": format!("no tool for {TOKEN}")});
        json_answer(200, &json!({"jsonrpc": "2.0", "id": got.message["id"], "error": error}))
    };
    for came in answered(answer).await {
        let refused = came.unwrap_err();
        assert_eq!((refused.stage, refused.code.as_str()), (Stage::Refused, "mcp-32601"));
        assert_eq!(refused.message, "no tool for ***");
    }
}

#[tokio::test]
async fn a_connection_serves_call_after_call_and_one_that_failed_none_any_more() {
    let site = Site::start(|got, before| {
        let calls = before.iter().filter(|got| got.message["method"] == "tools/call").count();
        legacy(got, "s-1", move |got| match calls {
            2 => StatusCode::BAD_GATEWAY.into_response(),
            _ => result(got, json!({"content": []})),
        })
    })
    .await;
    let caller = caller(&site.url);
    for good in [true, true, false, true] {
        assert_eq!(call(&caller, PATIENT).await.is_ok(), good);
    }
    caller.close().await;
    let count = |method: &str| site.methods().iter().filter(|found| *found == method).count();
    assert_eq!((count("initialize"), count("tools/call")), (2, 4), "nothing is sent twice");
    let identified = |got: &Got| got.headers["x-tenant-id"] == "acme" && got.headers["x-workspace-id"] == "acme";
    assert!(site.log.lock().unwrap().iter().all(identified));
    let calls = site.log.lock().unwrap();
    let call = &calls.iter().find(|got| got.message["method"] == "tools/call").unwrap().message["params"];
    assert_eq!((&call["name"], &call["arguments"]), (&json!("restart"), &json!({"domain": "a.example"})));
    assert_eq!(call["_meta"]["switchbell/on-behalf-of"], "admin@example.com");
}

#[tokio::test]
async fn a_connection_that_cannot_be_made_has_sent_nothing() {
    let refusing = Site::start(|_, _| StatusCode::UNAUTHORIZED.into_response()).await;
    let refused = call(&caller(&refusing.url), PATIENT).await.unwrap_err();
    assert_eq!((refused.stage, refused.status), (Stage::Refused, Some(401)), "a person must see to it");
    let failing = Site::start(|_, _| StatusCode::BAD_GATEWAY.into_response()).await;
    let unsent = call(&caller(&failing.url), PATIENT).await.unwrap_err();
    assert_eq!((unsent.stage, unsent.status), (Stage::Unsent, Some(502)));
    let gone = call(&caller("http://127.0.0.1:9/mcp"), PATIENT).await.unwrap_err();
    assert_eq!((gone.stage, gone.code.as_str()), (Stage::Unsent, "connect"));
}

#[test]
fn whoever_must_sign_in_is_told_as_a_server_would_tell_it() {
    let told = trouble(&ReadError::Reauthorize("sign in again".to_owned()));
    assert_eq!((told.stage, told.code.as_str(), told.status), (Stage::Refused, "sign-in", Some(401)));
    let token = trouble(&ReadError::NoToken("the server of tokens is down".to_owned()));
    assert_eq!((token.stage, token.code.as_str(), token.status), (Stage::Unsent, "no-token", None));
}

/// A program that answers every call but the first, which it leaves open, and counts its starts in a file.
const PROGRAM: &str = r#"
echo start >> "$STARTS"
answer() { printf '{"jsonrpc":"2.0","id":%s,"%s":%s}\n' "$id" "$1" "$2"; }
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"server/discover"'*) answer error '{"code":-32601,"message":"Method not found"}' ;;
    *'"initialize"'*) answer result '{"protocolVersion":"2025-06-18","capabilities":{"resources":{}},"serverInfo":{"name":"acme","version":"1"}}' ;;
    *'"resources/read"'*) answer result '{"contents":[{"uri":"acme://n","text":"read"}]}' ;;
    *'"notifications/cancelled"'*) echo cancelled >> "$STARTS" ;;
    *'"tools/call"'*) calls=$((calls+1)); [ $calls = 1 ] || answer result '{"content":[]}' ;;
  esac
done
"#;

fn program(script: &str, starts: &Path, times: Times) -> Caller {
    let connector = Connector {
        is_of_catalog: false,
        name: "registrar".parse().unwrap(),
        transport: Transport::Stdio {
            run: ["sh", "-c", script].map(str::to_owned).to_vec(),
            env: BTreeMap::from([("STARTS".to_owned(), starts.to_str().unwrap().to_owned())]),
            directory: std::env::temp_dir(),
        },
        outbox: Some("acme://n".to_owned()),
        push: None,
        not_polled: None,
        ceiling: Level::Info,
        poll: Poll::default(),
    };
    let secrets = BTreeMap::new();
    let way = Way::new(&"acme".parse().unwrap(), &connector, &common(&secrets, times)).unwrap();
    Caller::new(way, &connector)
}

#[tokio::test]
async fn a_program_is_polled_and_called_over_one_connection_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let starts = folder.path().join("starts");
    let caller = program(PROGRAM, &starts, Times::default());
    let mut outbox = caller.outbox();
    {
        let mut open = std::pin::pin!(call(&caller, PATIENT));
        // It is under way once another call is answered: the program answers in order.
        tokio::select! {
            biased;
            came = &mut open => panic!("{came:?}"),
            read = outbox.read("acme://n") => assert_eq!(read, Ok("read".to_owned())),
        }
        tokio::select! {
            biased;
            came = &mut open => panic!("{came:?}"),
            came = call(&caller, PATIENT) => assert!(came.is_ok()),
        }
    }
    assert!(call(&caller, PATIENT).await.is_ok());
    outbox.close().await;
    caller.close().await;
    assert_eq!(std::fs::read_to_string(&starts).unwrap(), "start\ncancelled\n");
    assert_eq!(outbox.read("acme://n").await, Ok("read".to_owned()), "a later read starts it again");
    outbox.close().await;
}

/// A program that answers the handshake and nothing else.
const SILENT: &str = r#"
echo start >> "$STARTS"
answer() { printf '{"jsonrpc":"2.0","id":%s,"%s":%s}\n' "$id" "$1" "$2"; }
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"server/discover"'*) answer error '{"code":-32601,"message":"Method not found"}' ;;
    *'"initialize"'*) answer result '{"protocolVersion":"2025-06-18","capabilities":{"resources":{}},"serverInfo":{"name":"acme","version":"1"}}' ;;
  esac
done
"#;

#[tokio::test]
async fn reads_that_run_out_of_time_end_a_call_under_way_only_when_nothing_is_answered_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let starts = folder.path().join("starts");
    let times = Times { read: Duration::from_millis(300), ..Times::default() };
    let caller = program(SILENT, &starts, times);
    let mut outbox = caller.outbox();
    let started = || std::fs::read_to_string(&starts).unwrap().lines().count();
    let mut open = std::pin::pin!(call(&caller, PATIENT));
    for _ in 0..2 {
        tokio::select! {
            biased;
            came = &mut open => panic!("{came:?}"),
            read = outbox.read("acme://n") => assert!(matches!(read, Err(ReadError::Timeout { .. })), "{read:?}"),
        }
    }
    let (came, read) = tokio::join!(open, outbox.read("acme://n"));
    assert!(matches!(read, Err(ReadError::Timeout { .. })), "{read:?}");
    let lost = came.unwrap_err();
    assert_eq!((lost.stage, lost.code.as_str(), started()), (Stage::Unanswered, "disconnected", 1));
    assert!(outbox.read("acme://n").await.is_err());
    assert_eq!(started(), 2, "it is started again");
    outbox.close().await;
}
