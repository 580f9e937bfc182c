//! A loaded plugin.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::action;
use super::attempt::Attempt;
use super::bindings::switchbell::delivery::types::{Delivery, Destination, Problem};
use super::fault::{CheckError, StepFault};
use super::instance::Program;
use super::limits::CpuBudget;
use super::manifest::Manifest;
use super::place::Pace;

/// A plugin, compiled and ready to be asked. Cheap to clone; what runs goes on when the last clone is dropped.
#[derive(Clone)]
pub struct Plugin(Arc<Loaded>);

struct Loaded {
    program: Program,
    manifest: Manifest,
    digest: String,
    pace: Pace,
}

impl fmt::Debug for Plugin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loaded { manifest, digest, .. } = &*self.0;
        out.debug_struct("Plugin")
            .field("name", &manifest.name)
            .field("version", &manifest.version)
            .field("digest", digest)
            .finish_non_exhaustive()
    }
}

impl Plugin {
    pub(super) fn new(program: Program, manifest: Manifest, digest: String) -> Self {
        Self(Arc::new(Loaded { program, manifest, digest, pace: Pace::new() }))
    }

    /// What it says it is.
    pub fn manifest(&self) -> &Manifest {
        &self.0.manifest
    }

    /// The SHA-256 of its file, 64 hexadecimal digits in lower case.
    pub fn digest(&self) -> &str {
        &self.0.digest
    }

    /// How long an instance between two steps is worth keeping: see [`Attempt::rest`].
    pub fn kept_time_max(&self) -> Duration {
        self.program().shared.kept_time_max
    }

    /// Has a target's settings checked, which are JSON text with a stand-in for each secret.
    ///
    /// # Errors
    /// The mistakes that the plugin found, or how it failed.
    pub async fn check(&self, settings: String) -> Result<Destination, CheckError> {
        let plugin = self.clone();
        let checked = self.program().shared.threads.run(move || check(plugin.program(), settings)).await;
        let answer = checked.unwrap_or_else(|detail| Err(StepFault::Host { detail })).map_err(CheckError::Fault)?;
        let answer = action::checked_destination(answer);
        answer.map_err(|detail| CheckError::Fault(StepFault::Invalid { detail }))?.map_err(CheckError::Problems)
    }

    /// Begins an attempt to make a delivery. Nothing runs before its first step.
    pub fn attempt(&self, delivery: Delivery) -> Attempt {
        Attempt::new(self.clone(), delivery)
    }

    pub(super) fn program(&self) -> &Program {
        &self.0.program
    }

    pub(super) fn pace(&self) -> &Pace {
        &self.0.pace
    }
}

fn check(program: &Program, settings: String) -> Result<Result<Destination, Vec<Problem>>, StepFault> {
    let _running = program.shared.ticker.running();
    let mut instance =
        program.instantiate(program.inputs(None, 0), CpuBudget::new(program.shared.limits.step_cpu_max))?;
    program.check(&mut instance, settings)
}
