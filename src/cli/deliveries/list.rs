//! `switchbell deliveries list`.

use std::path::Path;
use std::process::ExitCode;

use jiff::Timestamp;

use super::Filters;
use crate::cli::ask::no_server;
use crate::cli::inbox::open;
use crate::cli::output::{DeliveryJson, fail, print, print_for_people, print_json};
use crate::cli::remote::Server;
use crate::cli::table::{ahead, aligned, cut};
use crate::clock::Clock;
use crate::config::{self, process_environment};
use crate::inbox::{Inbox, Page, Which};
use crate::notification::Name;
use crate::serve::desk::unknown_filter;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct List {
    #[command(flatten)]
    filters: Filters,
    /// The workspace; may be left out when there is one.
    #[arg(long, value_name = "NAME")]
    workspace: Option<Name>,
    /// Only those of notifications with a smaller number.
    #[arg(long, value_name = "SEQ", conflicts_with = "seq")]
    before: Option<u64>,
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
    let now = Clock::system().now();
    match found(file, asked, now).await {
        Ok(found) if asked.json => print_json(&found),
        Ok(found) if found.is_empty() => print("no deliveries\n"),
        Ok(found) => print_for_people(&table(&found, now)),
        Err(code) => code,
    }
}

async fn found(file: &Path, asked: &List, now: Timestamp) -> Result<Vec<DeliveryJson>, ExitCode> {
    if let Some((control, workspace)) = asked.server.find(file, asked.workspace.as_ref()).await? {
        let path = asked.filters.path(&workspace, asked.before, asked.limit, now);
        return control.list(&path).await.map_err(|error| no_server(&error));
    }
    let (inbox, workspace) = open(file, asked.workspace.as_ref())?;
    let which = asked.filters.which(now);
    let page = Page { workspace: workspace.clone(), before: asked.before, limit: asked.limit };
    let found = inbox.deliveries(page, which.clone()).await.map_err(fail)?;
    if found.is_empty() {
        known(file, &workspace, &which)?;
    }
    Ok(found.iter().map(DeliveryJson::from).collect())
}

/// A filter that finds nothing because its name is wrong is a mistake. Whether it is can be told where the configuration
/// can be read, with its secrets.
fn known(file: &Path, workspace: &Name, which: &Which) -> Result<(), ExitCode> {
    let is_named = which.route.is_some() || which.plugin.is_some();
    let loaded = is_named.then(|| config::load(file, &process_environment).ok()).flatten();
    let known = loaded.as_ref().and_then(|loaded| loaded.config.workspaces.get(workspace));
    match known.and_then(|known| unknown_filter(known, which.route.as_ref(), which.plugin.as_ref())) {
        Some(why) => Err(fail(why)),
        None => Ok(()),
    }
}

/// What became of one notification, below it.
pub(in crate::cli) fn of_one(found: &[DeliveryJson], now: Timestamp) -> String {
    if found.is_empty() {
        return "\nno deliveries: no route matched when it came\n".to_owned();
    }
    format!("\ndeliveries\n{}", table(found, now))
}

fn table(found: &[DeliveryJson], now: Timestamp) -> String {
    let title = ["DELIVERY", "STATE", "OF", "ROUTE -> PLUGIN", "ATTEMPTS", "NEXT", "WHY"];
    let mut rows = vec![title.map(str::to_owned).to_vec()];
    rows.extend(found.iter().map(|one| row(one, now)));
    aligned(&rows)
}

fn row(one: &DeliveryJson, now: Timestamp) -> Vec<String> {
    let last = one.attempts.last().and_then(|attempt| attempt.reason.as_deref());
    let next = one.next_at.as_deref().and_then(|at| at.parse().ok());
    vec![
        one.id.clone(),
        one.state.clone(),
        notifications(one),
        format!("{} -> {}", one.route, one.plugin),
        one.attempts.len().to_string(),
        next.map_or_else(|| "-".to_owned(), |at| ahead(at, now)),
        cut(one.why.as_deref().or(last).unwrap_or_default()),
    ]
}

/// The first, and how many more.
fn notifications(of: &DeliveryJson) -> String {
    let first = of.notifications.first().map_or_else(|| "-".to_owned(), |seq| format!("#{seq}"));
    match of.notifications.len().saturating_sub(1) + of.omitted as usize {
        0 => first,
        more => format!("{first} +{more}"),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::views_for_tests::{at, digest, retrying};
    use super::*;

    #[test]
    fn a_list_has_a_line_for_each() {
        expect![[r#"
            DELIVERY     STATE     OF       ROUTE -> PLUGIN       ATTEMPTS  NEXT       WHY
            5f3a9c01-18  blocked   #41 +39  domain-news -> slack  0         -          plugin slack is not loaded
            5f3a9c01-17  retrying  #41      domain-news -> slack  1         in 12.0 s  HTTP 503: the server could not answer
        "#]]
        .assert_eq(&table(&[digest(), retrying()].map(|view| DeliveryJson::from(&view)), at("18:42:30")));
    }

    #[test]
    fn a_notification_without_deliveries_says_why() {
        assert_eq!(of_one(&[], at("18:42:30")), "\nno deliveries: no route matched when it came\n");
    }
}
