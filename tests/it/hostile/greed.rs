//! Plugins that take more than they are given.

use super::stage::{Case, DELIVERED, RETRIED, Stage, UNKNOWN, case};

const CASES: &[Case] = &[
    case("loop", "{ does: loop }", RETRIED, "passed its CPU time limit of 100 ms a step"),
    case("loop-later", "{ does: loop-after-an-effect, at: \"AT/\" }", UNKNOWN, "passed its CPU time limit of 100 ms"),
    case("allocate", "{ does: allocate }", RETRIED, "passed its memory limit of 32 MiB"),
    case("recurse", "{ does: recurse }", RETRIED, "passed its stack limit of 512 KiB"),
    case("hoard", "{ does: hoard }", RETRIED, "passed its handles limit of 1000"),
    case("write-much", "{ does: write-too-much }", RETRIED, "wrote 65537 bytes at once; a stream takes at most 65536"),
    case("flood", "{ does: flood }", DELIVERED, "flooded"),
    case("flood-and-panic", "{ does: flood-and-panic }", RETRIED, "the last words"),
    case("for-ever", "{ does: for-ever, at: \"AT/for-ever\" }", UNKNOWN, "more than 8 steps: plugins.limits.steps"),
    case("wait-for-ever", "{ does: wait-for-ever }", RETRIED, "beyond the 24.0 h that an attempt may take"),
    case("wait-again", "{ does: wait-again-and-again }", RETRIED, "more than 8 steps: plugins.limits.steps"),
    case("environment", "{ does: environment }", DELIVERED, "0 0"),
    case("input", "{ does: read-input }", DELIVERED, "0"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_takes_too_much_harms_nobody() {
    let mut stage = Stage::start(CASES).await;
    stage.run(CASES).await;
    let for_ever = stage.destination.asked().iter().filter(|got| got.path == "/for-ever").count();
    assert_eq!(for_ever, 8, "an attempt has so many steps");
    stage.finish();
}
