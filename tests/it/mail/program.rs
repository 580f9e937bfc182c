//! Mail through the whole program: its configuration, the plugin, and relays that want TLS and a password.

use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use super::postfix::Postfix;
use super::relay::{PASSWORD, Relay, Setup, USER, content, of_kind, read};
use super::stage::Identity;
use crate::support::{Outbox, PATIENCE, Server, Sink, World, operator, prepared, python_outbox, run, workspace};

/// A world whose one route mails.
struct Stage {
    outbox: Outbox,
    sink: Sink,
    world: World,
    identity: Identity,
    _folder: tempfile::TempDir,
}

impl Stage {
    /// `relay` are the lines of `mail:` that say how to reach it, `to` whom the mail is for.
    async fn new(identity: Identity, relay: &str, to: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let outbox = python_outbox(folder.path());
        let sink = Sink::start().await;
        let world = World::new(&sink, &outbox.commands(), &World::stdio_connector());
        std::fs::copy(prepared("dist/plugins/mail.wasm", "plugins"), world.path("plugins/mail.wasm")).unwrap();
        world.write("password", PASSWORD);
        let file = operator(&sink, &outbox.commands());
        let file = file.replace("  grants:\n", "  grants:\n    mail: { mail: true, workspaces: [acme] }\n");
        let mail =
            format!("mail:\n{relay}  from: \"Switchbell <bell@example.com>\"\n  recipients: [\"*@example.com\"]\n");
        world.write("switchbell.yaml", &format!("{file}  smtp: {{ file: password, in: mail }}\n{mail}"));
        let target = format!("plugin: mail\n        with: {{ to: {to} }}\n        retry: {{ first: 1s }}\n");
        let all = workspace(&World::stdio_connector(), "{ source: registrar }");
        let (before, _) = all.split_once("plugin: slack").unwrap();
        world.write("workspaces/acme.yaml", &format!("{before}{target}"));
        Self { outbox, sink, world, identity, _folder: folder }
    }

    /// Starts the program, which trusts nobody but the identity.
    fn serve(&self) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_switchbell"));
        command.arg("--config").arg(self.world.config()).arg("serve");
        command.env("SLACK_OPS", self.sink.webhook()).env("OUTBOX_TOKEN", crate::support::TOKEN);
        command.env("SSL_CERT_FILE", &self.identity.certificate).env_remove("SSL_CERT_DIR");
        command.env("SWITCHBELL_LOG", "debug").env("NO_COLOR", "1").stdin(Stdio::null());
        let mut server = Server::spawn(&mut command);
        server.wait_for(" ready ");
        server
    }

    fn begin(&self) -> Server {
        let mut server = self.serve();
        server.wait_for("bootstrap=true");
        server
    }

    fn add(&self) {
        let text = ["--title", "größere Änderung 🔔", "--subject", "acme.example", "--level", "urgent"];
        self.outbox.add(&[&["domain.active"], &text[..]].concat());
    }

    /// The delivery once it is in this state.
    fn in_state(&self, state: &str) -> Value {
        let began = Instant::now();
        loop {
            let delivery = self.world.json(&self.sink, &["deliveries", "list"])[0].clone();
            if delivery["state"] == state {
                return delivery;
            }
            assert!(began.elapsed() < PATIENCE, "never {state}: {delivery}");
        }
    }
}

fn header<'a>(mail: &'a Value, name: &str) -> &'a Value {
    let mut found = mail["headers"].as_array().unwrap().iter().filter(|header| header[0] == name);
    &found.next().unwrap_or_else(|| panic!("no {name} in {mail}"))[1]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_forgotten_and_nobody_gets_it_twice_over_a_crash() {
    let identity = Identity::new(&["localhost"]);
    let files = (identity.certificate.clone(), identity.key.clone());
    let relay = Relay::start(Setup { tls: "starttls", identity: Some((&files.0, &files.1)), signs_in: true }).await;
    let lines = format!(
        "  relay: \"localhost:{}\"\n  tls: starttls\n  user: {USER}\n  password: {{ secret: smtp }}\n",
        relay.port
    );
    let stage = Stage::new(identity, &lines, "[one@example.com, later@example.com, gone@example.com]").await;
    let server = stage.begin();
    stage.add();
    stage.in_state("retrying");
    server.kill();
    let mut server = stage.serve();
    let delivery = stage.in_state("delivered");
    let outcomes: Vec<&Value> =
        delivery["attempts"].as_array().unwrap().iter().map(|attempt| &attempt["outcome"]).collect();
    assert_eq!(outcomes, ["retry", "delivered"]);

    // For the person who looks.
    let id = delivery["id"].as_str().unwrap();
    let (code, shown, _) = run(&stage.world, &stage.sink, &["deliveries", "show", id]);
    let later = "451 4.7.1 Greylisted, come back later";
    let gone = "1 of 3 recipients did not get it: gone@example.com: the relay refused: 550 5.1.1 No such user here";
    assert!(code == 0 && shown.contains("later@example.com") && shown.contains(later), "{shown}");
    assert!(shown.contains(gone), "{shown}");
    assert!(!server.said().contains(PASSWORD) && !shown.contains(PASSWORD));

    let reports = relay.stop().await;
    let asked = ["one", "later", "gone", "later"].map(|local| json!(format!("{local}@example.com")));
    assert_eq!(of_kind(&reports, "recipient"), asked.iter().collect::<Vec<_>>());
    assert!(of_kind(&reports, "signedIn").iter().all(|sign_in| sign_in["accepted"] == true));
    let mails = of_kind(&reports, "mail");
    let [first, second] = mails[..] else { panic!("{mails:?}") };
    assert_eq!((&first["to"], &second["to"]), (&json!(["one@example.com"]), &json!(["later@example.com"])));
    assert!(mails.iter().all(|mail| mail["protected"] == true && mail["signedIn"] == true), "{mails:?}");
    let (first, second) = (read(&content(first)), read(&content(second)));
    for name in ["Message-ID", "Date", "Subject", "From"] {
        assert_eq!(header(&first, name), header(&second, name), "{name} is another in the second attempt");
    }
    assert_eq!(second["to"], json!(["later@example.com"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_of_the_whole_program_is_read_in_a_mailbox_of_postfix() {
    let identity = Identity::new(&["localhost"]);
    let mut postfix = Postfix::start(&identity);
    let lines = format!("  relay: \"localhost:{}\"\n  tls: implicit\n", postfix.implicit);
    let stage = Stage::new(identity, &lines, "ops@example.com").await;
    let mut server = stage.begin();
    stage.add();
    postfix.wait_for("delivered to maildir");
    server.wait_for("INFO delivered");
    let mails = postfix.mailbox("ops");
    assert_eq!(mails.len(), 1);
    let mail = read(&mails[0]);
    assert_eq!(mail["defects"], json!([]));
    assert_eq!((&mail["type"], &mail["charset"]), (&json!("text/plain"), &json!("utf-8")));
    assert_eq!(
        (&mail["to"], &mail["from"]),
        (&json!(["ops@example.com"]), &json!([["Switchbell", "bell@example.com"]]))
    );
    assert_eq!(header(&mail, "Auto-Submitted"), "auto-generated");
    let subject = header(&mail, "Subject").as_str().unwrap();
    let text = mail["text"].as_str().unwrap();
    assert!(subject.contains("größere Änderung 🔔") && text.contains("größere Änderung 🔔"), "{mail}");
    assert!(text.contains("acme.example") && text.contains("registrar"), "{text}");
    assert!(header(&mail, "Received").as_str().unwrap().contains("with ESMTPS "), "{mail}");
    let delivery = stage.in_state("delivered");
    let id = delivery["id"].as_str().unwrap();
    let (_, shown, _) = run(&stage.world, &stage.sink, &["deliveries", "show", id]);
    assert!(shown.contains(header(&mail, "Message-ID").as_str().unwrap()), "{shown}");
}
