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
    origin: Origin,
    pace: Pace,
}

/// Where a plugin came from: its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// Its SHA-256 in lower-case hex.
    pub(super) digest: String,
    /// Its length.
    pub(super) bytes: usize,
    /// The interface of the contract that it exports, with its version.
    pub(super) interface: String,
    /// What it imports, in its order.
    pub(super) imports: Vec<String>,
}

impl fmt::Debug for Plugin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loaded { manifest, origin, .. } = &*self.0;
        out.debug_struct("Plugin")
            .field("name", &manifest.name)
            .field("version", &manifest.version)
            .field("digest", &origin.digest)
            .finish_non_exhaustive()
    }
}

impl Plugin {
    pub(super) fn new(program: Program, manifest: Manifest, origin: Origin) -> Self {
        Self(Arc::new(Loaded { program, manifest, origin, pace: Pace::new() }))
    }

    /// What it says it is.
    pub fn manifest(&self) -> &Manifest {
        &self.0.manifest
    }

    /// The SHA-256 of its file, 64 hexadecimal digits in lower case.
    pub fn digest(&self) -> &str {
        &self.0.origin.digest
    }

    /// The size of its file, bytes.
    pub fn size(&self) -> usize {
        self.0.origin.bytes
    }

    /// The interface of the contract that it exports, such as `switchbell:delivery/plugin@0.1.0`.
    pub fn interface(&self) -> &str {
        &self.0.origin.interface
    }

    /// The interfaces that it imports, in its order: inert WASI and the contract's types.
    pub fn imports(&self) -> &[String] {
        &self.0.origin.imports
    }

    /// How long an instance between two steps is worth keeping: see [`Attempt::rest`].
    pub fn kept_time_max(&self) -> Duration {
        self.program().shared.kept_time_max
    }

    /// How many hold it: clones of this value, those of attempts under way among them.
    pub fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
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
