//! Plugins that do harm before any delivery: when they are loaded, and when they check settings.

use super::stage::{BLOCKED, Case, Stage, case, guest};

const CASES: &[Case] = &[
    case("check-loop", "{ does: check-loop }", BLOCKED, "passed its CPU time limit of 100 ms a step"),
    case("check-trap", "{ does: check-trap }", BLOCKED, "stopped itself (it panicked or aborted)"),
    case("check-allocate", "{ does: check-allocate }", BLOCKED, "passed its memory limit of 32 MiB"),
    case("many-lanes", "{ does: check-many-lanes }", BLOCKED, "destination.lanes has 10000 entries; at most 8"),
    case("long-lane", "{ does: check-long-lane }", BLOCKED, "the key of a lane has 1048577 bytes; at most 200 bytes"),
    case("extras", "{ does: check-bad-extras }", BLOCKED, "destination.extras is no JSON"),
    case("many-problems", "{ does: check-many-problems }", BLOCKED, "refuses its settings: no"),
    case("no-problem", "{ does: check-no-problem }", BLOCKED, "without naming a problem"),
    case("reaches-out", "{ file: /etc/passwd }", BLOCKED, "plugin reaches-out is not loaded"),
    case("spinner", "{ any: thing }", BLOCKED, "plugin spinner is not loaded"),
    case("impostor", "{ any: thing }", BLOCKED, "plugin impostor is not loaded"),
];

/// The puppet, with another text for `describe` to answer.
fn describing(description: &str) -> Vec<u8> {
    const PLACE: &str = r#"{"name":"puppet","version":"1.0.0"}"#;
    const LENGTH: usize = 512;
    let mut bytes = std::fs::read(guest("puppet")).unwrap();
    let start = bytes.windows(PLACE.len()).position(|window| window == PLACE.as_bytes()).unwrap();
    bytes[start..start + LENGTH].copy_from_slice(format!("{description:LENGTH$}").as_bytes());
    bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_does_harm_before_any_delivery_harms_nobody() {
    let read = |name: &str| std::fs::read(guest(name)).unwrap();
    let files = [
        ("reaches-out", read("reaches-out")),
        ("foreign-import", read("foreign-import")),
        ("forged-types", read("forged-types")),
        ("other-world", read("other-world")),
        ("other-shape", read("other-shape")),
        ("spinner", describing("!loop")),
        ("crasher", describing("!trap")),
        ("talker", describing("!huge")),
        ("impostor", describing(r#"{"name":"scripted","version":"9.9.9"}"#)),
    ];
    let mut stage = Stage::with_files(CASES, &files).await;
    let said = stage.server.as_mut().unwrap().said();
    for expected in [
        "reaches-out.wasm: imports what no plugin gets (wasi:",
        "foreign-import.wasm: imports what no plugin gets (shout)",
        "forged-types.wasm: imports what no plugin gets",
        "other-world.wasm: exports switchbell:delivery/plugin@0.9.0",
        "other-shape.wasm: exports switchbell:delivery/plugin with other types",
        "spinner.wasm: describe failed: the plugin passed its CPU time limit",
        "crasher.wasm: describe failed: the plugin stopped itself",
        "talker.wasm: describe answers no plugin's description: it is 1048576 bytes long; at most 256 KiB",
        "impostor.wasm: describes itself as scripted",
    ] {
        assert!(said.contains(expected), "the log does not say {expected:?}: {said}");
    }
    stage.run(CASES).await;
    stage.finish();
}
