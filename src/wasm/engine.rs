//! The engine that compiles and runs plugins, and the parts every plugin shares.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::sync::Semaphore;
use wasmtime::component::Linker;
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store};

use crate::config::Limits;

use super::compiled::{CodeStore, CompileBounds, Compiler, compatibility};
use super::fault::SandboxError;
use super::limits::{
    ACTION_BYTES_MAX, CORE_INSTANCES_MAX, CpuBudget, HANDLES_MAX, KEPT_INSTANCES_MAX, KEPT_TIME_MAX, MEMORIES_MAX,
    STACK_BYTES_MAX, TABLE_ELEMENTS_MAX, TABLES_MAX,
};
use super::state::{Inputs, State};
use super::threads::StepThreads;
use super::ticker::Ticker;
use super::wasi;

/// Address space of one memory, unless the limit is larger. Small, so that the whole pool takes gigabytes of address space, not terabytes.
const MEMORY_RESERVATION_BYTES: usize = 64 << 20;

/// Address space behind a memory that saves bounds checks of small offsets.
const MEMORY_GUARD_BYTES: u64 = 2 << 20;

/// Memory that stays in place between two instances and is reset by copying: small plugins fit into it, and need no page
/// faults and no calls of the kernel.
const KEEP_RESIDENT_BYTES: usize = 128 << 10;

/// The page size of WebAssembly.
const PAGE_BYTES: usize = 64 << 10;

/// All that a memory of 32-bit addresses can hold; a larger limit means the same.
const ADDRESSABLE_BYTES: usize = 4 << 30;

/// How a sandbox is made.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What a plugin may use; memory and CPU time are enforced here.
    pub limits: Limits,
    /// Threads that run steps; as many as the machine runs at once when absent.
    pub threads: Option<NonZeroUsize>,
    /// Instances kept between two steps, at most [`KEPT_INSTANCES_MAX`].
    pub kept_instances_max: usize,
    /// How long an instance is worth keeping.
    pub kept_time_max: Duration,
    /// What the randomness of plugins is computed from. With the same key, a step repeated after a restart draws the
    /// same; drawn anew when absent.
    pub key: Option<[u8; 32]>,
    /// The folder in which compiled code is kept, of this sandbox's key alone; none is kept when absent.
    pub compiled: Option<PathBuf>,
    /// Where plugins are compiled.
    pub compiler: Compiler,
    /// What compiling one may take, where it is done by [`Compiler::Child`].
    pub compile_bounds: CompileBounds,
}

impl Settings {
    /// The usual settings with these limits.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            threads: None,
            kept_instances_max: KEPT_INSTANCES_MAX,
            kept_time_max: KEPT_TIME_MAX,
            key: None,
            compiled: None,
            compiler: Compiler::Thread,
            compile_bounds: CompileBounds::default(),
        }
    }
}

/// Loads plugins and runs them. Cheap to clone. A process makes one: values of two must never meet.
#[derive(Clone)]
pub struct Sandbox(pub(super) Arc<Shared>);

/// What all plugins of a sandbox share.
pub(super) struct Shared {
    pub(super) engine: Engine,
    pub(super) linker: Linker<State>,
    pub(super) threads: StepThreads,
    pub(super) ticker: Ticker,
    pub(super) limits: Limits,
    pub(super) kept_time_max: Duration,
    pub(super) kept_instances_max: usize,
    /// Permits to keep an instance between two steps.
    pub(super) keep: Arc<Semaphore>,
    /// Permits to run a step in place: one for each thread for steps.
    pub(super) in_place: Semaphore,
    /// The permit to compile: it takes all cores and, for large plugins, half a gigabyte.
    pub(super) compile: Arc<Semaphore>,
    pub(super) compiler: Compiler,
    pub(super) compile_bounds: CompileBounds,
    /// What code must have been compiled for.
    pub(super) compatibility: String,
    pub(super) compiled: Option<CodeStore>,
    pub(super) key: [u8; 32],
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Sandbox").field("limits", &self.0.limits).finish_non_exhaustive()
    }
}

impl Sandbox {
    /// Makes a sandbox and starts its threads, which end when the last clone, plugin and attempt are dropped.
    ///
    /// # Errors
    /// When the machine grants no threads or no randomness, or cannot run compiled WebAssembly.
    pub fn new(settings: Settings) -> Result<Self, SandboxError> {
        let threads = settings.threads.or_else(|| available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN);
        let kept = settings.kept_instances_max.min(KEPT_INSTANCES_MAX);
        let engine = engine(kept + 2 * threads.get(), settings.limits.memory_bytes_max)?;
        let mut linker = Linker::new(&engine);
        wasi::link(&mut linker).map_err(|error| SandboxError(format!("{error:#}")))?;
        let key = settings.key.map_or_else(draw_key, Ok)?;
        let compatibility = compatibility(&engine);
        let compiled = settings.compiled.map(|folder| CodeStore::new(folder, compatibility.clone(), &key));
        let no_thread = |error| SandboxError(format!("no thread could be started: {error}"));
        Ok(Self(Arc::new(Shared {
            threads: StepThreads::start(threads).map_err(no_thread)?,
            ticker: Ticker::start(&engine).map_err(no_thread)?,
            limits: settings.limits,
            kept_time_max: settings.kept_time_max,
            kept_instances_max: kept,
            keep: Arc::new(Semaphore::new(kept)),
            in_place: Semaphore::new(threads.get()),
            compile: Arc::new(Semaphore::new(1)),
            compiler: settings.compiler,
            compile_bounds: settings.compile_bounds,
            compatibility,
            compiled,
            key,
            linker,
            engine,
        })))
    }

    /// Removes compiled code of plugins that are not among these digests, and what a write that was cut off left. What is
    /// removed wrongly is compiled again. It waits for the disk: not for an async thread.
    ///
    /// # Errors
    /// The first that could not be removed; the others were.
    pub fn prune_compiled(&self, keep: &BTreeSet<String>) -> io::Result<()> {
        self.0.compiled.as_ref().map_or(Ok(()), |store| store.prune(keep))
    }

    /// Instances that attempts keep between two steps at this moment.
    pub fn kept_instances(&self) -> usize {
        self.0.kept_instances_max.saturating_sub(self.0.keep.available_permits())
    }
}

impl Shared {
    /// A store in which one instance may run under all limits.
    pub(super) fn store(&self, inputs: Inputs, cpu: CpuBudget) -> Store<State> {
        let state = State::begin(inputs, self.limits.memory_bytes_max, cpu);
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| &mut state.limiter);
        store.set_hostcall_fuel(ACTION_BYTES_MAX);
        store.set_max_component_handles(HANDLES_MAX);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|mut context| Ok(context.data_mut().cpu.verdict()));
        store
    }
}

/// An engine with a pool for `instances`, or without one where the machine does not grant the address space.
fn engine(instances: usize, memory_bytes_max: usize) -> Result<Engine, SandboxError> {
    let mut config = config(memory_bytes_max);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(instances, memory_bytes_max)));
    Engine::new(&config).or_else(|error| {
        tracing::warn!(
            error = format!("{error:#}"),
            "no pool of memory for plugins: each attempt now costs several times as much; allow more address space \
             (ulimit -v, vm.overcommit_memory)"
        );
        config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
        Engine::new(&config).map_err(|error| SandboxError(format!("{error:#}")))
    })
}

/// The size of a slot in which a memory of the limit fits.
fn slot_bytes(memory_bytes_max: usize) -> usize {
    memory_bytes_max.min(ADDRESSABLE_BYTES).next_multiple_of(PAGE_BYTES).max(MEMORY_RESERVATION_BYTES)
}

/// How plugins are compiled. Code depends on it, and on nothing else of an engine.
pub(super) fn config(memory_bytes_max: usize) -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        .max_wasm_stack(STACK_BYTES_MAX)
        .memory_reservation(slot_bytes(memory_bytes_max) as u64)
        .memory_guard_size(MEMORY_GUARD_BYTES);
    config
}

/// A pool in which `instances` of the largest shape fit, so that it never runs out.
fn pool(instances: usize, memory_bytes_max: usize) -> PoolingAllocationConfig {
    let count = u32::try_from(instances).unwrap_or(u32::MAX);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(count)
        .total_core_instances(count.saturating_mul(CORE_INSTANCES_MAX))
        .total_memories(count.saturating_mul(MEMORIES_MAX))
        .total_tables(count.saturating_mul(TABLES_MAX))
        .max_core_instances_per_component(CORE_INSTANCES_MAX)
        .max_memories_per_component(MEMORIES_MAX)
        .max_tables_per_component(TABLES_MAX)
        .max_memory_size(slot_bytes(memory_bytes_max))
        .table_elements(TABLE_ELEMENTS_MAX)
        .linear_memory_keep_resident(KEEP_RESIDENT_BYTES)
        .table_keep_resident(KEEP_RESIDENT_BYTES);
    pool
}

fn draw_key() -> Result<[u8; 32], SandboxError> {
    let mut key = [0; 32];
    let drawn = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut key));
    drawn.map(|()| key).map_err(|error| SandboxError(format!("/dev/urandom cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_room_for_the_pool_gets_an_engine_without_one() {
        // Forty thousand memories of 4 GiB exceed the address space of every machine.
        assert!(engine(10_000, usize::MAX).is_ok());
    }

    #[test]
    fn odd_limits_and_counts_make_a_sandbox() {
        for memory_bytes_max in [0, 1, 100 << 20, usize::MAX] {
            let limits = Limits { memory_bytes_max, ..Limits::default() };
            let settings =
                Settings { kept_instances_max: 0, threads: Some(NonZeroUsize::MIN), ..Settings::new(limits) };
            assert!(Sandbox::new(settings).is_ok(), "{memory_bytes_max}");
        }
    }

    #[test]
    fn no_more_instances_are_kept_than_the_most() {
        let settings = |kept_instances_max| Settings { kept_instances_max, ..Settings::new(Limits::default()) };
        let permits = |kept| Sandbox::new(settings(kept)).unwrap().0.keep.available_permits();
        assert_eq!((permits(3), permits(usize::MAX)), (3, KEPT_INSTANCES_MAX));
    }
}
