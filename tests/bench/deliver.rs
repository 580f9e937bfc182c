//! Deliveries a second through the Slack plugin to a sink on this machine, next to bare requests of the same body.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};
use switchbell::clock::Clock;
use switchbell::config::Config;
use switchbell::inbox::book::{Book, QueueKey, Rule};
use switchbell::inbox::delivery::{Cause, Outcome};
use switchbell::inbox::{Claim, DeliveryId, Ended, Fence, Inbox, Intake};
use switchbell::route::entry;
use switchbell::send::effect::Effects;
use switchbell::send::keys::Keys;
use switchbell::send::queue::Queues;
use switchbell::send::{Came, Current, Dispatcher, IN_FLIGHT_MAX, Live, Means, Stop, book};
use switchbell::telemetry::{Happening, Observer};
use switchbell::wasm::Catalog;
use tokio::sync::Notify;

use crate::world::{World, name, notification, slack};
use crate::{ROUNDS, median, rate};

const DELIVERIES: usize = 8_000;

pub async fn run() {
    let world = World::new(1).await;
    let catalog = world.catalog().await;
    slack(&catalog).await;
    let means = means(&world, &catalog, Arc::new(world.inbox("attempts.db"))).await;
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
        let (mut delivered_cpu, mut posted_cpu) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let before = cpu_time();
            let ours = {
                let (means, claim) = (Arc::clone(&means), Arc::clone(&claim));
                concurrently(in_flight, count, move || attempt(Arc::clone(&means), Arc::clone(&claim))).await
            };
            let between = cpu_time();
            let theirs = {
                let (bare, url) = (bare.clone(), url.clone());
                concurrently(in_flight, count, move || post(bare.clone(), url.clone())).await
            };
            delivered_cpu.push((between - before).as_secs_f64() * 1e6 / count as f64);
            posted_cpu.push((cpu_time() - between).as_secs_f64() * 1e6 / count as f64);
            delivered.push(ours);
            posted.push(theirs);
            ratios.push(100.0 * ours / theirs);
        }
        println!(
            "  {in_flight:>2} in flight: {:>7.0} deliveries/s, {:>7.0} bare requests/s: {:.0} %; CPU {:.0} and {:.0} µs, sink included",
            median(delivered),
            median(posted),
            median(ratios),
            median(delivered_cpu),
            median(posted_cpu)
        );
    }
    whole_path(&world, &catalog).await;
}

/// The CPU time that the process has used, the sink's included.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap_or_default()
}

pub async fn means(world: &World, catalog: &Catalog, inbox: Arc<dyn Inbox>) -> Arc<Means> {
    let (clock, keys) = (Clock::system(), Keys::new(&inbox.key()));
    let book = Arc::new(unpaced(&world.config, catalog, &keys).await);
    Arc::new(Means {
        live: Live::new(Current { config: Arc::clone(&world.config), catalog: catalog.clone(), book }),
        effects: Effects::new(&world.config, &clock).expect("effects"),
        queues: Queues::new(clock.clone(), IN_FLIGHT_MAX),
        clock,
        keys,
        inbox,
    })
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
    let came = means.attempt(&claim, Clock::system().now(), &Stop::default()).await;
    assert!(matches!(&came, Came::Ended(ended) if ended.outcome == Outcome::Delivered), "{came:?}");
}

async fn post(client: reqwest::Client, url: String) {
    // As large as what the plugin renders.
    let answer = client.post(url).header("content-type", "application/json").body("x".repeat(900)).send().await;
    assert!(answer.expect("an answer").status().is_success());
}

fn claim(target: &str) -> Claim {
    Claim {
        id: DeliveryId { store: "00000000".into(), number: 1 },
        fence: Fence::default(),
        queue: QueueKey { workspace: name("acme"), route: name("news"), target: target.into() },
        plugin: name("slack"),
        attempt: NonZeroU32::MIN,
        since: Timestamp::UNIX_EPOCH,
        due_at: Timestamp::UNIX_EPOCH,
        cause: Cause::First,
        notifications: vec![notification(1)],
        omitted: 0,
        resume: None,
        memory: None,
        begun: None,
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

/// The targets without their lanes: Slack's own pace, a message a second, would be all that is measured.
async fn unpaced(config: &Config, catalog: &Catalog, keys: &Keys) -> Book {
    let paced = book(config, catalog, keys).await.0;
    Book::new(paced.rules().map(|rule| Rule { lanes: Vec::new(), ..Rule::clone(rule) }))
}

/// From the committed event through claim, plugin and sink to the recorded outcome.
async fn whole_path(world: &World, catalog: &Catalog) {
    let (mut rates, mut cpu) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let inbox: Arc<dyn Inbox> = Arc::new(world.inbox(&format!("whole-{round}.db")));
        let means = means(world, catalog, Arc::clone(&inbox)).await;
        let counter = Arc::new(Counter::default());
        let stop = Stop::default();
        let dispatcher = Dispatcher::start(means, counter.clone()).await.expect("a dispatcher");
        let running = tokio::spawn(dispatcher.run(stop.clone()));
        let (began, before) = (Instant::now(), cpu_time());
        for first in (0..DELIVERIES).step_by(500) {
            inbox.accept(intake(world, first..first + 500)).await.expect("a write");
        }
        counter.all.notified().await;
        rates.push(rate(DELIVERIES, began.elapsed()));
        cpu.push((cpu_time() - before).as_secs_f64() * 1e6 / DELIVERIES as f64);
        stop.soon.cancel();
        running.await.expect("the dispatcher");
    }
    let (rate, cpu) = (median(rates), median(cpu));
    println!("  whole path, event to recorded delivery, sink included: {rate:.0} events/s; CPU {cpu:.0} µs an event");
}

fn intake(world: &World, numbers: std::ops::Range<usize>) -> Intake {
    let workspace = world.config.workspaces.get("acme").expect("a workspace");
    let source = name("registrar");
    let entry = |number: usize| {
        let one = notification(number as u64);
        entry(one.event, one.effective_level, (workspace, &source)).0
    };
    let entries = numbers.map(entry).collect();
    Intake {
        is_first: false,
        workspace: workspace.name.clone(),
        source: source.clone(),
        received_at: Clock::system().now(),
        entries,
        notices: Vec::new(),
        cursor: None,
        ended: Ended::Answered { revision: None, is_backlog: false },
    }
}
