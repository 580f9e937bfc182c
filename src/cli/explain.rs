//! `switchbell explain`: who is told of a notification, when, and why not.

mod show;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;

use super::FOUND_WRONG;
use super::about::{About, moment};
use super::ask::Asker;
use super::output::{fail, print_for_people, print_json, tell};
use super::remote::Server;
use crate::clock::Clock;
use crate::notification::Name;
use crate::serve::inquiry::{ExplainAskedJson, ExplainedJson};

/// What `--expect` takes for no route.
const NONE: &str = "none";

#[derive(Debug, clap::Args)]
#[command(override_usage = "switchbell explain --seq SEQ [OPTIONS]
       switchbell explain --event FILE --source NAME [OPTIONS]
       switchbell explain --name NAME --source NAME [OPTIONS]")]
pub(super) struct Arguments {
    #[command(flatten)]
    about: About,
    /// Supposes that it comes at this moment: RFC 3339, or a time with its zone such as 2026-12-01T03:00[Europe/Berlin].
    #[arg(long, value_name = "TIME", value_parser = moment)]
    at: Option<jiff::Timestamp>,
    /// Only this route.
    #[arg(long, value_name = "NAME")]
    route: Option<Name>,
    /// Shows the targets of routes that do not match, too.
    #[arg(long)]
    all: bool,
    /// The routes that must match, with commas between them, or `none`; fails when others do.
    #[arg(long, value_name = "ROUTE,…", value_delimiter = ',')]
    expect: Option<Vec<String>>,
    /// The workspace; may be left out when there is one.
    #[arg(long, value_name = "NAME")]
    workspace: Option<Name>,
    #[command(flatten)]
    server: Server,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// How the routes that match differ from those that were expected.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct DifferenceJson {
    /// They should match and do not.
    missing: Vec<String>,
    /// They match and should not.
    unexpected: Vec<String>,
}

#[derive(Serialize)]
struct PrintedJson<'a> {
    #[serde(flatten)]
    explained: &'a ExplainedJson,
    /// Null where nothing was expected.
    difference: Option<&'a DifferenceJson>,
}

pub(super) async fn run(file: &Path, asked: Arguments) -> ExitCode {
    match explain(file, &asked).await {
        Ok(code) | Err(code) => code,
    }
}

async fn explain(file: &Path, asked: &Arguments) -> Result<ExitCode, ExitCode> {
    let now = Clock::system().now();
    let of = asked.about.asked(asked.at.unwrap_or(now))?;
    let asker = Asker::find(file, &asked.server, asked.workspace.as_ref()).await?;
    let (at, route) = (asked.at.map(|at| at.to_string()), asked.route.as_ref().map(Name::to_string));
    let explained = asker.explain(&ExplainAskedJson { of, at, route, all: asked.all }).await?;
    let difference = asked.expect.as_ref().map(|expected| difference(&explained, expected)).transpose()?;
    let printed = if asked.json {
        print_json(&PrintedJson { explained: &explained, difference: difference.as_ref() })
    } else {
        print_for_people(&show::whole(&explained, now))
    };
    match difference.filter(|difference| *difference != DifferenceJson::default()) {
        Some(difference) => {
            tell_difference(&difference);
            Ok(ExitCode::from(FOUND_WRONG))
        }
        None => Ok(printed),
    }
}

/// What is expected and does not match, and the other way round.
fn difference(explained: &ExplainedJson, expected: &[String]) -> Result<DifferenceJson, ExitCode> {
    let expected: BTreeSet<&str> = expected.iter().map(|name| name.trim()).filter(|name| *name != NONE).collect();
    let there: BTreeSet<&str> = explained.routes.iter().map(|route| route.name.as_str()).collect();
    if let Some(unknown) = expected.iter().find(|name| !there.contains(**name)) {
        let there = there.into_iter().collect::<Vec<_>>().join(", ");
        return Err(fail(format_args!("--expect: unknown route {unknown} (there are: {there})")));
    }
    let matches = explained.routes.iter().filter(|route| route.matches).map(|route| route.name.as_str());
    let matches: BTreeSet<&str> = matches.collect();
    let names = |names: Vec<&&str>| names.into_iter().map(|name| (*name).to_owned()).collect();
    Ok(DifferenceJson {
        missing: names(expected.difference(&matches).collect()),
        unexpected: names(matches.difference(&expected).collect()),
    })
}

fn tell_difference(difference: &DifferenceJson) {
    for name in &difference.missing {
        tell(format_args!("switchbell: route {name} should match and does not"));
    }
    for name in &difference.unexpected {
        tell(format_args!("switchbell: route {name} matches and should not"));
    }
}
