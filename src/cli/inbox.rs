//! `switchbell inbox`: what is in a workspace's inbox, and what people did with it. Reading looks into the store beside a
//! running server; what is changed goes through it.

mod mark;

use std::path::Path;
use std::process::ExitCode;

use super::output::{NotificationJson, fail, print, print_for_people, print_json, tell};
use super::table::aligned;
use super::{COULD_NOT_RUN, FOUND_WRONG, deliveries, workspace};
use crate::clock::Clock;
use crate::config::{self, Places};
use crate::inbox::sqlite::SqliteInbox;
use crate::inbox::{Deed, Inbox, InboxError, Mark, Marks, Page, Which};
use crate::notification::{Name, Notification};

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Lists notifications, newest first.
    List(List),
    /// Shows one notification whole, with its deliveries.
    Show(Show),
    /// Marks notifications as read by a person.
    Read(mark::Mark),
    /// Acknowledges notifications as a person, which makes deliveries with `unless: acknowledged` needless.
    Ack(mark::Mark),
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
        Command::Read(asked) => mark::run(file, Deed::Read, asked).await,
        Command::Ack(asked) => mark::run(file, Deed::Acknowledge, asked).await,
    }
}

async fn list(file: &Path, asked: &List) -> ExitCode {
    let (inbox, workspace) = match open(file, asked.workspace.as_ref()) {
        Ok(opened) => opened,
        Err(code) => return code,
    };
    let page = Page { workspace, before: asked.before, limit: asked.limit };
    match listed(&inbox, page).await {
        Ok(found) if asked.json => print_json(&found.iter().map(NotificationJson::from).collect::<Vec<_>>()),
        Ok(found) if found.is_empty() => print("no notifications\n"),
        Ok(found) => print_for_people(&table(&found)),
        Err(error) => fail(error),
    }
}

async fn listed(inbox: &SqliteInbox, page: Page) -> Result<Vec<(Notification, Marks)>, InboxError> {
    let workspace = page.workspace.clone();
    let found = inbox.notifications(page).await?;
    let marks = inbox.marks(&workspace, found.iter().map(|one| one.seq).collect()).await?;
    Ok(found.into_iter().zip(marks).collect())
}

async fn show(file: &Path, asked: &Show) -> ExitCode {
    let (inbox, workspace) = match open(file, asked.workspace.as_ref()) {
        Ok(opened) => opened,
        Err(code) => return code,
    };
    // The newest deliveries of one notification are all of them: a route has few targets, a workspace few routes.
    let page = Page { workspace: workspace.clone(), before: None, limit: 1_000 };
    let which = Which { seq: Some(asked.seq), ..Which::default() };
    match found(&inbox, &workspace, asked.seq).await {
        Ok(Some(found)) if asked.json => print_json(&NotificationJson::from(&found)),
        Ok(Some(found)) => match inbox.deliveries(page, which).await {
            Ok(owed) => print_for_people(&(whole(&found) + &deliveries::of_one(&owed, Clock::system().now()))),
            Err(error) => fail(error),
        },
        Ok(None) => {
            tell(format_args!("switchbell: workspace {workspace} has no notification {}", asked.seq));
            ExitCode::from(FOUND_WRONG)
        }
        Err(error) => fail(error),
    }
}

async fn found(inbox: &SqliteInbox, workspace: &Name, seq: u64) -> Result<Option<(Notification, Marks)>, InboxError> {
    let Some(found) = inbox.notification(workspace, seq).await? else { return Ok(None) };
    let marks = inbox.marks(workspace, vec![seq]).await?.pop();
    Ok(Some((found, marks.unwrap_or_default())))
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

fn table(found: &[(Notification, Marks)]) -> String {
    let title = ["SEQ", "RECEIVED", "LEVEL", "MARK", "SOURCE", "NAME", "TITLE"];
    let mut rows = vec![title.map(str::to_owned).to_vec()];
    rows.extend(found.iter().map(|(one, marks)| {
        let (event, level, received) = (&one.event, one.effective_level, one.received_at);
        let title = event.title.clone();
        let (source, name) = (one.source.to_string(), event.name.clone());
        let mark = furthest(marks).to_owned();
        vec![one.seq.to_string(), received.to_string(), level.to_string(), mark, source, name, title]
    }));
    aligned(&rows)
}

/// What was done with a notification, in a word.
fn furthest(marks: &Marks) -> &'static str {
    match (&marks.read, &marks.acknowledged) {
        (_, Some(mark)) if mark.by.is_agent => "ack (agent)",
        (_, Some(_)) => "ack",
        (Some(_), None) => "read",
        (None, None) => "new",
    }
}

fn whole((one, marks): &(Notification, Marks)) -> String {
    let event = &one.event;
    let level = if event.level == one.effective_level {
        event.level.to_string()
    } else {
        format!("{} (the source says {}, its ceiling is lower)", one.effective_level, event.level)
    };
    let fields = [
        ("workspace", Some(one.workspace.to_string())),
        ("source", Some(one.source.to_string())),
        ("event id", Some(event.event_id.clone())),
        ("name", Some(event.name.clone())),
        ("level", Some(level)),
        ("happened", Some(event.timestamp.to_string())),
        ("received", Some(one.received_at.to_string())),
        ("subject", event.subject.clone()),
        ("link", event.link.clone()),
        ("read", marks.read.as_ref().map(done_by)),
        ("ack", marks.acknowledged.as_ref().map(done_by)),
    ]
    .map(|(label, value)| value.map_or_else(String::new, |value| format!("{label:<10} {value}\n")));
    let body = event.body.as_deref().map_or_else(String::new, |body| format!("\n{body}\n"));
    format!("#{} {}\n\n{}{body}\ndata {}\n", one.seq, event.title, fields.concat(), event.data)
}

fn done_by(mark: &Mark) -> String {
    let agent = if mark.by.is_agent { " (an agent)" } else { "" };
    format!("{} by {}{agent}", mark.at, mark.by.name)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::inbox::Actor;
    use crate::notification::{Event, Level};

    fn notification(seq: u64) -> Notification {
        Notification {
            workspace: "acme".parse().unwrap(),
            seq,
            source: "registrar".parse().unwrap(),
            received_at: "2026-09-01T18:42:10Z".parse().unwrap(),
            effective_level: Level::Attention,
            event: Event {
                event_id: "e-1".to_owned(),
                name: "domain.active".to_owned(),
                timestamp: "2026-09-01T18:42:00Z".parse().unwrap(),
                level: Level::Urgent,
                subject: Some("acme.example".to_owned()),
                title: "acme.example is active".to_owned(),
                body: Some("two\nlines".to_owned()),
                link: None,
                data: "{}".to_owned(),
            },
        }
    }

    fn mark(name: &str, is_agent: bool) -> Option<Mark> {
        let at = "2026-09-01T19:00:00Z".parse().unwrap();
        Some(Mark { at, by: Actor { name: name.to_owned(), is_agent } })
    }

    #[test]
    fn a_list_says_what_was_done_with_each() {
        let (person, agent) = (mark("admin@example.com", false), mark("triage", true));
        let marks = [
            Marks { read: person.clone(), acknowledged: person.clone() },
            Marks { read: agent.clone(), acknowledged: agent },
            Marks { read: person, acknowledged: None },
            Marks::default(),
        ];
        let found: Vec<_> = (9..=12).rev().map(notification).zip(marks).collect();
        expect![[r#"
            SEQ  RECEIVED              LEVEL      MARK         SOURCE     NAME           TITLE
            12   2026-09-01T18:42:10Z  attention  ack          registrar  domain.active  acme.example is active
            11   2026-09-01T18:42:10Z  attention  ack (agent)  registrar  domain.active  acme.example is active
            10   2026-09-01T18:42:10Z  attention  read         registrar  domain.active  acme.example is active
            9    2026-09-01T18:42:10Z  attention  new          registrar  domain.active  acme.example is active
        "#]]
        .assert_eq(&table(&found));
    }

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
        .assert_eq(&whole(&(notification(41), marks)));
    }
}
