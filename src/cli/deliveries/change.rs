//! `switchbell deliveries retry` and `cancel`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use jiff::Timestamp;

use super::{Filters, show};
use crate::cli::output::{fail, print_for_people, print_json, tell};
use crate::cli::remote::Server;
use crate::cli::way::Way;
use crate::cli::FOUND_WRONG;
use crate::clock::Clock;
use crate::inbox::delivery::State;
use crate::inbox::{DeliveryId, HANDLED_MAX};
use crate::notification::Name;
pub(super) use crate::serve::desk::Change;
use crate::serve::desk::{HandledJson, WhichJson, unnamed, why_not};

/// Which deliveries are meant: ids, or filters.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Meant {
    /// Ids, such as 5f3a9c01-17.
    #[arg(value_name = "ID", conflicts_with_all = ["state", "route", "plugin", "since", "seq", "all"])]
    ids: Vec<DeliveryId>,
    /// All of the workspace that the filters allow. Without --state these are the dead and blocked ones for `retry`, and
    /// those that are not over for `cancel`.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    filters: Filters,
    /// The workspace; may be left out when there is one.
    #[arg(long, value_name = "NAME")]
    workspace: Option<Name>,
    #[command(flatten)]
    server: Server,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(file: &Path, change: Change, meant: &Meant) -> ExitCode {
    match changed(file, change, meant).await {
        Ok(code) | Err(code) => code,
    }
}

async fn changed(file: &Path, change: Change, meant: &Meant) -> Result<ExitCode, ExitCode> {
    let requests = meant.requests(Clock::system().now());
    if requests.iter().any(WhichJson::is_empty) {
        return Err(fail(unnamed(change)));
    }
    let (way, workspace) = Way::find(file, &meant.server, meant.workspace.as_ref()).await?;
    let mut handled = HandledJson::default();
    for request in requests {
        if let Err(code) = ask(&way, &workspace, change, &request, &mut handled).await {
            // What was done before is said all the same.
            say(change, meant, &handled);
            return Err(code);
        }
    }
    let printed = say(change, meant, &handled);
    if !handled.missing.is_empty() {
        let ids: Vec<DeliveryId> = handled.missing.iter().filter_map(|id| id.parse().ok()).collect();
        show::missing(file, &meant.server, &workspace, &ids).await?;
    }
    let is_whole = handled.refused.is_empty() && handled.missing.is_empty();
    Ok(if is_whole { printed } else { ExitCode::from(FOUND_WRONG) })
}

impl Meant {
    fn requests(&self, now: Timestamp) -> Vec<WhichJson> {
        if self.ids.is_empty() {
            let which = self.filters.which(now);
            return vec![WhichJson {
                ids: Vec::new(),
                states: which.states.iter().map(State::to_string).collect(),
                route: which.route.map(|name| name.to_string()),
                plugin: which.plugin.map(|name| name.to_string()),
                since: which.since.map(|at| at.to_string()),
                seq: which.seq,
                all: self.all,
            }];
        }
        let ids: BTreeSet<&DeliveryId> = self.ids.iter().collect();
        let ids: Vec<String> = ids.into_iter().map(DeliveryId::to_string).collect();
        let chunks = ids.chunks(HANDLED_MAX as usize);
        chunks.map(|ids| WhichJson { ids: ids.to_vec(), ..WhichJson::default() }).collect()
    }
}

/// Asks until nothing more is meant, as far as what is done is not meant again.
async fn ask(
    way: &Way,
    workspace: &Name,
    change: Change,
    request: &WhichJson,
    handled: &mut HandledJson,
) -> Result<(), ExitCode> {
    let mut known = BTreeSet::new();
    loop {
        let next = way.change(workspace, change, request).await?;
        let has_more = next.has_more;
        let is_new = next.done.iter().all(|done| known.insert(done.id.clone())) && !next.done.is_empty();
        add(handled, next);
        if !(has_more && is_new && moves_out(change, request)) {
            return Ok(());
        }
    }
}

fn add(handled: &mut HandledJson, next: HandledJson) {
    handled.has_more = next.has_more;
    handled.done.extend(next.done);
    handled.missing.extend(next.missing);
    for refused in next.refused {
        if !handled.refused.contains(&refused) {
            handled.refused.push(refused);
        }
    }
}

/// Whether what is done is no longer meant: a new delivery of one that is over leaves that one where it is.
fn moves_out(change: Change, request: &WhichJson) -> bool {
    let waits = |state: &String| Change::Retry.states().iter().any(|other| other.as_str() == state);
    match change {
        Change::Cancel => true,
        Change::Retry => request.states.iter().all(waits),
    }
}

fn say(change: Change, meant: &Meant, handled: &HandledJson) -> ExitCode {
    if handled.has_more {
        tell(format_args!("there are more: run the command again for the rest"));
    }
    if meant.json { print_json(handled) } else { print_for_people(&told(change, handled)) }
}

fn told(change: Change, handled: &HandledJson) -> String {
    if handled.done.is_empty() && handled.refused.is_empty() && handled.missing.is_empty() {
        return format!("nothing to {}\n", change.as_str());
    }
    let mut text = String::new();
    for done in &handled.done {
        text.push_str(&match (change, &done.new_id) {
            (_, Some(new)) => format!("{}: made again as {new}\n", done.id),
            (Change::Retry, None) => format!("{}: goes on at once\n", done.id),
            (Change::Cancel, None) => format!("{}: cancelled\n", done.id),
        });
    }
    for refused in &handled.refused {
        text.push_str(&format!("{}: refused: {}\n", refused.id, why_not(change, refused)));
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use expect_test::expect;

    use super::*;
    use crate::serve::desk::{DoneJson, RefusedJson};

    #[derive(Debug, Parser)]
    struct Arguments {
        #[command(flatten)]
        meant: Meant,
    }

    fn parse(arguments: &str) -> Result<Meant, String> {
        let words = std::iter::once("retry").chain(arguments.split_whitespace());
        Arguments::try_parse_from(words).map(|arguments| arguments.meant).map_err(|error| error.to_string())
    }

    fn requests(arguments: &str) -> Vec<WhichJson> {
        parse(arguments).unwrap().requests("2026-09-01T18:42:30Z".parse().unwrap())
    }

    fn handled() -> HandledJson {
        let done = |id: &str, new: Option<&str>| DoneJson { id: id.to_owned(), new_id: new.map(str::to_owned) };
        let refused = |id: &str, state: &str| RefusedJson { id: id.to_owned(), state: state.to_owned() };
        HandledJson {
            done: vec![done("5f3a9c01-1", None), done("5f3a9c01-2", Some("5f3a9c01-9"))],
            refused: vec![
                refused("5f3a9c01-3", "in_flight"),
                refused("5f3a9c01-4", "pending"),
                refused("5f3a9c01-5", "dead"),
            ],
            ..HandledJson::default()
        }
    }

    #[test]
    fn what_was_done_is_said_for_each() {
        expect![[r#"
            5f3a9c01-1: goes on at once
            5f3a9c01-2: made again as 5f3a9c01-9
            5f3a9c01-3: refused: it is in_flight: its attempt runs; wait for the outcome
            5f3a9c01-4: refused: it is pending: it goes by itself
            5f3a9c01-5: refused: it is dead: its target is no longer in the configuration
        "#]]
        .assert_eq(&told(Change::Retry, &handled()));
        let cancelled = HandledJson { done: handled().done[..1].to_vec(), ..HandledJson::default() };
        assert_eq!(told(Change::Cancel, &cancelled), "5f3a9c01-1: cancelled\n");
        assert_eq!(told(Change::Retry, &HandledJson::default()), "nothing to retry\n");
    }

    #[test]
    fn deliveries_are_meant_by_id_or_by_filter_and_never_by_silence() {
        assert_eq!(requests("5f3a9c01-2 5f3a9c01-1 5f3a9c01-2")[0].ids, ["5f3a9c01-1", "5f3a9c01-2"]);
        let filtered = requests("--state dead,unknown --route news --plugin slack --since 2h --seq 4");
        let expected = WhichJson {
            states: vec!["dead".to_owned(), "unknown".to_owned()],
            route: Some("news".to_owned()),
            plugin: Some("slack".to_owned()),
            since: Some("2026-09-01T16:42:30Z".to_owned()),
            seq: Some(4),
            ..WhichJson::default()
        };
        assert_eq!(filtered, [expected]);
        assert_eq!(requests("--all"), [WhichJson { all: true, ..WhichJson::default() }]);
        assert!(requests("").iter().all(WhichJson::is_empty) && !requests("--all")[0].is_empty());
        for (arguments, says) in [
            ("5f3a9c01-1 --all", "cannot be used with"),
            ("5f3a9c01-1 --state dead", "cannot be used with"),
            ("17", "eight hexadecimal digits"),
            ("--state deed", "dead"),
            ("--since yesterday", "how long ago"),
        ] {
            let refused = parse(arguments).unwrap_err();
            assert!(refused.contains(says), "{arguments}: {refused}");
        }
    }

    #[test]
    fn many_ids_are_asked_for_in_several_requests() {
        let ids: Vec<String> = (1..=HANDLED_MAX + 1).map(|number| format!("5f3a9c01-{number}")).collect();
        let lengths: Vec<usize> = requests(&ids.join(" ")).iter().map(|request| request.ids.len()).collect();
        assert_eq!(lengths, [HANDLED_MAX as usize, 1]);
    }

    #[test]
    fn what_is_done_again_for_ever_is_asked_for_once() {
        let states = |states: &[&str]| WhichJson {
            states: states.iter().map(|state| (*state).to_owned()).collect(),
            ..WhichJson::default()
        };
        assert!(moves_out(Change::Retry, &states(&[])));
        assert!(moves_out(Change::Retry, &states(&["dead", "blocked"])));
        assert!(!moves_out(Change::Retry, &states(&["dead", "delivered"])));
        assert!(!moves_out(Change::Retry, &states(&["retrying"])));
        assert!(moves_out(Change::Cancel, &states(&["retrying"])));
    }
}
