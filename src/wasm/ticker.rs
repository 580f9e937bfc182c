//! The heartbeat that lets running steps be looked at. It stops while nothing runs and ends with its owner.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Thread};

use wasmtime::{Engine, EngineWeak};

use super::limits::TICK;

/// Ticks without a running step after which the thread rests, so that a busy host need not wake it for every step and
/// an idle one is not woken a hundred times a second.
const IDLE_TICKS_MAX: u32 = 100;

/// Advances the engine's epoch every [`TICK`] while steps run.
#[derive(Debug)]
pub(super) struct Ticker {
    pulse: Arc<Pulse>,
    thread: Thread,
}

#[derive(Debug, Default)]
struct Pulse {
    running: AtomicUsize,
    stopped: AtomicBool,
}

/// A step runs while this lives.
#[derive(Debug)]
pub(super) struct Running<'a>(&'a Pulse);

impl Ticker {
    pub(super) fn start(engine: &Engine) -> std::io::Result<Self> {
        let pulse = Arc::new(Pulse::default());
        let (engine, shared) = (engine.weak(), Arc::clone(&pulse));
        let thread = thread::Builder::new().name("sandbox-tick".into()).spawn(move || tick(&engine, &shared))?;
        Ok(Self { pulse, thread: thread.thread().clone() })
    }

    /// Makes sure that the epoch advances until the guard is dropped.
    pub(super) fn running(&self) -> Running<'_> {
        if self.pulse.running.fetch_add(1, Ordering::SeqCst) == 0 {
            self.thread.unpark();
        }
        Running(&self.pulse)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.pulse.stopped.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

fn tick(engine: &EngineWeak, pulse: &Pulse) {
    let mut idle_ticks = 0;
    while !pulse.stopped.load(Ordering::SeqCst) {
        idle_ticks = if pulse.running.load(Ordering::SeqCst) == 0 { idle_ticks + 1 } else { 0 };
        if idle_ticks > IDLE_TICKS_MAX {
            thread::park();
            idle_ticks = 0;
        }
        let Some(engine) = engine.upgrade() else { return };
        engine.increment_epoch();
        drop(engine);
        thread::sleep(TICK);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;
    use std::time::{Duration, Instant};

    use super::*;

    fn ends(pulse: &Weak<Pulse>) -> bool {
        let deadline = Instant::now() + Duration::from_secs(60);
        while pulse.strong_count() > 0 && Instant::now() < deadline {
            thread::yield_now();
        }
        pulse.strong_count() == 0
    }

    #[test]
    fn the_thread_ends_with_its_owner() {
        let engine = Engine::default();
        let ticker = Ticker::start(&engine).unwrap();
        let pulse = Arc::downgrade(&ticker.pulse);
        drop(ticker);
        assert!(ends(&pulse));
    }

    #[test]
    fn the_thread_ends_with_the_engine_while_a_step_seems_to_run() {
        let engine = Engine::default();
        let ticker = Ticker::start(&engine).unwrap();
        let pulse = Arc::downgrade(&ticker.pulse);
        std::mem::forget(ticker.running());
        drop(engine);
        let deadline = Instant::now() + Duration::from_secs(60);
        while pulse.strong_count() > 1 && Instant::now() < deadline {
            thread::yield_now();
        }
        assert_eq!(pulse.strong_count(), 1);
    }
}
