//! The command line: one file for each command.

mod about;
mod ask;
mod check;
mod compile_plugin;
mod connector;
mod console;
mod consumer;
mod control;
mod deliveries;
mod demo;
mod explain;
mod inbox;
mod judged;
mod mcp;
mod outbox;
mod output;
mod plugin;
mod preview;
mod push;
mod reload;
mod remote;
mod routes;
mod schema;
mod serve;
mod table;
mod test;
mod token;
mod way;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};

use crate::config::{self, Config, Problems, Workspace, process_environment};
use crate::notification::Name;
use crate::wasm::stepping;
use output::{fail, tell};

/// Exit code when a command did its work and found something wrong.
const FOUND_WRONG: u8 = 1;
/// Exit code when a command could not do its work.
const COULD_NOT_RUN: u8 = 2;

/// Reads the outboxes of MCP servers, keeps every event, and delivers by sandboxed plugins.
#[derive(Debug, Parser)]
#[command(name = "switchbell", version, arg_required_else_help = true)]
struct Arguments {
    /// The operator's file.
    #[arg(long, global = true, value_name = "FILE", env = "SWITCHBELL_CONFIG", default_value = plugin::CONFIG_DEFAULT)]
    config: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the router until it is told to stop.
    Serve,
    /// Runs the router on a configuration made to be watched, with a stand-in for Slack.
    Demo,
    /// Checks the configuration and says everything that is wrong with it.
    Check(check::Arguments),
    /// Prints what may stand in the files: a JSON Schema for editors, or tables for people.
    Schema(schema::Arguments),
    /// Shows what is in an inbox, and marks it as read or acknowledged.
    #[command(subcommand)]
    Inbox(inbox::Command),
    /// Shows how connectors do, reads one now, and signs in to one.
    #[command(subcommand)]
    Connector(connector::Command),
    /// Shows agents that have a queue of their own, and how it stands.
    #[command(subcommand)]
    Consumer(consumer::Command),
    /// Shows deliveries and how their attempts went, retries and cancels them.
    #[command(subcommand)]
    Deliveries(deliveries::Command),
    /// Says who is told of a notification, when, and why not.
    Explain(Box<explain::Arguments>),
    /// Shows what a notification would have each target sent, and sends nothing.
    Preview(Box<preview::Arguments>),
    /// Compares what configurations make of what came.
    #[command(subcommand)]
    Routes(routes::Command),
    /// Runs the tests of routes in a folder.
    Test(test::Arguments),
    /// Has the running server read its configuration again, and says what changed.
    Reload(reload::Arguments),
    /// Shows what plugins are and want, and what the folder of plugins holds.
    #[command(subcommand)]
    Plugin(plugin::Command),
    /// Makes, lists and revokes what lets people, programs and agents in.
    #[command(subcommand)]
    Token(token::Command),
    /// Serves the inbox over MCP on standard input and output, for programs that start their servers. The variable
    /// SWITCHBELL_TOKEN holds the token.
    Mcp(mcp::Arguments),
    /// Helps people who write a server with an outbox.
    #[command(subcommand)]
    Outbox(outbox::Command),
    /// Helps people who write a server with a push queue.
    #[command(subcommand)]
    Push(push::Command),
    /// Compiles a plugin for the server that started this.
    #[command(hide = true)]
    CompilePlugin(compile_plugin::Arguments),
}

/// Runs the command that the arguments name. Exit codes: 0 done, 1 it found something wrong, 2 it could not run.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse_from(remote::joined(std::env::args_os())) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Writing to a closed terminal is no reason to fail otherwise than the arguments do.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(COULD_NOT_RUN) } else { ExitCode::SUCCESS };
        }
    };
    // Before anything that takes memory or starts threads: it limits itself.
    if let Command::CompilePlugin(asked) = &arguments.command {
        return compile_plugin::run(asked);
    }
    // The only TLS provider linked; a second call in one process keeps the first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = match stepping(&mut builder).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(format_args!("cannot start: {error}")),
    };
    let code = runtime.block_on(async {
        match arguments.command {
            Command::Serve => serve::run(&arguments.config).await,
            Command::Demo => demo::run(&arguments.config).await,
            Command::Check(check) => check::run(&arguments.config, &check).await,
            Command::Schema(asked) => schema::run(&asked),
            Command::Inbox(command) => inbox::run(&arguments.config, &command).await,
            Command::Connector(command) => connector::run(&arguments.config, &command).await,
            Command::Consumer(command) => consumer::run(&arguments.config, &command).await,
            Command::Deliveries(command) => deliveries::run(&arguments.config, &command).await,
            Command::Explain(explain) => explain::run(&arguments.config, *explain).await,
            Command::Preview(preview) => preview::run(&arguments.config, *preview).await,
            Command::Routes(command) => routes::run(&arguments.config, &command).await,
            Command::Test(asked) => test::run(&arguments.config, &asked),
            Command::Reload(asked) => reload::run(&arguments.config, &asked).await,
            Command::Plugin(command) => plugin::run(&arguments.config, &command).await,
            Command::Token(command) => token::run(&arguments.config, &command).await,
            Command::Mcp(asked) => mcp::run(&arguments.config, &asked).await,
            Command::Outbox(outbox::Command::Check(check)) => outbox::check(*check).await,
            Command::Push(push::Command::Check(check)) => push::check(*check).await,
            Command::CompilePlugin(asked) => compile_plugin::run(&asked),
        }
    });
    // What still waits for a name to be resolved is not waited for.
    runtime.shutdown_background();
    code
}

/// Loads the configuration, or says everything that is wrong with it. Of a workspace whose own file has mistakes it is said
/// that it is left out. Warnings are for `check` and the log of a server.
fn load(file: &std::path::Path) -> Result<Arc<Config>, ExitCode> {
    match config::load(file, &process_environment) {
        Ok(loaded) => {
            for (workspace, problems) in &loaded.aside {
                tell(left_out(workspace, problems));
            }
            Ok(Arc::new(loaded.config))
        }
        Err(problems) => {
            tell(problems);
            Err(ExitCode::from(COULD_NOT_RUN))
        }
    }
}

/// Says that a workspace is left out, and why.
fn left_out(workspace: &Name, problems: &Problems) -> String {
    let mistakes = problems.mistakes.len() + problems.omitted;
    let count = if mistakes == 1 { "a mistake".to_owned() } else { format!("{mistakes} mistakes") };
    format!("workspace {workspace} is left out: its file has {count}; `switchbell check` shows what to write instead")
}

/// The workspace a command is about, in a configuration.
fn workspace_in<'a>(config: &'a Config, named: Option<&Name>) -> Result<&'a Workspace, ExitCode> {
    let name = workspace(&config.workspaces.keys().chain(&config.aside).cloned().collect(), named)?;
    config.workspaces.get(&name).ok_or_else(|| {
        fail(format_args!("workspace {name}: its file has mistakes, which `switchbell check` shows: mend them first"))
    })
}

/// The workspace a command is about: the one that is named, or the only one.
fn workspace(there: &BTreeSet<Name>, named: Option<&Name>) -> Result<Name, ExitCode> {
    let names = || match there.is_empty() {
        true => "none".to_owned(),
        false => there.iter().map(Name::as_str).collect::<Vec<_>>().join(", "),
    };
    match (named, there.first()) {
        (Some(name), _) if there.contains(name) => Ok(name.clone()),
        (Some(name), _) => Err(fail(format_args!("--workspace: unknown workspace {name:?} (there are: {})", names()))),
        (None, Some(only)) if there.len() == 1 => Ok(only.clone()),
        (None, _) => Err(fail(format_args!("--workspace NAME is needed: there are {}", names()))),
    }
}
