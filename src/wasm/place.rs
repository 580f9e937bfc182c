//! Where the steps of a plugin run: on threads of their own, or, once it has shown that it is quick, in place: on the
//! async thread that asks, which saves handing the step over and being woken for its answer.
//!
//! A step in place holds up everything else on its thread, so:
//!
//! - only threads that [`stepping`] prepared run steps in place, and no more steps at once than the machine runs threads;
//! - a new plugin starts on the threads, and [`TRIAL_STEPS`] quick steps in a row there admit it;
//! - a step in place that takes longer than [`IN_PLACE_TIME_MAX`] is interrupted at the next tick and made again on the
//!   threads, in a fresh instance: the same input gives the same answer. So it holds up its thread for at most
//!   [`IN_PLACE_TIME_MAX`] and one [`TICK`](super::limits::TICK), 11 ms, however the plugin loops;
//! - whatever took so long in place, for whatever reason, is on trial again; a step on the threads that used more CPU time
//!   than that, such as the one that is made again, sends the plugin there for its next [`SLOW_STEPS`] quick steps.
//!
//! So a plugin that loops now and then holds up each async thread once, and not again before [`SLOW_STEPS`] quick steps.
//! One whose steps end within those 11 ms by themselves, and so between two ticks, may do so once in [`TRIAL_STEPS`].

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Builder;

use super::threads::THREAD_STACK_BYTES;

/// The longest that a quick step takes: a usual one takes a hundredth of it.
pub(super) const IN_PLACE_TIME_MAX: Duration = Duration::from_millis(1);

/// Quick steps on the threads that admit a plugin.
pub(super) const TRIAL_STEPS: u32 = 16;

/// Quick steps on the threads that admit a plugin again after a slow one.
pub(super) const SLOW_STEPS: u32 = 1_000;

thread_local! {
    static MAY_STEP: Cell<bool> = const { Cell::new(false) };
}

/// Has steps of quick plugins run on the threads of the runtime that is built: sets their stack, which is what a step
/// needs, and what they do when they start. On any other thread nothing changes, and steps run on threads of their own.
pub fn stepping(builder: &mut Builder) -> &mut Builder {
    builder.thread_stack_size(THREAD_STACK_BYTES).on_thread_start(|| MAY_STEP.set(true))
}

/// Whether this thread has the stack that a step needs.
pub(super) fn may_step_here() -> bool {
    MAY_STEP.get()
}

/// How quick the steps of one plugin are.
#[derive(Debug)]
pub(super) struct Pace {
    /// Quick steps still to be made on the threads.
    trial: AtomicU32,
}

impl Pace {
    /// Of a plugin that nothing is known of.
    pub(super) fn new() -> Self {
        Self { trial: AtomicU32::new(TRIAL_STEPS) }
    }

    /// Whether its steps may run in place.
    pub(super) fn is_quick(&self) -> bool {
        self.trial.load(Ordering::Relaxed) == 0
    }

    /// A step on the threads used so much CPU time.
    pub(super) fn used(&self, cpu: Duration) {
        if cpu > IN_PLACE_TIME_MAX {
            self.trial.store(SLOW_STEPS, Ordering::Relaxed);
        } else {
            let one_less = |trial: u32| trial.checked_sub(1);
            let _none_is_left = self.trial.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
        }
    }

    /// A step in place began then and ends now. What it took is no CPU time, which costs a system call to ask for: a
    /// busy machine makes quick steps seem slow, and a short trial tells them apart.
    pub(super) fn ended(&self, began: Instant) {
        if began.elapsed() > IN_PLACE_TIME_MAX {
            self.trial.fetch_max(TRIAL_STEPS, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_quick_after_a_trial_and_slow_for_long_after_a_slow_step() {
        let pace = Pace::new();
        let quick_after = || {
            let mut steps = 0;
            while !pace.is_quick() {
                pace.used(IN_PLACE_TIME_MAX);
                steps += 1;
            }
            steps
        };
        assert_eq!(quick_after(), TRIAL_STEPS);
        pace.used(Duration::ZERO);
        assert!(pace.is_quick());
        pace.used(IN_PLACE_TIME_MAX + Duration::from_nanos(1));
        assert_eq!(quick_after(), SLOW_STEPS);
        pace.ended(Instant::now());
        assert!(pace.is_quick());
        let long_ago = Instant::now().checked_sub(IN_PLACE_TIME_MAX * 2).unwrap();
        pace.ended(long_ago);
        assert_eq!(quick_after(), TRIAL_STEPS);
        pace.used(Duration::MAX);
        pace.ended(long_ago);
        assert_eq!(quick_after(), SLOW_STEPS);
    }

    #[test]
    fn only_threads_that_were_prepared_run_steps() {
        assert!(!may_step_here());
        let runtime = stepping(&mut Builder::new_multi_thread()).worker_threads(1).build().unwrap();
        let here = runtime.block_on(async { tokio::spawn(async { may_step_here() }).await.unwrap() });
        assert!(here && !may_step_here());
    }
}
