//! Every maximum of the sandbox, and the two that are enforced while a plugin runs: memory and CPU time.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use wasmtime::{ResourceLimiter, UpdateDeadline};

use super::fault::LimitKind;

/// The largest plugin file, bytes. A Python component has 18 MiB; what is larger is no plugin.
pub const PLUGIN_BYTES_MAX: usize = 32 << 20;

/// The largest action or other answer of a plugin, bytes of all its texts and lists together: a request's body of at
/// most 1 MiB, and room for the rest.
pub const ACTION_BYTES_MAX: usize = 2 << 20;

/// Instances kept between two steps of their attempts. A kept instance holds memory while a destination answers.
pub const KEPT_INSTANCES_MAX: usize = 64;

/// How long an instance is worth keeping for an answer. Making another costs less than holding this one any longer.
pub const KEPT_TIME_MAX: Duration = Duration::from_millis(5);

/// Steps that wait for a thread. More wait for room, so that a burst cannot grow the queue.
pub(super) const QUEUED_STEPS_MAX: usize = 1024;

/// Core instances in one component. A Python component has up to 38.
pub(super) const CORE_INSTANCES_MAX: u32 = 64;

/// Linear memories in one component. A JavaScript component has up to 3.
pub(super) const MEMORIES_MAX: u32 = 4;

/// Tables in one component: one for nearly every core instance of the largest toolchains.
pub(super) const TABLES_MAX: u32 = 20;

/// Elements in one table. The largest toolchains need about half.
pub(super) const TABLE_ELEMENTS_MAX: usize = 20_000;

/// Resource handles one instance may hold: WASI streams and pollables.
pub(super) const HANDLES_MAX: usize = 1000;

/// The stack of a plugin's functions, bytes; recursion ends here.
pub(super) const STACK_BYTES_MAX: usize = 512 << 10;

/// What is kept of a step's standard error, bytes: the last of it, where a panic says why.
pub(super) const STDERR_BYTES_MAX: usize = 4 << 10;

/// Bytes a plugin may write to a stream in one call; what `check-write` tells it.
pub(super) const WRITE_BYTES_MAX: usize = 64 << 10;

/// Random bytes in one call.
pub(super) const RANDOM_BYTES_MAX: u64 = 64 << 10;

/// What `describe` may answer, bytes. A schema of settings is a few KiB.
pub(super) const DESCRIPTION_BYTES_MAX: usize = 256 << 10;

/// Plugins in one directory.
pub(super) const PLUGINS_MAX: usize = 256;

/// Compiled code of one plugin, bytes. Of the largest component the compiler makes some four times its size.
pub(super) const CODE_BYTES_MAX: usize = 256 << 20;

/// What the process that compiles a plugin may have of memory, bytes. It is counted as address space: a Python component of
/// 18 MiB takes two thirds of a gigabyte, and each thread of the compiler reserves up to 128 MiB more than it uses.
pub(super) const COMPILE_MEMORY_BYTES_MAX: u64 = 4 << 30;

/// CPU time of that process. A Python component takes ten seconds.
pub(super) const COMPILE_CPU_MAX: Duration = Duration::from_secs(120);

/// Time until that process is killed: on a busy machine it gets little of the CPU, at its low priority.
pub(super) const COMPILE_TIME_MAX: Duration = Duration::from_secs(300);

/// Threads of that process: more would use up its memory, and compiling is in no hurry.
pub(super) const COMPILE_THREADS_MAX: usize = 8;

/// What is kept of what that process writes to standard error, bytes; the rest is thrown away.
pub(super) const COMPILE_STDERR_BYTES_MAX: usize = 16 << 10;

/// Plugins of a directory that are loaded at once: each may hold a file, and its compiled code twice.
pub(super) const LOADED_AT_ONCE_MAX: usize = 4;

/// How often a running step is looked at.
pub(super) const TICK: Duration = Duration::from_millis(10);

/// The memory, tables and instances of one store, and which limit was refused last.
#[derive(Debug)]
pub(super) struct Limiter {
    memory_bytes: usize,
    memory_bytes_max: usize,
    refused: Option<LimitKind>,
}

impl Limiter {
    pub(super) fn new(memory_bytes_max: usize) -> Self {
        Self { memory_bytes: 0, memory_bytes_max, refused: None }
    }

    /// Forgets what was refused: a new step begins.
    pub(super) fn begin(&mut self) {
        self.refused = None;
    }

    /// The limit that was refused in this step, if any. A plugin may have coped with it.
    pub(super) fn refused(&self) -> Option<LimitKind> {
        self.refused
    }

    fn allow(&mut self, fits: bool, kind: LimitKind) -> bool {
        if !fits {
            self.refused = Some(kind);
        }
        fits
    }
}

impl ResourceLimiter for Limiter {
    /// Counts all memories of the store together.
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let grown = self.memory_bytes.saturating_add(desired.saturating_sub(current));
        let fits_module = maximum.is_none_or(|maximum| desired <= maximum);
        let fits = self.allow(grown <= self.memory_bytes_max && fits_module, LimitKind::Memory);
        if fits {
            self.memory_bytes = grown;
        }
        Ok(fits)
    }

    fn table_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        Ok(self.allow(desired <= TABLE_ELEMENTS_MAX, LimitKind::Table))
    }

    fn instances(&self) -> usize {
        CORE_INSTANCES_MAX as usize
    }

    fn memories(&self) -> usize {
        MEMORIES_MAX as usize
    }

    fn tables(&self) -> usize {
        TABLES_MAX as usize
    }
}

/// The time a step has left.
///
/// On a thread for steps it is CPU time, so a loaded machine never punishes a plugin. It counts from the first tick on:
/// reading a thread's clock is a system call, and a usual step is over before any tick.
#[derive(Clone, Copy, Debug)]
pub(super) enum CpuBudget {
    /// CPU time of the thread.
    Cpu { first_tick_at: Option<Duration>, cpu_max: Duration },
    /// Wall time, of a step that is made again elsewhere when it is over.
    InPlace { began: Instant, time_max: Duration },
}

impl CpuBudget {
    /// A whole budget.
    pub(super) fn new(cpu_max: Duration) -> Self {
        Self::Cpu { first_tick_at: None, cpu_max }
    }

    /// The budget of a step in place.
    pub(super) fn in_place(began: Instant, time_max: Duration) -> Self {
        Self::InPlace { began, time_max }
    }

    /// What happens to the step at a tick, on its own thread: at most two ticks pass beyond its CPU time, one beyond its
    /// time in place.
    pub(super) fn verdict(&mut self) -> UpdateDeadline {
        let is_over = match self {
            Self::Cpu { first_tick_at, cpu_max } => {
                let now = thread_cpu_time();
                now.saturating_sub(*first_tick_at.get_or_insert(now)) >= *cpu_max
            }
            Self::InPlace { began, time_max } => began.elapsed() >= *time_max,
        };
        if is_over { UpdateDeadline::Interrupt } else { UpdateDeadline::Continue(1) }
    }
}

/// The CPU time that the calling thread has used.
pub(super) fn thread_cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_memories_of_a_store_share_one_limit() {
        let mut limiter = Limiter::new(100);
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(!limiter.memory_growing(0, 41, None).unwrap());
        assert_eq!(limiter.refused(), Some(LimitKind::Memory));
        limiter.begin();
        assert!(limiter.memory_growing(60, 100, None).unwrap());
        assert_eq!(limiter.refused(), None);
    }

    #[test]
    fn a_memory_keeps_its_own_maximum_too() {
        let mut limiter = Limiter::new(100);
        assert!(!limiter.memory_growing(0, 11, Some(10)).unwrap());
        assert!(limiter.memory_growing(0, 100, Some(100)).unwrap());
    }

    #[test]
    fn a_table_over_its_limit_is_refused() {
        let mut limiter = Limiter::new(100);
        assert!(limiter.table_growing(0, TABLE_ELEMENTS_MAX, None).unwrap());
        assert!(!limiter.table_growing(0, TABLE_ELEMENTS_MAX + 1, None).unwrap());
        assert_eq!(limiter.refused(), Some(LimitKind::Table));
    }

    #[test]
    fn only_used_time_counts() {
        let mut unused = CpuBudget::new(Duration::from_secs(3600));
        assert!(matches!(unused.verdict(), UpdateDeadline::Continue(1)));
        assert!(matches!(unused.verdict(), UpdateDeadline::Continue(1)));
        let mut used_up = CpuBudget::new(Duration::ZERO);
        assert!(matches!(used_up.verdict(), UpdateDeadline::Interrupt));
        let hour = Duration::from_secs(3600);
        assert!(matches!(CpuBudget::in_place(Instant::now(), hour).verdict(), UpdateDeadline::Continue(1)));
        assert!(matches!(CpuBudget::in_place(Instant::now(), Duration::ZERO).verdict(), UpdateDeadline::Interrupt));
    }
}
