//! `switchbell check` as a program, and what it asks of plugins and of the inbox.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use switchbell::clock::Clock;
use switchbell::config::{Config, load};
use switchbell::findings::{Findings, Judge};
use switchbell::inbox::sqlite::SqliteInbox;
use switchbell::inbox::{Ended, Entry, Inbox, Intake};
use switchbell::notification::{Event, Level};
use switchbell::send::effect::Effects;
use tempfile::TempDir;

use crate::support::{Sink, World, operator, prepared, root, run, workspace};

async fn world() -> (Sink, World) {
    let sink = Sink::start().await;
    let world = World::new(&sink, "{ outbox: { run: [cat], workspaces: [acme] } }", &World::stdio_connector());
    (sink, world)
}

/// The findings as JSON, whatever the exit code, which is returned too.
fn findings(world: &World, sink: &Sink, arguments: &[&str]) -> (i32, Value) {
    let (code, out, error) = run(world, sink, &[&["check", "--json"], arguments].concat());
    let found = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{arguments:?} said {out}{error}"));
    (code, found)
}

/// The codes of the findings, in their order.
fn codes(found: &Value) -> Vec<&str> {
    found["findings"].as_array().unwrap().iter().map(|finding| finding["code"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn what_a_plugin_finds_has_its_line_and_a_caret() {
    let (sink, world) = world().await;
    let text = workspace(&World::stdio_connector(), "{}").replace("with: { webhook:", "with: { webhok:");
    world.write("workspaces/acme.yaml", &text);
    let (code, found) = findings(&world, &sink, &[]);
    let finding = found["findings"].as_array().unwrap().iter().find(|it| it["code"] == "bad-settings").unwrap();
    assert_eq!((code, &finding["severity"], &finding["line"]), (1, &json!("error"), &json!(9)));
    let (line, caret) = (finding["sourceLine"].as_str().unwrap(), finding["caret"].as_u64().unwrap());
    assert_eq!(line, "        with: { webhok: { secret: slack-ops } }");
    assert_eq!(line.chars().count().min(caret as usize), finding["column"].as_u64().unwrap() as usize - 1);
}

#[tokio::test]
async fn a_missing_program_is_told_where_its_connector_names_it() {
    let (sink, world) = world().await;
    world.write("switchbell.yaml", &operator(&sink, "{ outbox: { run: [no-such-program], workspaces: [acme] } }"));
    let (_, found) = findings(&world, &sink, &[]);
    let finding = found["findings"].as_array().unwrap().iter().find(|it| it["code"] == "no-program").unwrap();
    assert!(finding["file"].as_str().unwrap().ends_with("workspaces/acme.yaml"), "{finding}");
    assert!(finding["sourceLine"].as_str().unwrap().contains("command: outbox"), "{finding}");
}

#[tokio::test]
async fn a_mistake_in_one_workspace_hides_none_that_a_plugin_finds_in_another() {
    let (sink, world) = world().await;
    world.write("workspaces/beta.yaml", "members: { a@example.com: owner }\n");
    let text = workspace(&World::stdio_connector(), "{}").replace("with: { webhook:", "with: { webhok:");
    world.write("workspaces/acme.yaml", &text);
    let (code, found) = findings(&world, &sink, &[]);
    let codes = codes(&found);
    assert!(code == 1 && codes.contains(&"bad-settings") && codes.contains(&"bad-value"), "{codes:?}");
}

#[tokio::test]
async fn without_the_folder_of_plugins_all_else_is_judged_and_the_folder_is_asked_for() {
    let (sink, world) = world().await;
    fs::remove_dir_all(world.path("plugins")).unwrap();
    let (code, found) = findings(&world, &sink, &[]);
    assert_eq!((code, &found["errors"]), (0, &json!(0)), "{found}");
    assert!(codes(&found).contains(&"no-plugins"), "{found}");
    let not_judged = |found: &Value, what: &str| {
        found["notJudged"].as_array().unwrap().iter().any(|it| it["what"].as_str().unwrap().contains(what))
    };
    assert!(not_judged(&found, "settings of targets"), "{found}");
    assert_eq!(findings(&world, &sink, &["--deny-warnings"]).0, 1);
    let (code, _, error) = run(&world, &sink, &["serve"]);
    assert!(code == 2 && error.contains("plugins"), "{error}");
    let text = workspace(&World::stdio_connector(), "{ level: high }");
    world.write("workspaces/acme.yaml", &text);
    assert_eq!(findings(&world, &sink, &[]).0, 1, "what the files say is judged");
}

#[tokio::test]
async fn a_machine_without_secrets_and_plugins_judges_the_files() {
    let (sink, world) = world().await;
    fs::remove_dir_all(world.path("plugins")).unwrap();
    world.write(
        "switchbell.yaml",
        &operator(&sink, "{ outbox: { run: [cat], workspaces: [acme] } }").replace("SLACK_OPS", "NOT_SET_ANYWHERE"),
    );
    assert_eq!(findings(&world, &sink, &["--no-plugins"]).0, 1, "a secret without a value is a mistake");
    let (code, found) = findings(&world, &sink, &["--no-plugins", "--no-secrets"]);
    assert_eq!(code, 0, "{found}");
    assert_eq!(codes(&found), ["unused-secret"], "{found}");
    let whys: Vec<_> = found["notJudged"].as_array().unwrap().iter().map(|it| it["why"].clone()).collect();
    assert!(whys.contains(&json!("--no-secrets")) && whys.contains(&json!("--no-plugins")), "{whys:?}");
}

#[tokio::test]
async fn settings_are_judged_by_plugins_without_the_values_of_secrets() {
    let (sink, world) = world().await;
    let operator = operator(&sink, "{ outbox: { run: [cat], workspaces: [acme] } }");
    world.write("switchbell.yaml", &operator.replace("SLACK_OPS", "NOT_SET_ANYWHERE"));
    let (code, found) = findings(&world, &sink, &["--no-secrets"]);
    assert_eq!((code, codes(&found)), (0, vec!["unused-secret"]), "{found}");
    let text = workspace(&World::stdio_connector(), "{}").replace("with: { webhook:", "with: { webhok:");
    world.write("workspaces/acme.yaml", &text);
    assert!(codes(&findings(&world, &sink, &["--no-secrets"]).1).contains(&"bad-settings"));
}

/// Has the target send mail with these settings, to whom the relay lets it.
fn with_mail(world: &World, sink: &Sink, recipients: &str, settings: &str) {
    fs::copy(prepared("dist/plugins/mail.wasm", "plugins"), world.path("plugins/mail.wasm")).unwrap();
    let operator = operator(sink, "{ outbox: { run: [cat], workspaces: [acme] } }")
        .replace("  grants:\n", "  grants:\n    mail: { mail: true }\n")
        + &format!(
            "mail: {{ relay: \"127.0.0.1:25\", tls: none, from: bell@example.com, recipients: [{recipients}] }}\n"
        );
    world.write("switchbell.yaml", &operator);
    let text = workspace(&World::stdio_connector(), "{}")
        .replace("plugin: slack", "plugin: mail")
        .replace("{ webhook: { secret: slack-ops } }", settings);
    world.write("workspaces/acme.yaml", &text);
}

#[tokio::test]
async fn a_mail_that_may_go_to_nobody_is_warned_of() {
    let (sink, world) = world().await;
    with_mail(&world, &sink, "\"*@example.com\"", "{ to: [lead@example.org] }");
    let found = findings(&world, &sink, &[]).1;
    assert!(codes(&found).contains(&"delivery-refused"), "{found}");
    with_mail(&world, &sink, "\"*@example.com\"", "{ to: [lead@example.com] }");
    let found = findings(&world, &sink, &[]).1;
    assert!(!codes(&found).contains(&"delivery-refused"), "{found}");
}

#[tokio::test]
async fn a_secret_in_a_mail_is_told_to_have_no_place_there() {
    let (sink, world) = world().await;
    with_mail(&world, &sink, "\"*\"", "{ to: [ops@example.com], subject: { secret: slack-ops } }");
    let (_, found) = findings(&world, &sink, &[]);
    let about: Vec<&Value> = found["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["path"].as_str().unwrap().starts_with("routes[0].deliver[0].with"))
        .collect();
    assert_eq!(about.len(), 1, "{about:?}");
    assert_eq!(about[0]["code"], "misplaced-secret", "{about:?}");
    assert!(about[0]["message"].as_str().unwrap().contains("sends no requests"), "{about:?}");
    assert_eq!(about[0]["path"], "routes[0].deliver[0].with.subject");
}

/// A workspace `acme` with two connectors, its store, and the folder that holds both.
struct Past {
    folder: TempDir,
    inbox: SqliteInbox,
    now: Timestamp,
}

const PATTERNS: &str = "members: { a@example.com: admin }
connectors:
  registrar: { url: \"https://a.example/\", notifications: { resource: \"acme://n\" } }
  crm: { url: \"https://b.example/\", notifications: { resource: \"crm://n\" } }
routes:
  - name: first
    owner: a@example.com
    when: { name: [\"domain.*\", \"domian.*\", never.literal], source: registrar }
    deliver: [{ plugin: slack }]
  - name: second
    owner: a@example.com
    when: { name: \"deal.*\", source: \"cr*\", subject: [\"*.example\", \"*.exmaple\"] }
    deliver: [{ plugin: slack }]
  - name: third
    owner: a@example.com
    when: { name: \"nothing.**\" }
    deliver: [{ plugin: slack }]
  - name: everything
    owner: a@example.com
    when: { name: \"**\" }
    deliver: [{ plugin: slack, with: { other: 1 } }]
";

impl Past {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["workspaces", "plugins", "data"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("plugins/slack.wasm"), "").unwrap();
        fs::write(folder.path().join("switchbell.yaml"), "listen: 127.0.0.1:0\n").unwrap();
        fs::write(folder.path().join("workspaces/acme.yaml"), PATTERNS).unwrap();
        let now = "2026-11-01T12:00:00Z".parse().unwrap();
        let inbox = SqliteInbox::open(&folder.path().join("data/switchbell.db"), now).unwrap();
        Self { folder, inbox, now }
    }

    fn config(&self) -> Config {
        load(&self.folder.path().join("switchbell.yaml"), &|_| None).unwrap().config
    }

    /// A notification that came so many days ago.
    async fn came(&self, days: i64, source: &str, name: &str, subject: Option<&str>) {
        let received_at = self.now.checked_sub(SignedDuration::from_hours(24 * days)).unwrap();
        let event = Event {
            event_id: format!("{days} {source} {name}"),
            name: name.to_owned(),
            timestamp: received_at,
            level: Level::Info,
            subject: subject.map(str::to_owned),
            title: name.to_owned(),
            body: None,
            link: None,
            data: "{}".to_owned(),
            content: None,
        };
        let intake = Intake {
            is_first: false,
            workspace: "acme".parse().unwrap(),
            source: source.parse().unwrap(),
            received_at,
            entries: vec![Entry { event, effective_level: Level::Info, owed: Vec::new(), consumers: Vec::new() }],
            notices: Vec::new(),
            cursor: None,
            ended: Ended::Answered { revision: None, is_backlog: false },
        };
        self.inbox.accept(intake).await.unwrap();
    }

    async fn judged(&self) -> Findings {
        let config = self.config();
        let effects = Effects::new(&config, &Clock::manual(self.now)).unwrap();
        let judge =
            Judge { config: &config, plugins: None, effects: &effects, inbox: Some(&self.inbox), now: self.now };
        judge.judge().await
    }

    /// The lines and paths of the patterns that nothing matched.
    async fn unseen(&self) -> Vec<(usize, String)> {
        let found = self.judged().await;
        let unseen = found.warnings.iter().filter(|warning| warning.code.as_str() == "pattern-unseen");
        unseen.map(|warning| (warning.place.unwrap().line, warning.path.clone())).collect()
    }
}

#[tokio::test]
async fn a_glob_that_nothing_matched_for_thirty_days_is_told_with_its_place() {
    let past = Past::new();
    past.came(60, "registrar", "nothing.yet", None).await;
    past.came(45, "crm", "deal.won", None).await;
    past.came(20, "registrar", "domain.active", Some("a.example")).await;
    past.came(10, "crm", "deal.lost", Some("b.example")).await;
    // `domian.*` and `*.exmaple` are misspelt; what `nothing.**` matched is 60 days old; a literal is never told.
    let expected = [
        (8, "routes[0].when.name[1]".to_owned()),
        (12, "routes[1].when.subject[1]".to_owned()),
        (16, "routes[2].when.name[0]".to_owned()),
    ];
    assert_eq!(past.unseen().await, expected);
    let found = past.judged().await;
    let told = found.warnings.iter().find(|warning| warning.path == "routes[0].when.name[1]").unwrap();
    assert!(told.message.contains("\"domian.*\" matched nothing") && told.source_line.is_some(), "{told:?}");
}

#[tokio::test]
async fn a_pattern_for_a_connector_that_is_newer_has_not_been_waited_for() {
    let past = Past::new();
    past.came(60, "registrar", "domain.active", None).await;
    past.came(2, "crm", "deal.won", None).await;
    // Those of the new connector, and of all connectors, may be for what has not happened yet.
    let expected = [(8, "routes[0].when.name[0]".to_owned()), (8, "routes[0].when.name[1]".to_owned())];
    assert_eq!(past.unseen().await, expected);
}

#[tokio::test]
async fn an_inbox_that_does_not_reach_back_tells_nothing_of_patterns() {
    let past = Past::new();
    assert_eq!(past.unseen().await, []);
    past.came(29, "registrar", "x", None).await;
    let found = past.judged().await;
    assert_eq!(found.warnings, []);
    assert_eq!(found.not_judged.len(), 1);
    assert!(found.not_judged[0].why.contains("does not reach back 30 days"), "{:?}", found.not_judged);
}

/// The lines with warnings that `check` says of an example, but for programs that are not on this machine.
fn warned_of(example: &Path) -> Vec<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchbell"));
    command.arg("--config").arg(example).args(["check", "--no-secrets"]).env("DEMO_SLACK", "127.0.0.1:9");
    // Plugins of an example are where an installation has them.
    if !example.parent().unwrap().join("plugins").exists() {
        command.arg("--no-plugins");
    }
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}: {said}", example.display());
    let warnings = said.lines().filter(|line| line.contains(": warning: ") && !line.ends_with("[no-program]"));
    warnings.map(str::to_owned).collect()
}

#[test]
fn no_example_is_warned_of() {
    let mut open = vec![root().join("examples")];
    let mut checked = 0;
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if path.is_dir() && !["node_modules", ".venv", "target"].contains(&name.as_str()) {
                open.push(path.clone());
            }
            if name != "switchbell.yaml" {
                continue;
            }
            checked += 1;
            let mut warned = warned_of(&path);
            // The demonstration shows what a ceiling does.
            warned.retain(|line| !(path.ends_with("demo/switchbell.yaml") && line.ends_with("[level-above-ceilings]")));
            assert!(warned.is_empty(), "{}: {warned:?}", path.display());
        }
    }
    assert!(checked >= 2, "only {checked} examples were found");
}
