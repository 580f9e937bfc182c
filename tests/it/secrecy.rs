//! The promise: what a secret is worth is nowhere but where the operator wrote it and where its rule sends it: not in the
//! store, not in any other file, not in the log, not in what people are shown.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::Signal;

use crate::support::{
    Arrived, Authorization, Endpoint, Outbox, Server, Sink, TOKEN, World, operator, prepared, python_outbox, run,
};

/// A secret with its rule, and the target of the route that is called like it. `AT` is the endpoint.
struct Case {
    name: &'static str,
    value: &'static str,
    rule: &'static str,
    plugin: &'static str,
    with: &'static str,
    /// How it arrives: in the path and query, the headers, or the body.
    arrives: fn(&Arrived) -> bool,
}

const CASES: &[Case] = &[
    Case {
        name: "of-header",
        value: "value-of-the-header/0123456789",
        rule: "in: \"header:X-Key:Token\", hosts: [127.0.0.1]",
        plugin: "hostile",
        with: "does: header, at: \"AT/of-header\", name: x-key, value: PLACEHOLDER, key: { secret: of-header }",
        arrives: |arrived| arrived.headers["x-key"] == "Token value-of-the-header/0123456789",
    },
    Case {
        name: "of-basic",
        value: "ada:password of basic 0123456789",
        rule: "in: basic, hosts: [127.0.0.1]",
        plugin: "hostile",
        with: "does: header, at: \"AT/of-basic\", name: authorization, value: PLACEHOLDER, key: { secret: of-basic }",
        arrives: |arrived| arrived.headers["authorization"] == format!("Basic {}", STANDARD.encode(CASES[1].value)),
    },
    Case {
        name: "of-query",
        value: "value of the query/0123456789&x=1",
        rule: "in: \"query:key\", hosts: [127.0.0.1]",
        plugin: "hostile",
        with: "does: ask, url: \"AT/of-query?key=PLACEHOLDER\", key: { secret: of-query }",
        arrives: |arrived| arrived.target == "/of-query?key=value%20of%20the%20query%2F0123456789%26x%3D1",
    },
    Case {
        name: "of-path",
        value: "value of the path/0123456789?x",
        rule: "in: path, hosts: [127.0.0.1]",
        plugin: "hostile",
        with: "does: ask, url: \"AT/of-path/botPLACEHOLDER/send\", key: { secret: of-path }",
        arrives: |arrived| arrived.target == "/of-path/botvalue%20of%20the%20path%2F0123456789%3Fx/send",
    },
    Case {
        name: "of-body",
        value: "value \"of\" the body 0123456789 größer",
        rule: "in: \"body:/text\", hosts: [127.0.0.1]",
        plugin: "hostile",
        with: "does: body, at: \"AT/of-body\", key: { secret: of-body }",
        arrives: |arrived| arrived.body.contains(r#"value \"of\" the body 0123456789 größer"#),
    },
    Case {
        name: "of-url",
        value: "AT/of-url/value-of-the-url?key=0123456789",
        rule: "in: url",
        plugin: "hostile",
        with: "does: ask, url: PLACEHOLDER, key: { secret: of-url }",
        arrives: |arrived| arrived.target == "/of-url/value-of-the-url?key=0123456789",
    },
    Case {
        name: "of-sign",
        value: "value of the signing key 0123456789",
        rule: "in: sign",
        plugin: "webhook",
        with: "url: \"AT/of-sign\", format: standard, signing_key: { secret: of-sign }",
        arrives: |arrived| arrived.headers["webhook-signature"].starts_with("v1,"),
    },
];

/// Secret URLs that lead nowhere: to a port where nobody listens, and by a name to this machine. `PORT` is the endpoint's.
const NOWHERE: &[(&str, &str, &str)] = &[
    ("of-closed", "http://127.0.0.1:1/value-of-the-closed-url", "unsent connect: no connection"),
    ("of-private", "http://localhost:PORT/value-of-the-private-url", "denied private-address"),
];

/// What gives the values away, wherever it stands.
const TELLING: &[&str] = &[
    "value-of-the-header",
    "password of basic",
    "value of the query",
    "value%20of%20the%20query",
    "value of the path",
    "value%20of%20the%20path",
    "the body 0123456789",
    "value-of-the-url",
    "value-of-the-closed-url",
    "value-of-the-private-url",
    "value of the signing key",
    "the-secret-of-the-robot",
    "a-password-of-the-relay",
    TOKEN,
];

const ROBOT: &str = "the-secret-of-the-robot";
const PASSWORD: &str = "a-password-of-the-relay";

struct Stage {
    endpoint: Endpoint,
    sink: Sink,
    world: World,
    outbox: Outbox,
    _folder: tempfile::TempDir,
}

impl Stage {
    async fn new(connector: &str, outbox: Outbox, folder: tempfile::TempDir, issuer: &str, relay: u16) -> Self {
        let (sink, endpoint) = (Sink::start().await, Endpoint::echoing().await);
        let world = World::new(&sink, "{}", connector);
        let at = format!("http://{}", endpoint.address);
        for (path, by) in [
            ("dist/guests/hostile.wasm", "guests"),
            ("dist/plugins/webhook.wasm", "plugins"),
            ("dist/plugins/mail.wasm", "plugins"),
        ] {
            let from = prepared(path, by);
            fs::copy(&from, world.path("plugins").join(from.file_name().unwrap())).unwrap();
        }
        let (port, nowhere) = (endpoint.address.port().to_string(), "http://127.0.0.1:1");
        let grants = format!(
            "  grants:\n    hostile: {{ http: [\"{at}\", \"{nowhere}\", \"http://localhost:{port}\"] }}\n    webhook: {{ http: [\"{at}\"] }}\n    mail: {{ mail: true }}\n"
        );
        let mut file = operator(&sink, "{}").replace("  grants:\n", &grants);
        let mut routes = format!("members: {{ admin@example.com: admin }}\nconnectors: {connector}\nroutes:\n");
        let mut route = |name: &str, plugin: &str, with: &str| {
            let target = format!("{{ plugin: {plugin}, with: {{ {with} }}, retry: {{ first: 1h }} }}");
            let head = format!("  - name: {name}\n    owner: admin@example.com\n    when: {{ source: registrar }}\n");
            routes.push_str(&format!("{head}    deliver: [{target}]\n"));
        };
        for Case { name, value, rule, plugin, with, .. } in CASES {
            file.push_str(&format!("  {name}: {{ file: secrets/{name}, {rule}, workspaces: [acme] }}\n"));
            world.write(&format!("secrets/{name}"), &value.replace("AT/", &format!("{at}/")));
            route(name, plugin, &with.replace("AT/", &format!("{at}/")));
        }
        for (name, value, _) in NOWHERE {
            file.push_str(&format!("  {name}: {{ file: secrets/{name}, in: url, workspaces: [acme] }}\n"));
            world.write(&format!("secrets/{name}"), &value.replace("PORT", &port));
            route(name, "hostile", &format!("does: ask, url: PLACEHOLDER, key: {{ secret: {name} }}"));
        }
        let oauth = format!(
            "token_url: \"{issuer}/token\", grant: client_credentials, client_id: robot, client_secret: {{ file: secrets/robot }}"
        );
        let rest = "in: \"header:Authorization:Bearer\", hosts: [127.0.0.1], workspaces: [acme]";
        file.push_str(&format!("  of-oauth: {{ oauth: {{ {oauth} }}, {rest} }}\n"));
        world.write("secrets/robot", ROBOT);
        let with = "name: authorization, value: PLACEHOLDER, key: { secret: of-oauth }";
        route("of-oauth", "hostile", &format!("does: header, at: \"{at}/of-oauth\", {with}"));
        file.push_str(&format!(
            "  of-mail: {{ file: secrets/relay, in: mail }}
mail: {{ relay: \"127.0.0.1:{relay}\", tls: none, user: bell, password: {{ secret: of-mail }}, from: bell@example.com, recipients: [\"*\"] }}
"
        ));
        world.write("secrets/relay", PASSWORD);
        // The relay answers it with the password.
        route("of-mail", "mail", "to: echo@example.com");
        world.write("switchbell.yaml", &file);
        world.write("workspaces/acme.yaml", &routes);
        Self { endpoint, sink, world, outbox, _folder: folder }
    }
}

/// All files in a folder but those in `secrets`, with what is in them.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() && path.file_name().unwrap() != "secrets" {
            found.extend(files(&path));
        } else if path.is_file() {
            found.push((path.clone(), fs::read(path).unwrap()));
        }
    }
    found
}

fn holds(bytes: &[u8], text: &str) -> bool {
    memchr::memmem::find(bytes, text.as_bytes()).is_some()
}

/// Every destination refuses what it is sent, and quotes all of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_written_anywhere_though_every_destination_quotes_it() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = python_outbox(folder.path());
    let served = outbox.over_http();
    let servers = Authorization::start().await;
    let relay = crate::mail::echoing_relay(PASSWORD).await;
    let connector = World::http_connector(&served.url);
    let mut stage = Stage::new(&connector, outbox, folder, &servers.issuer, relay.port).await;
    let mut server = Server::start(&stage.world, &stage.sink);
    server.wait_for("bootstrap=true");
    stage.outbox.add(&["domain.active", "--title", "a title"]);
    let arrived = stage.endpoint.next_by_path(CASES.len() + 1).await;
    for case in CASES {
        let path = arrived.keys().find(|path| path.starts_with(&format!("/{}", case.name)));
        let arrived = &arrived[path.unwrap_or_else(|| panic!("{} never came: {:?}", case.name, arrived.keys()))];
        assert!((case.arrives)(arrived), "{}: {arrived:?}", case.name);
    }
    let token = arrived["/of-oauth"].headers["authorization"].strip_prefix("Bearer ").unwrap().to_owned();
    let signature = STANDARD.encode(CASES[1].value);
    let telling: Vec<&str> = TELLING.iter().copied().chain([token.as_str(), signature.as_str()]).collect();

    let mut listed = String::new();
    // Besides, one for the token and one for the mail.
    for _ in 0..CASES.len() + NOWHERE.len() + 2 {
        server.wait_for("not delivered");
    }
    for arguments in [&["deliveries", "list", "--json"][..], &["inbox", "list", "--json"], &["connector", "list"]] {
        let (code, out, error) = run(&stage.world, &stage.sink, arguments);
        assert_eq!(code, 0, "{error}");
        listed.push_str(&out);
    }
    for name in CASES.iter().map(|case| case.name).chain(["of-oauth"]).filter(|name| *name != "of-sign") {
        assert!(listed.contains(&format!("[secret {name}]")), "no echo of {name} was masked: {listed}");
    }
    for (name, _, says) in NOWHERE {
        assert!(listed.contains(says), "{name} does not say {says}: {listed}");
    }
    let beside = files(&stage.world.path("."));
    let (status, _, said) = server.stop(Signal::TERM);
    assert!(status.success(), "{said}");
    let after = files(&stage.world.path("."));
    assert!(beside.iter().any(|(path, _)| path.ends_with("data/switchbell.db-wal")), "the store has no log of its own");
    for telling in telling {
        assert!(!said.contains(telling), "the log holds {telling}:\n{said}");
        assert!(!listed.contains(telling), "the lists hold {telling}:\n{listed}");
        for (path, bytes) in beside.iter().chain(&after) {
            assert!(!holds(bytes, telling), "{} holds {telling}", path.display());
        }
    }
}
