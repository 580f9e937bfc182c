//! `switchbell deliveries show`: the whole life of one delivery at a glance.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use jiff::Timestamp;

use crate::cli::FOUND_WRONG;
use crate::cli::inbox::{open, open_places};
use crate::cli::output::{DeliveryJson, fail, print_for_people, print_json, tell};
use crate::cli::table::{ahead, aligned, count, cut};
use crate::clock::{Clock, until};
use crate::inbox::delivery::State;
use crate::inbox::sqlite::SqliteInbox;
use crate::inbox::{Attempt, DeliveryId, DeliveryView, Inbox, InboxError, Page, Which};
use crate::notification::{Name, Notification};
use crate::telemetry::rounded;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Show {
    /// The delivery's id, such as 5f3a9c01-17.
    id: DeliveryId,
    /// The workspace; may be left out when there is one.
    #[arg(long, value_name = "NAME")]
    workspace: Option<Name>,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(file: &Path, asked: &Show) -> ExitCode {
    let (inbox, workspace) = match open(file, asked.workspace.as_ref()) {
        Ok(opened) => opened,
        Err(code) => return code,
    };
    let view = match find(&inbox, &workspace, &asked.id).await {
        Ok(Some(view)) => view,
        Ok(None) => {
            missing(file, &inbox, &workspace, std::slice::from_ref(&asked.id)).await;
            return ExitCode::from(FOUND_WRONG);
        }
        Err(error) => return fail(error),
    };
    if asked.json {
        return print_json(&DeliveryJson::from(&view));
    }
    let mut content = Vec::with_capacity(view.seqs.len());
    for seq in &view.seqs {
        match inbox.notification(&workspace, *seq).await {
            Ok(found) => content.push((*seq, found)),
            Err(error) => return fail(error),
        }
    }
    print_for_people(&whole(&view, &content, Clock::system().now()))
}

async fn find(inbox: &SqliteInbox, workspace: &Name, id: &DeliveryId) -> Result<Option<DeliveryView>, InboxError> {
    let page = Page { workspace: workspace.clone(), before: None, limit: 1 };
    let which = Which { ids: vec![id.clone()], ..Which::default() };
    Ok(inbox.deliveries(page, which).await?.pop())
}

/// Says that a workspace does not have these deliveries, and which one does.
pub(super) async fn missing(file: &Path, inbox: &SqliteInbox, workspace: &Name, ids: &[DeliveryId]) {
    let others = open_places(file).map(|places| places.workspaces).unwrap_or_default();
    for id in ids {
        let mut remedy = "`switchbell deliveries list` shows those there are".to_owned();
        for other in others.iter().filter(|other| *other != workspace) {
            if let Ok(Some(_)) = find(inbox, other, id).await {
                remedy = format!("it is of the workspace {other}: add --workspace {other}");
            }
        }
        tell(format_args!("switchbell: workspace {workspace} has no delivery {id}: {remedy}"));
    }
}

fn whole(of: &DeliveryView, content: &[(u64, Option<Notification>)], now: Timestamp) -> String {
    let made = match &of.retry_of {
        Some(old) => format!("{}, because a person had {old} repeated", of.created_at),
        None => format!("{}, because the route matched", of.created_at),
    };
    let next = of.next_at.map(|at| format!("{} ({at})", ahead(at, now)));
    let mut text = format!("delivery {}\n\n", of.id);
    let fields = [
        ("state", Some(format!("{}: {}", of.state, mover(of.state)))),
        ("why", of.why.clone()),
        ("next", next),
        ("workspace", Some(of.workspace.to_string())),
        ("route", Some(format!("{} -> {} (target {})", of.route, of.plugin, of.target))),
        ("made", Some(made)),
        ("due", Some(of.due_at.to_string())),
        ("retry of", of.retry_of.as_ref().map(DeliveryId::to_string)),
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

fn notifications(of: &DeliveryView, content: &[(u64, Option<Notification>)]) -> String {
    let row = |(seq, found): &(u64, Option<Notification>)| {
        let seq = format!("  #{seq}");
        match found {
            Some(one) => vec![seq, one.effective_level.to_string(), cut(&one.event.title)],
            None => vec![seq, "-".to_owned(), "(no longer in the inbox)".to_owned()],
        }
    };
    let rows: Vec<Vec<String>> = content.iter().map(row).collect();
    let more = if of.omitted > 0 { format!("  and {} more\n", of.omitted) } else { String::new() };
    format!("\nnotifications\n{}{more}", aligned(&rows))
}

fn attempts(of: &DeliveryView) -> String {
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

fn row(attempt: &Attempt, of: &DeliveryView) -> Vec<String> {
    vec![
        format!("  {}", attempt.number),
        attempt.started_at.to_string(),
        rounded(until(attempt.started_at, attempt.ended_at)),
        attempt.outcome.to_string(),
        count(attempt.steps as usize, "step"),
        attempt.plugin_version.as_ref().map_or_else(|| "-".to_owned(), |version| format!("{} {version}", of.plugin)),
    ]
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::views_for_tests::{at, attempt, digest, retrying};
    use super::*;
    use crate::inbox::delivery::Outcome;
    use crate::notification::{Event, Level};

    fn notification(seq: u64, title: &str) -> (u64, Option<Notification>) {
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
        };
        let one = Notification {
            workspace: "acme".parse().unwrap(),
            seq,
            source: "registrar".parse().unwrap(),
            received_at: at("18:42:10"),
            effective_level: Level::Attention,
            event,
        };
        (seq, Some(one))
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
        .assert_eq(&whole(&view, &[notification(41, "acme.example is active")], at("18:42:30")));
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
        .assert_eq(&whole(&digest(), &content, at("18:42:30")));
    }

    #[test]
    fn every_state_says_what_moves_it() {
        for state in State::ALL {
            assert!(!mover(state).is_empty());
        }
    }
}
