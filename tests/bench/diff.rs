//! A million notifications decided under two configurations, beside a server that writes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use switchbell::clock::later;
use switchbell::config::{self, Config, Workspace};
use switchbell::inbox::sqlite::SqliteInbox;
use switchbell::inbox::walk::walk;
use switchbell::inbox::{Ended, Entry, Inbox, Intake};
use switchbell::notification::{Event, Level, Name};
use switchbell::route::diff::{Diff, Simulation};

use crate::world::{World, name, notification};

/// Notifications in the inbox.
const NOTIFICATIONS: u64 = 1_000_000;
/// Events of one write while the inbox is filled.
const FILLED_AT_ONCE: u64 = 5_000;
/// Events of one write while differences are looked for, as a server with much to do writes.
const WRITTEN_AT_ONCE: u64 = 50;
/// Routes of each configuration.
const ROUTES: usize = 100;

pub async fn run() {
    println!(
        "\ndiff: {NOTIFICATIONS} notifications under two configurations of {ROUTES} routes, a server writing beside"
    );
    let (old, new) = (World::new(ROUTES).await, World::new(ROUTES - 1).await);
    let path = old.path("diff.db");
    let began = Instant::now();
    let inbox: Arc<SqliteInbox> = Arc::new(old.inbox("diff.db"));
    for first in (0..NOTIFICATIONS).step_by(FILLED_AT_ONCE as usize) {
        write(&inbox, first, FILLED_AT_ONCE).await;
    }
    println!("  filled in {:.1} s, {} MiB", began.elapsed().as_secs_f64(), size(&path) >> 20);
    let (old_config, new_config) = (timed(&old, "collect: { by: subject, wait: 10m }"), timed(&new, TIMING));
    let alone = beside_a_writer(&inbox, &path, tokio::time::sleep(Duration::from_secs(2))).await.1;
    println!("  {:<24} {alone}", "nobody looks");
    for is_simulated in [false, true] {
        let reader = SqliteInbox::open_to_read(&path).expect("a store");
        let began = Instant::now();
        let look = async {
            let found = diff(&reader, (&old_config, &new_config), is_simulated).await;
            (found, began.elapsed())
        };
        let (((decided, different), took), meanwhile) = beside_a_writer(&inbox, &path, look).await;
        let what = if is_simulated { "decided and simulated" } else { "decided" };
        let took = took.as_secs_f64();
        println!("  {what:<24} {took:>6.2} s for {decided} notifications, {different} of them different; {meanwhile}");
    }
}

/// Does something while a server writes; what came of it, and of the writing in words.
async fn beside_a_writer<T>(inbox: &Arc<SqliteInbox>, path: &Path, work: impl Future<Output = T>) -> (T, String) {
    let (stop, most) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let writer = go_on_writing(Arc::clone(inbox), Arc::clone(&stop), path.to_owned(), Arc::clone(&most));
    let writer = tokio::spawn(writer);
    let done = work.await;
    stop.store(true, Ordering::SeqCst);
    let written = writer.await.expect("a writer");
    let most = most.load(Ordering::SeqCst) >> 10;
    (done, format!("{written} written meanwhile, write-ahead log {most} KiB at most"))
}

/// Timing with every stage that gathers.
const TIMING: &str = "collect: { by: subject, wait: 5m }, at_most: { count: 100, per: 1h }, \
                      hold: { from: \"22:00\", to: \"07:00\", zone: UTC, except: urgent }";

/// The configuration with this timing at the target that most goes to.
fn timed(world: &World, timing: &str) -> Config {
    let file = world.path("workspaces/acme.yaml");
    let text = std::fs::read_to_string(&file).expect("a file");
    let with = "with: { webhook: { secret: hook } }";
    std::fs::write(file, text.replacen(with, &format!("{with}, {timing}"), 1)).expect("a file");
    let environment = |name: &str| (name == "HOOK").then(|| "http://127.0.0.1:9/services/T0/B0/x".into());
    config::load(&world.path("switchbell.yaml"), &environment).expect("a configuration").config
}

async fn diff(inbox: &SqliteInbox, (old, new): (&Config, &Config), is_simulated: bool) -> (u64, u64) {
    let acme = name("acme");
    let of = |config| workspace(config, &acme);
    let (old, new) = (of(old), of(new));
    let mut diff = Diff::new(old, new, 3);
    let mut simulation = is_simulated.then(|| Simulation::new(old, new));
    let span = (Timestamp::UNIX_EPOCH, Timestamp::MAX);
    let looked = walk(inbox, &acme, span, |known| {
        let decided = diff.add(known);
        if let Some(simulation) = &mut simulation {
            simulation.add(known, &decided);
        }
    });
    looked.await.expect("a read");
    (diff.totals().notifications, diff.totals().different)
}

fn workspace<'a>(config: &'a Config, name: &Name) -> &'a Workspace {
    config.workspaces.get(name).expect("a workspace")
}

/// Writes as fast as it can; returns how many, and notes how long the log was at most.
async fn go_on_writing(
    inbox: Arc<SqliteInbox>,
    stop: Arc<AtomicBool>,
    path: std::path::PathBuf,
    most: Arc<AtomicU64>,
) -> u64 {
    let log = path.with_extension("db-wal");
    let start = NOTIFICATIONS + u64::from(std::process::id()) * 1_000_000_000 + most_recent();
    let mut written = 0;
    while !stop.load(Ordering::SeqCst) {
        write(&inbox, start + written, WRITTEN_AT_ONCE).await;
        written += WRITTEN_AT_ONCE;
        most.fetch_max(size(&log), Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    written
}

/// A number that no writer used before.
fn most_recent() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(100_000_000, Ordering::SeqCst)
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}

async fn write(inbox: &SqliteInbox, first: u64, count: u64) {
    let mut names = ["domain.active", "domain.lapsed", "reply.received", "service99.a.failed"].into_iter().cycle();
    let mut levels = Level::ALL.into_iter().cycle();
    let entry = |number: u64| {
        let event = Event {
            event_id: format!("e{number}"),
            name: names.next().unwrap_or_default().to_owned(),
            subject: Some(format!("customer-{}.example", number % 20_000)),
            level: levels.next().unwrap_or(Level::Info),
            ..notification(number).event
        };
        Entry { event, effective_level: Level::Attention, owed: Vec::new(), consumers: Vec::new() }
    };
    let intake = Intake {
        workspace: name("acme"),
        source: name("registrar"),
        received_at: later(Timestamp::UNIX_EPOCH, Duration::from_millis(first * 600)),
        is_first: false,
        entries: (first..first + count).map(entry).collect(),
        notices: Vec::new(),
        cursor: None,
        ended: Ended::Answered { revision: None, is_backlog: false },
    };
    inbox.accept(intake).await.expect("a write");
}
