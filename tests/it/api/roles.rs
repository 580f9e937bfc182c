//! Every operation with every role.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use super::stage::{Api, As};

/// What each role is answered, in the order of [`As::ALL`], after its method, its path and its body.
type Row = (&'static str, String, Option<Value>, [u16; 6]);

const ALL: [u16; 6] = [401, 200, 200, 200, 200, 200];
const MARKS: [u16; 6] = [401, 200, 200, 200, 200, 403];
const READS: [u16; 6] = [401, 200, 200, 200, 403, 403];
const CHANGES: [u16; 6] = [401, 200, 200, 403, 403, 403];
const OPERATES: [u16; 6] = [401, 200, 403, 403, 403, 403];

fn rows(id: &str) -> Vec<Row> {
    let acme = |path: &str| format!("/v1/workspaces/acme{path}");
    let get = |path: String, expected| ("GET", path, None, expected);
    let post = |path: String, body: Value, expected| ("POST", path, Some(body), expected);
    // The delivery is made: nothing is there to be changed.
    let is_over = [401, 409, 409, 403, 403, 403];
    let is_refused = [401, 422, 403, 403, 403, 403];
    vec![
        get("/v1/openapi.json".to_owned(), [200; 6]),
        get("/v1/me".to_owned(), ALL),
        get("/v1/workspaces".to_owned(), ALL),
        get(acme("/notifications"), ALL),
        get(acme("/notifications/1"), ALL),
        post(acme("/notifications/read"), json!({"seqs": [1]}), MARKS),
        post(acme("/notifications/acknowledge"), json!({"seqs": [1]}), MARKS),
        get(acme("/deliveries"), READS),
        get(acme(&format!("/deliveries/{id}")), READS),
        post(acme("/deliveries/cancel"), json!({"ids": [id]}), CHANGES),
        post(acme("/deliveries/retry"), json!({"states": ["dead"]}), CHANGES),
        post(acme(&format!("/deliveries/{id}/cancel")), json!({}), is_over),
        post(acme(&format!("/deliveries/{id}/retry")), json!({}), CHANGES),
        get(acme("/routes"), READS),
        post(acme("/explain"), json!({"of": {"seq": 1}}), READS),
        post(acme("/preview"), json!({"of": {"seq": 1}}), CHANGES),
        get(acme("/connectors"), READS),
        get(acme("/connectors/registrar"), READS),
        post(acme("/connectors/registrar/poll"), json!({}), CHANGES),
        get(acme("/consumers"), READS),
        get(acme("/plugins"), READS),
        get("/v1/plugins".to_owned(), OPERATES),
        ("POST", "/v1/plugins".to_owned(), None, [401, 415, 403, 403, 403, 403]),
        post("/v1/plugins/slack/rollback".to_owned(), json!({}), is_refused),
        post("/v1/plugins/slack/approve".to_owned(), json!({}), is_refused),
        get("/v1/configuration".to_owned(), OPERATES),
        get("/v1/check".to_owned(), OPERATES),
        post("/v1/reload".to_owned(), json!({}), OPERATES),
        get("/v1/tokens".to_owned(), CHANGES),
        post(
            "/v1/tokens".to_owned(),
            json!({"role": "agent", "workspaceId": "acme", "consumer": "other"}),
            [401, 201, 201, 403, 403, 403],
        ),
        post("/v1/tokens/999/revoke".to_owned(), json!({}), [401, 404, 404, 403, 403, 403]),
    ]
}

#[tokio::test]
async fn every_operation_lets_in_whom_it_should_and_nobody_else() {
    let mut api = Api::start().await;
    api.deliver("a title").await;
    let id = api.acme("/deliveries").await["items"][0]["id"].as_str().unwrap().to_owned();
    let rows = rows(&id);
    for (method, path, body, expected) in &rows {
        for (role, expected) in As::ALL.into_iter().zip(expected) {
            let mut request = api.request(role, Method::from_bytes(method.as_bytes()).unwrap(), path);
            if let Some(body) = body {
                request = request.header("content-type", "application/json").body(body.to_string());
            }
            let answer = api.send(request).await;
            assert_eq!(answer.status, *expected, "{method} {path} as {role:?}: {}", answer.text);
            let media_type = if answer.status.is_success() { "application/json" } else { "application/problem+json" };
            assert_eq!(answer.media_type, media_type, "{method} {path} as {role:?}");
        }
    }
    let document = api.get(As::Nobody, "/v1/openapi.json").await.json();
    let described = document["paths"].as_object().unwrap().iter();
    let described =
        described.flat_map(|(path, item)| item.as_object().unwrap().keys().map(move |method| (path, method)));
    let tried: BTreeSet<String> =
        rows.iter().map(|(method, path, ..)| format!("{} {}", method.to_lowercase(), template(path, &id))).collect();
    for (path, method) in described.filter(|(path, _)| !path.ends_with("/stream")) {
        assert!(tried.contains(&format!("{method} {path}")), "nobody tries {method} {path}");
    }
}

/// The path as the document writes it.
fn template(path: &str, id: &str) -> String {
    let path = path.replace("/acme", "/{ws}").replace(id, "{id}").replace("notifications/1", "notifications/{seq}");
    path.replace("registrar", "{name}").replace("slack", "{name}").replace("999", "{id}")
}

#[tokio::test]
async fn a_workspace_of_others_is_as_unknown_as_one_that_is_not_there() {
    let api = Api::start().await;
    for path in ["notifications", "notifications/1", "deliveries", "connectors", "consumers", "routes", "plugins"] {
        assert_ne!(api.get(As::Operator, &format!("/v1/workspaces/beta/{path}")).await.status, 403);
        for role in [As::Admin, As::Member, As::Agent] {
            let of_others = api.get(role, &format!("/v1/workspaces/beta/{path}")).await;
            let of_nobody = api.get(role, &format!("/v1/workspaces/nowhere/{path}")).await;
            assert_eq!((of_others.status.as_u16(), of_nobody.status.as_u16()), (404, 404), "{path} as {role:?}");
            assert_eq!(of_others.text.replace("beta", "nowhere"), of_nobody.text);
        }
    }
}

#[tokio::test]
async fn whoever_asks_learns_what_it_may() {
    let api = Api::start().await;
    let member = api.get(As::Member, "/v1/me").await.json();
    assert_eq!(
        member,
        json!({
            "name": "member@example.com",
            "role": "member",
            "rights": [],
            "workspaces": [
                { "workspaceId": "acme", "isAside": false, "rights": ["read_inbox", "mark", "read_work"] },
            ],
        })
    );
    let operator = api.get(As::Operator, "/v1/me").await.json();
    assert_eq!((&operator["role"], &operator["rights"]), (&json!("operator"), &json!(["operate"])));
    let workspaces = operator["workspaces"].as_array().unwrap();
    assert_eq!((workspaces.len(), &workspaces[1]["workspaceId"]), (2, &json!("beta")));
    let reader = api.get(As::Reader, "/v1/me").await.json();
    assert_eq!(reader["workspaces"][0]["rights"], json!(["read_inbox"]));
    api.world.write("workspaces/beta.yaml", "members: [no]\n");
    assert_eq!(api.post(As::Operator, "/v1/reload", &json!({})).await.status, 200);
    let listed = api.get(As::Operator, "/v1/workspaces").await.json();
    // What ran before goes on, or it is set aside: it is there in any case.
    assert_eq!(listed["items"][1]["workspaceId"], "beta");
}

#[tokio::test]
async fn marks_are_made_in_the_name_of_the_token() {
    let mut api = Api::start().await;
    for title in ["one", "two", "three"] {
        api.deliver(title).await;
    }
    let acknowledge = "/v1/workspaces/acme/notifications/acknowledge";
    let by = |seq: u64, acknowledged: &Value| (acknowledged["by"].clone(), acknowledged["seqs"][0] == seq);
    let agent = api.post(As::Agent, acknowledge, &json!({"seqs": [1, 99]})).await.json();
    assert_eq!((by(1, &agent), &agent["missing"]), ((json!("triage"), true), &json!([99])));
    let person = api.post(As::Member, acknowledge, &json!({"seqs": [2]})).await.json();
    assert_eq!(by(2, &person), (json!("member@example.com"), true));
    let (_, listed, _) = crate::support::run(&api.world, &api.sink, &["inbox", "list", "--workspace", "acme"]);
    let mark = |seq: &str| listed.lines().find(|line| line.starts_with(seq)).unwrap().contains("ack (agent)");
    assert_eq!((mark("1 "), mark("2 ")), (true, false), "{listed}");
    // A person's takes the place of an agent's, and an agent's not that of a person.
    api.post(As::Member, acknowledge, &json!({"seqs": [1]})).await;
    api.post(As::Agent, acknowledge, &json!({"seqs": [2]})).await;
    for seq in [1, 2] {
        assert_eq!(api.acme(&format!("/notifications/{seq}")).await["acknowledgedBy"], "member@example.com");
    }
    let named = api.post(As::Admin, acknowledge, &json!({"seqs": [3], "by": "member@example.com"})).await;
    assert_eq!((named.status.as_u16(), named.text.contains("leave `by` out")), (403, true), "{}", named.text);
    assert_eq!(api.acme("/notifications/3").await["acknowledgedAt"], Value::Null);
}
