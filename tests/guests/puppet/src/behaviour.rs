//! What the puppet can do.

use std::fmt::Display;
use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::bindings::switchbell::delivery::types::{
    Action, Answer, Delivery, Effect, Failure, FailureKind, Pause, Receipt, Request,
};
use crate::bindings::wasi::clocks::monotonic_clock::subscribe_duration;
use crate::bindings::wasi::random::random::get_random_bytes;

/// How many steps this instance has answered.
static STEPS: AtomicU32 = AtomicU32::new(0);

/// The behaviour that settings name.
pub(crate) fn name(settings: &str) -> &str {
    settings.trim().trim_matches('"')
}

/// One step.
pub(crate) fn act(delivery: &Delivery, past: &[Effect]) -> Action {
    let steps = STEPS.fetch_add(1, Ordering::Relaxed) + 1;
    match name(&delivery.settings) {
        "deliver" => deliver(delivery, past),
        "count" if past.is_empty() => post("counting"),
        "count" => done(steps),
        "wait" if past.is_empty() => Action::Wait(Pause { seconds: 60, resume: Some("{}".into()) }),
        "wait" => done(format!("{steps} {}", past.len())),
        "loop" => spin(),
        "work" => work(),
        "allocate" => allocate(),
        "allocate-politely" => done(Vec::<u8>::new().try_reserve_exact(1 << 30).is_err()),
        "recurse" => done(recurse(0)),
        "panic" => complain_and_panic(),
        "flood" => flood(),
        "exit" => std::process::exit(3),
        "environment" => done(format!("{} {}", std::env::vars().count(), std::env::args().count())),
        "stdin" => done(std::io::stdin().read_to_end(&mut Vec::new()).unwrap_or(usize::MAX)),
        "time" => done(time()),
        "sleep" => {
            std::thread::sleep(Duration::from_secs(3600));
            done("awake")
        }
        "random" if past.is_empty() => post(&format!("{:?}", get_random_bytes(8))),
        "random" => done(format!("{:?}", get_random_bytes(8))),
        "much-random" => done(get_random_bytes(64 << 10).len()),
        "too-much-random" => done(get_random_bytes((64 << 10) + 1).len()),
        "hoard" => hoard(),
        "hash" if past.is_empty() => post(&hashed().to_string()),
        "hash" => done(hashed()),
        "heavy-body" => heavy(Request { body: vec![0; (1 << 20) + 1], ..request("") }),
        "heavy-action" => heavy(Request { body: vec![0; 8 << 20], ..request("") }),
        "many-headers" => heavy(Request { headers: vec![("a".into(), "b".into()); 65], ..request("") }),
        "long-url" => heavy(Request { url: "x".repeat((8 << 10) + 1), ..request("") }),
        "bad-extras" => heavy(Request { extras: "nothing".into(), ..request("") }),
        "bad-resume" => failed("", Some("{".into())),
        "long-reason" => failed(&"\u{1b}[2Jlong\n".repeat(10_000), None),
        other => failed(&format!("no such behaviour: {other}"), None),
    }
}

/// Never returns.
pub(crate) fn spin() -> ! {
    loop {
        black_box(());
    }
}

fn deliver(delivery: &Delivery, past: &[Effect]) -> Action {
    let Some(effect) = past.last() else {
        let titles = delivery.notifications.iter().map(|notification| notification.title.as_str());
        return post(&titles.collect::<Vec<_>>().join("\n"));
    };
    match &effect.answer {
        Answer::Http(Ok(response)) if response.status == 200 => done(String::from_utf8_lossy(&response.body)),
        Answer::Http(Ok(response)) => failed(&format!("HTTP {}", response.status), None),
        _ => failed("no answer", None),
    }
}

/// Opens handles and closes none.
fn hoard() -> ! {
    loop {
        std::mem::forget(subscribe_duration(1));
    }
}

/// Computes for some tens of milliseconds, then goes on.
fn work() -> Action {
    let mut sum = 0_u64;
    for number in 0..20_000_000_u64 {
        sum = black_box(sum.wrapping_add(number));
    }
    post(&sum.to_string())
}

fn allocate() -> ! {
    let mut blocks = Vec::new();
    loop {
        blocks.push(black_box(vec![1_u8; 1 << 20]));
    }
}

#[allow(unconditional_recursion, reason = "that is the point")]
fn recurse(depth: u64) -> u64 {
    black_box(recurse(black_box(depth + 1))) + 1
}

#[expect(clippy::panic, reason = "that is the point")]
fn complain_and_panic() -> ! {
    eprintln!("first \u{1b}[31mred\u{1b}[0m");
    panic!("the channel\nis on fire")
}

fn flood() -> Action {
    let line = [b'x'; 1 << 10];
    for _ in 0..256 {
        let _ = std::io::stdout().write_all(&line);
        let _ = std::io::stderr().write_all(&line);
    }
    eprintln!("the last words");
    done("flooded")
}

#[expect(clippy::disallowed_methods, reason = "shows what the sandbox lets a plugin see")]
fn time() -> String {
    let start = Instant::now();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    format!("{since} {}", start.elapsed().as_nanos())
}

/// Depends on the seed of hash tables.
fn hashed() -> u64 {
    RandomState::new().hash_one(1)
}

fn request(body: &str) -> Request {
    Request {
        method: "POST".into(),
        url: "https://hooks.example.com/".into(),
        headers: vec![("content-type".into(), "text/plain".into())],
        body: body.into(),
        sign: vec![],
        timeout_ms: None,
        response_max: None,
        extras: "{}".into(),
    }
}

fn post(body: &str) -> Action {
    Action::Http(request(body))
}

fn heavy(request: Request) -> Action {
    Action::Http(request)
}

fn done(note: impl Display) -> Action {
    Action::Done(Receipt { reference: None, note: Some(note.to_string()), remember: None, extras: "{}".into() })
}

fn failed(reason: &str, resume: Option<String>) -> Action {
    let kind = FailureKind::Reject;
    Action::Failed(Failure { kind, reason: reason.into(), after_seconds: None, resume, extras: "{}".into() })
}
