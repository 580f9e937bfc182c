//! `switchbell preview`: what would be sent, without sending it.

use serde_json::{Value, json};

use crate::support::{Server, Sink, World, operator, python_outbox, run, workspace};

struct Stage {
    sink: Sink,
    world: World,
}

/// A world whose routes deliver to Slack, and no server.
async fn stage() -> Stage {
    let sink = Sink::start().await;
    let commands = "{ outbox: { run: [cat], workspaces: [acme] } }";
    let world = World::new(&sink, commands, &World::stdio_connector());
    Stage { sink, world }
}

const MADE: [&str; 5] = ["preview", "--source", "registrar", "--name", "domain.active"];

impl Stage {
    fn check(&mut self, arguments: &[&str], code: i32, says: &[&str]) {
        let (found, out, error) = run(&self.world, &self.sink, arguments);
        let said = format!("{out}{error}");
        assert_eq!(found, code, "{arguments:?} said: {said}");
        for text in says {
            assert!(said.contains(text), "{arguments:?} does not say {text:?}: {said}");
        }
        assert!(!said.contains("secret-part"), "{arguments:?} shows a secret: {said}");
        assert!(self.sink.is_untouched(), "{arguments:?} sent something");
    }

    fn made(&mut self, more: &[&str], code: i32, says: &[&str]) {
        self.check(&[&MADE, more].concat(), code, says);
    }
}

/// The body of the first request of the first target.
fn body(preview: &Value) -> Value {
    serde_json::from_str(preview["targets"][0]["steps"][0]["action"]["http"]["body"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn a_preview_beside_a_running_server_shows_what_was_sent() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = python_outbox(folder.path());
    let mut sink = Sink::start().await;
    let world = World::new(&sink, &outbox.commands(), &World::stdio_connector());
    let mut server = Server::start(&world, &sink);
    server.wait_for("bootstrap=true");
    outbox.add(&["domain.active", "--title", "a title"]);
    let sent = sink.next().await;
    server.wait_for("INFO delivered");
    let preview = world.json(&sink, &["preview", "--seq", "1", "--answers", "none"]);
    assert_eq!(body(&preview), sent);
    let target = &preview["targets"][0];
    let http = &target["steps"][0]["action"]["http"];
    assert_eq!((&http["method"], &http["url"]), (&json!("POST"), &json!("[secret slack-ops]")));
    assert_eq!((&target["route"], &target["plugin"]), (&json!("everything"), &json!("slack")));
    assert_eq!((&target["needsAnswer"], &target["outcome"]), (&json!(true), &Value::Null));
    assert_eq!((&target["when"], &preview["notification"]["seq"]), (&json!("at once"), &json!(1)));
    assert!(sink.is_untouched(), "a preview sent something");
    let (code, _, said) = run(&world, &sink, &["preview", "--seq", "7"]);
    assert_eq!((code, said.contains("has no notification 7")), (1, true), "{said}");
}

#[tokio::test]
async fn an_event_is_made_from_flags_or_read_from_a_file() {
    let mut stage = stage().await;
    stage.made(
        &["--title", "now it is", "--level", "urgent"],
        0,
        &[
            "domain.active: now it is (from registrar, attention)",
            "route everything -> slack",
            "POST [secret slack-ops]",
        ],
    );
    stage.made(&[], 0, &["when      at once", "then      delivered", "nothing was sent"]);
    stage.made(&["--answers", "none"], 0, &["what follows depends on the answer", "nothing was sent"]);
    let event = r#"{"eventId": "e-1", "name": "domain.lost", "timestamp": "2026-01-02T03:04:05Z", "data": {"b": 1.0},
        "_meta": {"ai.nimblebrain/notification": {"title": "it is lost", "subject": "a.example"}}}"#;
    stage.world.write("event.json", event);
    let file = stage.world.path("event.json").display().to_string();
    stage.check(&["preview", "--event", &file, "--source", "registrar"], 0, &["domain.lost: it is lost"]);
    let preview = stage.world.json(&stage.sink, &["preview", "--event", &file, "--source", "registrar"]);
    assert_eq!(preview["notification"]["data"], json!({"b": 1.0}));
    assert!(body(&preview).to_string().contains("it is lost"));
    stage.world.write("event.json", "{}");
    stage.check(&["preview", "--event", &file, "--source", "registrar"], 1, &["would be dropped: ", "eventId"]);
    stage.made(&["--level", "loud"], 1, &["would be dropped: ", "loud"]);
}

#[tokio::test]
async fn an_attempt_goes_on_with_the_answers_of_a_file() {
    let mut stage = stage().await;
    let file = stage.world.path("answers.json").display().to_string();
    stage.world.write("answers.json", r#"[{"http": {"ok": {"status": 200, "body": "ok"}}}]"#);
    stage.made(&["--answers", &file], 0, &["answer    {\"http\":{\"ok\":{\"status\":200", "then      delivered"]);
    stage.world.write("answers.json", r#"[{"http": {"ok": {"status": 404, "body": "no_service"}}}]"#);
    stage.made(&["--answers", &file], 1, &["not delivered ("]);
    stage.world.write("answers.json", r#"[{"mail": {"ok": {"messageId": "x", "recipients": []}}}]"#);
    stage.made(&["--answers", &file], 0, &["another kind of action"]);
    stage.world.write("answers.json", r#"[{"http": {"ok": {"statuz": 200}}}]"#);
    stage.made(&["--answers", &file], 2, &["answer 1: ", "statuz"]);
    stage.made(&["--answers", "nowhere.json"], 2, &["--answers nowhere.json: "]);
}

#[tokio::test]
async fn what_would_not_be_delivered_is_found() {
    let mut stage = stage().await;
    let granted = operator(&stage.sink, "{ outbox: { run: [cat], workspaces: [acme] } }");
    let elsewhere = granted.replace(&format!("http://{}", stage.sink.address()), "hooks.slack.com");
    stage.world.write("switchbell.yaml", &elsewhere);
    stage.made(&[], 1, &["refused   not-granted: ", "plugins.grants.slack.http"]);
    stage.world.write("switchbell.yaml", &granted);
    let plugin = std::fs::read(stage.world.path("plugins/slack.wasm")).unwrap();
    stage.world.write("plugins/slack.wasm", "no component");
    stage.made(&[], 1, &["not made  plugin slack is not loaded: ", "not WebAssembly"]);
    std::fs::write(stage.world.path("plugins/slack.wasm"), plugin).unwrap();
    let routes = workspace(&World::stdio_connector(), "{ level: urgent }");
    stage.world.write("workspaces/acme.yaml", &routes);
    stage.made(&[], 0, &["no route matches", "✗ everything  level: it asks for urgent or above, and this has info"]);
    stage.made(&["--route", "everything"], 1, &["route everything does not match: it asks for urgent or above"]);
    stage.made(&["--route", "other"], 2, &["unknown route other (there are: everything)"]);
    let bad = routes.replace("webhook: {", "webhoook: {").replace("{ level: urgent }", "{}");
    stage.world.write("workspaces/acme.yaml", &bad);
    stage.made(&[], 1, &["not made  plugin slack refuses its settings: "]);
}

#[tokio::test]
async fn what_is_asked_for_must_be_whole() {
    let mut stage = stage().await;
    stage.check(&["preview"], 2, &["--seq", "--event", "--name"]);
    stage.check(&["preview", "--name", "x"], 2, &["--source"]);
    stage.check(&["preview", "--name", "x", "--source", "nobody"], 2, &["unknown connector nobody (there are: "]);
    stage.check(&["preview", "--seq", "1", "--name", "x"], 2, &["cannot be used with"]);
    stage.check(&["preview", "--seq", "1"], 2, &["there is no store yet"]);
    stage.check(&["preview", "--event", "nowhere.json", "--source", "registrar"], 2, &["--event nowhere.json: "]);
}

#[tokio::test]
async fn a_preview_says_when_a_target_would_hear_of_it() {
    let mut stage = stage().await;
    let text = workspace(&World::stdio_connector(), "{}");
    for (timing, says) in [
        ("after: 1h\n        unless: acknowledged\n        ", "unless it is acknowledged before"),
        ("collect: { by: subject, wait: 5m, most: 50 }\n        ", "with what comes until then in one message"),
    ] {
        stage.world.write("workspaces/acme.yaml", &text.replace("with: {", &format!("{timing}with: {{")));
        stage.made(&[], 0, &[says]);
    }
}

#[tokio::test]
async fn a_check_warns_of_a_target_whose_secret_the_plugin_puts_in_another_place_than_its_rule_names() {
    let mut stage = stage().await;
    stage.check(&["check"], 0, &["the configuration is good"]);
    let rule = "slack-ops: { env: SLACK_OPS, in: \"header:Authorization\", hosts: [127.0.0.1], workspaces: [acme] }";
    let file = operator(&stage.sink, "{ outbox: { run: [cat], workspaces: [acme] } }");
    let lines =
        file.lines().map(|line| if line.contains("slack-ops:") { format!("  {rule}") } else { line.to_owned() });
    stage.world.write("switchbell.yaml", &lines.map(|line| line + "\n").collect::<String>());
    let says =
        ["routes[0].deliver[0].with", "every delivery will be refused: secret slack-ops may not stand in the URL"];
    stage.check(&["check"], 0, &says);
    stage.check(&["check", "--deny-warnings"], 1, &says);
}

#[tokio::test]
async fn a_plugin_is_previewed_with_settings_that_are_in_no_file_and_nothing_connects() {
    let mut stage = stage().await;
    let destination = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    destination.set_nonblocking(true).unwrap();
    let url = format!("http://{}", destination.local_addr().unwrap());
    let plugin = crate::support::prepared("dist/plugins/webhook.wasm", "plugins");
    std::fs::copy(plugin, stage.world.path("plugins/webhook.wasm")).unwrap();
    let granted = operator(&stage.sink, "{ outbox: { run: [cat], workspaces: [acme] } }")
        .replace("  grants:\n", &format!("  grants:\n    webhook: {{ http: [\"{url}\"] }}\n"));
    stage.world.write("switchbell.yaml", &granted);
    let settings = format!(r#"{{"url": "{url}/hook", "format": "standard"}}"#);
    let ad_hoc = ["preview", "--plugin", "webhook", "--with", &settings];
    stage.check(&ad_hoc, 0, &["preview.example: ", "webhook 0", &format!("POST {url}/hook"), "then      delivered"]);
    stage.world.write("with.json", &settings.replace("/hook", "/other"));
    let file = stage.world.path("with.json").display().to_string();
    let made = [&["preview", "--plugin", "webhook", "--with", &file][..], &MADE[1..]].concat();
    stage.check(&made, 0, &["domain.active: ", &format!("POST {url}/other")]);
    stage.check(&["preview", "--plugin", "webhook", "--with", r#"{"url": 1}"#], 1, &["refuses its settings"]);
    stage.check(&["preview", "--plugin", "webhok", "--with", "{}"], 1, &["plugin webhok is not loaded"]);
    stage.check(&["preview", "--plugin", "webhook"], 2, &["--with"]);
    stage.check(&["preview", "--plugin", "webhook", "--with", "{]"], 2, &["a JSON object is needed"]);
    let stolen = r#"{"url": {"secret": "outbox"}}"#;
    stage.check(
        &["preview", "--plugin", "webhook", "--with", stolen],
        2,
        &["acme has no secret \"outbox\"", "slack-ops"],
    );
    let sealed = r#"{"webhook": {"secret": "slack-ops"}}"#;
    stage.check(&["preview", "--plugin", "slack", "--with", sealed], 0, &["POST [secret slack-ops]", "delivered"]);
    let waits = destination.accept().map_err(|error| error.kind());
    assert_eq!(waits.err(), Some(std::io::ErrorKind::WouldBlock), "a preview connected");
    assert!(!stage.world.path("data/switchbell.db").exists(), "a store was made");
}

#[tokio::test]
async fn an_attempt_is_answered_as_it_was_recorded_and_made_at_another_moment() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = python_outbox(folder.path());
    let mut sink = Sink::start().await;
    let world = World::new(&sink, &outbox.commands(), &World::stdio_connector());
    let mut server = Server::start(&world, &sink);
    server.wait_for("bootstrap=true");
    outbox.add(&["domain.active", "--title", "a title"]);
    sink.next().await;
    server.wait_for("the attempt is recorded");
    let deliveries = world.json(&sink, &["deliveries", "list"]);
    let recorded = format!("recorded:{}", deliveries[0]["id"].as_str().unwrap());
    for way in [&[][..], &["--server"][..]] {
        let asked = [&["preview", "--seq", "1", "--answers", &recorded][..], way].concat();
        let preview = world.json(&sink, &asked);
        let target = &preview["targets"][0];
        assert_eq!((&target["outcome"], &target["needsAnswer"]), (&json!("delivered"), &json!(false)), "{way:?}");
        assert_eq!(target["steps"][0]["answer"]["http"]["ok"]["status"], 200);
        let asked = [&["preview", "--seq", "1", "--answers", "recorded:00000000-9"][..], way].concat();
        let (code, _, said) = run(&world, &sink, &asked);
        assert_eq!((code, said.contains("no attempt of it is recorded")), (1, true), "{said}");
        let asked = [&["preview", "--seq", "1", "--at", "2126-12-24T23:30:00Z"][..], way].concat();
        assert_eq!(world.json(&sink, &asked)["at"], "2126-12-24T23:30:00Z");
    }
    assert!(sink.is_untouched(), "a preview sent something");
}
