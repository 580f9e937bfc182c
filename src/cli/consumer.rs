//! `switchbell consumer list`: consumers, and how their queues stand; from the running server, or from the store.

use std::path::Path;
use std::process::ExitCode;

use jiff::Timestamp;

use super::ask::no_server;
use super::control::{Control, NoAnswer};
use super::inbox::open_places;
use super::output::{fail, print, print_for_people, print_json};
use super::remote::Server;
use super::table::aligned;
use super::{load, workspace};
use crate::clock::{Clock, until};
use crate::config::Places;
use crate::inbox::Queues;
use crate::inbox::sqlite::SqliteInbox;
use crate::notification::Name;
use crate::serve::shapes::ConsumerJson;
use crate::telemetry::rounded;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Lists consumers, and how many events wait for each and were lost.
    List(List),
}

#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// Only of this workspace.
    #[arg(long, value_name = "NAME")]
    workspace: Option<Name>,
    #[command(flatten)]
    server: Server,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(file: &Path, Command::List(asked): &Command) -> ExitCode {
    match listed(file, asked).await {
        Ok(found) if asked.json => print_json(&found),
        Ok(found) if found.is_empty() => print("no consumers\n"),
        Ok(found) => print_for_people(&table(&found, Clock::system().now())),
        Err(code) => code,
    }
}

async fn listed(file: &Path, asked: &List) -> Result<Vec<ConsumerJson>, ExitCode> {
    if let Some(control) = asked.server.control(file)? {
        return control.list_of_each("consumers", asked.workspace.as_ref()).await.map_err(|error| no_server(&error));
    }
    let places = open_places(file)?;
    let only = asked.workspace.as_ref().map(|name| workspace(&places.workspaces, Some(name))).transpose()?;
    let answer = match Control::of(&places.store) {
        Ok(control) => control.list_of_each("consumers", only.as_ref()).await,
        Err(no_answer) => Err(no_answer),
    };
    match answer {
        Ok(found) => Ok(found),
        Err(NoAnswer::NotRunning) => of_store(file, &places, only.as_ref()).await,
        Err(NoAnswer::Nothing(why) | NoAnswer::Refused(why)) => Err(fail(why)),
    }
}

async fn of_store(file: &Path, places: &Places, only: Option<&Name>) -> Result<Vec<ConsumerJson>, ExitCode> {
    let config = load(file)?;
    let inbox = SqliteInbox::open_to_read(&places.store).map_err(fail)?;
    let mut found = Vec::new();
    for name in places.workspaces.iter().filter(|name| only.is_none_or(|only| only == *name)) {
        let queues = inbox.queues(name).await.map_err(fail)?;
        found.extend(ConsumerJson::all(name, config.workspaces.get(name), &queues));
    }
    Ok(found)
}

fn table(found: &[ConsumerJson], now: Timestamp) -> String {
    let title = ["CONSUMER", "WAIT", "OLDEST", "JOINED", "ACKNOWLEDGED", "LAST", "LOST", "NOTE"];
    let mut rows = vec![title.map(str::to_owned).to_vec()];
    rows.extend(found.iter().map(|consumer| row(consumer, now)));
    aligned(&rows)
}

fn row(of: &ConsumerJson, now: Timestamp) -> Vec<String> {
    let notes = [
        (of.is_losing, "loses events"),
        (!of.is_configured, "not in the file any more"),
        (of.is_live == Some(true), "told live"),
    ];
    let notes: Vec<&str> = notes.into_iter().filter(|(is_so, _)| *is_so).map(|(_, note)| note).collect();
    vec![
        format!("{}/{}", of.workspace_id, of.name),
        of.pending.to_string(),
        ago(of.oldest_received_at.as_deref(), now),
        of.joined.to_string(),
        of.acknowledged.to_string(),
        ago(of.acknowledged_at.as_deref(), now),
        of.lost.to_string(),
        if notes.is_empty() { "-".to_owned() } else { notes.join(", ") },
    ]
}

fn ago(moment: Option<&str>, now: Timestamp) -> String {
    match moment.and_then(|moment| moment.parse().ok()) {
        Some(moment) => format!("{} ago", rounded(until(moment, now))),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_a_line_for_each_and_says_what_is_wrong() {
        let busy = ConsumerJson {
            workspace_id: "acme".to_owned(),
            name: "triage".to_owned(),
            pending: 10_000,
            oldest_received_at: Some("2026-09-01T16:42:30Z".to_owned()),
            joined: 10_012,
            lost: 12,
            is_losing: true,
            is_configured: true,
            is_live: Some(true),
            ..ConsumerJson::default()
        };
        let gone = ConsumerJson {
            name: "audit".to_owned(),
            joined: 4,
            acknowledged: 4,
            acknowledged_at: Some("2026-09-01T18:42:10Z".to_owned()),
            pending: 0,
            oldest_received_at: None,
            lost: 0,
            is_losing: false,
            is_configured: false,
            is_live: Some(false),
            ..busy.clone()
        };
        let expected = "\
CONSUMER     WAIT   OLDEST     JOINED  ACKNOWLEDGED  LAST        LOST  NOTE
acme/audit   0      -          4       4             20.0 s ago  0     not in the file any more
acme/triage  10000  2.0 h ago  10012   0             -           12    loses events, told live
";
        assert_eq!(table(&[gone, busy], "2026-09-01T18:42:30Z".parse().unwrap()), expected);
    }
}
