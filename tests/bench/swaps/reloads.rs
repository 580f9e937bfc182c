//! What deliveries see of reloads: the same steady load, while the configuration is read and swapped. Each differs by a
//! route, so that plugins are asked, targets come and go, and the store takes up another book.

use std::sync::Arc;
use std::time::{Duration, Instant};

use switchbell::config;

use super::stage::Stage;
use super::{QUIET, Span, Timeline, quiet, took, watched, whole, windows};
use crate::median;

const RELOADS: usize = 100;
/// From one reload to the next, if it is as quick as that.
const RELOAD_EVERY: Duration = Duration::from_millis(100);

pub async fn run() {
    println!("\nthe configuration reloaded under {} deliveries a second to a sink on this machine", super::RATE);
    let stage = Stage::new().await;
    let load = stage.load();
    tokio::time::sleep(QUIET / 5).await;
    let (before, calm) = watched(&stage, quiet()).await;
    let (reloads, reloading) = watched(&stage, reloaded(&stage)).await;
    let began = load.end().await;
    let arrived = stage.settled(began.len()).await;
    println!("  {} deliveries, each arrived once by one attempt; {} reloads", began.len(), reloads.len());
    let seen = Timeline { began, arrived };
    let like = windows(before, &reloads);
    println!("  nothing is reloaded (spans as long as those of the reloads)");
    seen.tell(before, &like, &calm);
    println!("  {RELOADS} reloads, every {RELOAD_EVERY:?}; {}", took(&reloads));
    seen.tell(whole(&reloads), &reloads, &reloading);
    let pause = |spans: &[Span]| percentile(spans.iter().filter_map(|span| seen.pause(*span)).collect());
    let (with, without) = (pause(&reloads), pause(&like));
    let all = |span| percentile(seen.times(span).collect());
    println!(
        "  event to sink, p99: {:.2} times that without reloads; the p99 of the pauses: {:.2} times",
        all(whole(&reloads)) / all(before),
        with / without
    );
    println!(
        "  a reload from its files to the answer, median: {:.1} ms",
        median(reloads.iter().map(milliseconds).collect())
    );
}

fn milliseconds(span: &Span) -> f64 {
    super::milliseconds(span.1.duration_since(span.0))
}

/// The 99th percentile.
fn percentile(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() * 99 / 100).or(values.last()).copied().unwrap_or(f64::NAN)
}

async fn reloaded(stage: &Stage) -> Vec<Span> {
    let file = stage.path("workspaces/acme.yaml");
    let base = std::fs::read_to_string(&file).expect("a file");
    let mut ticks = tokio::time::interval(RELOAD_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut spans = Vec::new();
    for number in 0..RELOADS {
        let route = format!(
            "  - {{ name: other, owner: a@example.com, when: {{ name: \"other.*\" }}, deliver: [ {{ plugin: versioned, \
             with: {{ url: \"http://127.0.0.1:9/{number}\" }} }} ] }}\n"
        );
        let text = if number % 2 == 0 { format!("{base}{route}") } else { base.clone() };
        std::fs::write(&file, text).expect("a file");
        ticks.tick().await;
        let began = Instant::now();
        let operator = stage.path("switchbell.yaml");
        let read = tokio::task::spawn_blocking(move || config::load(&operator, &|_| None)).await.expect("a reading");
        let config = Arc::new(read.expect("a configuration").config);
        let came = stage.handle.configure(config).await.expect("a reload");
        assert!(came.cancelled.is_empty(), "{came:?}");
        spans.push((began, Instant::now()));
    }
    spans
}
