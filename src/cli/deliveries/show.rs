//! `switchbell deliveries show`: the whole life of one delivery at a glance.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use jiff::Timestamp;

use crate::cli::FOUND_WRONG;
use crate::cli::ask::no_server;
use crate::cli::control::Control;
use crate::cli::inbox::{found, open, open_places};
use crate::cli::output::{DeliveryJson, NotificationJson, fail, print_for_people, print_json, tell};
use crate::cli::remote::Server;
use crate::cli::table::{ahead, aligned, count, cut};
use crate::clock::{Clock, until};
use crate::inbox::delivery::State;
use crate::inbox::sqlite::SqliteInbox;
use crate::inbox::{DeliveryId, DeliveryView, Inbox, InboxError, Page, Which};
use crate::notification::Name;
use crate::serve::shapes::AttemptJson;
use crate::telemetry::rounded;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Show {
    /// The delivery's id, such as 5f3a9c01-17.
    id: DeliveryId,
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
        Ok((view, _)) if asked.json => print_json(&view),
        Ok((view, content)) => print_for_people(&whole(&view, &content, Clock::system().now())),
        Err(code) => code,
    }
}

/// A delivery, and the notifications it stands for as far as they are still there.
type Shown = (DeliveryJson, Vec<(u64, Option<NotificationJson>)>);

async fn shown(file: &Path, asked: &Show) -> Result<Shown, ExitCode> {
    if let Some((control, workspace)) = asked.server.find(file, asked.workspace.as_ref()).await? {
        return of_server(&control, &workspace, &asked.id).await;
    }
    let (inbox, workspace) = open(file, asked.workspace.as_ref())?;
    let Some(view) = find(&inbox, &workspace, &asked.id).await.map_err(fail)? else {
        missing(file, &asked.server, &workspace, std::slice::from_ref(&asked.id)).await?;
        return Err(ExitCode::from(FOUND_WRONG));
    };
    let mut content = Vec::with_capacity(view.seqs.len());
    for seq in &view.seqs {
        content.push((*seq, found(&inbox, &workspace, *seq).await.map_err(fail)?));
    }
    Ok((DeliveryJson::from(&view), content))
}

async fn of_server(control: &Control, workspace: &Name, id: &DeliveryId) -> Result<Shown, ExitCode> {
    let view: DeliveryJson =
        control.get(&format!("/v1/workspaces/{workspace}/deliveries/{id}")).await.map_err(|error| no_server(&error))?;
    let seqs = view.notifications.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
    let path = format!("/v1/workspaces/{workspace}/notifications?limit=1000&seqs={seqs}");
    let mut there: Vec<NotificationJson> = control.list(&path).await.map_err(|error| no_server(&error))?;
    let mut take = |seq: u64| {
        let at = there.iter().position(|one| one.seq == seq)?;
        Some(there.swap_remove(at))
    };
    let content = view.notifications.iter().map(|seq| (*seq, take(*seq))).collect();
    Ok((view, content))
}

async fn find(inbox: &SqliteInbox, workspace: &Name, id: &DeliveryId) -> Result<Option<DeliveryView>, InboxError> {
    let page = Page { workspace: workspace.clone(), before: None, limit: 1 };
    let which = Which { ids: vec![id.clone()], ..Which::default() };
    Ok(inbox.deliveries(page, which).await?.pop())
}

/// Says that a workspace does not have these deliveries, and which one does as far as that can be seen here.
pub(super) async fn missing(
    file: &Path,
    server: &Server,
    workspace: &Name,
    ids: &[DeliveryId],
) -> Result<(), ExitCode> {
    let here = if server.server.is_some() { None } else { Some(open(file, Some(workspace))?.0) };
    let others = here.as_ref().and_then(|_| open_places(file).ok()).map(|places| places.workspaces).unwrap_or_default();
    for id in ids {
        let mut remedy = "`switchbell deliveries list` shows those there are".to_owned();
        for other in others.iter().filter(|other| *other != workspace) {
            if let Some(inbox) = &here
                && let Ok(Some(_)) = find(inbox, other, id).await
            {
                remedy = format!("it is of the workspace {other}: add --workspace {other}");
            }
        }
        tell(format_args!("switchbell: workspace {workspace} has no delivery {id}: {remedy}"));
    }
    Ok(())
}

fn whole(of: &DeliveryJson, content: &[(u64, Option<NotificationJson>)], now: Timestamp) -> String {
    let made = match &of.retry_of {
        Some(old) => format!("{}, because a person had {old} repeated", of.created_at),
        None => format!("{}, because the route matched", of.created_at),
    };
    let next = of.next_at.as_deref().map(|at| match at.parse() {
        Ok(moment) => format!("{} ({at})", ahead(moment, now)),
        Err(_) => at.to_owned(),
    });
    let mover = State::parse(&of.state).map_or("this command does not know that state", mover);
    let mut text = format!("delivery {}\n\n", of.id);
    let fields = [
        ("state", Some(format!("{}: {mover}", of.state))),
        ("why", of.why.clone()),
        ("next", next),
        ("workspace", Some(of.workspace_id.clone())),
        ("route", Some(format!("{} -> {} (target {})", of.route, of.plugin, of.target))),
        ("made", Some(made)),
        ("due", Some(of.due_at.clone())),
        ("retry of", of.retry_of.clone()),
    ];
    for (label, value) in fields {
        if let Some(value) = value {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{label:<10} {value}");
        }
    }
    text + &notifications(of, content) + &attempts(of)
}

/// What a state means, and who or what moves the delivery on.
fn mover(state: State) -> &'static str {
    match state {
        State::Scheduled => "its `after` has not passed; time moves it on, or an acknowledgement makes it needless",
        State::Held => "it waits for the end of quiet hours",
        State::Collecting => "a digest that is still open; time closes it, or its being full",
        State::Pending => "due; it goes as soon as its lanes are free",
        State::InFlight => "an attempt runs; its outcome moves it on",
        State::Waiting => "its plugin waits; the same attempt goes on when the time has come",
        State::Retrying => "an attempt failed; the next one is made when its time has come",
        State::Blocked => "a person must mend what it says here; then `switchbell deliveries retry` lets it go on",
        State::Delivered => "nothing moves it any more",
        State::Dead => "given up; `switchbell deliveries retry` has it tried again",
        State::Unknown => {
            "it may or may not have been made, and a repeat may do harm; `switchbell deliveries retry` makes a new one"
        }
        State::Suppressed => "it is not needed any more; nothing moves it",
        State::Cancelled => "nothing moves it any more; `switchbell deliveries retry` makes a new one",
    }
}

fn notifications(of: &DeliveryJson, content: &[(u64, Option<NotificationJson>)]) -> String {
    let row = |(seq, found): &(u64, Option<NotificationJson>)| {
        let seq = format!("  #{seq}");
        match found {
            Some(one) => vec![seq, one.effective_level.clone(), cut(&one.title)],
            None => vec![seq, "-".to_owned(), "(no longer in the inbox)".to_owned()],
        }
    };
    let rows: Vec<Vec<String>> = content.iter().map(row).collect();
    let more = if of.omitted > 0 { format!("  and {} more\n", of.omitted) } else { String::new() };
    format!("\nnotifications\n{}{more}", aligned(&rows))
}

fn attempts(of: &DeliveryJson) -> String {
    if of.attempts.is_empty() {
        return "\nno attempts yet\n".to_owned();
    }
    let rows: Vec<Vec<String>> = of.attempts.iter().map(|attempt| row(attempt, of)).collect();
    let lines = aligned(&rows);
    let mut text = "\nattempts\n".to_owned();
    for (line, attempt) in lines.lines().zip(&of.attempts) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{line}");
        for line in attempt.reason.as_deref().unwrap_or_default().lines() {
            let _ = writeln!(text, "      {line}");
        }
    }
    text
}

fn row(attempt: &AttemptJson, of: &DeliveryJson) -> Vec<String> {
    let moment = |at: &str| at.parse::<Timestamp>().ok();
    let took = moment(&attempt.started_at).zip(moment(&attempt.ended_at)).map(|(from, to)| rounded(until(from, to)));
    vec![
        format!("  {}", attempt.number),
        attempt.started_at.clone(),
        took.unwrap_or_else(|| "-".to_owned()),
        attempt.outcome.clone(),
        count(attempt.steps as usize, "step"),
        attempt.plugin_version.as_ref().map_or_else(|| "-".to_owned(), |version| format!("{} {version}", of.plugin)),
    ]
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::views_for_tests::{at, attempt, digest, retrying};
    use super::*;
    use crate::inbox::Marks;
    use crate::inbox::delivery::Outcome;
    use crate::notification::{Event, Level, Notification};

    fn notification(seq: u64, title: &str) -> (u64, Option<NotificationJson>) {
        let event = Event {
            event_id: format!("event-{seq}"),
            name: "domain.active".to_owned(),
            timestamp: at("18:42:00"),
            level: Level::Attention,
            subject: None,
            title: title.to_owned(),
            body: None,
            link: None,
            data: "{}".to_owned(),
            content: None,
        };
        let one = Notification {
            workspace: "acme".parse().unwrap(),
            seq,
            source: "registrar".parse().unwrap(),
            received_at: at("18:42:10"),
            effective_level: Level::Attention,
            event,
        };
        (seq, Some(NotificationJson::from(&(one, Marks::default()))))
    }

    #[test]
    fn the_life_of_a_delivery_is_read_at_a_glance() {
        let mut view = retrying();
        view.attempts.push(attempt(2, Outcome::Unknown, None));
        expect![[r#"
            delivery 5f3a9c01-17

            state      retrying: an attempt failed; the next one is made when its time has come
            next       in 12.0 s (2026-09-01T18:42:42Z)
            workspace  acme
            route      domain-news -> slack (target ops)
            made       2026-09-01T18:42:10Z, because the route matched
            due        2026-09-01T18:42:10Z

            notifications
              #41  attention  acme.example is active

            attempts
              1  2026-09-01T18:42:10Z  120 ms  retry    1 step   slack 0.2.0
                  HTTP 503: the server could not answer
              2  2026-09-01T18:42:10Z  120 ms  unknown  2 steps  slack 0.2.0
        "#]]
        .assert_eq(&whole(&DeliveryJson::from(&view), &[notification(41, "acme.example is active")], at("18:42:30")));
    }

    #[test]
    fn a_digest_shows_what_it_holds_and_how_many_more() {
        let content = [notification(41, "one"), notification(43, "two"), (44, None)];
        expect![[r#"
            delivery 5f3a9c01-18

            state      blocked: a person must mend what it says here; then `switchbell deliveries retry` lets it go on
            why        plugin slack is not loaded
            workspace  acme
            route      domain-news -> slack (target ops)
            made       2026-09-01T18:42:10Z, because a person had 5f3a9c01-3 repeated
            due        2026-09-01T18:42:10Z
            retry of   5f3a9c01-3

            notifications
              #41  attention  one
              #43  attention  two
              #44  -          (no longer in the inbox)
              and 37 more

            no attempts yet
        "#]]
        .assert_eq(&whole(&DeliveryJson::from(&digest()), &content, at("18:42:30")));
    }

    #[test]
    fn every_state_says_what_moves_it() {
        for state in State::ALL {
            assert!(!mover(state).is_empty());
        }
    }
}
