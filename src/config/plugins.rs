//! What the operator's file says of plugins.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::{GateMode, Grant, TrustedKey};
use crate::notification::Name;

/// `plugins:` of the operator's file.
#[derive(Debug)]
pub struct Plugins {
    /// Holds `<name>.wasm` files.
    pub directory: PathBuf,
    /// What each plugin may reach. A plugin without an entry may reach nothing.
    pub grants: BTreeMap<Name, Grant>,
    /// What one attempt may use.
    pub limits: Limits,
    /// What becomes of a new version that does something else.
    pub gate: GateMode,
    /// The keys that a plugin must be signed with, one of them; with none, no signature is asked for.
    pub trust: Vec<TrustedKey>,
    /// The only file that each of these plugins may have: its SHA-256, 64 hexadecimal digits in lower case.
    pub pins: BTreeMap<Name, String>,
}

impl Plugins {
    /// A folder of plugins that may reach nothing.
    pub fn at(directory: PathBuf) -> Self {
        Self {
            directory,
            grants: BTreeMap::new(),
            limits: Limits::default(),
            gate: GateMode::default(),
            trust: Vec::new(),
            pins: BTreeMap::new(),
        }
    }
}

/// What one attempt of a plugin may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Linear memory of one instance, bytes.
    pub memory_bytes_max: usize,
    /// CPU time of one step.
    pub step_cpu_max: Duration,
    /// Steps in one attempt.
    pub steps_max: u32,
    /// Wall time of one attempt, waiting included.
    pub attempt_time_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes_max: 32 << 20,
            step_cpu_max: Duration::from_millis(100),
            steps_max: 64,
            attempt_time_max: Duration::from_secs(24 * 3600),
        }
    }
}
