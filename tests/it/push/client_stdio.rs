//! The program as a client of a push queue on the standard streams of a program that dies at each step of the recovery.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::client_stage::event;
use crate::support::{Server, Sink, World, root, run};

/// Odd spellings, which must arrive as they are.
const DATA: &str = r#"{ "b":1.0,"a":1e3, "n":123456789012345678901234567890 }"#;

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

async fn check(dies_at: &str) {
    let sink = Sink::start().await;
    let folder = tempfile::tempdir().unwrap();
    let program = root().join("tests/peers/push/queue.py");
    let pending = (0..5).fold(String::new(), |mut text, number| {
        writeln!(text, "{}", event(&format!("e{number}"), &format!(r#","data":{DATA}"#))).unwrap();
        text
    });
    fs::write(folder.path().join("pending"), pending).unwrap();
    let within = format!("cd '{}' && exec python3 '{}'", folder.path().display(), program.display());
    let commands =
        format!("{{ queue: {{ run: [sh, -c, \"{within}\"], env: {{ DIE: \"{dies_at}\" }}, workspaces: [acme] }} }}");
    let world = World::new(&sink, &commands, "{ shell: { command: queue, notifications: { push: true } } }");
    let mut server = Server::start(&world, &sink);
    server.wait_for("delivered workspace=acme seq=5");
    drop(server);
    let (code, listed, error) = run(&world, &sink, &["inbox", "list", "--json"]);
    assert_eq!((code, listed.matches(DATA).count()), (0, 5), "{dies_at}: {listed} {error}");
    assert_eq!(lines(&folder.path().join("died")).len(), usize::from(dies_at != "never"));
}

#[tokio::test(flavor = "multi_thread")]
async fn it_follows_a_program() {
    check("never").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_dies_at_any_step_loses_nothing_and_brings_nothing_twice() {
    for step in ["listened", "asked", "answered", "acknowledging", "acknowledged"] {
        check(step).await;
    }
}
