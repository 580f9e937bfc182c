//! What a plugin finds of the world: nothing.

use super::*;

#[tokio::test]
async fn there_is_no_environment_and_no_input() {
    assert_eq!(note("environment").await, "0 0");
    assert_eq!(note("stdin").await, "0");
}

#[tokio::test]
async fn time_stands_still_when_the_attempt_began() {
    assert_eq!(note("time").await, "1767323046789 0");
}

#[tokio::test]
async fn a_sleep_is_over_at_once() {
    assert_eq!(note("sleep").await, "awake");
}

/// What is drawn in the first and in the second step of an attempt, each in a fresh instance.
async fn drawn(plugin: &Plugin, delivery: Delivery) -> [String; 2] {
    let mut attempt = plugin.attempt(delivery);
    let Ok(Action::Http(request)) = attempt.step().await else { panic!("no request") };
    attempt.answer(http(200, ""));
    attempt.rest();
    [String::from_utf8(request.body).unwrap(), noted(attempt.step().await)]
}

/// What another key, another attempt and another delivery draw.
async fn drawn_elsewhere(behaviour: &str) -> Vec<[String; 2]> {
    let other_key = Sandbox::new(Settings { key: Some([8; 32]), ..settings() }).unwrap();
    let other_key = other_key.load(guest("puppet")).await.unwrap();
    vec![
        drawn(&other_key, delivery(behaviour)).await,
        drawn(&puppet().await, Delivery { attempt: 2, ..delivery(behaviour) }).await,
        drawn(&puppet().await, Delivery { id: "0badcafe-2".into(), ..delivery(behaviour) }).await,
    ]
}

#[tokio::test]
async fn randomness_is_the_same_for_the_same_attempt_and_step_only() {
    let first = drawn(&puppet().await, delivery("random")).await;
    assert_eq!(first, drawn(&puppet().await, delivery("random")).await);
    assert_ne!(first[0], first[1]);
    for other in drawn_elsewhere("random").await {
        assert!(first[0] != other[0] && first[1] != other[1]);
    }
}

#[tokio::test]
async fn hash_tables_are_ordered_alike_in_every_step_of_an_attempt() {
    let first = drawn(&puppet().await, delivery("hash")).await;
    assert_eq!(first[0], first[1]);
    for other in drawn_elsewhere("hash").await {
        assert_ne!(first[0], other[0]);
    }
}

#[tokio::test]
async fn a_key_of_its_own_is_drawn_when_none_is_given() {
    let mut drawn_first = Vec::new();
    for _ in 0..2 {
        let sandbox = Sandbox::new(Settings { key: None, ..settings() }).unwrap();
        let plugin = sandbox.load(guest("puppet")).await.unwrap();
        drawn_first.push(drawn(&plugin, delivery("random")).await);
    }
    assert_ne!(drawn_first[0], drawn_first[1]);
}
