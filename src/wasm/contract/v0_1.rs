//! Version 0.1 of the contract, the current one: its values are those of the host, so nothing is converted.

use std::sync::Arc;

use wasmtime::component::{Component, ComponentExportIndex, TypedFunc};

use super::super::bindings::switchbell::delivery::types::{Action, Delivery, Destination, Effect, Problem};
use super::super::instance::Instance;

/// Where the functions are in one component.
#[derive(Clone, Copy, Debug)]
pub(in crate::wasm) struct Exports {
    describe: ComponentExportIndex,
    check: ComponentExportIndex,
    step: ComponentExportIndex,
}

type Describe = TypedFunc<(), (String,)>;
type Check = TypedFunc<(String,), (Result<Destination, Vec<Problem>>,)>;
pub(in crate::wasm) type Step = TypedFunc<(Arc<Delivery>, Arc<Vec<Effect>>), (Action,)>;

/// Finds the functions in the exported interface called `interface`.
///
/// # Errors
/// The name of the one that is missing.
pub(super) fn find(component: &Component, interface: &str) -> Result<super::Exports, &'static str> {
    let instance = component.get_export_index(None, interface);
    let find = |name| component.get_export_index(instance.as_ref(), name).ok_or(name);
    if instance.is_none() {
        return Err("describe");
    }
    let (describe, check, step) = (find("describe")?, find("check")?, find("step")?);
    Ok(super::Exports::V0_1(Exports { describe, check, step }))
}

impl Exports {
    /// Whether the functions have the types of the contract.
    ///
    /// # Errors
    /// Which has not, and where it differs.
    pub(super) fn conforms(&self, instance: &mut Instance) -> Result<(), (&'static str, wasmtime::Error)> {
        instance.function(&self.describe).map(|_: Describe| ()).map_err(|error| ("describe", error))?;
        instance.function(&self.check).map(|_: Check| ()).map_err(|error| ("check", error))?;
        instance.function(&self.step).map(|_: Step| ()).map_err(|error| ("step", error))
    }

    pub(super) fn describe(&self, instance: &mut Instance) -> wasmtime::Result<String> {
        let describe: Describe = instance.function(&self.describe)?;
        let (text,) = describe.call(instance.store(), ())?;
        Ok(text)
    }

    pub(super) fn check(
        &self,
        instance: &mut Instance,
        settings: String,
    ) -> wasmtime::Result<Result<Destination, Vec<Problem>>> {
        let check: Check = instance.function(&self.check)?;
        let (checked,) = check.call(instance.store(), (settings,))?;
        Ok(checked)
    }

    pub(super) fn step(&self, instance: &mut Instance) -> wasmtime::Result<Step> {
        instance.function(&self.step)
    }
}

pub(super) fn call(
    step: &Step,
    instance: &mut Instance,
    delivery: Arc<Delivery>,
    past: Arc<Vec<Effect>>,
) -> wasmtime::Result<Action> {
    let (action,) = step.call(instance.store(), (delivery, past))?;
    Ok(action)
}
