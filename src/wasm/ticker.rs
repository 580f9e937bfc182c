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
    /// Whether the thread has gone, or is about to go, to rest and must be woken.
    resting: AtomicBool,
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
        self.pulse.running.fetch_add(1, Ordering::SeqCst);
        if self.pulse.resting.load(Ordering::SeqCst) {
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

impl Pulse {
    fn is_idle(&self) -> bool {
        self.running.load(Ordering::SeqCst) == 0
    }

    /// Waits for a step to run. A step that begins meanwhile either sees the mark and wakes the thread, or is seen.
    fn rest(&self) {
        self.resting.store(true, Ordering::SeqCst);
        if self.is_idle() && !self.stopped.load(Ordering::SeqCst) {
            thread::park();
        }
        self.resting.store(false, Ordering::SeqCst);
    }
}

fn tick(engine: &EngineWeak, pulse: &Pulse) {
    let mut idle_ticks = 0;
    while !pulse.stopped.load(Ordering::SeqCst) {
        idle_ticks = if pulse.is_idle() { idle_ticks + 1 } else { 0 };
        if idle_ticks > IDLE_TICKS_MAX {
            pulse.rest();
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
    use std::time::{Duration, Instant};

    use super::*;

    /// Returns once `condition` holds, which it must within a minute.
    fn wait_until(condition: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !condition() {
            assert!(Instant::now() < deadline);
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn the_thread_ends_with_its_owner() {
        let engine = Engine::default();
        let ticker = Ticker::start(&engine).unwrap();
        let pulse = Arc::downgrade(&ticker.pulse);
        drop(ticker);
        wait_until(|| pulse.strong_count() == 0);
    }

    #[test]
    fn the_thread_ends_with_the_engine_even_while_a_step_runs() {
        let engine = Engine::default();
        let ticker = Ticker::start(&engine).unwrap();
        let _running = ticker.running();
        drop(engine);
        wait_until(|| Arc::strong_count(&ticker.pulse) == 1);
    }

    #[test]
    fn the_thread_rests_while_nothing_runs_and_wakes_for_a_step() {
        let engine = Engine::default();
        let ticker = Ticker::start(&engine).unwrap();
        let resting = || ticker.pulse.resting.load(Ordering::SeqCst);
        wait_until(resting);
        let running = ticker.running();
        wait_until(|| !resting());
        drop(running);
        wait_until(resting);
    }
}
