//! `switchbell connector poll`: a read right now, by the running server or, when none runs, by this command.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Which;
use crate::app::poll_once;
use crate::cli::control::{Control, NoAnswer};
use crate::cli::inbox::open_places;
use crate::cli::ask::no_server;
use crate::cli::output::{fail, print_for_people, print_json, tell};
use crate::cli::remote::Server;
use crate::cli::serve::Signals;
use crate::cli::{COULD_NOT_RUN, FOUND_WRONG, load, workspace, workspace_in};
use crate::notification::Name;
use crate::serve::shapes::PolledJson;
use crate::telemetry::{log_to_stderr, rounded};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Poll {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    server: Server,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(file: &Path, asked: &Poll) -> ExitCode {
    match asked.server.find(file, asked.which.workspace.as_ref()).await {
        Ok(None) => {}
        Ok(Some((control, workspace))) => {
            return match control.post(&path(&workspace, &asked.which.name)).await {
                Ok(polled) => said(asked, &polled),
                Err(error) => no_server(&error),
            };
        }
        Err(code) => return code,
    }
    let places = match open_places(file) {
        Ok(places) => places,
        Err(code) => return code,
    };
    let workspace = match workspace(&places.workspaces, asked.which.workspace.as_ref()) {
        Ok(workspace) => workspace,
        Err(code) => return code,
    };
    let name = &asked.which.name;
    let polled = match Control::of(&places.store) {
        Ok(control) => control.post(&path(&workspace, name)).await,
        Err(no_answer) => Err(no_answer),
    };
    match polled {
        Ok(polled) => said(asked, &polled),
        Err(NoAnswer::NotRunning) => match alone(file, &workspace, name).await {
            Ok(polled) => said(asked, &polled),
            Err(code) => code,
        },
        Err(NoAnswer::Nothing(why) | NoAnswer::Refused(why)) => fail(why),
    }
}

fn path(workspace: &Name, name: &Name) -> String {
    format!("/v1/workspaces/{workspace}/connectors/{name}/poll")
}

/// Reads without a server.
async fn alone(file: &Path, workspace: &Name, name: &Name) -> Result<PolledJson, ExitCode> {
    log_to_stderr("error");
    let config = load(file)?;
    let workspace = workspace_in(&config, Some(workspace))?;
    let Some(connector) = workspace.connectors.get(name) else {
        let names = workspace.connectors.keys().map(Name::as_str).collect::<Vec<_>>().join(", ");
        tell(format_args!("unknown connector {:?} in {} (there are: {names})", name.as_str(), workspace.name));
        return Err(ExitCode::from(FOUND_WRONG));
    };
    let mut signals = Signals::listen().map_err(fail)?;
    let stop = CancellationToken::new();
    let once = poll_once(&config, workspace, connector, &stop);
    tokio::pin!(once);
    let polled = tokio::select! {
        polled = &mut once => polled,
        () = signals.stop_asked() => {
            stop.cancel();
            once.await
        }
    };
    match polled.map_err(fail)? {
        Some(polled) => {
            tell("no server runs: what was read is in the inbox, and is delivered once one does");
            Ok(PolledJson { next_in_ms: None, ..polled.into() })
        }
        None => Err(ExitCode::from(COULD_NOT_RUN)),
    }
}

fn said(asked: &Poll, polled: &PolledJson) -> ExitCode {
    let printed = if asked.json { print_json(polled) } else { print_for_people(&sentence(&asked.which.name, polled)) };
    if polled.failure.is_some() { ExitCode::from(FOUND_WRONG) } else { printed }
}

fn sentence(name: &Name, polled: &PolledJson) -> String {
    let next = polled.next_in_ms.map_or_else(String::new, |milliseconds| {
        format!("; next read in {}", rounded(Duration::from_millis(milliseconds)))
    });
    if let Some(failure) = &polled.failure {
        return format!("{name}: not read: {failure}{next}\n");
    }
    let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let start = if polled.bootstrap { "the first read found the place to start from, " } else { "" };
    let dropped = match polled.dropped {
        0 => String::new(),
        dropped => format!(", {dropped} dropped"),
    };
    format!("{name}: {start}{}, {} new{dropped}{next}\n", count(polled.events, "event"), polled.new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(polled: PolledJson, expected: &str) {
        assert_eq!(sentence(&"crm".parse().unwrap(), &polled), expected);
    }

    #[test]
    fn what_a_read_brought_is_said_in_one_line() {
        let polled = PolledJson {
            failure: None,
            bootstrap: false,
            reads: 2,
            events: 1,
            new: 1,
            dropped: 0,
            next_in_ms: Some(59_000),
        };
        check(polled.clone(), "crm: 1 event, 1 new; next read in 59.0 s\n");
        let dropped = PolledJson { events: 5, new: 3, dropped: 2, next_in_ms: None, ..polled.clone() };
        check(dropped, "crm: 5 events, 3 new, 2 dropped\n");
        let first = PolledJson { bootstrap: true, events: 0, new: 0, ..polled.clone() };
        check(first, "crm: the first read found the place to start from, 0 events, 0 new; next read in 59.0 s\n");
        check(
            PolledJson { failure: Some("HTTP 503".to_owned()), ..polled },
            "crm: not read: HTTP 503; next read in 59.0 s\n",
        );
    }
}
