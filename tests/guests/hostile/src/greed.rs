//! Takes more than it is given: time, memory, stack, handles, steps, words.

use std::hint::black_box;
use std::io::{Read, Write};

use crate::Asked;
use crate::answers::{done, reported, request};
use crate::bindings::switchbell::delivery::types::{Action, Pause};
use crate::bindings::wasi::cli::stderr::get_stderr;
use crate::bindings::wasi::clocks::monotonic_clock::subscribe_duration;

/// What standard streams take in one call.
const WRITE_BYTES_MAX: usize = 64 << 10;

pub(crate) fn act(asked: &Asked<'_>) -> Option<Action> {
    let at = asked.settings.text("at");
    Some(match asked.does {
        "loop" => spin(),
        "loop-after-an-effect" if asked.past.is_empty() => Action::Http(request(at)),
        "loop-after-an-effect" => spin(),
        "allocate" => allocate(),
        "recurse" => done(&recurse(u64::MAX).to_string()),
        "recurse-a-little" => done(&recurse(1_000).to_string()),
        "hoard" => hoard(),
        "hold-some" => done(&held(900).to_string()),
        "write-much" => done(&write(WRITE_BYTES_MAX)),
        "write-too-much" => done(&write(WRITE_BYTES_MAX + 1)),
        "flood" => flood(),
        "flood-and-panic" => flood_and_panic(),
        "for-ever" => Action::Http(request(at)),
        "wait-for-ever" => Action::Wait(Pause { seconds: u32::MAX, resume: None }),
        "wait-again-and-again" => Action::Wait(Pause { seconds: 0, resume: None }),
        "environment" => done(&format!("{} {}", std::env::vars().count(), std::env::args().count())),
        "read-input" => done(&std::io::stdin().read_to_end(&mut Vec::new()).unwrap_or(usize::MAX).to_string()),
        "ask-and-tell" if asked.past.is_empty() => Action::Http(request(at)),
        "ask-and-tell" => reported(asked.past),
        _ => return None,
    })
}

/// Never returns.
pub(crate) fn spin() -> ! {
    loop {
        black_box(());
    }
}

pub(crate) fn allocate() -> ! {
    let mut blocks = Vec::new();
    loop {
        blocks.push(black_box(vec![1_u8; 1 << 20]));
    }
}

fn recurse(depth: u64) -> u64 {
    if depth == 0 { 0 } else { black_box(recurse(black_box(depth - 1))) + 1 }
}

fn hoard() -> ! {
    loop {
        std::mem::forget(subscribe_duration(1));
    }
}

fn held(count: usize) -> usize {
    let handles: Vec<_> = (0..count).map(|_| subscribe_duration(1)).collect();
    handles.len()
}

fn write(bytes: usize) -> String {
    let written = get_stderr().write(&vec![b'x'; bytes]);
    if written.is_ok() { format!("{bytes} bytes") } else { "refused".to_owned() }
}

fn flood() -> Action {
    let line = [b'x'; 1 << 10];
    for _ in 0..1024 {
        let _ = std::io::stderr().write_all(&line);
    }
    done("flooded")
}

#[expect(clippy::panic, reason = "that is the point")]
fn flood_and_panic() -> ! {
    flood();
    panic!("the last words")
}
