//! What deliveries see of new versions of their plugin: a steady thousand a second, while versions are swapped.
//!
//! Versions come as they do in a server: by [`Handle::load`], through the sandbox with its store of compiled code, the gate
//! with the recorded deliveries, the depot and the folder, and onto probation. Every delivery must arrive once, and every
//! attempt must deliver.

#[path = "../guests/versioned/patch.rs"]
#[allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "shared with tests, which may fail so")]
mod patch;
pub mod reloads;
mod stage;

use std::time::{Duration, Instant};

use switchbell::send::upgrade::Standing;

use crate::latency::{Noise, Probe, shown};
use stage::{Stage, version};

/// Deliveries a second.
pub const RATE: usize = 1_000;
/// How long nothing is swapped before the first swap.
const QUIET: Duration = Duration::from_secs(5);
const SWAPS: usize = 100;
/// From one swap to the next, if it is as quick as that.
const SWAP_EVERY: Duration = Duration::from_millis(120);
/// Versions that were never compiled before.
const NEW_VERSIONS: usize = 10;
const NEW_EVERY: Duration = Duration::from_millis(600);
/// What begins so much later than a swap ended may still have been held up by it.
const AFTERMATH: Duration = Duration::from_millis(10);

/// From when to when.
type Span = (Instant, Instant);

pub async fn run() {
    println!("\nversions of a plugin swapped under {RATE} deliveries a second to a sink on this machine");
    let stage = Stage::new().await;
    let load = stage.load();
    tokio::time::sleep(QUIET / 5).await;
    let (before, calm) = watched(&stage, quiet()).await;
    let turns = (1..=SWAPS).map(|turn| if turn % 2 == 1 { "1.1.0".to_owned() } else { "1.0.0".to_owned() });
    let (swaps, swapping) = watched(&stage, swapped(&stage, turns, SWAP_EVERY)).await;
    let turns = (1..=NEW_VERSIONS).map(|patch| format!("1.2.{patch}"));
    let (news, compiling) = watched(&stage, swapped(&stage, turns, NEW_EVERY)).await;
    let began = load.end().await;
    let arrived = stage.settled(began.len()).await;
    println!("  {} deliveries, each arrived once by one attempt; {} swaps", began.len(), swaps.len() + news.len());
    let seen = Timeline { began, arrived };
    println!("  nothing is swapped (spans as long as those of the swaps)");
    seen.tell(before, &windows(before, &swaps), &calm);
    println!("  {SWAPS} swaps between two versions, every {SWAP_EVERY:?}; {}", took(&swaps));
    seen.tell(whole(&swaps), &swaps, &swapping);
    println!("  {NEW_VERSIONS} versions that must be compiled, every {NEW_EVERY:?}; {}", took(&news));
    seen.tell(whole(&news), &news, &compiling);
}

/// Does this while a probe looks at the machine.
async fn watched<T>(stage: &Stage, work: impl Future<Output = T>) -> (T, Noise) {
    let probe = Probe::start(stage.path("probe"));
    let came = work.await;
    (came, tokio::task::spawn_blocking(|| probe.end()).await.expect("a probe"))
}

/// How long swaps took from the request to the answer.
fn took(swaps: &[Span]) -> String {
    let took: Vec<f64> = swaps.iter().map(|span| milliseconds(span.1.duration_since(span.0))).collect();
    format!("from the request to the answer {}", shown(&took))
}

/// A while in which nothing is swapped.
async fn quiet() -> Span {
    let began = Instant::now();
    tokio::time::sleep(QUIET).await;
    (began, Instant::now())
}

/// Has these versions run one after the other. Returns when each was asked for and ran.
async fn swapped(stage: &Stage, versions: impl Iterator<Item = String>, every: Duration) -> Vec<Span> {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut spans = Vec::new();
    for label in versions {
        let bytes = version(&label);
        ticks.tick().await;
        let began = Instant::now();
        let done = stage.handle.load(format!("{label}.wasm").into(), bytes, None).await.expect("a swap");
        assert!(matches!(done.standing, Standing::Active { before: Some(_) }) && done.version == label, "{done:?}");
        spans.push((began, Instant::now()));
    }
    spans
}

/// From the first of these to the last.
fn whole(spans: &[Span]) -> Span {
    let first = spans.first().expect("a swap");
    (first.0, spans.last().map_or(first.1, |last| last.1))
}

/// As many spans as these, each as long as its like, spread over a while in which nothing is swapped.
fn windows(over: Span, like: &[Span]) -> Vec<Span> {
    let step = over.1.duration_since(over.0) / u32::try_from(like.len()).unwrap_or(u32::MAX);
    let window = |(number, span): (u32, &Span)| {
        let began = over.0 + step * number;
        (began, began + span.1.duration_since(span.0))
    };
    (0..).zip(like).map(window).collect()
}

/// When each delivery began, and when it arrived.
struct Timeline {
    began: Vec<Instant>,
    arrived: Vec<Instant>,
}

impl Timeline {
    fn tell(&self, phase: Span, swaps: &[Span], noise: &Noise) {
        let during: Vec<f64> = self.times(phase).collect();
        let pauses: Vec<f64> = swaps.iter().filter_map(|span| self.pause(*span)).collect();
        let gap = self.gap(phase);
        println!("    event to sink: {}; the longest gap between two arrivals {gap:.1} ms", shown(&during));
        println!("    the longest of each swap's span, which is the pause it makes: {}", shown(&pauses));
        noise.tell();
    }

    /// How long what began in this span took.
    fn times(&self, span: Span) -> impl Iterator<Item = f64> {
        let all = self.began.iter().zip(&self.arrived);
        let began_in = all.filter(move |(began, _)| (span.0..span.1).contains(*began));
        began_in.map(|(began, arrived)| milliseconds(arrived.duration_since(*began)))
    }

    /// The most that any delivery took that a swap could hold up.
    fn pause(&self, swap: Span) -> Option<f64> {
        self.times((swap.0, swap.1 + AFTERMATH)).max_by(f64::total_cmp)
    }

    /// The longest time in this span in which nothing arrived.
    fn gap(&self, span: Span) -> f64 {
        let mut arrived: Vec<Instant> =
            self.arrived.iter().copied().filter(|at| (span.0..span.1).contains(at)).collect();
        arrived.sort_unstable();
        let gaps = arrived.iter().zip(arrived.iter().skip(1)).map(|(one, next)| next.duration_since(*one));
        milliseconds(gaps.max().unwrap_or_default())
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
