//! `switchbell explain`: who is told of a notification, when, and why not.

mod agreement;

use std::path::Path;

use serde_json::{Value, json};
use switchbell::config;
use switchbell::inbox::sqlite::SqliteInbox;

use crate::support::{Server, Sink, World, command, prepared, python_outbox, root, run};

const NOBODY: &str = "{ outbox: { run: [cat], workspaces: [acme] } }";

/// Three routes: one for everything, one that holds, one that asks for more than there is.
fn routes(world: &World) {
    let target = "plugin: slack, with: { webhook: { secret: slack-ops } }";
    let workspace = format!(
        "members: {{ admin@example.com: admin }}
connectors: {}
consumers: {{ audit: {{}}, triage: {{ when: {{ level: attention }} }}, watch: {{ when: {{ level: urgent }} }} }}
routes:
  - name: everything
    owner: admin@example.com
    deliver: [ {{ id: all, {target} }} ]
  - name: nights
    owner: admin@example.com
    when: {{ name: \"domain.*\", level: attention }}
    deliver:
      - {{ id: calm, {target}, hold: {{ from: \"22:00\", to: \"07:00\", zone: Europe/Berlin }} }}
  - name: pages
    owner: admin@example.com
    when: {{ level: urgent, name: \"domain.*\" }}
    deliver: [ {{ id: page, {target} }} ]
",
        World::stdio_connector()
    );
    world.write("workspaces/acme.yaml", &workspace);
}

fn check(world: &World, sink: &Sink, arguments: &[&str], code: i32, says: &[&str]) {
    let (found, out, error) = run(world, sink, arguments);
    let said = format!("{out}{error}");
    assert_eq!(found, code, "{arguments:?} said: {said}");
    for text in says {
        assert!(said.contains(text), "{arguments:?} does not say {text:?}: {said}");
    }
    assert!(!said.contains("secret-part"), "{arguments:?} shows a secret: {said}");
}

const MADE: [&str; 7] = ["explain", "--source", "registrar", "--name", "domain.active", "--level", "urgent"];

#[tokio::test]
async fn an_event_that_is_made_up_is_explained_without_a_store() {
    let mut sink = Sink::start().await;
    let world = World::new(&sink, NOBODY, &World::stdio_connector());
    routes(&world);
    let at = ["--at", "2126-12-01T03:00[Europe/Berlin]"];
    check(
        &world,
        &sink,
        &[&MADE[..], &at].concat(),
        0,
        &[
            "level urgent, attention by the ceiling of its source",
            "joins the queues of: audit, triage\n",
            "✓ everything  it matches everything",
            "✓ nights      name domain.* (domain.active); level attention or above (attention)",
            "✗ pages       level: it asks for urgent or above, and this has attention",
            "goes      2126-12-01 07:00 Europe/Berlin",
            "2126-12-01 03:00  held: quiet hours until 2126-12-01 07:00",
            "there is no store yet",
        ],
    );
    let explained = world.json(&sink, &[&MADE[..], &at, &["--all"]].concat());
    let target = &explained["routes"][1]["targets"][0];
    assert_eq!(target["forecast"]["goesAt"], "2126-12-01T06:00:00Z");
    assert_eq!(target["forecast"]["moves"][0]["said"][0]["part"], "hold");
    assert_eq!(target["pluginDigest"].as_str().map(str::len), Some(64));
    assert_eq!(explained["routes"][2]["targets"].as_array().map(Vec::len), Some(1), "--all shows those of others");
    assert!(!world.path("data/switchbell.db").exists(), "a store was made");
    assert!(sink.is_untouched());
}

#[tokio::test]
async fn routes_are_expected_to_match() {
    let sink = Sink::start().await;
    let world = World::new(&sink, NOBODY, &World::stdio_connector());
    routes(&world);
    let expecting = |expected: &'static str| [&MADE[..], &["--expect", expected]].concat();
    check(&world, &sink, &expecting("everything,nights"), 0, &[]);
    let differs = ["route pages should match and does not", "route nights matches and should not"];
    check(&world, &sink, &expecting("everything,pages"), 1, &differs);
    check(&world, &sink, &expecting("none"), 1, &["route everything matches and should not"]);
    check(&world, &sink, &expecting("nobody"), 2, &["unknown route nobody (there are: everything, nights, pages)"]);
    check(&world, &sink, &["explain"], 2, &["--seq SEQ", "--event FILE", "--name NAME"]);
    check(&world, &sink, &[&MADE[..], &["--at", "2126-12-01T03:00"]].concat(), 2, &["it does not say where"]);
    check(&world, &sink, &[&MADE[..], &["--route", "page"]].concat(), 2, &["unknown route page", "pages"]);
    check(&world, &sink, &[&MADE[..], &["--server"]].concat(), 2, &["no server runs over this store"]);
}

/// Without what depends on the moment of the question: a pace that is used up for a second.
fn steady(mut explained: Value) -> Value {
    for route in explained["routes"].as_array_mut().unwrap() {
        for target in route["targets"].as_array_mut().unwrap() {
            target["lanes"].as_array_mut().unwrap().iter_mut().for_each(|lane| lane["opensAt"] = Value::Null);
        }
    }
    explained
}

/// Everything in a folder, with its bytes. What a reader leaves beside a database (its index) says nothing.
fn bytes(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .filter(|(name, bytes)| !(name.ends_with("-shm") || name.ends_with("-wal") && bytes.is_empty()))
        .collect();
    found.sort();
    found
}

#[tokio::test]
async fn what_happened_is_told_and_the_running_server_says_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = python_outbox(folder.path());
    let mut sink = Sink::start().await;
    let world = World::new(&sink, &outbox.commands(), &World::stdio_connector());
    routes(&world);
    let mut server = Server::start(&world, &sink);
    server.wait_for("bootstrap=true");
    outbox.add(&["mail.bounced", "--title", "a title"]);
    sink.next().await;
    server.wait_for("INFO delivered");
    let says = ["#1, received ", "✓ everything", ": delivered, 1 attempt", "✗ nights      name: it asks for domain.*"];
    check(&world, &sink, &["explain", "--seq", "1"], 0, &says);
    check(&world, &sink, &["explain", "--seq", "9"], 1, &["workspace acme has no notification 9"]);
    check(&world, &sink, &["explain", "--seq", "9", "--server"], 1, &["workspace acme has no notification 9"]);
    let of_stored = ["explain", "--seq", "1", "--all", "--at", "2126-12-24T23:30:00Z"];
    let alone = steady(world.json(&sink, &of_stored));
    assert_eq!(alone, steady(world.json(&sink, &[&of_stored[..], &["--server"]].concat())));
    let delivery = &alone["routes"][0]["targets"][0]["deliveries"][0];
    assert_eq!((&delivery["state"], &delivery["notifications"]), (&json!("delivered"), &json!([1])));
    assert_eq!(alone["routes"][0]["matchedThen"], json!(true));
    let made = [&MADE[..], &["--at", "2126-12-24T23:30:00Z"]].concat();
    let of_files = steady(world.json(&sink, &made));
    assert_eq!(of_files, steady(world.json(&sink, &[&made[..], &["--server"]].concat())));
    // Files beside those that the server follows say something else of the same store.
    let narrow = std::fs::read_to_string(world.path("workspaces/acme.yaml")).unwrap();
    let narrow = narrow.replacen("    deliver: [ { id: all", "    when: { name: other }\n    deliver: [ { id: all", 1);
    world.write("narrow/acme.yaml", &narrow);
    let operator = std::fs::read_to_string(world.config()).unwrap();
    world.write("narrow.yaml", &format!("workspaces: narrow/\n{operator}"));
    let by_narrow = |arguments: &[&str]| {
        let output = command(&world.path("narrow.yaml"), &sink).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let said = by_narrow(&["explain", "--seq", "1"]);
    assert!(said.contains("✗ everything"), "{said}");
    assert!(said.contains("it owed something when this was accepted: the route was another then"), "{said}");
    let by_server = by_narrow(&[&of_stored[..], &["--server", "--json"]].concat());
    assert_eq!(alone, steady(serde_json::from_str(&by_server).unwrap()), "it goes by what it runs on");
    check(&world, &sink, &["check", "--server"], 0, &["what the server goes by is good"]);
    let checked = world.json(&sink, &["check", "--server"]);
    let young = "its inbox does not reach back 30 days";
    let not_judged = json!([{"what": "whether the patterns of acme match anything", "why": young}]);
    let nothing = json!({"findings": [], "errors": 0, "warnings": 0, "omitted": 0, "notJudged": not_judged});
    assert_eq!(checked, nothing);
    check(&world, &sink, &["check", "--server=http://127.0.0.1:1"], 2, &["SWITCHBELL_TOKEN"]);
    assert!(sink.is_untouched(), "an explanation sent something");
    server.stop(rustix::process::Signal::TERM);
    let before = bytes(&world.path("data"));
    check(&world, &sink, &["explain", "--seq", "1"], 0, &["delivered"]);
    check(&world, &sink, &["preview", "--seq", "1"], 0, &["nothing was sent"]);
    let names = |all: &[(String, Vec<u8>)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let after = bytes(&world.path("data"));
    assert_eq!(names(&after), names(&before));
    assert!(after == before, "a question changed the store");
}

/// The first fenced block of a document that begins with this line, without it.
fn block<'d>(document: &'d str, begins: &str) -> &'d str {
    let (_, rest) = document.split_once(&format!("```{begins}\n")).unwrap_or_else(|| panic!("no block {begins:?}"));
    rest.split_once("\n```").unwrap().0
}

#[tokio::test]
async fn the_example_of_the_documents_says_what_it_shows() {
    let document = std::fs::read_to_string(root().join("docs/explain.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("switchbell.yaml", block(&document, "yaml\n# switchbell.yaml"));
    write("workspaces/acme.yaml", block(&document, "yaml\n# workspaces/acme.yaml"));
    for name in ["slack", "mail"] {
        let plugin = std::fs::read(prepared(&format!("dist/plugins/{name}.wasm"), "plugins")).unwrap();
        std::fs::create_dir_all(folder.path().join("plugins")).unwrap();
        std::fs::write(folder.path().join(format!("plugins/{name}.wasm")), plugin).unwrap();
    }
    let config = folder.path().join("switchbell.yaml");
    let webhook = "https://hooks.slack.com/services/secret-part";
    let loaded = config::load(&config, &|name| (name == "SLACK_OPS_WEBHOOK").then(|| webhook.into()));
    let start = "2026-01-02T03:04:05Z".parse().unwrap();
    drop(SqliteInbox::open(&loaded.unwrap().whole().unwrap().0.store, start).unwrap());
    let (command, shown) = block(&document, "console").split_once('\n').unwrap();
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_switchbell"));
    program.arg("--config").arg(&config).env("SLACK_OPS_WEBHOOK", webhook).env("NO_COLOR", "1");
    let output = program.args(command.split_whitespace().skip(2)).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim_end(), shown, "what docs/explain.md shows");
}
