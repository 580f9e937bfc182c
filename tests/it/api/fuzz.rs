//! Generated requests: whatever is sent, the answer is one that the document describes.

use std::process::{Command, Stdio};

use serde_json::json;

use super::stage::{Api, As};
use crate::support::{prepared, root};

#[tokio::test]
async fn every_answer_is_one_that_the_document_describes_whatever_is_sent() {
    let mut api = Api::start().await;
    api.deliver("a title").await;
    api.post(As::Operator, "/v1/workspaces/acme/notifications/read", &json!({"seqs": [1]})).await;
    let python = prepared("tests/peers/schemathesis/.venv/bin/python", "deps");
    let document = api.get(As::Nobody, "/v1/openapi.json").await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("openapi.json");
    std::fs::write(&file, &document.text).unwrap();
    let validated = Command::new(&python).args(["-m", "openapi_spec_validator"]).arg(&file).output().unwrap();
    assert!(validated.status.success(), "{}", String::from_utf8_lossy(&validated.stdout));

    let deliveries = api.acme("/deliveries").await;
    let settings = std::fs::read_to_string(root().join("tests/peers/schemathesis/schemathesis.toml")).unwrap();
    let settings = settings.replace("DELIVERY", deliveries["items"][0]["id"].as_str().unwrap());
    std::fs::write(folder.path().join("schemathesis.toml"), settings).unwrap();
    let mut command = Command::new(prepared("tests/peers/schemathesis/.venv/bin/schemathesis", "deps"));
    command.args(["run", "openapi.json", "--url", &api.base]).current_dir(folder.path());
    command.env("SWITCHBELL_TOKEN", api.token(As::Operator).unwrap()).env("NO_COLOR", "1").env("NO_PROXY", "*");
    command.stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    assert_eq!(api.get(As::Operator, "/v1/me").await.status, 200, "the server goes on");
}
