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

    let mut command = Command::new(python);
    command.args(["-m", "schemathesis.cli", "--config-file"]);
    command.arg(root().join("tests/peers/schemathesis/schemathesis.toml")).arg("run").arg(&file);
    command
        .args(["--url", &api.base])
        .arg("--header")
        .arg(format!("Authorization:Bearer {}", api.token(As::Operator).unwrap()));
    command.current_dir(folder.path()).env("NO_COLOR", "1").env("NO_PROXY", "*").stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    assert_eq!(api.get(As::Operator, "/v1/me").await.status, 200, "the server goes on");
}
