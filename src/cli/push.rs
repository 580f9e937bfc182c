//! `switchbell push check`: whether a server keeps the rules of the push-notifications extension, for people who write one.
//! It needs no configuration: the server is named on the command line.

use std::process::ExitCode;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde::Serialize;
use url::Url;

use super::judged::{FindingJson, conclusion, counts, findings, several, wrapped};
use super::outbox::server::{endpoint, header_and_variable, value_of};
use super::outbox::{WAIT_AFTER_TRIGGER, longer_than_zero, run_trigger};
use super::output::{fail, print_for_people, print_json, tell};
use super::{COULD_NOT_RUN, FOUND_WRONG};
use crate::clock::Clock;
use crate::config;
use crate::fetch::conformance::Verdict;
use crate::fetch::conformance::push::{self, Asked, QUIET_MAX, REQUESTS_MAX, Report, TIME_MAX};
use crate::telemetry::rounded;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Reaches a server, asks its push queue in right and in wrong ways, and reports rule by rule what it keeps and breaks.
    ///
    /// The consumer that the token names has its live stream replaced by the check's, for as long as it runs.
    ///
    /// Exit codes: 0 no MUST is broken, 1 one is, 2 the check could not be made.
    Check(Box<Arguments>),
}

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The server's endpoint, which speaks streamable HTTP.
    #[arg(long)]
    url: String,
    /// The variable that holds the bearer token.
    #[arg(long, value_name = "VARIABLE")]
    bearer_env: Option<String>,
    /// A header and the variable that holds its value. May be repeated.
    #[arg(long, value_name = "HEADER=VARIABLE")]
    header_env: Vec<String>,
    /// Waits so long for events on the live stream [default: 0s, or 10s after a trigger].
    #[arg(long, value_name = "DURATION", value_parser = config::duration)]
    wait: Option<Duration>,
    /// Makes events happen: a command for the shell, run once the live stream is open.
    #[arg(long, value_name = "COMMAND")]
    trigger: Option<String>,
    /// Acknowledges the events that come, and sees that they are gone. They are gone for the consumer, too.
    #[arg(long)]
    ack: bool,
    /// Waits a minute for a sign of life on the live stream.
    #[arg(long)]
    keep_alive: bool,
    /// How long one request may take.
    #[arg(long, value_name = "DURATION", value_parser = longer_than_zero, default_value = "10s")]
    timeout: Duration,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn check(asked: Arguments) -> ExitCode {
    let (url, headers) = match endpoint(&asked.url).and_then(|url| Ok((url, headers(&asked)?))) {
        Ok(target) => target,
        Err(why) => return fail(why),
    };
    let wait = asked.wait.unwrap_or(if asked.trigger.is_some() { WAIT_AFTER_TRIGGER } else { Duration::ZERO });
    if wait > WAIT_AFTER_TRIGGER {
        tell(format_args!("Waiting for events, {} at most.", rounded(wait)));
    }
    if asked.keep_alive {
        tell("Waiting for a sign of life at the end, a minute at most.");
    }
    let to_check = Asked {
        url: &url,
        headers: &headers,
        timeout: asked.timeout,
        wait,
        trigger: asked.trigger.as_deref().map(run_trigger),
        ack: asked.ack,
        keep_alive: asked.keep_alive.then_some(QUIET_MAX),
    };
    let clock = Clock::system();
    let report = tokio::select! {
        report = push::check(to_check, &clock) => report,
        _ = tokio::signal::ctrl_c() => return fail("interrupted"),
    };
    let url = shown(url);
    let printed = match asked.json {
        true => print_json(&ReportJson::new(&url, &report)),
        false => print_for_people(&for_people(&url, &report)),
    };
    code(&report).unwrap_or(printed)
}

/// The exit code, where it is not that of printing.
fn code(report: &Report) -> Option<ExitCode> {
    if report.could_not_run.is_some() {
        return Some(ExitCode::from(COULD_NOT_RUN));
    }
    (report.count(Verdict::Broken) > 0).then_some(ExitCode::from(FOUND_WRONG))
}

/// What every request carries. An error names the argument and the remedy.
fn headers(asked: &Arguments) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    let sealed = |value: String| {
        let mut value = HeaderValue::from_str(&value).map_err(|_| "it cannot stand in a header".to_owned())?;
        value.set_sensitive(true);
        Ok::<HeaderValue, String>(value)
    };
    for text in &asked.header_env {
        let wrong = |why: String| format!("--header-env {text}: {why}");
        let (header, variable) = header_and_variable(text).map_err(wrong)?;
        headers.insert(header, value_of(variable).and_then(sealed).map_err(wrong)?);
    }
    if let Some(variable) = &asked.bearer_env {
        let value = value_of(variable).and_then(|token| sealed(format!("Bearer {token}")));
        headers.insert(AUTHORIZATION, value.map_err(|why| format!("--bearer-env: {why}"))?);
    }
    Ok(headers)
}

/// A URL as a report repeats it: a query may hold a credential.
fn shown(mut url: Url) -> String {
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

fn for_people(url: &str, report: &Report) -> String {
    let mut text = format!("{url}\n\n{}\n", findings(&report.findings, report.could_not_run.is_none()));
    let counts = format!(
        "{}; {}; {} in {} (at most {REQUESTS_MAX}, in {} and the wait)",
        counts(|verdict| report.count(verdict)),
        several(report.events, "event"),
        several(report.requests.try_into().unwrap_or(usize::MAX), "request"),
        rounded(report.took),
        rounded(TIME_MAX),
    );
    text.push_str(&wrapped(&counts, 0, 0));
    for line in conclusions(report) {
        text.push_str(&wrapped(&line, 0, 0));
    }
    text
}

/// What follows from it all.
fn conclusions(report: &Report) -> Vec<String> {
    if let Some(why) = &report.could_not_run {
        let is_told = report.findings.iter().any(|finding| finding.seen.contains(why));
        let why = if is_told { "see above" } else { why };
        return vec![format!("The check could not be made: {why}.")];
    }
    let mut lines = Vec::new();
    if report.is_cut {
        lines.push("The check ran out of requests or time; what is not seen may be for that.".to_owned());
    }
    if report.events == 0 {
        lines.push(
            "No event was seen. Make some happen with --trigger 'COMMAND' (two or more), or wait for some with --wait 1m."
                .to_owned(),
        );
    }
    lines.push(conclusion(report.count(Verdict::Broken), report.count(Verdict::NotSeen)));
    lines
}

/// The report as programs read it (docs/push.md).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportJson<'a> {
    url: &'a str,
    could_not_run: Option<&'a str>,
    kept: usize,
    broken: usize,
    warnings: usize,
    not_seen: usize,
    events: usize,
    requests: u32,
    requests_max: u32,
    took_ms: u64,
    cut: bool,
    rules: Vec<FindingJson<'a>>,
}

impl<'a> ReportJson<'a> {
    fn new(url: &'a str, report: &'a Report) -> Self {
        Self {
            url,
            could_not_run: report.could_not_run.as_deref(),
            kept: report.count(Verdict::Pass),
            broken: report.count(Verdict::Broken),
            warnings: report.count(Verdict::Warning),
            not_seen: report.count(Verdict::NotSeen),
            events: report.events,
            requests: report.requests,
            requests_max: REQUESTS_MAX,
            took_ms: u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX),
            cut: report.is_cut,
            rules: report.findings.iter().map(FindingJson::from).collect(),
        }
    }
}
