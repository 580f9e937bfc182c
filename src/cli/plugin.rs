//! `switchbell plugin`: what plugins are and want, and which version of each runs.

mod change;
mod grants;
mod inspect;
mod list;
mod registry;

use std::path::Path;
use std::process::ExitCode;

use super::COULD_NOT_RUN;
use super::output::{fail, tell};
use crate::config::{self, Granted, Limits, process_environment};
use crate::wasm::{Sandbox, Settings};
use change::Change;

/// The operator's file when nobody names one; it may be missing where a plugin alone is looked at.
pub(super) const CONFIG_DEFAULT: &str = "switchbell.yaml";

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Shows what a plugin is, imports and wants, and what the configuration grants it.
    ///
    /// The file need not be in the folder of plugins. Ends with 1 when it is no plugin that loads.
    Inspect(inspect::Inspect),
    /// Lists the plugins: which version runs, which are kept, and the targets that use each.
    ///
    /// Ends with 1 when one does not load, or a target uses one that is not there.
    List(list::List),
    /// Loads a plugin, or another version of one, and writes it into the folder.
    ///
    /// It passes the same gate as a file that is put into the folder. Ends with 1 when it is refused or held.
    Load(change::Load),
    /// Goes back to the version that ran before, or to a named one.
    Rollback(change::Named),
    /// Lets in a version that the gate holds.
    Approve(change::Named),
    /// Puts a plugin into an OCI registry, from where `plugin load oci://…` loads it.
    ///
    /// Credentials are those that docker, podman or oras keep in ~/.docker/config.json ($DOCKER_CONFIG names another folder);
    /// credential helpers are not asked. Ends with 1 when the file is no plugin.
    Push(registry::Push),
}

/// Hexadecimal digits of a digest that are shown.
const DIGEST_DIGITS: usize = 12;

pub(super) async fn run(file: &Path, command: &Command) -> ExitCode {
    match command {
        Command::Inspect(asked) => inspect::run(file, asked).await,
        Command::List(asked) => list::run(file, asked).await,
        Command::Load(asked) => change::load(file, asked).await,
        Command::Rollback(asked) => change::change(file, Change::RollBack, asked).await,
        Command::Approve(asked) => change::change(file, Change::Approve, asked).await,
        Command::Push(asked) => registry::push(asked).await,
    }
}

/// What the configuration says of plugins.
fn granted(file: &Path) -> Result<Granted, ExitCode> {
    config::granted(file, &process_environment).map_err(|problems| {
        tell(problems);
        ExitCode::from(COULD_NOT_RUN)
    })
}

/// A sandbox to load plugins in.
fn sandbox(limits: Limits) -> Result<Sandbox, ExitCode> {
    Sandbox::new(Settings { kept_instances_max: 0, ..Settings::new(limits) }).map_err(fail)
}
