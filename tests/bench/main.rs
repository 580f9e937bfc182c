//! `make bench`: measures the pipeline against what it is compared with, in one run, and prints what it measured.
//!
//! Absolute figures differ between machines and moments; the ratios are what to quote.

#![allow(clippy::expect_used, reason = "a measurement that cannot be made ends the run")]
#![allow(unreachable_pub, reason = "nobody imports a benchmark")]

mod deliver;
mod diff;
mod ingest;
mod latency;
mod lifecycle;
mod page;
mod plugins;
mod poll;
mod push;
mod restart;
mod retention;
mod sandbox;
mod size;
mod stream;
mod swaps;
mod waiting;
mod world;

use std::time::Duration;

use switchbell::wasm::stepping;
use tokio::runtime::Builder;

/// Rounds of everything that is compared; medians are printed.
pub const ROUNDS: usize = 5;

fn main() {
    // `cargo test` builds and runs this too, without the flag that `cargo bench` gives.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("measures only under `make bench`");
        return;
    }
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Builder::new_multi_thread();
    // As the program's own.
    let runtime = stepping(&mut builder).enable_all().build().expect("a runtime");
    runtime.block_on(poll::bare_if_asked());
    runtime.block_on(waiting::role_if_asked());
    runtime.block_on(stream::serve_if_asked());
    runtime.block_on(push::serve_if_asked());
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("cores {}, load before {}", std::thread::available_parallelism().map_or(0, usize::from), load.trim());
    // `cargo bench -- NAME` runs one part.
    let asked: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |name: &str| asked.is_empty() || asked.iter().any(|asked| asked == name);
    runtime.block_on(run(&wanted));
}

/// Runs the parts that are wanted, one after the other.
async fn run(wanted: &dyn Fn(&str) -> bool) {
    if wanted("sandbox") {
        sandbox::run().await;
    }
    if wanted("plugins") {
        plugins::run().await;
    }
    if wanted("ingest") {
        ingest::run().await;
    }
    if wanted("lifecycle") {
        lifecycle::run().await;
    }
    if wanted("size") {
        size::run().await;
    }
    if wanted("diff") {
        diff::run().await;
    }
    if wanted("page") {
        page::run().await;
    }
    if wanted("retention") {
        retention::run().await;
    }
    if wanted("restart") {
        restart::run().await;
    }
    if wanted("deliver") {
        deliver::run().await;
    }
    if wanted("latency") {
        latency::run().await;
    }
    if wanted("stream") {
        stream::run().await;
    }
    if wanted("push") {
        push::run().await;
    }
    if wanted("swaps") {
        swaps::run().await;
    }
    if wanted("reloads") {
        swaps::reloads::run().await;
    }
    if wanted("waiting") {
        waiting::run().await;
    }
    if wanted("poll") {
        poll::run().await;
    }
}

/// The median of some measurements.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// How often a second something happened.
pub fn rate(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}
