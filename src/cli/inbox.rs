//! `switchbell inbox`: what is in a workspace's inbox. Reads the store beside a running server.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use super::output::{NotificationJson, fail, print, print_for_people, print_json, tell};
use super::{COULD_NOT_RUN, FOUND_WRONG, deliveries, workspace};
use crate::config::{self, Places};
use crate::inbox::sqlite::SqliteInbox;
use crate::inbox::{Inbox, Page, Which};
use crate::notification::{Name, Notification};

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Lists notifications, newest first.
    List(List),
    /// Shows one notification whole.
    Show(Show),
}

#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// The workspace; may be left out when there is one.
    #[arg(long, value_name = "NAME")]
    workspace: Option<Name>,
    /// Only notifications with a smaller number.
    #[arg(long, value_name = "SEQ")]
    before: Option<u64>,
    /// At most so many.
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Show {
    /// The notification's number.
    seq: u64,
    /// The workspace; may be left out when there is one.
    #[arg(long, value_name = "NAME")]
    workspace: Option<Name>,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(file: &Path, command: &Command) -> ExitCode {
    match command {
        Command::List(list) => self::list(file, list).await,
        Command::Show(show) => self::show(file, show).await,
    }
}

async fn list(file: &Path, asked: &List) -> ExitCode {
    let (inbox, workspace) = match open(file, asked.workspace.as_ref()) {
        Ok(opened) => opened,
        Err(code) => return code,
    };
    match inbox.notifications(Page { workspace, before: asked.before, limit: asked.limit }).await {
        Ok(found) if asked.json => print_json(&found.iter().map(NotificationJson::from).collect::<Vec<_>>()),
        Ok(found) if found.is_empty() => print("no notifications\n"),
        Ok(found) => print_for_people(&table(&found)),
        Err(error) => fail(error),
    }
}

async fn show(file: &Path, asked: &Show) -> ExitCode {
    let (inbox, workspace) = match open(file, asked.workspace.as_ref()) {
        Ok(opened) => opened,
        Err(code) => return code,
    };
    match inbox.notification(&workspace, asked.seq).await {
        Ok(Some(found)) if asked.json => print_json(&NotificationJson::from(&found)),
        Ok(Some(found)) => {
            // The newest deliveries of one notification are all of them: a route has few targets, a workspace few routes.
            let page = Page { workspace, before: None, limit: 1_000 };
            match inbox.deliveries(page, Which { seq: Some(asked.seq), ..Which::default() }).await {
                Ok(owed) => print_for_people(&(whole(&found) + &deliveries::of_one(&owed))),
                Err(error) => fail(error),
            }
        }
        Ok(None) => {
            tell(format_args!("switchbell: workspace {workspace} has no notification {}", asked.seq));
            ExitCode::from(FOUND_WRONG)
        }
        Err(error) => fail(error),
    }
}

/// The store of the configuration, opened to read, and the workspace that is asked for.
pub(super) fn open(file: &Path, named: Option<&Name>) -> Result<(SqliteInbox, Name), ExitCode> {
    let places = open_places(file)?;
    let workspace = workspace(&places.workspaces, named)?;
    let inbox = SqliteInbox::open_to_read(&places.store).map_err(fail)?;
    Ok((inbox, workspace))
}

/// Where the server of the configuration keeps things.
pub(super) fn open_places(file: &Path) -> Result<Places, ExitCode> {
    config::places(file, &config::process_environment).map_err(|problems| {
        tell(problems);
        ExitCode::from(COULD_NOT_RUN)
    })
}

fn table(found: &[Notification]) -> String {
    let mut text = String::new();
    for one in found {
        let (event, level) = (&one.event, one.effective_level);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{seq:>6}  {received}  {level:<9}  {source}  {name}  {title}",
            seq = one.seq,
            received = one.received_at,
            source = one.source,
            name = event.name,
            title = event.title,
        );
    }
    text
}

fn whole(one: &Notification) -> String {
    let event = &one.event;
    let level = if event.level == one.effective_level {
        event.level.to_string()
    } else {
        format!("{} (the source says {}, its ceiling is lower)", one.effective_level, event.level)
    };
    let fields = [
        ("workspace", Some(one.workspace.as_str())),
        ("source", Some(one.source.as_str())),
        ("event id", Some(event.event_id.as_str())),
        ("name", Some(event.name.as_str())),
        ("level", Some(level.as_str())),
        ("happened", Some(&*event.timestamp.to_string())),
        ("received", Some(&*one.received_at.to_string())),
        ("subject", event.subject.as_deref()),
        ("link", event.link.as_deref()),
    ]
    .map(|(label, value)| value.map_or_else(String::new, |value| format!("{label:<10} {value}\n")));
    let body = event.body.as_deref().map_or_else(String::new, |body| format!("\n{body}\n"));
    format!("#{} {}\n\n{}{body}\ndata {}\n", one.seq, event.title, fields.concat(), event.data)
}
