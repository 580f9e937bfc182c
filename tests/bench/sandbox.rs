//! The sandbox's own cost of one attempt: two steps of the Slack plugin on a fresh instance, no network.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use switchbell::config::Limits;
use switchbell::wasm::{Action, Answer, Catalog, Delivery, Effect, Plugin, Response, Sandbox, Settings, convert};

use crate::world::{World, notification, slack};
use crate::{ROUNDS, median};

const ATTEMPTS: usize = 20_000;
/// Attempts that wait for the one step thread, so that it never idles.
const WAITING: usize = 8;

pub async fn run() {
    let world = World::new(1).await;
    let settings = Settings { threads: NonZeroUsize::new(1), ..Settings::new(Limits::default()) };
    let sandbox = Sandbox::new(settings).expect("a sandbox");
    let (catalog, _) = Catalog::open(&sandbox, &world.config.plugins.directory).await;
    let plugin = slack(&catalog).await;
    attempts(&plugin, ATTEMPTS / 10, Keep::Yes).await;
    let mut kept = Vec::new();
    let mut dropped = Vec::new();
    let mut alone = Vec::new();
    for _ in 0..ROUNDS {
        kept.push(busy(&plugin, Keep::Yes).await);
        dropped.push(busy(&plugin, Keep::No).await);
        let began = Instant::now();
        attempts(&plugin, ATTEMPTS / 10, Keep::Yes).await;
        alone.push(began.elapsed().as_secs_f64() * 1e6 / (ATTEMPTS / 10) as f64);
    }
    println!(
        "\nsandbox: one attempt of two steps (instantiate, render, read the answer, drop), one step thread kept busy"
    );
    println!("  one fresh instance for both steps   {:6.1} µs", median(kept));
    println!("  a fresh instance for each step      {:6.1} µs", median(dropped));
    println!("  alone, hand-over to the thread incl.{:6.1} µs", median(alone));
}

#[derive(Clone, Copy)]
enum Keep {
    Yes,
    No,
}

/// Microseconds of one attempt while the step thread is kept busy.
async fn busy(plugin: &Plugin, keep: Keep) -> f64 {
    let began = Instant::now();
    let lanes = (0..WAITING).map(|_| {
        let plugin = plugin.clone();
        tokio::spawn(async move { attempts(&plugin, ATTEMPTS / WAITING, keep).await })
    });
    join_all(lanes).await;
    let took: Duration = began.elapsed();
    took.as_secs_f64() * 1e6 / ATTEMPTS as f64
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
        let body = b"ok".to_vec();
        let answer = Response { status: 200, headers: Vec::new(), body, truncated: false, extras: "{}".to_owned() };
        attempt.answer(Effect { at: "2026-09-01T18:42:10Z".to_owned(), answer: Answer::Http(Ok(answer)) });
        let action = attempt.step().await.expect("a second step");
        assert!(matches!(action, Action::Done(_)), "{action:?}");
    }
}

fn delivery(settings: &str, notification: switchbell::wasm::Notification) -> Delivery {
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
