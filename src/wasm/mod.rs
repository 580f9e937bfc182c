//! The sandbox: plugins as WebAssembly components that compute and answer, and can do nothing else.
//!
//! It knows no network, no store and no secret. A [`Sandbox`] loads a component into a [`Plugin`]; a plugin begins an
//! [`Attempt`], which is asked step by step what to do next. The values of the contract (`wit/delivery.wit`) are
//! re-exported here as the generated code has them.
//!
//! ```text
//!  bytes ──load──▶ Plugin ──attempt──▶ Attempt ──step──▶ Action
//!                    │                    ▲                 │ the host performs it
//!                    └──check──▶ Destination                ▼
//!                                         └────answer──── Effect
//! ```
//!
//! Whatever a plugin does wrong is a value ([`StepFault`], [`LoadError`]), never an error of the host: it has a memory of
//! its own, a limit on CPU time, no imports but inert WASI, and a fresh instance for each attempt.

mod action;
mod attempt;
mod bindings;
pub mod catalog;
mod compiled;
mod contract;
pub mod convert;
mod engine;
mod fault;
#[cfg(test)]
pub(crate) mod guests;
mod instance;
mod limits;
mod load;
mod manifest;
mod place;
mod plugin;
mod state;
#[cfg(test)]
mod tests;
mod text;
mod threads;
mod ticker;
mod wasi;

pub use attempt::Attempt;
pub use bindings::switchbell::delivery::types::{
    Action, Answer, Delivery, Destination, Effect, Extension, Failure, FailureKind, Fault, Lane, Level, Mailed,
    Message, Notification, Part, Pause, Problem, Reach, Receipt, Recipient, Request, Response, Signature, ToolAnswer,
    ToolCall,
};
pub use catalog::{Catalog, PluginProblem};
pub use compiled::{CompileBounds, CompileRequest, Compiler, serve as compile_for_parent};
pub use engine::{Sandbox, Settings};
pub use fault::{CheckError, CompileLimit, LimitKind, LoadError, SandboxError, StepFault};
pub use limits::{ACTION_BYTES_MAX, KEPT_INSTANCES_MAX, KEPT_TIME_MAX, PLUGIN_BYTES_MAX};
pub use load::file_digest;
pub use manifest::{Manifest, Repeat, Wants};
pub use place::stepping;
pub use plugin::Plugin;
