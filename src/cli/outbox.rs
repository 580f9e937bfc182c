//! `switchbell outbox check`: whether a server keeps the rules of an outbox, for people who write one. It needs no
//! configuration: the server is named on the command line, and runs as a connector's would.

pub(super) mod server;
mod show;

use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};

use super::output::{fail, print_for_people, print_json, tell};
use super::{COULD_NOT_RUN, FOUND_WRONG};
use crate::clock::Clock;
use crate::config;
use crate::fetch::conformance::{self, Asked, Report, Verdict};
use crate::fetch::outbox::Outbox;
use crate::telemetry::rounded;

/// A read that takes longer is told.
const LATENCY_MAX: Duration = Duration::from_secs(1);

/// How long events are waited for when something was done to make them happen.
pub(super) const WAIT_AFTER_TRIGGER: Duration = Duration::from_secs(10);

/// How long the command that makes events happen may run.
const TRIGGER_TIME_MAX: Duration = Duration::from_secs(60);

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Runs or reaches a server, reads its outbox in many ways, and reports rule by rule what it keeps and breaks.
    ///
    /// Exit codes: 0 no MUST is broken, 1 one is, 2 the check could not be made.
    Check(Box<Arguments>),
}

#[derive(Debug, clap::Args)]
#[command(override_usage = "switchbell outbox check --resource URI [OPTIONS] -- PROGRAM [ARGUMENT]...
       switchbell outbox check --resource URI [OPTIONS] --url URL")]
pub(super) struct Arguments {
    /// The URI of the outbox, such as acme://notifications.
    #[arg(long, value_name = "URI")]
    resource: String,
    /// The program that is the server, in one text or word by word; what follows `--` is added to it.
    #[arg(long, value_name = "PROGRAM", num_args = 1.., conflicts_with = "url")]
    command: Vec<String>,
    /// The server's endpoint, where it speaks streamable HTTP.
    #[arg(long)]
    url: Option<String>,
    /// A variable for the program, which inherits PATH, HOME, LANG and TMPDIR only. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "url")]
    env: Vec<String>,
    /// The folder that the program is started in; the current one when left out.
    #[arg(long, conflicts_with = "url")]
    directory: Option<PathBuf>,
    /// The variable that holds the bearer token for the URL.
    #[arg(long, value_name = "VARIABLE")]
    bearer_env: Option<String>,
    /// A header for the URL and the variable that holds its value. May be repeated.
    #[arg(long, value_name = "HEADER=VARIABLE")]
    header_env: Vec<String>,
    /// Waits so long for events to appear, once the first position is known [default: 0s, or 10s after a trigger].
    #[arg(long, value_name = "DURATION", value_parser = config::duration)]
    wait: Option<Duration>,
    /// Makes events happen: a command for the shell, run once the first position is known.
    #[arg(long, value_name = "COMMAND")]
    trigger: Option<String>,
    /// A position to read from instead of now, so that older events are seen.
    #[arg(long)]
    cursor: Option<String>,
    /// The `maxAgeMs` of reads.
    #[arg(long, value_name = "DURATION", value_parser = longer_than_zero, default_value = "90d")]
    max_age: Duration,
    /// How long one read may take; the server has 20s to start, or as long.
    #[arg(long, value_name = "DURATION", value_parser = longer_than_zero, default_value = "30s")]
    timeout: Duration,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
    /// The program that is the server, and its arguments.
    #[arg(trailing_var_arg = true, value_name = "PROGRAM", conflicts_with = "url")]
    run: Vec<String>,
}

pub(super) async fn check(asked: Arguments) -> ExitCode {
    let clock = Clock::system();
    let mut outbox = match server::outbox(&asked, &clock) {
        Ok(outbox) => outbox,
        Err(why) => return fail(why),
    };
    let wait = asked.wait.unwrap_or(if asked.trigger.is_some() { WAIT_AFTER_TRIGGER } else { Duration::ZERO });
    if wait > WAIT_AFTER_TRIGGER {
        tell(format_args!("Waiting for events, {} at most.", rounded(wait)));
    }
    let to_check = Asked {
        resource: &asked.resource,
        cursor: asked.cursor.as_deref(),
        age_max: asked.max_age,
        wait,
        trigger: asked.trigger.as_deref().map(run_trigger),
        latency_max: LATENCY_MAX,
        is_program: asked.url.is_none(),
    };
    let report = tokio::select! {
        report = conformance::check(&mut outbox, to_check, &clock) => report,
        _ = tokio::signal::ctrl_c() => {
            outbox.close().await;
            return fail("interrupted");
        }
    };
    let printed = match asked.json {
        true => print_json(&show::ReportJson::new(&asked.resource, &report)),
        false => print_for_people(&show::for_people(&asked.resource, &report)),
    };
    code(&report).unwrap_or(printed)
}

/// The exit code, where it is not that of printing.
fn code(report: &Report) -> Option<ExitCode> {
    if report.could_not_run.is_some() {
        return Some(ExitCode::from(COULD_NOT_RUN));
    }
    (report.count(Verdict::Broken) > 0).then_some(ExitCode::from(FOUND_WRONG))
}

/// Runs a command for the shell. What it prints goes to standard error: standard output is for the report.
pub(super) fn run_trigger(command: &str) -> BoxFuture<'_, Result<(), String>> {
    async move {
        let mut shell = tokio::process::Command::new("sh");
        shell.args(["-c", command]).stdin(Stdio::null()).stdout(std::io::stderr()).kill_on_drop(true);
        let ended = tokio::time::timeout(TRIGGER_TIME_MAX, shell.status()).await;
        match ended {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(format!("--trigger ended with {status}")),
            Ok(Err(error)) => Err(format!("--trigger cannot be run: {error}")),
            Err(_) => Err(format!("--trigger did not end within {} s", TRIGGER_TIME_MAX.as_secs())),
        }
    }
    .boxed()
}

/// A duration that is not none.
pub(super) fn longer_than_zero(text: &str) -> Result<Duration, String> {
    config::duration(text)
        .and_then(|duration| if duration.is_zero() { Err("give more than none".to_owned()) } else { Ok(duration) })
}
