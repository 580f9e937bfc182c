//! `switchbell demo`: runs the router and shows what it does as it does it, with a stand-in for Slack on this machine.

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use serde_json::Value;
use tokio::net::TcpListener;

use super::console::Console;
use super::output::{fail, show};
use super::serve::{BROKEN, Signals};
use crate::app::App;
use crate::clock::Clock;
use crate::config::{self, Loaded};
use crate::telemetry::log_to_stderr;

pub(super) async fn run(file: &Path) -> ExitCode {
    // What happens is shown by the console; the log adds what else goes wrong.
    log_to_stderr("error");
    let listening = TcpListener::bind(("127.0.0.1", 0)).await;
    let (listener, slack) =
        match listening.and_then(|listener| listener.local_addr().map(|address| (listener, address))) {
            Ok(listening) => listening,
            Err(error) => return fail(format_args!("cannot listen on this machine: {error}")),
        };
    tokio::select! {
        served = axum::serve(listener, stand_in_for_slack()) => match served {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(format_args!("the stand-in for Slack failed: {error}")),
        },
        code = route(file, slack) => code,
    }
}

async fn route(file: &Path, slack: SocketAddr) -> ExitCode {
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => return fail(error),
    };
    let environment = |name: &str| match name {
        "DEMO_SLACK" => Some(slack.to_string().into()),
        "DEMO_SLACK_WEBHOOK" => Some(format!("http://{slack}/services/T00000000/B00000000/demo").into()),
        _ => config::process_environment(name),
    };
    let config = match config::load(file, &environment).and_then(Loaded::whole) {
        Ok((config, _)) => Arc::new(config),
        Err(problems) => return fail(format_args!("the demo's configuration is wrong:\n{problems}")),
    };
    show(format_args!("Store: {}. Slack is played by http://{slack}. Ctrl-C stops.\n", config.store.display()));
    let observer = Console::new(Arc::clone(&config));
    let mut app = match App::start(config, Clock::system(), Arc::new(observer)).await {
        Ok(app) => app,
        Err(error) => return fail(error),
    };
    match app.gate().operator_link().await {
        Ok(link) => {
            show(format_args!("The inbox in a browser (the link works once):\n  {}\n", link.unwrap_or_default()))
        }
        Err(problem) => return fail(problem),
    }
    tokio::select! {
        () = signals.stop_asked() => {}
        () = app.broken() => return fail(BROKEN),
    }
    show("\nStopping.");
    app.stop().await;
    let program = std::env::args().next().unwrap_or_else(|| "switchbell".to_owned());
    show(format_args!("Stopped. What is in the inbox: {program} --config {} inbox list", file.display()));
    ExitCode::SUCCESS
}

/// Answers as Slack's incoming webhooks do, and prints what they would have received.
fn stand_in_for_slack() -> Router {
    let received = |body: Bytes| async move {
        match serde_json::from_slice::<Value>(&body) {
            Ok(message) => {
                show(shown(&message));
                "ok"
            }
            Err(_) => "invalid_payload",
        }
    };
    Router::new().route("/services/{*rest}", post(received))
}

/// What a person would see of a message: every text in it, in order.
fn shown(message: &Value) -> String {
    let mut texts = Vec::new();
    if let Some(blocks) = message.get("blocks").and_then(Value::as_array) {
        blocks.iter().for_each(|block| collect_texts(block, &mut texts));
    }
    if texts.is_empty() {
        texts.extend(message.get("text").and_then(Value::as_str));
    }
    let lines = texts.iter().flat_map(|text| text.lines());
    let lines: Vec<String> = lines.map(|line| format!("             | {line}")).collect();
    format!("  Slack got:\n{}", lines.join("\n"))
}

fn collect_texts<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                match member.as_str() {
                    Some(text) if key == "text" || key == "url" => texts.push(text),
                    Some(_) => {}
                    None => collect_texts(member, texts),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_text_of_a_message_is_shown_in_order() {
        let message = json!({
            "text": "fallback",
            "blocks": [
                {"type": "header", "text": {"type": "plain_text", "text": "a title"}},
                {"type": "context", "elements": [{"type": "plain_text", "text": "one\ntwo"}]},
            ],
        });
        assert_eq!(shown(&message), "  Slack got:\n             | a title\n             | one\n             | two");
        assert_eq!(shown(&json!({"text": "only"})), "  Slack got:\n             | only");
    }
}
