//! What an attempt costs by part, and what plugins cost that are loaded beside: time of an attempt, memory, compilation.

use std::fs;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::json;
use switchbell::config::Limits;
use switchbell::send::effect::Permission;
use switchbell::send::effect::guard::{Fetched, judge};
use switchbell::send::effect::secret::{Occasion, Sealed, seal};
use switchbell::send::keys::Keys;
use switchbell::wasm::{Action, Plugin, Request, Sandbox, Settings, convert};

use crate::sandbox::{answered, delivery};
use crate::world::{World, name, notification, plugin_path};
use crate::{ROUNDS, median};

const ATTEMPTS: usize = 5_000;

pub async fn run() {
    sizes();
    let world = World::new(1).await;
    let bytes = fs::read(plugin_path()).expect("the Slack plugin");
    let sandbox = Sandbox::new(Settings::new(Limits::default())).expect("a sandbox");
    let mut loaded = Vec::new();
    println!("\nplugins loaded beside each other (copies of the Slack plugin), attempts going round them");
    for count in [1, 10, 50] {
        let (before, began, earlier) = (resident_kib(), Instant::now(), loaded.len());
        while loaded.len() < count {
            loaded.push(sandbox.load(bytes.clone()).await.expect("a plugin"));
        }
        let new = (count - earlier) as f64;
        let each_kib = resident_kib().saturating_sub(before) as f64 / new;
        let each_ms = began.elapsed().as_secs_f64() * 1e3 / new;
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            rounds.push(parts(&world, &loaded).await.whole());
        }
        println!(
            "  {count:>2}: {:6.1} µs an attempt; each new one {each_kib:.0} KiB, compiled and described in {each_ms:.0} ms",
            median(rounds)
        );
    }
    let Parts { seal, first, judge, second, drop } = parts(&world, &loaded).await;
    println!(
        "  by part: settings sealed {seal:.1}, instance and first step {first:.1}, judged {judge:.1}, second step {second:.1}, \
         dropped {drop:.1} µs"
    );
}

/// The first-party components.
fn sizes() {
    println!("\ncomponents");
    let folder = plugin_path().parent().expect("a folder").to_owned();
    let mut files: Vec<_> = fs::read_dir(folder).expect("plugins").map(|entry| entry.expect("a plugin")).collect();
    files.sort_by_key(std::fs::DirEntry::file_name);
    for file in files {
        let bytes = file.metadata().expect("its size").len();
        println!("  {:<16} {:6.1} KB", file.file_name().display(), bytes as f64 / 1e3);
    }
}

/// Microseconds of each part of an attempt.
#[derive(Default)]
struct Parts {
    seal: f64,
    first: f64,
    judge: f64,
    second: f64,
    drop: f64,
}

impl Parts {
    fn whole(&self) -> f64 {
        self.seal + self.first + self.judge + self.second + self.drop
    }
}

/// On an async thread, where steps of quick plugins run in place.
async fn parts(world: &World, plugins: &[Plugin]) -> Parts {
    let (config, plugins) = (std::sync::Arc::clone(&world.config), plugins.to_vec());
    let there = tokio::spawn(async move {
        let (settings, keys) = (json!({"webhook": {"secret": "hook"}}), Keys::new(&[7; 32]));
        let (slack, acme, news) = (name("slack"), name("acme"), name("news"));
        let grant = config.plugins.grants.get(&slack).expect("a grant");
        let one = notification(1);
        let mut spent = [Duration::ZERO; 5];
        for plugin in plugins.iter().cycle().take(ATTEMPTS) {
            let began = Instant::now();
            let occasion = Occasion { keys: &keys, delivery: "00000000-1", attempt: 1 };
            let Sealed { settings, seals } = seal(&settings, &config.secrets, occasion).expect("the secret");
            let permission = Permission {
                plugin: &slack,
                workspace: &acme,
                route: &news,
                grant,
                seals: &seals,
                delivery: "00000000-1",
                due_at: Timestamp::UNIX_EPOCH,
                on_behalf_of: "a@example.com",
            };
            let sealed = Instant::now();
            let mut attempt = plugin.attempt(delivery(&settings, convert::notification(&one, false)));
            let request = asked(attempt.step().await.expect("a first step"));
            let stepped = Instant::now();
            let fetched = Fetched::new();
            judge(request, &permission, &fetched).expect("a good request");
            let judged = Instant::now();
            attempt.answer(answered());
            let action = attempt.step().await.expect("a second step");
            assert!(matches!(action, Action::Done(_)), "{action:?}");
            let stepped_again = Instant::now();
            drop(attempt);
            let moments = [began, sealed, stepped, judged, stepped_again, Instant::now()];
            for (spent, pair) in spent.iter_mut().zip(moments.windows(2)) {
                *spent += pair.last().expect("an end").duration_since(*pair.first().expect("a beginning"));
            }
        }
        spent
    });
    let [seal, first, judge, second, drop] =
        there.await.expect("attempts").map(|spent| spent.as_secs_f64() * 1e6 / ATTEMPTS as f64);
    Parts { seal, first, judge, second, drop }
}

fn asked(action: Action) -> Request {
    let request = if let Action::Http(request) = action { Some(request) } else { None };
    request.expect("a request")
}

/// Memory of this process that is in use.
fn resident_kib() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("the process's status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    line.split_whitespace().next().and_then(|kib| kib.parse().ok()).expect("a number")
}
