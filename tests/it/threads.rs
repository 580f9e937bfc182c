//! The promise: follow-ups of one subject go into one thread, also when two arrive at once, and over restarts.

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Outbox, Reply, Server, Sink, World, python_outbox, workspace};

/// Answers of `chat.postMessage`: the message that begins a thread, replies in it, and so on.
const FIRST: &str = r#"{"ok":true,"channel":"C1","ts":"1503435956.000247","message":{"text":"x"}}"#;
const REPLY: &str =
    r#"{"ok":true,"channel":"C1","ts":"1503435957.000001","message":{"text":"x","thread_ts":"1503435956.000247"}}"#;
const GONE: &str = r#"{"ok":false,"error":"thread_not_found"}"#;
const ANEW: &str = r#"{"ok":true,"channel":"C1","ts":"1603435956.000003","message":{"text":"x"}}"#;

fn reply(body: &'static str) -> Reply {
    Reply { status: 200, headers: Vec::new(), body }
}

fn add(outbox: &Outbox, subject: &str, title: &str) {
    outbox.add(&["domain.active", "--subject", subject, "--title", title]);
}

/// The next message: its text, and the thread that it is a reply in.
async fn next(sink: &mut Sink) -> (String, Option<String>) {
    let message = sink.next().await;
    let text = |name: &str| message.get(name).and_then(Value::as_str).map(str::to_owned);
    (text("text").unwrap(), text("thread_ts"))
}

#[tokio::test]
async fn follow_ups_of_a_subject_are_replies_also_when_they_arrive_at_once_and_after_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = python_outbox(folder.path());
    let mut sink = Sink::start().await;
    let world = World::new(&sink, &outbox.commands(), &World::stdio_connector());
    let bot = format!(
        "with: {{ token: xoxb-0123456789abcdef, channel: \"#ops\", thread: subject, api: \"http://{}\" }}",
        sink.address()
    );
    let text = workspace(&World::stdio_connector(), "{ source: registrar }");
    world.write("workspaces/acme.yaml", &text.replace("with: { webhook: { secret: slack-ops } }", &bot));
    let mut server = Server::start(&world, &sink);
    server.wait_for("bootstrap=true");
    server.stop(Signal::TERM);

    // Both are read at once when it starts again.
    sink.answer_next([reply(FIRST), reply(REPLY)]);
    add(&outbox, "example.com", "one");
    add(&outbox, "example.com", "two");
    let mut server = Server::start(&world, &sink);
    let thread = Some("1503435956.000247".to_owned());
    assert_eq!(next(&mut sink).await, ("Info: one".to_owned(), None));
    assert_eq!(next(&mut sink).await, ("Info: two".to_owned(), thread.clone()));
    server.wait_for("INFO delivered");
    server.wait_for("INFO delivered");
    server.stop(Signal::TERM);

    // A thread that is gone is begun anew, and the next one goes there.
    let mut server = Server::start(&world, &sink);
    sink.answer_next([reply(GONE), reply(ANEW), reply(REPLY)]);
    add(&outbox, "example.com", "three");
    assert_eq!(next(&mut sink).await, ("Info: three".to_owned(), thread));
    assert_eq!(next(&mut sink).await, ("Info: three".to_owned(), None));
    server.wait_for("INFO delivered");
    add(&outbox, "example.com", "four");
    assert_eq!(next(&mut sink).await, ("Info: four".to_owned(), Some("1603435956.000003".to_owned())));
    server.wait_for("INFO delivered");

    // Another subject has a thread of its own.
    sink.answer_next([reply(FIRST)]);
    add(&outbox, "example.org", "five");
    assert_eq!(next(&mut sink).await, ("Info: five".to_owned(), None));
    server.wait_for("INFO delivered");
    let attempts = world.json(&sink, &["deliveries", "list"]);
    assert!(attempts.as_array().unwrap().iter().all(|delivery| delivery["state"] == "delivered"), "{attempts}");
}
