//! Deliveries a second through the Slack plugin to a sink on this machine, next to bare requests of the same body.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use futures_util::future::join_all;
use jiff::Timestamp;
use switchbell::clock::Clock;
use switchbell::inbox::delivery::{Outcome, Schedule};
use switchbell::inbox::{Claim, DeliveryId, Ended, Entry, Inbox, Intake};
use switchbell::route::{Facts, owed};
use switchbell::send::effect::Effects;
use switchbell::send::{Dispatcher, Means, Stop};
use switchbell::telemetry::{Happening, Observer};
use tokio::sync::Notify;

use crate::world::{World, name, notification, slack};
use crate::{ROUNDS, median, rate};

const DELIVERIES: usize = 8_000;

pub async fn run() {
    let world = World::new(1).await;
    let catalog = world.catalog().await;
    slack(&catalog).await;
    let config = Arc::clone(&world.config);
    let effects = Effects::new().expect("effects");
    let means = Arc::new(Means { config, catalog, effects, clock: Clock::system() });
    let target = world
        .config
        .workspaces
        .get("acme")
        .and_then(|acme| acme.routes.first())
        .and_then(|route| route.deliver.first());
    let claim = Arc::new(claim(&target.expect("a target").id));
    let bare = reqwest::Client::builder().http1_only().no_proxy().build().expect("a client");
    let url = format!("http://{}/services/T00000000/B00000000/x", world.sink);
    println!(
        "\ndeliveries through the Slack plugin to a sink on this machine, next to bare requests ({ROUNDS} rounds, interleaved)"
    );
    for in_flight in [1, 32] {
        let count = if in_flight == 1 { DELIVERIES / 4 } else { DELIVERIES };
        let (mut delivered, mut posted, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let ours = {
                let (means, claim) = (Arc::clone(&means), Arc::clone(&claim));
                concurrently(in_flight, count, move || attempt(Arc::clone(&means), Arc::clone(&claim))).await
            };
            let theirs = {
                let (bare, url) = (bare.clone(), url.clone());
                concurrently(in_flight, count, move || post(bare.clone(), url.clone())).await
            };
            delivered.push(ours);
            posted.push(theirs);
            ratios.push(100.0 * ours / theirs);
        }
        println!(
            "  {in_flight:>2} in flight: {:>7.0} deliveries/s, {:>7.0} bare requests/s: {:.0} %",
            median(delivered),
            median(posted),
            median(ratios)
        );
    }
    whole_path(&world, means).await;
}

async fn concurrently<F, W>(in_flight: usize, count: usize, work: impl Fn() -> F + Clone + Send + 'static) -> f64
where
    F: Future<Output = W> + Send,
    W: Send,
{
    let left = Arc::new(AtomicUsize::new(count));
    let began = Instant::now();
    let lanes = (0..in_flight).map(|_| {
        let (left, work) = (Arc::clone(&left), work.clone());
        tokio::spawn(async move {
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                work().await;
            }
        })
    });
    join_all(lanes).await.into_iter().for_each(|lane| lane.expect("a lane"));
    rate(count, began.elapsed())
}

async fn attempt(means: Arc<Means>, claim: Arc<Claim>) {
    let ended = means.attempt(&claim, Timestamp::UNIX_EPOCH, &Stop::default()).await;
    assert_eq!(ended.outcome, Outcome::Delivered, "{ended:?}");
}

async fn post(client: reqwest::Client, url: String) {
    // As large as what the plugin renders.
    let answer = client.post(url).header("content-type", "application/json").body("x".repeat(900)).send().await;
    assert!(answer.expect("an answer").status().is_success());
}

fn claim(target: &str) -> Claim {
    Claim {
        id: DeliveryId { store: "00000000".into(), number: 1 },
        route: name("news"),
        target: target.to_owned(),
        plugin: name("slack"),
        attempt: NonZeroU32::MIN,
        created_at: Timestamp::UNIX_EPOCH,
        due_at: Timestamp::UNIX_EPOCH,
        last_outcome: None,
        notification: notification(1),
    }
}

/// Counts deliveries, and says when all are made.
#[derive(Debug, Default)]
struct Counter {
    delivered: AtomicUsize,
    all: Notify,
}

impl Observer for Counter {
    fn happened(&self, what: &Happening) {
        if let Happening::Attempted { outcome: Outcome::Delivered, .. } = what
            && self.delivered.fetch_add(1, Ordering::Relaxed) + 1 == DELIVERIES
        {
            self.all.notify_one();
        }
    }
}

/// From the committed event through claim, plugin and sink to the recorded outcome.
async fn whole_path(world: &World, means: Arc<Means>) {
    let mut rates = Vec::new();
    for round in 0..ROUNDS {
        let inbox: Arc<dyn Inbox> = Arc::new(world.inbox(&format!("whole-{round}.db")));
        let counter = Arc::new(Counter::default());
        let stop = Stop::default();
        let dispatcher = Dispatcher::new(Arc::clone(&means), Arc::clone(&inbox), counter.clone(), Schedule::default());
        let running = tokio::spawn(dispatcher.run(stop.clone()));
        let began = Instant::now();
        for first in (0..DELIVERIES).step_by(500) {
            inbox.accept(intake(world, first..first + 500)).await.expect("a write");
        }
        counter.all.notified().await;
        rates.push(rate(DELIVERIES, began.elapsed()));
        stop.soon.cancel();
        running.await.expect("the dispatcher");
    }
    println!("  whole path, event to recorded delivery, sink included: {:.0} events/s", median(rates));
}

fn intake(world: &World, numbers: std::ops::Range<usize>) -> Intake {
    let workspace = world.config.workspaces.get("acme").expect("a workspace");
    let source = name("registrar");
    let entry = |number: usize| {
        let one = notification(number as u64);
        let facts =
            Facts { source: &source, name: &one.event.name, effective_level: one.effective_level, subject: None };
        let owed = owed(&workspace.router.select(&facts), &workspace.routes, Timestamp::UNIX_EPOCH);
        Entry { event: one.event, effective_level: one.effective_level, owed }
    };
    let entries = numbers.map(entry).collect();
    Intake {
        workspace: workspace.name.clone(),
        source: source.clone(),
        received_at: Clock::system().now(),
        entries,
        notices: Vec::new(),
        cursor: None,
        ended: Ended::Answered { revision: None, is_backlog: false },
    }
}
