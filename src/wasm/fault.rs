//! What can go wrong with a plugin, as values to branch on and texts that say what to do.

use std::fmt;

use crate::notification::Name;

use super::bindings::switchbell::delivery::types::Problem;
use super::limits::PLUGIN_BYTES_MAX;
use super::text;

/// Why there is no sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxError(pub(super) String);

impl fmt::Display for SandboxError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the sandbox for plugins cannot start: {}", self.0)
    }
}

impl std::error::Error for SandboxError {}

/// Why a step brought no action. It is an outcome of the plugin; only [`StepFault::Host`] is not its doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepFault {
    /// It panicked, exited or did what WebAssembly forbids.
    Trap {
        /// What happened.
        detail: String,
        /// The end of what it wrote to standard error, on one line; a panic's message is there.
        said: Option<String>,
    },
    /// It wanted more than a limit allows.
    Limit {
        /// Which.
        which: LimitKind,
        /// How much it allows, such as `32 MiB`.
        detail: String,
        /// The end of what it wrote to standard error, on one line.
        said: Option<String>,
    },
    /// It answered what no plugin may answer.
    Invalid {
        /// What, and what to answer instead.
        detail: String,
    },
    /// The host could not run it just now. Asking again may help.
    Host {
        /// Why.
        detail: String,
    },
}

/// A limit that a plugin can pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LimitKind {
    /// Linear memory of one instance, all memories together.
    Memory,
    /// CPU time of one step.
    Cpu,
    /// The stack: recursion too deep.
    Stack,
    /// Elements of a table.
    Table,
    /// The size of what it answers.
    Answer,
    /// Handles of WASI streams and pollables that one instance holds.
    Handles,
}

impl LimitKind {
    /// What a person calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "CPU time",
            Self::Stack => "stack",
            Self::Table => "table",
            Self::Answer => "answer size",
            Self::Handles => "handles",
        }
    }
}

impl fmt::Display for LimitKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl fmt::Display for StepFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trap { detail, .. } => write!(out, "the plugin {detail}")?,
            Self::Limit { which, detail, .. } => write!(out, "the plugin passed its {which} limit of {detail}")?,
            Self::Invalid { detail } => write!(out, "the plugin gave a wrong answer: {detail}")?,
            Self::Host { detail } => write!(out, "the host could not run the plugin: {detail}")?,
        }
        match self {
            Self::Trap { said: Some(said), .. } | Self::Limit { said: Some(said), .. } => write!(out, ": {said}"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for StepFault {}

/// Why settings did not pass.
#[derive(Clone, Debug, PartialEq)]
pub enum CheckError {
    /// The plugin found mistakes, at least one.
    Problems(Vec<Problem>),
    /// The plugin could not say.
    Fault(StepFault),
}

impl fmt::Display for CheckError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problems = match self {
            Self::Fault(fault) => return fault.fmt(out),
            Self::Problems(problems) => problems,
        };
        for (index, problem) in problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            let path = if problem.path.is_empty() { "settings" } else { &problem.path };
            write!(out, "{separator}{path}: {}", problem.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for CheckError {}

/// Why a file is no plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// It is larger than [`PLUGIN_BYTES_MAX`].
    TooLarge,
    /// It does not begin as WebAssembly does.
    NotWasm {
        /// What it looks like, such as `a page of the web`; none when that is no help.
        looks_like: Option<&'static str>,
    },
    /// It is a core module, not a component.
    CoreModule,
    /// It is native code that a host compiled before, which cannot be checked.
    Precompiled,
    /// It begins as a component, but is none: cut off, damaged, or in need of a feature that plugins do not have.
    Malformed(String),
    /// It begins with more memory, tables or parts than a plugin may have.
    TooDemanding(String),
    /// It imports what no plugin gets.
    ForeignImports {
        /// Each import, as the component names it.
        names: Vec<String>,
        /// What to do about it.
        remedy: String,
    },
    /// It does not export the plugin interface of this host.
    WrongWorld {
        /// What it exports instead.
        found: String,
        /// What it must export.
        wanted: String,
        /// What to do about it.
        remedy: String,
    },
    /// `describe` failed.
    Describe(StepFault),
    /// `describe` answered what describes no plugin; every mistake.
    Manifest(Vec<String>),
    /// The file is named for another plugin.
    Name {
        /// What the file's name says.
        file: Name,
        /// What the plugin says.
        described: Name,
    },
    /// Compiling it took more than it may.
    CompileLimit {
        /// Which limit it passed.
        which: CompileLimit,
        /// How much that allows, such as `4 GiB`.
        allowed: String,
    },
    /// The compiler failed on it, which it should on no component; what it said.
    Compiler(String),
    /// The host could not load it just now.
    Host(String),
}

/// A limit that compiling a plugin can pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompileLimit {
    /// Memory of the process that compiles.
    Memory,
    /// CPU time of that process.
    Cpu,
    /// Time from its beginning to its end.
    Time,
    /// The size of the compiled code.
    Code,
}

impl CompileLimit {
    /// What a person calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "CPU time",
            Self::Time => "time",
            Self::Code => "code size",
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::Memory | Self::Cpu | Self::Code => {
                "build it smaller (optimised for size, without what it does not need)"
            }
            Self::Time => "load it again when the machine is less busy, or build it smaller",
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => write!(
                out,
                "larger than {}: build it with optimisation for size and strip it",
                text::bytes(PLUGIN_BYTES_MAX)
            ),
            Self::NotWasm { looks_like } => {
                out.write_str("not WebAssembly: ")?;
                if let Some(looks_like) = looks_like {
                    write!(out, "it looks like {looks_like}; ")?;
                }
                out.write_str(
                    "put the component that the plugin's build made here (for Rust, cargo build --target wasm32-wasip2)",
                )
            }
            Self::CoreModule => out.write_str(
                "a core module, not a component: build it for wasm32-wasip2, or run wasm-tools component new on it",
            ),
            Self::Precompiled => out.write_str(
                "already compiled to native code, which cannot be checked: put the .wasm component here, the host \
                 compiles it",
            ),
            Self::Malformed(detail) => write!(
                out,
                "not a valid component ({detail}): copy the file again; if it is whole, build it without experimental \
                 WebAssembly features"
            ),
            Self::TooDemanding(detail) => {
                write!(
                    out,
                    "needs more than a plugin may have ({detail}): if it is memory, raise plugins.limits.memory"
                )
            }
            Self::ForeignImports { names, remedy } => {
                write!(out, "imports what no plugin gets ({}): {remedy}", names.join(", "))
            }
            Self::WrongWorld { found, wanted, remedy } => write!(out, "exports {found}, not {wanted}: {remedy}"),
            Self::Describe(fault) => write!(out, "describe failed: {fault}"),
            Self::Manifest(mistakes) => {
                write!(out, "describe answers no plugin's description: {}", mistakes.join("; "))
            }
            Self::Name { file, described } => {
                write!(out, "describes itself as {described}: name the file {described}.wasm, or the plugin {file}")
            }
            Self::CompileLimit { which, allowed } => {
                write!(out, "compiling it passed the {} limit of {allowed}: {}", which.as_str(), which.remedy())
            }
            Self::Compiler(said) => write!(
                out,
                "the compiler failed on it ({said}): build it again with a released toolchain; if that does not help, report \
                 it with the file"
            ),
            Self::Host(detail) => write!(out, "the host could not load it: {detail}"),
        }
    }
}

impl std::error::Error for LoadError {}
