//! `switchbell inbox show`.

use std::path::Path;
use std::process::ExitCode;

use super::{found, open};
use crate::cli::ask::no_server;
use crate::cli::control::{Control, NoAnswer};
use crate::cli::output::{DeliveryJson, NotificationJson, fail, print_for_people, print_json, tell};
use crate::cli::remote::Server;
use crate::cli::{FOUND_WRONG, deliveries};
use crate::clock::Clock;
use crate::inbox::{Inbox, Page, Which};
use crate::notification::Name;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Show {
    /// The notification's number.
    seq: u64,
    /// The workspace; may be left out when there is one.
    #[arg(long, value_name = "NAME")]
    workspace: Option<Name>,
    #[command(flatten)]
    server: Server,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(file: &Path, asked: &Show) -> ExitCode {
    match shown(file, asked).await {
        Ok((one, _)) if asked.json => print_json(&one),
        Ok((one, owed)) => print_for_people(&(whole(&one) + &owed)),
        Err(code) => code,
    }
}

/// The notification, and what became of it, in words.
async fn shown(file: &Path, asked: &Show) -> Result<(NotificationJson, String), ExitCode> {
    match asked.server.find(file, asked.workspace.as_ref()).await? {
        Some((control, workspace)) => of_server(&control, &workspace, asked.seq).await,
        None => of_store(file, asked).await,
    }
}

async fn of_server(control: &Control, workspace: &Name, seq: u64) -> Result<(NotificationJson, String), ExitCode> {
    let one = control.get(&format!("/v1/workspaces/{workspace}/notifications/{seq}")).await;
    let one = one.map_err(|error| no_server(&error))?;
    let owed = control.list::<DeliveryJson>(&format!("/v1/workspaces/{workspace}/deliveries?seq={seq}&limit=1000")).await;
    let owed = match owed {
        Ok(owed) => deliveries::of_one(&owed, Clock::system().now()),
        // An agent reads the inbox, and not what others are told.
        Err(NoAnswer::Refused(why)) => format!("\nno deliveries are shown: {why}\n"),
        Err(error) => return Err(no_server(&error)),
    };
    Ok((one, owed))
}

async fn of_store(file: &Path, asked: &Show) -> Result<(NotificationJson, String), ExitCode> {
    let (inbox, workspace) = open(file, asked.workspace.as_ref())?;
    let Some(one) = found(&inbox, &workspace, asked.seq).await.map_err(fail)? else {
        tell(format_args!("switchbell: workspace {workspace} has no notification {}", asked.seq));
        return Err(ExitCode::from(FOUND_WRONG));
    };
    // The newest deliveries of one notification are all of them: a route has few targets, a workspace few routes.
    let page = Page { workspace: workspace.clone(), before: None, limit: 1_000 };
    let which = Which { seq: Some(asked.seq), ..Which::default() };
    let owed = inbox.deliveries(page, which).await.map_err(fail)?;
    let owed: Vec<DeliveryJson> = owed.iter().map(DeliveryJson::from).collect();
    Ok((one, deliveries::of_one(&owed, Clock::system().now())))
}

fn whole(one: &NotificationJson) -> String {
    let level = if one.level == one.effective_level {
        one.level.clone()
    } else {
        format!("{} (the source says {}, its ceiling is lower)", one.effective_level, one.level)
    };
    let fields = [
        ("workspace", Some(one.workspace_id.clone())),
        ("source", Some(one.source.clone())),
        ("event id", Some(one.event_id.clone())),
        ("name", Some(one.name.clone())),
        ("level", Some(level)),
        ("happened", Some(one.timestamp.clone())),
        ("received", Some(one.received_at.clone())),
        ("subject", one.subject.clone()),
        ("link", one.link.as_ref().map(|link| link.resource.clone())),
        ("read", done_by(one.read_at.as_deref(), one.read_by.as_deref(), one.read_by_agent)),
        ("ack", done_by(one.acknowledged_at.as_deref(), one.acknowledged_by.as_deref(), one.acknowledged_by_agent)),
    ]
    .map(|(label, value)| value.map_or_else(String::new, |value| format!("{label:<10} {value}\n")));
    let body = one.body.as_deref().map_or_else(String::new, |body| format!("\n{body}\n"));
    let data = one.data.as_ref().map_or("null", |data| data.get());
    format!("#{} {}\n\n{}{body}\ndata {data}\n", one.seq, one.title, fields.concat())
}

fn done_by(at: Option<&str>, by: Option<&str>, is_agent: Option<bool>) -> Option<String> {
    let agent = if is_agent == Some(true) { " (an agent)" } else { "" };
    Some(format!("{} by {}{agent}", at?, by?))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::list::tests::{mark, notification};
    use super::*;
    use crate::inbox::Marks;

    #[test]
    fn one_is_shown_whole_with_who_did_what_and_when() {
        let marks = Marks { read: mark("admin@example.com", false), acknowledged: mark("triage", true) };
        expect![[r##"
            #41 acme.example is active

            workspace  acme
            source     registrar
            event id   e-1
            name       domain.active
            level      attention (the source says urgent, its ceiling is lower)
            happened   2026-09-01T18:42:00Z
            received   2026-09-01T18:42:10Z
            subject    acme.example
            read       2026-09-01T19:00:00Z by admin@example.com
            ack        2026-09-01T19:00:00Z by triage (an agent)

            two
            lines

            data {}
        "##]]
        .assert_eq(&whole(&NotificationJson::from(&(notification(41), marks))));
    }
}
