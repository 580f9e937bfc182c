//! `switchbell connector login`: a person with a browser on this machine, or on another.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::support::{Authorization, PATIENCE, Sink, World, open, refuse, run, sign_in};

/// A sign-in that waits for its person.
struct Waiting {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// The address to open.
    address: String,
    /// Where the browser comes back to.
    back: String,
}

impl Waiting {
    async fn start(world: &World, more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_switchbell"));
        command.arg("--config").arg(world.config()).args(["connector", "login", "registrar", "--no-browser"]);
        command.args(more).env("SLACK_OPS", "http://127.0.0.1:9/hook").env("OUTBOX_TOKEN", "a-token-of-the-tests");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut line_with = async |text: &str| {
            let found = async {
                loop {
                    let line = lines.next_line().await.unwrap().expect("it ended before it waited");
                    if let Some((_, rest)) = line.split_once(text) {
                        return format!("{text}{rest}");
                    }
                }
            };
            tokio::time::timeout(PATIENCE, found).await.expect("it does not wait")
        };
        let address = line_with("  http").await.trim().to_owned();
        let back = line_with("The browser comes back to ").await;
        let back = back.split([' ', ',']).find(|word| word.starts_with("http")).unwrap().to_owned();
        Self { child, lines, address, back }
    }

    async fn paste(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// Its exit code and what it said at last.
    async fn end(mut self) -> (i32, String) {
        let ended = async {
            let mut said = String::new();
            while let Some(line) = self.lines.next_line().await.unwrap() {
                said.push_str(&line);
            }
            self.child.stderr.take().unwrap().read_to_string(&mut said).await.unwrap();
            (self.child.wait().await.unwrap().code().unwrap(), said)
        };
        tokio::time::timeout(PATIENCE, ended).await.expect("it does not end")
    }
}

async fn world(servers: &Authorization) -> (Sink, World) {
    let sink = Sink::start().await;
    let mcp = &servers.mcp;
    let world = World::new(
        &sink,
        "{}",
        &format!("{{ registrar: {{ url: \"{mcp}\", auth: {{ oauth: {{}} }} }}, open: {{ url: \"{mcp}\" }} }}"),
    );
    (sink, world)
}

#[tokio::test]
async fn a_browser_on_this_machine_comes_back_by_itself() {
    let servers = Authorization::start().await;
    let (_sink, world) = world(&servers).await;
    let waiting = Waiting::start(&world, &[]).await;

    let stranger = open(&format!("{}?code=x&state=x", waiting.back)).await;
    assert_eq!(stranger.status(), 400);
    assert_eq!(open(&waiting.back.replace("/callback", "/favicon.ico")).await.status(), 404);

    let page = open(&sign_in(&waiting.address, &waiting.back).await).await;
    assert_eq!(page.status(), 200);
    let header = |name: &str| page.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-security-policy"), "default-src 'none'; frame-ancestors 'none'");
    assert_eq!((header("cache-control"), header("referrer-policy")), ("no-store".into(), "no-referrer".into()));
    assert!(page.text().await.unwrap().contains("Signed in. You can close this page."));

    let (code, said) = waiting.end().await;
    assert_eq!(code, 0, "{said}");
    let by = format!("Signed in at {}. Granted: outbox:read", servers.issuer);
    assert!(said.contains(&by) && said.ends_with("The token is renewed by itself."), "{said}");
    let kept = std::fs::read_to_string(world.path("data/credentials/acme/registrar.json")).unwrap();
    let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    let token = kept["access_token"].as_str().unwrap();
    assert_eq!(servers.status_with(token).await, 200);
    assert!(!said.contains(token), "{said}");
}

#[tokio::test]
async fn what_a_browser_elsewhere_was_sent_to_is_pasted() {
    let servers = Authorization::start().await;
    let (_sink, world) = world(&servers).await;
    let mut waiting = Waiting::start(&world, &["--manual"]).await;
    let came_back = sign_in(&waiting.address, &waiting.back).await;
    waiting.paste("yes").await;
    waiting.paste("").await;
    waiting.paste(&came_back).await;
    let (code, said) = waiting.end().await;
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("Signed in at ") && said.contains("Paste it whole:"), "{said}");
}

#[tokio::test]
async fn a_refusal_is_told_and_a_connector_without_oauth_has_no_login() {
    let servers = Authorization::start().await;
    let (sink, world) = world(&servers).await;
    let waiting = Waiting::start(&world, &[]).await;
    let page = open(&refuse(&waiting.address, &waiting.back).await).await;
    assert!(page.text().await.unwrap().contains("Not signed in"));
    let (code, said) = waiting.end().await;
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("did not grant it (access_denied)"), "{said}");

    let check = |name: &str, expected: &str| {
        let (code, _, said) = run(&world, &sink, &["connector", "login", name]);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(expected), "{said}");
    };
    check("open", "connector open does not sign in by OAuth");
    check("nobody", "workspace acme has no connector \"nobody\" (there are: open, registrar)");
    drop(servers);
    check("registrar", "cannot be reached for signing in");
}
