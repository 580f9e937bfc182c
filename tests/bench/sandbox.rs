//! The sandbox's own cost of one attempt: two steps of the Slack plugin on a fresh instance, no network.

use std::time::Instant;

use switchbell::config::Limits;
use switchbell::wasm::{Action, Answer, Catalog, Delivery, Effect, Plugin, Response, Sandbox, Settings, convert};

use crate::world::{World, notification, slack};
use crate::{ROUNDS, median};

const ATTEMPTS: usize = 5_000;

pub async fn run() {
    let world = World::new(1).await;
    let sandbox = Sandbox::new(Settings::new(Limits::default())).expect("a sandbox");
    let (catalog, _) = Catalog::open(&sandbox, &world.config.plugins.directory).await;
    let plugin = slack(&catalog).await;
    attempts(&plugin, ATTEMPTS, Keep::Yes).await;
    let (mut kept, mut dropped, mut handed_over) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        kept.push(in_place(&plugin, Keep::Yes).await);
        dropped.push(in_place(&plugin, Keep::No).await);
        handed_over.push(timed(attempts(&plugin, ATTEMPTS, Keep::Yes)).await);
    }
    println!("\nsandbox: one attempt of two steps (instantiate, render, read the answer, drop)");
    println!("  in place, one fresh instance for both steps   {:6.1} µs", median(kept));
    println!("  in place, a fresh instance for each step      {:6.1} µs", median(dropped));
    println!("  on a thread for steps, handing over included  {:6.1} µs", median(handed_over));
}

#[derive(Clone, Copy)]
enum Keep {
    Yes,
    No,
}

/// Microseconds of one attempt on an async thread; this one, which began the program, runs no steps.
async fn in_place(plugin: &Plugin, keep: Keep) -> f64 {
    let plugin = plugin.clone();
    let there = tokio::spawn(async move { timed(attempts(&plugin, ATTEMPTS, keep)).await });
    there.await.expect("attempts")
}

/// Microseconds of one attempt.
async fn timed(attempts: impl Future<Output = ()>) -> f64 {
    let began = Instant::now();
    attempts.await;
    began.elapsed().as_secs_f64() * 1e6 / ATTEMPTS as f64
}

async fn attempts(plugin: &Plugin, count: usize, keep: Keep) {
    let settings = r#"{"webhook":"switchbell-secret.hook.0123456789abcdef"}"#;
    let one = notification(1);
    for _ in 0..count {
        let mut attempt = plugin.attempt(delivery(settings, convert::notification(&one, false)));
        let action = attempt.step().await.expect("a first step");
        assert!(matches!(action, Action::Http(_)));
        if matches!(keep, Keep::No) {
            attempt.rest();
        }
        attempt.answer(answered());
        let action = attempt.step().await.expect("a second step");
        assert!(matches!(action, Action::Done(_)), "{action:?}");
    }
}

/// What Slack answers.
pub fn answered() -> Effect {
    let body = b"ok".to_vec();
    let answer = Response { status: 200, headers: Vec::new(), body, truncated: false, extras: "{}".to_owned() };
    Effect { at: "2026-09-01T18:42:10Z".to_owned(), answer: Answer::Http(Ok(answer)) }
}

pub fn delivery(settings: &str, notification: switchbell::wasm::Notification) -> Delivery {
    Delivery {
        id: "00000000-1".to_owned(),
        attempt: 1,
        due_at: "2026-09-01T18:42:10Z".to_owned(),
        now: "2026-09-01T18:42:10Z".to_owned(),
        workspace: "acme".to_owned(),
        route: "news".to_owned(),
        on_behalf_of: "a@example.com".to_owned(),
        cause: "first".to_owned(),
        settings: settings.to_owned(),
        notifications: vec![notification],
        omitted: 0,
        inbox_url: None,
        memory: None,
        resume: None,
        extras: "{}".to_owned(),
    }
}
