//! Plugins that answer nonsense.

use super::stage::{Case, DELIVERED, REJECTED, RETRIED, Stage, case};

const CASES: &[Case] = &[
    case("trap", "{ does: trap }", RETRIED, "the plugin stopped itself (it panicked or aborted)"),
    case("panic", "{ does: panic }", RETRIED, "the channel is on fire"),
    case("exit", "{ does: exit }", RETRIED, "instead of answering"),
    case("bad-text", "{ does: bad-text }", RETRIED, "utf-8"),
    case("bad-extras", "{ does: bad-extras, at: \"AT/\" }", RETRIED, "http.extras is no JSON"),
    case("bad-resume", "{ does: bad-resume }", RETRIED, "wait.resume is no JSON"),
    case(
        "deep-extras",
        "{ does: deep-extras, at: \"AT/\" }",
        RETRIED,
        "http.extras is no JSON: recursion limit exceeded",
    ),
    case("absurd-numbers", "{ does: absurd-numbers, at: \"AT/\" }", ("retrying", "retry"), "come back in 136 years"),
    case("no-time", "{ does: no-time, at: \"AT/\" }", REJECTED, "denied timeout"),
    case("absurd-lanes", "{ does: absurd-lanes }", DELIVERED, "through absurd lanes"),
    case("many-headers", "{ does: many-headers, at: \"AT/\" }", RETRIED, "http.headers has 5000 entries; at most 64"),
    case("long-url", "{ does: long-url, at: \"AT\" }", RETRIED, "at most 8 KiB"),
    case("huge-body", "{ does: huge-body, at: \"AT/\" }", RETRIED, "http.body has 1048577 bytes; at most 1 MiB"),
    case("huge-answer", "{ does: huge-answer, at: \"AT/\" }", RETRIED, "passed its answer size limit of 2 MiB"),
    case("huge-note", "{ does: huge-note }", DELIVERED, "nnnn"),
    case("huge-remember", "{ does: huge-remember }", RETRIED, "done.remember has 1048578 bytes; at most 64 KiB"),
    case("huge-resume", "{ does: huge-resume }", RETRIED, "wait.resume has 1048578 bytes; at most 64 KiB"),
    case("escapes", "{ does: escapes }", REJECTED, "gone  route=another-route delivered"),
    case("nobody-to-mail", "{ does: nobody-to-mail }", RETRIED, "mail.to is empty"),
    case("empty-marker", "{ does: empty-marker, at: \"AT/\" }", RETRIED, "has an empty marker"),
    case("unknown-action", "{ does: unknown-action }", REJECTED, "denied "),
    case("tool", "{ does: tool }", REJECTED, "denied "),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_answers_nonsense_harms_nobody() {
    let mut stage = Stage::start(CASES).await;
    stage.run(CASES).await;
    let delivery = stage.deliveries("absurd-numbers").remove(0);
    let moment = |text: &serde_json::Value| text.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let waits = moment(&delivery["nextAt"]).duration_since(moment(&delivery["attempts"][0]["endedAt"]));
    assert!(waits.as_hours() <= 6, "a destination may ask for six hours at most: {delivery}");
    stage.finish();
}
