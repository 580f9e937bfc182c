use super::super::load;
use super::*;

const OPERATOR: &str = "commands: { run: { run: [a], workspaces: [acme] } }\nsecrets: { key: { env: KEY, in: connector, hosts: [a.example], weak: true } }\n";
const ACME: &str = "members: { a@a.example: admin }
connectors: { one: { command: run }, two: { command: run, ceiling: info } }
consumers: { audit: {}, triage: { when: { level: info } } }
routes:
  - { name: news, owner: a@a.example, when: { level: info }, deliver: [{ id: t, plugin: slack, with: { a: 1 } }, { id: u, plugin: slack }] }
";

fn config(operator: &str, workspaces: &[(&str, &str)], key: &str) -> Config {
    let folder = tempfile::tempdir().unwrap();
    for path in ["workspaces", "plugins"] {
        std::fs::create_dir(folder.path().join(path)).unwrap();
    }
    std::fs::write(folder.path().join("plugins/slack.wasm"), "").unwrap();
    std::fs::write(folder.path().join("switchbell.yaml"), operator).unwrap();
    for (name, text) in workspaces {
        std::fs::write(folder.path().join(format!("workspaces/{name}.yaml")), text).unwrap();
    }
    let loaded = load(&folder.path().join("switchbell.yaml"), &|_| Some(key.into())).unwrap();
    assert!(loaded.aside.is_empty(), "{:?}", loaded.aside);
    let mut config = loaded.config;
    // Each is in a folder of its own here.
    config.plugins.directory = "plugins".into();
    config.store = "store".into();
    for connector in config.workspaces.values_mut().flat_map(|workspace| workspace.connectors.values_mut()) {
        if let super::super::Transport::Stdio { directory, .. } = &mut connector.transport {
            *directory = "here".into();
        }
    }
    config
}

fn told(change: &Change) -> String {
    let workspace = change.workspace.as_ref().map_or("-", Name::as_str);
    let what = match &change.what {
        What::Key(key) => (*key).to_owned(),
        What::Secret(name) => format!("secret {name}"),
        What::Workspace => "workspace".to_owned(),
        What::Members => "members".to_owned(),
        What::Connector(name) => format!("connector {name}"),
        What::Consumer(name) => format!("consumer {name}"),
        What::Route(name) => format!("route {name}"),
        What::Target { route, target } => format!("target {route} {target}"),
    };
    format!("{workspace}: {what} {}", change.how.as_str())
}

fn check(after: Config, expected: &[&str], kept: usize) {
    let changes = Changes::between(&config(OPERATOR, &[("acme", ACME)], "s3cret"), &after);
    assert_eq!(changes.changes.iter().map(told).collect::<Vec<_>>(), expected);
    assert_eq!(changes.connectors_kept, kept);
}

#[test]
fn the_same_files_differ_in_nothing_wherever_things_stand_in_them() {
    check(config(OPERATOR, &[("acme", &format!("# a remark\n\n{ACME}"))], "s3cret"), &[], 2);
}

#[test]
fn what_differs_is_told_by_name() {
    let acme = ACME
        .replace("ceiling: info", "ceiling: urgent")
        .replace("one:", "three:")
        .replace("a: 1", "a: 2")
        .replace("id: u", "id: v")
        .replace("audit: {}", "watch: {}")
        .replace("level: info", "level: urgent");
    check(
        config(&format!("poll: {{ budget_per_minute: 7 }}\n{OPERATOR}"), &[("acme", &acme)], "another"),
        &[
            "-: poll.budget_per_minute changed",
            "-: secret key changed",
            "acme: connector one gone",
            "acme: connector three new",
            "acme: connector two changed",
            "acme: consumer audit gone",
            "acme: consumer triage changed",
            "acme: consumer watch new",
            "acme: route news changed",
            "acme: target news t changed",
            "acme: target news u gone",
            "acme: target news v new",
        ],
        0,
    );
    check(
        config(OPERATOR, &[("globex", "members: { b@a.example: admin }\n")], "s3cret"),
        &["acme: workspace gone", "globex: workspace new"],
        0,
    );
}

#[test]
fn what_a_process_cannot_follow_stays_and_is_named() {
    let running = config(OPERATOR, &[("acme", ACME)], "s3cret");
    let text = "listen: 127.0.0.1:7499\nplugins: { limits: { memory: 64MiB, steps: 7 } }\n";
    let mut after = config(&format!("{text}{OPERATOR}"), &[("acme", ACME)], "s3cret");
    assert_eq!(after.keep_what_cannot_change(&running), ["listen", "plugins.limits.memory"]);
    assert_eq!((after.listen, after.plugins.limits.steps_max), (running.listen, 7));
    assert_eq!(after.plugins.limits.memory_bytes_max, running.plugins.limits.memory_bytes_max);
    assert_eq!(after.keep_what_cannot_change(&running), Vec::<&str>::new());
}
