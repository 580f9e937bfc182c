//! One instance of a plugin in a store of its own, and what its failures mean.

use std::sync::Arc;

use wasmtime::component::{ComponentExportIndex, ComponentNamedList, InstancePre, Lift, Lower, TypedFunc};
use wasmtime::{PoolConcurrencyLimitError, Store, Trap};

use super::bindings::switchbell::delivery::types::{Action, Delivery, Destination, Effect, Problem};
use super::contract::{Exports, Step};
use super::engine::Shared;
use super::fault::{LimitKind, LoadError, StepFault};
use super::limits::{ACTION_BYTES_MAX, CpuBudget, HANDLES_MAX, STACK_BYTES_MAX, TABLE_ELEMENTS_MAX};
use super::state::{Inputs, State};
use super::text::{self, one_line};

/// Characters of standard error shown with a fault: its end, short enough to be whole in a reason that is kept.
const SAID_LENGTH_MAX: usize = 350;

/// What Rust appends to every panic, and what is of no use to somebody who runs the plugin.
const BACKTRACE_HINT: &str = "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace";

/// A component ready to be instantiated.
#[derive(Clone)]
pub(super) struct Program {
    pub(super) shared: Arc<Shared>,
    pub(super) component: InstancePre<State>,
    pub(super) exports: Exports,
}

/// An instance and its store. Memory is given back when it is dropped.
pub(super) struct Instance {
    store: Store<State>,
    instance: wasmtime::component::Instance,
    step: Option<Step>,
}

impl Program {
    /// The inputs of a call with this delivery and so many effects before it.
    pub(super) fn inputs(&self, delivery: Option<&Arc<Delivery>>, past: usize) -> Inputs {
        Inputs { key: self.shared.key, delivery: delivery.map(Arc::clone), past: past as u64 }
    }

    /// Makes an instance. Its first call shares the CPU time with this.
    pub(super) fn instantiate(&self, inputs: Inputs, cpu: CpuBudget) -> Result<Instance, StepFault> {
        let mut store = self.shared.store(inputs, cpu);
        match self.component.instantiate(&mut store) {
            Ok(instance) => Ok(Instance { store, instance, step: None }),
            Err(error) => Err(explain(&error, &self.shared, store.data())),
        }
    }

    /// Whether the functions have the types of the contract.
    ///
    /// # Errors
    /// Which has not, and where it differs.
    pub(super) fn conforms(&self, instance: &mut Instance) -> Result<(), LoadError> {
        self.exports.conforms(instance)
    }

    pub(super) fn describe(&self, instance: &mut Instance) -> Result<String, StepFault> {
        let described = self.exports.describe(instance);
        described.map_err(|error| explain(&error, &self.shared, instance.store.data()))
    }

    pub(super) fn check(
        &self,
        instance: &mut Instance,
        settings: String,
    ) -> Result<Result<Destination, Vec<Problem>>, StepFault> {
        let checked = self.exports.check(instance, settings);
        checked.map_err(|error| explain(&error, &self.shared, instance.store.data()))
    }

    pub(super) fn step(
        &self,
        instance: &mut Instance,
        delivery: Arc<Delivery>,
        past: Arc<Vec<Effect>>,
    ) -> Result<Action, StepFault> {
        let step = match instance.step {
            Some(step) => Ok(step),
            None => self.exports.step(instance),
        };
        let answered = step.and_then(|step| {
            instance.step = Some(step);
            step.call(instance, delivery, past)
        });
        answered.map_err(|error| explain(&error, &self.shared, instance.store.data()))
    }
}

impl Instance {
    /// Begins a further step in this instance.
    pub(super) fn begin_again(&mut self, inputs: Inputs, cpu: CpuBudget) {
        self.store.data_mut().begin_again(inputs, cpu);
    }

    /// What the plugin wrote to standard error in this step, on one line.
    pub(super) fn complaint(&self) -> Option<String> {
        self.store.data().stderr.line()
    }

    pub(super) fn store(&mut self) -> &mut Store<State> {
        &mut self.store
    }

    /// One function of the component, if it has these types.
    pub(super) fn function<Parameters, Results>(
        &mut self,
        index: &ComponentExportIndex,
    ) -> wasmtime::Result<TypedFunc<Parameters, Results>>
    where
        Parameters: ComponentNamedList + Lower,
        Results: ComponentNamedList + Lift,
    {
        self.instance.get_typed_func(&mut self.store, index)
    }
}

/// What an error of the engine means.
fn explain(error: &wasmtime::Error, shared: &Shared, state: &State) -> StepFault {
    if error.is::<PoolConcurrencyLimitError>() {
        return StepFault::Host { detail: format!("{error:#}") };
    }
    let trap = error.downcast_ref::<Trap>();
    let said = state.stderr.line().map(|line| end_of(&line));
    if let Some(which) = passed(error, trap, state) {
        return StepFault::Limit { which, detail: allowance(which, shared), said };
    }
    let detail = match trap {
        Some(Trap::UnreachableCodeReached) => "stopped itself (it panicked or aborted)".into(),
        Some(trap) => format!("trapped ({})", trap.to_string().trim_start_matches("wasm trap: ")),
        None => format!("failed ({})", one_line(&error.root_cause().to_string(), SAID_LENGTH_MAX)),
    };
    StepFault::Trap { detail, said }
}

/// The limit behind an error, if it was one. A refused growth mostly shows as the plugin's own abort.
fn passed(error: &wasmtime::Error, trap: Option<&Trap>, state: &State) -> Option<LimitKind> {
    match trap {
        Some(Trap::Interrupt) => Some(LimitKind::Cpu),
        Some(Trap::StackOverflow) => Some(LimitKind::Stack),
        // The engine gives these errors no type to ask for; tests hold the texts.
        None if error.root_cause().to_string().contains("fuel allocated for hostcalls") => Some(LimitKind::Answer),
        None if error.root_cause().to_string().contains("handle limit exceeded") => Some(LimitKind::Handles),
        _ => state.limiter.refused(),
    }
}

fn allowance(which: LimitKind, shared: &Shared) -> String {
    match which {
        LimitKind::Memory => text::bytes(shared.limits.memory_bytes_max),
        LimitKind::Cpu => format!("{} a step", text::duration(shared.limits.step_cpu_max)),
        LimitKind::Stack => text::bytes(STACK_BYTES_MAX),
        LimitKind::Table => format!("{TABLE_ELEMENTS_MAX} elements"),
        LimitKind::Answer => text::bytes(ACTION_BYTES_MAX),
        LimitKind::Handles => HANDLES_MAX.to_string(),
    }
}

/// The end of a line, where a panic says why.
fn end_of(line: &str) -> String {
    let line = line.strip_suffix(BACKTRACE_HINT).unwrap_or(line).trim_end();
    let surplus = line.chars().count().saturating_sub(SAID_LENGTH_MAX);
    if surplus == 0 { line.to_owned() } else { ['…'].into_iter().chain(line.chars().skip(surplus)).collect() }
}
