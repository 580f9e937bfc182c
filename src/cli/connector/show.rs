//! `switchbell connector list` and `show`: from the running server, or what the store remembers.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use jiff::Timestamp;

use super::Which;
use crate::cli::ask::no_server;
use crate::cli::control::{Control, NoAnswer};
use crate::cli::inbox::open_places;
use crate::cli::output::{fail, print, print_for_people, print_json, tell};
use crate::cli::remote::Server;
use crate::cli::table::{aligned, cut};
use crate::cli::{FOUND_WRONG, workspace};
use crate::clock::{Clock, until};
use crate::config::Places;
use crate::inbox::Inbox;
use crate::inbox::sqlite::SqliteInbox;
use crate::notification::Name;
use crate::serve::shapes::ConnectorJson;
use crate::telemetry::rounded;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct List {
    /// Only of this workspace.
    #[arg(long, value_name = "NAME")]
    workspace: Option<Name>,
    #[command(flatten)]
    server: Server,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Show {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    server: Server,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn list(file: &Path, asked: &List) -> ExitCode {
    match listed(file, asked).await {
        Ok(found) if asked.json => print_json(&found),
        Ok(found) if found.is_empty() => print("no connectors\n"),
        Ok(found) => print_for_people(&table(&found, now())),
        Err(code) => code,
    }
}

async fn listed(file: &Path, asked: &List) -> Result<Vec<ConnectorJson>, ExitCode> {
    if let Some(control) = asked.server.control(file)? {
        return control.list_of_each("connectors", asked.workspace.as_ref()).await.map_err(|error| no_server(&error));
    }
    let (places, only) = places_of(file, asked.workspace.as_ref())?;
    connectors(&places, only.as_ref()).await.map_err(fail)
}

/// All of the workspace, and its name.
async fn beside(file: &Path, asked: &Show) -> Result<(Vec<ConnectorJson>, Name), ExitCode> {
    let named = asked.which.workspace.as_ref();
    if let Some((control, only)) = asked.server.find(file, named).await? {
        let found = control.list_of_each("connectors", Some(&only)).await.map_err(|error| no_server(&error))?;
        return Ok((found, only));
    }
    let places = open_places(file)?;
    let only = workspace(&places.workspaces, named)?;
    Ok((connectors(&places, Some(&only)).await.map_err(fail)?, only))
}

pub(super) async fn show(file: &Path, asked: &Show) -> ExitCode {
    let (found, only) = match beside(file, asked).await {
        Ok(found) => found,
        Err(code) => return code,
    };
    match found.iter().find(|connector| connector.name == asked.which.name.as_str()) {
        Some(connector) if asked.json => print_json(connector),
        Some(connector) => print_for_people(&whole(connector, now())),
        None => {
            let names = found.iter().map(|connector| connector.name.as_str()).collect::<Vec<_>>().join(", ");
            tell(format_args!("unknown connector {:?} in {only} (there are: {names})", asked.which.name.as_str()));
            ExitCode::from(FOUND_WRONG)
        }
    }
}

fn now() -> Timestamp {
    Clock::system().now()
}

fn places_of(file: &Path, named: Option<&Name>) -> Result<(Places, Option<Name>), ExitCode> {
    let places = open_places(file)?;
    let only = named.map(|name| workspace(&places.workspaces, Some(name))).transpose()?;
    Ok((places, only))
}

/// The connectors of one workspace, or of all.
async fn connectors(places: &Places, only: Option<&Name>) -> Result<Vec<ConnectorJson>, String> {
    let asked = match Control::of(&places.store) {
        Ok(control) => control.list_of_each("connectors", only).await,
        Err(no_answer) => Err(no_answer),
    };
    match asked {
        Ok(found) => Ok(found),
        Err(NoAnswer::NotRunning) => remembered(places, only).await,
        Err(NoAnswer::Nothing(why) | NoAnswer::Refused(why)) => Err(why),
    }
}

async fn remembered(places: &Places, only: Option<&Name>) -> Result<Vec<ConnectorJson>, String> {
    let inbox = SqliteInbox::open_to_read(&places.store).map_err(|error| error.to_string())?;
    tell("no server runs: this is what was known when the last one did");
    let mut found = Vec::new();
    for workspace in places.workspaces.iter().filter(|name| only.is_none_or(|only| only == *name)) {
        let readings = inbox.readings(workspace).await.map_err(|error| error.to_string())?;
        found.extend(readings.iter().map(|(name, reading)| ConnectorJson::remembered(workspace, name, reading)));
    }
    Ok(found)
}

fn table(found: &[ConnectorJson], now: Timestamp) -> String {
    let title = ["CONNECTOR", "STATE", "LAST READ", "NEXT READ", "POSITION", "BUDGET", "LAST ERROR"];
    let mut rows = vec![title.map(str::to_owned).to_vec()];
    rows.extend(found.iter().map(|connector| row(connector, now)));
    aligned(&rows)
}

fn row(of: &ConnectorJson, now: Timestamp) -> Vec<String> {
    let reason = of.last_error.as_ref().filter(|_| of.failures > 0).map(|error| error.reason.as_str());
    let reason = cut(of.reason.as_deref().or(reason).unwrap_or("-"));
    vec![
        format!("{}/{}", of.workspace_id, of.name),
        state(of),
        ago(of.last_read_at.as_deref(), now),
        ahead(of.next_read_at.as_deref(), now),
        ago(of.cursor_moved_at.as_deref(), now),
        of.budget.as_ref().map_or_else(|| "-".to_owned(), |budget| format!("{}/{}", budget.left, budget.per_minute)),
        reason,
    ]
}

fn state(of: &ConnectorJson) -> String {
    if of.deferred { format!("{}, deferred", of.state) } else { of.state.clone() }
}

fn whole(of: &ConnectorJson, now: Timestamp) -> String {
    let mut text = String::new();
    let mut line = |what: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{what:<16}{value}");
    };
    line("connector", &format!("{}/{}", of.workspace_id, of.name));
    line("state", &state(of));
    let optional = [
        ("reason", of.reason.clone()),
        ("transport", of.transport.clone()),
        ("revision", of.revision.clone()),
        ("outbox", of.outbox.clone()),
        ("push queue", of.push.then(|| "yes".to_owned())),
    ];
    for (what, value) in optional {
        if let Some(value) = value {
            line(what, &value);
        }
    }
    line("last read", &ago(of.last_read_at.as_deref(), now));
    line("next read", &ahead(of.next_read_at.as_deref(), now));
    if !of.push {
        line("position moved", &ago(of.cursor_moved_at.as_deref(), now));
    }
    if let Some(budget) = &of.budget {
        line("budget", &format!("{} of {} reads left in this minute", budget.left, budget.per_minute));
    }
    match &of.last_error {
        None => line("last error", "none"),
        Some(error) => {
            line("last error", &format!("{}, {} in a row now", ago(Some(&error.at), now), of.failures));
            line("", &error.reason);
        }
    }
    text
}

fn ago(moment: Option<&str>, now: Timestamp) -> String {
    match moment.and_then(|moment| moment.parse().ok()) {
        Some(moment) => format!("{} ago", rounded(until(moment, now))),
        None => "never".to_owned(),
    }
}

fn ahead(moment: Option<&str>, now: Timestamp) -> String {
    match moment.and_then(|moment| moment.parse().ok()) {
        Some(moment) if moment <= now => "now".to_owned(),
        Some(moment) => format!("in {}", rounded(until(now, moment))),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::shapes::{BudgetJson, LastErrorJson};

    fn connectors() -> Vec<ConnectorJson> {
        let text = |text: &str| Some(text.to_owned());
        let good = ConnectorJson {
            workspace_id: "acme".to_owned(),
            name: "registrar".to_owned(),
            transport: text("stdio"),
            outbox: text("acme://notifications"),
            state: "ok".to_owned(),
            last_read_at: text("2026-09-01T18:42:10Z"),
            next_read_at: text("2026-09-01T18:43:10Z"),
            cursor_moved_at: text("2026-09-01T16:42:10Z"),
            revision: text("2026-07-28"),
            budget: Some(BudgetJson { per_minute: 60, left: 57 }),
            ..ConnectorJson::default()
        };
        let last_error = Some(LastErrorJson {
            at: "2026-09-01T18:42:20Z".to_owned(),
            reason: "HTTP 503: the server could not answer".to_owned(),
        });
        let bad = ConnectorJson {
            name: "crm".to_owned(),
            state: "open".to_owned(),
            failures: 4,
            deferred: true,
            last_error,
            ..good.clone()
        };
        vec![good, bad]
    }

    fn at() -> Timestamp {
        "2026-09-01T18:42:30Z".parse().unwrap()
    }

    #[test]
    fn a_list_has_a_line_for_each() {
        let expected = "\
CONNECTOR       STATE           LAST READ   NEXT READ  POSITION   BUDGET  LAST ERROR
acme/registrar  ok              20.0 s ago  in 40.0 s  2.0 h ago  57/60   -
acme/crm        open, deferred  20.0 s ago  in 40.0 s  2.0 h ago  57/60   HTTP 503: the server could not answer
";
        assert_eq!(table(&connectors(), at()), expected);
    }

    #[test]
    fn one_is_shown_whole() {
        let expected = "\
connector       acme/crm
state           open, deferred
transport       stdio
revision        2026-07-28
outbox          acme://notifications
last read       20.0 s ago
next read       in 40.0 s
position moved  2.0 h ago
budget          57 of 60 reads left in this minute
last error      10.0 s ago, 4 in a row now
                HTTP 503: the server could not answer
";
        assert_eq!(whole(&connectors()[1], at()), expected);
        let pushed = ConnectorJson { outbox: None, push: true, ..connectors()[1].clone() };
        let shown = whole(&pushed, at());
        assert!(shown.contains("push queue      yes\n") && !shown.contains("position"), "{shown}");
        let never = ConnectorJson { state: "stopped".to_owned(), ..ConnectorJson::default() };
        assert!(whole(&never, at()).contains("last read       never\nnext read       -\n"));
    }
}
