//! What is pending, and what is acknowledged.

use serde_json::{Value, json};

use super::server_stage::{ACK, Consumer, EXTENSION, GET, LISTEN, emit, emit_ids, filter, ids, message, start};
use crate::mcp::stage::{ACME, LEGACY, MODERN, event};

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_what_waits_the_oldest_first_until_it_is_acknowledged() {
    let stage = start().await;
    let triage = Consumer::new(&stage, "triage").await;
    assert_eq!(
        triage.result(GET, json!({})).await,
        json!({ "resultType": "complete", "events": [], "hasMore": false, "_meta": { "switchbell/handed-on": true } })
    );
    emit_ids(&stage, &["1", "2", "3"], &["triage"]).await;
    let page = triage.result(GET, json!({ "limit": 2, "other": 1, "consumer": "watch" })).await;
    assert_eq!((ids(&page), &page["hasMore"]), (vec!["acme:crm:1".to_owned(), "acme:crm:2".to_owned()], &json!(true)));
    assert_eq!(triage.result(GET, json!({ "limit": 2 })).await, page, "nothing changes until it is acknowledged");
    let first = &page["events"][0];
    assert_eq!(
        (&first["sourceId"], &first["type"], &first["createdAt"]),
        (&json!("crm"), &json!("domain.active"), &json!("2026-09-01T18:42:10Z"))
    );
    let text = "title of 1\n\nmore\nof it\n\nacme://domains/a";
    assert_eq!(first["content"], json!([{ "type": "text", "text": text }]));
    assert_eq!(first.as_object().unwrap().len(), 6, "the envelope is closed: {first}");
    // In any order, some of them, and again.
    triage.acknowledge(&["acme:crm:2"]).await;
    assert_eq!(triage.pending().await, ["acme:crm:1", "acme:crm:3"]);
    triage.acknowledge(&["acme:crm:2", "acme:crm:1", "acme:crm:1"]).await;
    assert_eq!(triage.pending().await, ["acme:crm:3"]);
    // What was acknowledged does not come again, whatever its source says.
    emit_ids(&stage, &["1", "2"], &["triage"]).await;
    assert_eq!(triage.pending().await, ["acme:crm:3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_comes_byte_for_byte() {
    let stage = start().await;
    let triage = Consumer::new(&stage, "triage").await;
    let data = "{ \"b\": 1.50,\r\n \"a\" : 12345678901234567890123, \"b\":\"\\u00e4\" }";
    emit(&stage, "crm", vec![switchbell::notification::Event { data: data.to_owned(), ..event("1") }], &["triage"])
        .await;
    let answer = triage.post(&message(&json!("g-1"), GET, json!({}))).await;
    assert!(answer.text.contains(&format!("\"data\":{data}}}]")), "{}", answer.text);
    assert!(answer.text.starts_with("{\"jsonrpc\":\"2.0\",\"id\":\"g-1\","), "{}", answer.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn consumers_have_queues_of_their_own_and_learn_nothing_of_each_other() {
    let stage = start().await;
    let (triage, watch) = (Consumer::new(&stage, "triage").await, Consumer::new(&stage, "watch").await);
    emit_ids(&stage, &["both"], &["triage", "watch"]).await;
    emit_ids(&stage, &["theirs"], &["watch"]).await;
    assert_eq!(triage.pending().await, ["acme:crm:both"]);
    assert_eq!(watch.pending().await, ["acme:crm:both", "acme:crm:theirs"]);
    // Its own, another's, one of another workspace, one that never was, one that cannot be: all the same.
    let long = "x".repeat(10_000);
    let mut answers = Vec::new();
    for id in ["acme:crm:both", "acme:crm:theirs", "globex:crm:both", "nothing", &long] {
        answers.push(triage.post(&message(&json!(7), ACK, json!({ "eventIds": [id] }))).await.text);
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    assert_eq!(triage.pending().await, Vec::<String>::new());
    assert_eq!(watch.pending().await, ["acme:crm:both", "acme:crm:theirs"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_consumer_with_both_scopes_and_a_queue_in_the_file_is_served() {
    let stage = start().await;
    emit_ids(&stage, &["1"], &["triage"]).await;
    let agent = |consumer: &str, scopes: Value| json!({ "role": "agent", "workspaceId": "acme", "consumer": consumer, "scopes": scopes });
    let member = json!({ "role": "member", "workspaceId": "acme", "member": "reader@example.com" });
    for (wanted, says) in [
        (json!({ "role": "operator" }), "is no consumer's"),
        (member, "switchbell token create --role agent"),
        (agent("triage", json!(["read"])), "a queue needs read and ack"),
        (agent("triage", json!(["ack"])), "a queue needs read and ack"),
        (agent("nobody", json!(["read", "ack"])), "write `consumers: { nobody: {} }` into the file of workspace acme"),
        (
            json!({ "role": "agent", "workspaceId": "globex", "consumer": "triage" }),
            "into the file of workspace globex",
        ),
    ] {
        let token = stage.token(wanted.clone()).await;
        let consumer = Consumer::at(&stage.url, &token);
        for (method, params) in [(GET, json!({})), (ACK, json!({ "eventIds": ["acme:crm:1"] })), (LISTEN, filter())] {
            let (status, error) = consumer.refusal(method, params).await;
            assert_eq!((status, &error["code"]), (200, &json!(-32001)), "{wanted} {method}: {error}");
            assert!(error["message"].as_str().unwrap().contains(says), "{wanted} {method}: {error}");
        }
    }
    let triage = Consumer::new(&stage, "triage").await;
    assert_eq!(triage.pending().await, ["acme:crm:1"]);
    // Taken out of the file it has none; put back it goes on.
    stage.reload_with("workspaces/acme.yaml", ACME).await;
    assert_eq!(triage.refusal(GET, json!({})).await.1["code"], -32001);
    stage.reload_with("workspaces/acme.yaml", &format!("{ACME}consumers: {{ triage: {{}} }}\n")).await;
    assert_eq!(triage.pending().await, ["acme:crm:1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_outlives_a_restart_also_while_the_file_has_mistakes() {
    let stage = start().await;
    let Consumer { token, .. } = Consumer::new(&stage, "triage").await;
    emit_ids(&stage, &["1", "2"], &["triage"]).await;
    Consumer::at(&stage.url, &token).acknowledge(&["acme:crm:1"]).await;
    let stage = stage.again().await;
    assert_eq!(Consumer::at(&stage.url, &token).pending().await, ["acme:crm:2"]);
    let file = stage.folder.path().join("workspaces/acme.yaml");
    let good = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, "members: no\n").unwrap();
    let stage = stage.again().await;
    let (status, error) = Consumer::at(&stage.url, &token).refusal(GET, json!({})).await;
    assert_eq!((status, &error["code"]), (200, &json!(-32603)), "{error}");
    assert!(error["message"].as_str().unwrap().contains("the file of workspace acme has mistakes"), "{error}");
    stage.reload_with("workspaces/acme.yaml", &good).await;
    // That the file is good again joins it, too.
    assert_eq!(Consumer::at(&stage.url, &token).pending().await[0], "acme:crm:2");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_extension_is_told_of_in_every_revision() {
    let stage = start().await;
    let triage = Consumer::new(&stage, "triage").await;
    let found = triage.result("server/discover", json!({})).await;
    assert_eq!(found["capabilities"]["extensions"], json!({ EXTENSION: {} }), "{found}");
    let client =
        json!({ "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": { "name": "it", "version": "1" } });
    let began = stage.result(&triage.token, "initialize", client).await;
    assert_eq!(began["capabilities"]["extensions"], json!({ EXTENSION: {} }), "{began}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_request_is_told_as_the_revision_has_it() {
    let stage = start().await;
    let triage = Consumer::new(&stage, "triage").await;
    let (status, error) = triage.refusal(GET, json!({ "limit": 0 })).await;
    assert_eq!((status, &error["code"]), (200, &json!(-32602)), "{error}");
    let mut meta = super::server_stage::meta();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let (status, error) = triage.refusal(ACK, json!({ "eventIds": ["a"], "_meta": meta })).await;
    assert_eq!((status, &error["code"]), (400, &json!(-32021)), "{error}");
    assert_eq!(error["data"], json!({ "requiredCapabilities": { "extensions": { EXTENSION: {} } } }));
    let (status, error) =
        triage.refusal(LISTEN, json!({ "notifications": { EXTENSION: { "afterCursor": "1" } } })).await;
    assert_eq!((status, &error["code"]), (200, &json!(-32602)), "{error}");
    let answer = triage.post(&message(&Value::Null, GET, json!({}))).await;
    let told = answer.json();
    assert_eq!((answer.status, &told["id"], &told["error"]["code"]), (400, &Value::Null, &json!(-32600)), "{told}");

    let bearer = format!("Bearer {}", triage.token);
    let bearer = ("authorization", bearer.as_str());
    let get = message(&json!(1), GET, json!({}));
    let contradicted = [bearer, ("mcp-protocol-version", MODERN), ("mcp-method", ACK)];
    let answer = stage.post(&get, &contradicted).await;
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!(-32020)), "{answer:?}");
    // Without a token nothing is told, and what is none of the extension goes on to the rest of the server.
    assert_eq!(stage.post(&get, &[]).await.status, 401);
    let declared =
        json!({ "_meta": { "io.modelcontextprotocol/clientCapabilities": super::server_stage::capabilities() } });
    let older = json!({ "jsonrpc": "2.0", "id": 1, "method": GET, "params": declared });
    let answer = stage.post(&older, &[bearer, ("mcp-protocol-version", LEGACY)]).await.json();
    assert_eq!(answer["result"]["events"], json!([]), "{answer}");
    let unknown = message(&json!(1), "io.stagewise/push-notifications/other", json!({}));
    let answer = triage.post(&unknown).await;
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (404, &json!(-32601)), "{answer:?}");
    let notification = json!({ "jsonrpc": "2.0", "method": GET });
    let answer = stage.post(&notification, &[bearer, ("mcp-protocol-version", LEGACY)]).await;
    assert_eq!((answer.status, answer.text.as_str()), (202, ""));
}
