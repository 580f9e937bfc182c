//! Plugins that keep state between calls: it ends with the attempt, and an answer that depends on it is found out.

use super::stage::{Case, DELIVERED, Stage, UNKNOWN, case};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_state_passes_from_one_attempt_to_another() {
    let once = case("count", "{ does: count, at: \"AT/\" }", DELIVERED, "asked ");
    let mut stage = Stage::start(&[once]).await;
    stage.run(&[once; 4]).await;
    for delivery in stage.deliveries("count") {
        let reason = delivery["attempts"][0]["reason"].as_str().unwrap();
        // One call when the instance was given up between the two steps.
        assert!(["asked 1 times, reminded of None", "asked 2 times, reminded of None"].contains(&reason), "{reason}");
    }
    stage.finish();
}

/// Its second answer depends on whether the instance of the first still lives. The first time that is not so, since the
/// destination takes its time; after a crash the first answer is there at once, and it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_answers_the_same_input_otherwise_is_found_out_when_it_is_resumed() {
    let mind: Case = case(
        "mind",
        "{ does: change-its-mind, at: \"AT\" }",
        UNKNOWN,
        "asked for something else when the attempt was resumed: the same input must give the same action",
    );
    let mut stage = Stage::start(&[mind]).await;
    stage.add("mind").await;
    // Two neighbours, and the first request of the plugin.
    stage.destination.asked_times(3).await;
    // Every look at the deliveries takes longer than an instance is kept.
    stage.until(|stage| stage.deliveries("mind")[0]["state"] == "in_flight", "it is not in flight").await;
    stage.destination.release();
    stage.destination.asked_times(5).await;
    stage.server.take().unwrap().kill();
    stage.serve();
    stage
        .until(|stage| !stage.deliveries("mind")[0]["attempts"].as_array().unwrap().is_empty(), "no attempt ended")
        .await;
    let attempt = stage.deliveries("mind")[0]["attempts"][0].clone();
    assert_eq!(attempt["outcome"], "unknown", "{attempt}");
    assert!(attempt["reason"].as_str().unwrap().contains(mind.says), "{attempt}");
    let asked: Vec<String> = stage.destination.asked().into_iter().map(|got| got.path).collect();
    assert_eq!(asked, ["/held", "/asked/1", "/never"]);
    stage.finish();
}
