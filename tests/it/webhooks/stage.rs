//! The libraries of receivers.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

pub use crate::support::Posting as Stage;
use crate::support::{Arrived, prepared, root};

/// What a receiver's library reads.
pub fn read(how: &str, arrived: &Arrived) -> Value {
    verified(how, arrived, "", &json!({})).unwrap_or_else(|why| panic!("{how}: {arrived:?}\n{why}"))
}

/// What a receiver's library reads once it has verified the request by this key; else what it complains of.
pub fn verified(how: &str, arrived: &Arrived, key: &str, more: &Value) -> Result<Value, String> {
    let python = prepared("tests/peers/webhooks/.venv/bin/python", "deps");
    let mut command = Command::new(python);
    command.arg(root().join("tests/peers/webhooks/read.py")).arg(how).env("KEY", key);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let Arrived { method, target, headers, body } = arrived;
    let request = json!({ "method": method, "target": target, "headers": headers, "body": body, "more": more });
    child.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    if !status.success() {
        return Err(String::from_utf8_lossy(&stderr).into_owned());
    }
    Ok(serde_json::from_slice(&stdout).unwrap())
}
