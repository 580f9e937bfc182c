//! `switchbell deliveries`: what became of what was owed. Reads the store beside a running server.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use super::inbox::open;
use super::output::{DeliveryJson, fail, print, print_for_people, print_json};
use crate::inbox::{DeliveryView, Inbox, Page, Which};
use crate::notification::Name;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Lists deliveries, newest notification first.
    List(List),
}

#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// The workspace; may be left out when there is one.
    #[arg(long, value_name = "NAME")]
    workspace: Option<Name>,
    /// Only those of this notification.
    #[arg(long, value_name = "SEQ")]
    seq: Option<u64>,
    /// Only those of notifications with a smaller number.
    #[arg(long, value_name = "SEQ", conflicts_with = "seq")]
    before: Option<u64>,
    /// At most so many.
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(file: &Path, command: &Command) -> ExitCode {
    let Command::List(asked) = command;
    let (inbox, workspace) = match open(file, asked.workspace.as_ref()) {
        Ok(opened) => opened,
        Err(code) => return code,
    };
    match inbox
        .deliveries(
            Page { workspace, before: asked.before, limit: asked.limit },
            Which { seq: asked.seq, ..Which::default() },
        )
        .await
    {
        Ok(found) if asked.json => print_json(&found.iter().map(DeliveryJson::from).collect::<Vec<_>>()),
        Ok(found) if found.is_empty() => print("no deliveries\n"),
        Ok(found) => print_for_people(&table(&found)),
        Err(error) => fail(error),
    }
}

/// What became of one notification, below it.
pub(super) fn of_one(found: &[DeliveryView]) -> String {
    if found.is_empty() {
        return "\nno deliveries: no route matched when it came\n".to_owned();
    }
    format!("\ndeliveries\n{}", table(found))
}

fn table(found: &[DeliveryView]) -> String {
    let mut text = String::new();
    for one in found {
        let seqs = one.seqs.iter().map(|seq| format!("#{seq}")).collect::<Vec<_>>().join(" ");
        let last = one.attempts.last();
        let why = last.and_then(|attempt| attempt.reason.as_deref()).unwrap_or_default();
        let next = one.next_at.map_or_else(String::new, |at| format!("  next {at}"));
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{id:<12}  {seqs:<7}  {state:<9}  {route} -> {plugin}  {attempts}{next}  {why}",
            id = one.id.to_string(),
            state = one.state.as_str(),
            route = one.route,
            plugin = one.plugin,
            attempts = match one.attempts.len() {
                1 => "1 attempt".to_owned(),
                count => format!("{count} attempts"),
            },
        );
    }
    text
}
