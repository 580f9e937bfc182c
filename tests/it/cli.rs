//! The command line: what it prints, and the exit codes 0 (done), 1 (found something wrong), 2 (could not run).

use serde_json::json;

use crate::support::{Server, Sink, World, operator, python_outbox, run, workspace};

async fn quiet_world() -> (Sink, World) {
    let sink = Sink::start().await;
    let commands = "{ outbox: { run: [cat], workspaces: [acme] } }";
    let world = World::new(&sink, commands, &World::stdio_connector());
    (sink, world)
}

/// Runs the command; its exit code and what it says must be these.
fn check(world: &World, sink: &Sink, arguments: &[&str], code: i32, says: &[&str]) {
    let (found, out, error) = run(world, sink, arguments);
    let said = format!("{out}{error}");
    assert_eq!(found, code, "{arguments:?} said: {said}");
    for text in says {
        assert!(said.contains(text), "{arguments:?} does not say {text:?}: {said}");
    }
    assert!(!said.contains("secret-part"), "{arguments:?} shows a secret: {said}");
}

#[tokio::test]
async fn a_good_configuration_passes_the_check() {
    let (sink, world) = quiet_world().await;
    check(&world, &sink, &["check"], 0, &["the configuration is good"]);
    let found = world.json(&sink, &["check"]);
    let codes: Vec<_> = found["findings"].as_array().unwrap().iter().map(|finding| &finding["code"]).collect();
    assert_eq!((&found["errors"], &found["omitted"], codes), (&json!(0), &json!(0), vec![&json!("unused-secret")]));
}

#[tokio::test]
async fn mistakes_in_all_files_are_reported_at_once_with_their_places() {
    let (sink, world) = quiet_world().await;
    world.write("switchbell.yaml", &format!("{}\nplugin: {{}}\n", operator(&sink, "{}")));
    let routes = workspace(&World::stdio_connector(), "{ level: high, source: nobody }");
    world.write(
        "workspaces/acme.yaml",
        &routes.replace("owner: admin", "owner: other").replace("plugin: slack", "plugin: slak"),
    );
    let says =
        ["switchbell.yaml:", "\"plugin\"", "acme.yaml:", "high", "nobody", "other@example.com", "slak", "outbox"];
    check(&world, &sink, &["check"], 1, &says);
    check(&world, &sink, &["serve"], 2, &says);
}

#[tokio::test]
async fn a_workspace_file_that_leads_out_of_its_folder_is_not_read() {
    let (sink, world) = quiet_world().await;
    world.write("elsewhere", "root:secret line");
    std::os::unix::fs::symlink(world.path("elsewhere"), world.path("workspaces/evil.yaml")).unwrap();
    std::os::unix::fs::symlink(world.path("workspaces/acme.yaml"), world.path("workspaces/same.yaml")).unwrap();
    let (code, out, _) = run(&world, &sink, &["check"]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("evil.yaml leads out of the folder") && !out.contains("secret line"), "{out}");
    assert!(!out.contains("same.yaml leads"), "{out}");
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_no_verdict() {
    let (sink, world) = quiet_world().await;
    std::os::unix::fs::symlink(world.path("workspaces/gone"), world.path("workspaces/beta.yaml")).unwrap();
    check(&world, &sink, &["check"], 2, &["beta.yaml: error: cannot be read", "1 error"]);
    check(&world, &sink, &["check", "--json"], 2, &["cannot be read"]);
    std::fs::remove_file(world.path("workspaces/beta.yaml")).unwrap();
    std::fs::remove_file(world.path("switchbell.yaml")).unwrap();
    check(&world, &sink, &["check"], 2, &["switchbell.yaml: error: cannot be read"]);
}

#[tokio::test]
async fn an_outbox_whose_manifest_is_not_there_yet_is_warned_of_and_fails_nothing() {
    let (sink, world) = quiet_world().await;
    let connector =
        World::stdio_connector().replace("resource: \"acme://notifications\"", "manifest: acme/manifest.json");
    world.write("workspaces/acme.yaml", &workspace(&connector, "{}"));
    check(
        &world,
        &sink,
        &["check"],
        0,
        &["no outbox is polled: acme/manifest.json: it is not there", "[no-outbox]", "2 warnings"],
    );
}

#[tokio::test]
async fn a_plugin_checks_the_settings_of_its_targets() {
    let (sink, world) = quiet_world().await;
    let text = workspace(&World::stdio_connector(), "{}").replace("with: { webhook:", "with: { webhok:");
    world.write("workspaces/acme.yaml", &text);
    check(&world, &sink, &["check"], 1, &["acme.yaml:9:25", "routes[0].deliver[0].with.webhok"]);
}

#[tokio::test]
async fn what_cannot_work_when_it_runs_is_warned_of() {
    let (sink, world) = quiet_world().await;
    let text = operator(&sink, "{ outbox: { run: [no-such-program], workspaces: [acme] } }");
    world.write("switchbell.yaml", &text.replace(&sink.address().to_string(), "127.0.0.1:9"));
    let says = ["routes[0].deliver[0].with.webhook", "plugins.grants.slack.http", "no-such-program", "3 warnings"];
    check(&world, &sink, &["check"], 0, &says);
    check(&world, &sink, &["check", "--deny-warnings"], 1, &says);
}

#[tokio::test]
async fn reading_needs_none_of_the_servers_secrets() {
    let (sink, world) = quiet_world().await;
    drop(Server::start(&world, &sink));
    let text = operator(&sink, "{}").replace("SLACK_OPS", "NOT_SET_ANYWHERE");
    world.write("switchbell.yaml", &text);
    check(&world, &sink, &["check"], 1, &["NOT_SET_ANYWHERE"]);
    check(&world, &sink, &["inbox", "list"], 0, &["no notifications"]);
    check(&world, &sink, &["deliveries", "list"], 0, &["no deliveries"]);
}

#[tokio::test]
async fn a_plugin_that_does_not_load_is_a_mistake_with_its_remedy() {
    let (sink, world) = quiet_world().await;
    world.write("plugins/core.wasm", "\0asm\u{1}\0\0\0");
    world.write("plugins/text.wasm", "no component");
    check(&world, &sink, &["check"], 1, &["core.wasm: ", "wasm-tools component new", "text.wasm: ", "2 errors"]);
}

#[tokio::test]
async fn reading_commands_say_when_there_is_nothing_to_read() {
    let (sink, world) = quiet_world().await;
    check(&world, &sink, &["inbox", "list"], 2, &["switchbell.db", "switchbell serve"]);
    let server = Server::start(&world, &sink);
    check(&world, &sink, &["inbox", "list"], 0, &[]);
    check(&world, &sink, &["deliveries", "list", "--seq", "7"], 0, &[]);
    check(&world, &sink, &["inbox", "show", "7"], 1, &["workspace acme has no notification 7"]);
    check(&world, &sink, &["inbox", "list", "--workspace", "other"], 2, &["unknown workspace \"other\"", "acme"]);
    assert_eq!(world.json(&sink, &["inbox", "list"]), json!([]));
    drop(server);
    world.write("workspaces/beta.yaml", "members: { admin@example.com: admin }\n");
    check(&world, &sink, &["inbox", "list"], 2, &["--workspace NAME is needed", "acme, beta"]);
    check(&world, &sink, &["inbox", "list", "--workspace", "beta"], 0, &[]);
}

#[tokio::test]
async fn a_notification_is_shown_whole() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = python_outbox(folder.path());
    let mut sink = Sink::start().await;
    let world = World::new(&sink, &outbox.commands(), &World::stdio_connector());
    let mut server = Server::start(&world, &sink);
    server.wait_for("bootstrap=true");
    let data = r#"{"b":1,"a":[1.50,"ü"]}"#;
    outbox.add(&["domain.active", "--level", "urgent", "--title", "a title", "--body", "a body", "--data", data]);
    sink.next().await;
    check(&world, &sink, &["inbox", "list"], 0, &["1  ", "attention", "registrar", "domain.active", "a title"]);
    let says = ["#1 a title", "the source says urgent, its ceiling is lower", "a body", "registrar"];
    check(&world, &sink, &["inbox", "show", "1"], 0, &says);
    check(&world, &sink, &["inbox", "show", "1"], 0, &["deliveries", "everything -> slack"]);
    let shown = world.json(&sink, &["inbox", "show", "1"]);
    assert_eq!(shown["data"], serde_json::from_str::<serde_json::Value>(data).unwrap());
    assert_eq!(
        (&shown["link"], &shown["readAt"], &shown["acknowledgedBy"]),
        (&json!(null), &json!(null), &json!(null))
    );
    check(&world, &sink, &["deliveries", "list"], 0, &["#1", "everything -> slack"]);
}

#[tokio::test]
async fn wrong_arguments_exit_with_2_and_help_with_0() {
    let (sink, world) = quiet_world().await;
    check(&world, &sink, &["inbox", "shw"], 2, &["show"]);
    check(&world, &sink, &["inbox", "list", "--limit", "0"], 2, &["1..=1000"]);
    check(&world, &sink, &["--version"], 0, &[env!("CARGO_PKG_VERSION")]);
    check(&world, &sink, &["--help"], 0, &["serve", "check", "inbox", "deliveries", "demo"]);
}
