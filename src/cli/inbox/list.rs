//! `switchbell inbox list`.

use std::path::Path;
use std::process::ExitCode;

use super::filters::Filters;
use super::open;
use crate::cli::ask::no_server;
use crate::cli::control::Control;
use crate::cli::output::{NotificationJson, fail, print, print_for_people, print_json};
use crate::cli::remote::Server;
use crate::cli::table::aligned;
use crate::clock::Clock;
use crate::inbox::Reader;
use crate::inbox::sqlite::SqliteInbox;
use crate::notification::Name;
use crate::serve::shapes::ListJson;

/// The columns of a list.
pub(super) const TITLES: [&str; 7] = ["SEQ", "RECEIVED", "LEVEL", "MARK", "SOURCE", "NAME", "TITLE"];

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct List {
    /// The workspace; may be left out when there is one.
    #[arg(long, value_name = "NAME")]
    workspace: Option<Name>,
    #[command(flatten)]
    filters: Filters,
    /// At most so many.
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
    #[command(flatten)]
    server: Server,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(file: &Path, asked: &List) -> ExitCode {
    match listed(file, asked).await {
        Ok(found) if asked.json => print_json(&found),
        Ok(found) if found.is_empty() => print("no notifications\n"),
        Ok(found) => print_for_people(&table(&found)),
        Err(code) => code,
    }
}

/// Who has the inbox.
enum Source {
    Server(Control),
    Here(SqliteInbox),
}

async fn listed(file: &Path, asked: &List) -> Result<Vec<NotificationJson>, ExitCode> {
    let (source, workspace) = match asked.server.find(file, asked.workspace.as_ref()).await? {
        Some((control, workspace)) => (Source::Server(control), workspace),
        None => {
            let (inbox, workspace) = open(file, asked.workspace.as_ref())?;
            (Source::Here(inbox), workspace)
        }
    };
    // One moment for all parts.
    let mut filters = asked.filters.since(Clock::system().now());
    let mut found: Vec<NotificationJson> = Vec::new();
    loop {
        let left = asked.limit.saturating_sub(u32::try_from(found.len()).unwrap_or(u32::MAX));
        if left == 0 {
            return Ok(found);
        }
        let part = source.part(&workspace, &filters, left).await?;
        found.extend(part.items);
        match part.next {
            Some(next) => filters.go_on(next),
            None => return Ok(found),
        }
    }
}

impl Source {
    async fn part(
        &self,
        workspace: &Name,
        filters: &Filters,
        limit: u32,
    ) -> Result<ListJson<NotificationJson>, ExitCode> {
        match self {
            Self::Server(control) => {
                control.get(&filters.path(workspace, limit)).await.map_err(|error| no_server(&error))
            }
            Self::Here(inbox) => {
                let listed = inbox.list(filters.query(workspace.clone(), limit)?).await.map_err(fail)?;
                let items = listed.items.iter().map(NotificationJson::from).collect();
                Ok(ListJson { items, next: listed.next })
            }
        }
    }
}

fn table(found: &[NotificationJson]) -> String {
    let mut rows = vec![TITLES.map(str::to_owned).to_vec()];
    rows.extend(found.iter().map(row));
    aligned(&rows)
}

/// A notification in one line.
pub(super) fn row(one: &NotificationJson) -> Vec<String> {
    let NotificationJson { received_at, effective_level, source, name, title, .. } = one;
    let mark = furthest(one).to_owned();
    let [received, level, source, name, title] = [received_at, effective_level, source, name, title].map(String::clone);
    vec![one.seq.to_string(), received, level, mark, source, name, title]
}

/// What was done with a notification, in a word.
fn furthest(one: &NotificationJson) -> &'static str {
    match (&one.read_at, &one.acknowledged_at, one.acknowledged_by_agent) {
        (_, Some(_), Some(true)) => "ack (agent)",
        (_, Some(_), _) => "ack",
        (Some(_), None, _) => "read",
        (None, None, _) => "new",
    }
}

#[cfg(test)]
pub(super) mod tests {
    use expect_test::expect;

    use super::*;
    use crate::inbox::{Actor, Mark, Marks};
    use crate::notification::{Event, Level, Notification};

    pub(in crate::cli::inbox) fn notification(seq: u64) -> Notification {
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
                content: None,
            },
        }
    }

    pub(in crate::cli::inbox) fn mark(name: &str, is_agent: bool) -> Option<Mark> {
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
        let found: Vec<_> =
            (9..=12).rev().map(notification).zip(marks).map(|one| NotificationJson::from(&one)).collect();
        expect![[r#"
            SEQ  RECEIVED              LEVEL      MARK         SOURCE     NAME           TITLE
            12   2026-09-01T18:42:10Z  attention  ack          registrar  domain.active  acme.example is active
            11   2026-09-01T18:42:10Z  attention  ack (agent)  registrar  domain.active  acme.example is active
            10   2026-09-01T18:42:10Z  attention  read         registrar  domain.active  acme.example is active
            9    2026-09-01T18:42:10Z  attention  new          registrar  domain.active  acme.example is active
        "#]]
        .assert_eq(&table(&found));
    }
}
