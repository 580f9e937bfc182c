//! `switchbell preview`: what a notification would have each target sent. Nothing is sent, stored or fetched, and a running
//! server does not notice.

mod show;
mod subject;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use jiff::Timestamp;
use serde_json::value::RawValue;

use super::output::{fail, print_for_people, print_json, tell};
use super::{FOUND_WRONG, load, workspace_in};
use crate::clock::Clock;
use crate::config::{Route, Target, Workspace};
use crate::inbox::delivery::Outcome;
use crate::inbox::{DeliveryView, Marks};
use crate::notification::{Name, Notification};
use crate::route::Decision;
use crate::route::timing::Timing;
use crate::route::{Acknowledged, Facts, Stage, Standing, Step, Subject, Why, plan};
use crate::send::effect::Effects;
use crate::send::preview::{Previewed, Previewer, Supposed};
use crate::send::record::answer_from_json;
use crate::wasm::catalog::PluginProblem;
use crate::wasm::catalog::depot;
use crate::wasm::{Answer, Catalog, Sandbox, Settings};
use show::PreviewJson;
use subject::Found;

/// Largest file of answers, bytes: as many as an attempt may have, each of usual size.
const ANSWERS_BYTES_MAX: u64 = 4 << 20;

#[derive(Debug, clap::Args)]
#[command(override_usage = "switchbell preview --seq SEQ [OPTIONS]
       switchbell preview --event FILE --source NAME [OPTIONS]
       switchbell preview --name NAME --source NAME [OPTIONS]")]
pub(super) struct Arguments {
    #[command(flatten)]
    of: subject::Of,
    /// Only this route.
    #[arg(long, value_name = "NAME")]
    route: Option<Name>,
    /// What the effects are answered, so that an attempt goes on behind its first: a JSON list in the form of records.
    #[arg(long, value_name = "FILE")]
    answers: Option<PathBuf>,
    /// The workspace; may be left out when there is one.
    #[arg(long, value_name = "NAME")]
    workspace: Option<Name>,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// What would become of one target.
struct Shown<'a> {
    route: &'a Route,
    target: &'a Target,
    plugin_version: Option<String>,
    when: String,
    /// Why no attempt could be made, or what it would do.
    came: Result<Previewed, String>,
}

impl Shown<'_> {
    /// Whether it would not be delivered.
    fn is_wrong(&self) -> bool {
        match &self.came {
            Err(_) => true,
            Ok(previewed) => show::has_refusal(previewed) || previewed.outcome.is_some_and(|o| o != Outcome::Delivered),
        }
    }
}

pub(super) async fn run(file: &Path, asked: Arguments) -> ExitCode {
    match preview(file, &asked).await {
        Ok(code) | Err(code) => code,
    }
}

async fn preview(file: &Path, asked: &Arguments) -> Result<ExitCode, ExitCode> {
    let config = load(file)?;
    let workspace = workspace_in(&config, asked.workspace.as_ref())?;
    let answers = answers(asked.answers.as_deref())?;
    let clock = Clock::system();
    let now = clock.now();
    let found = asked.of.find(&config, workspace, now).await?;
    let matched = matched(workspace, &found.notification, asked.route.as_ref())?;
    let settings = Settings { key: Some(found.keys.sandbox()), ..Settings::new(config.plugins.limits) };
    let sandbox = Sandbox::new(settings).map_err(fail)?;
    let (catalog, problems) = Catalog::running(&sandbox, &config.plugins, depot::root(&config.store)).await;
    let effects = Effects::new(&config, &clock).map_err(fail)?;
    let previewer = Previewer { config: &config, catalog: &catalog, effects: &effects, keys: &found.keys };
    let mut shown = Vec::new();
    for (route, target) in matched {
        let (plugin_version, came) = one(&previewer, &problems, (route, target), &found, (now, &answers)).await;
        let when = when(&target.timing, &found.notification, now);
        shown.push(Shown { route, target, plugin_version, when, came });
    }
    let subject = (found.notification, Marks::default());
    let printed = if asked.json {
        print_json(&PreviewJson::of(&subject, &shown))
    } else {
        print_for_people(&show::whole(&subject.0, &shown))
    };
    Ok(if shown.iter().any(Shown::is_wrong) { ExitCode::from(FOUND_WRONG) } else { printed })
}

async fn one(
    previewer: &Previewer<'_>,
    problems: &[PluginProblem],
    (route, target): (&Route, &Target),
    found: &Found,
    (now, answers): (Timestamp, &[Answer]),
) -> (Option<String>, Result<Previewed, String>) {
    let Some(plugin) = previewer.catalog.get(&target.plugin) else {
        let file = format!("{}.wasm", target.plugin);
        let problem = problems.iter().find(|problem| problem.path.file_name().is_some_and(|name| *name == *file));
        let why = problem.map_or_else(|| format!("there is no {file} in plugins.directory"), ToString::to_string);
        return (None, Err(format!("plugin {} is not loaded: {why}", target.plugin)));
    };
    let version = Some(plugin.manifest().version.clone());
    if let Some(why) = previewer.settings_refused(target).await {
        return (version, Err(format!("plugin {} refuses its settings: {why}", target.plugin)));
    }
    let is_its = |owed: &&DeliveryView| owed.route == route.name && owed.target == target.id;
    // The first was owed by the match; others are repeats.
    let owed = found.owed.iter().filter(is_its).min_by_key(|owed| owed.id.number);
    let (id, due_at) = owed.map_or_else(|| (subject::no_id(), now), |owed| (owed.id.clone(), owed.due_at));
    let (notification, answers) = (found.notification.clone(), answers.to_vec());
    let supposed = Supposed { route, target, notification, id, due_at, now, answers };
    (version, Ok(previewer.preview(supposed).await))
}

/// The targets of the routes that match.
fn matched<'a>(
    workspace: &'a Workspace,
    of: &Notification,
    only: Option<&Name>,
) -> Result<Vec<(&'a Route, &'a Target)>, ExitCode> {
    let event = &of.event;
    let facts = Facts {
        source: &of.source,
        name: &event.name,
        effective_level: of.effective_level,
        subject: event.subject.as_deref(),
    };
    let routes = &workspace.routes;
    let decisions = workspace.router.select(&facts);
    if let Some(only) = only {
        let Some(index) = routes.iter().position(|route| route.name == *only) else {
            let names = routes.iter().map(|route| route.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(fail(format_args!("--route: unknown route {only} (there are: {names})")));
        };
        let unmet = workspace.router.explain(index, &facts).into_iter().find(|condition| !condition.holds);
        if let Some(unmet) = unmet {
            let (asked, found) = (unmet.asked, unmet.found);
            tell(format_args!("switchbell: route {only} does not match: it asks for {asked}, and this has {found}"));
            return Err(ExitCode::from(FOUND_WRONG));
        }
    }
    let matches = decisions.iter().filter(|decision: &&Decision| decision.matches());
    let matched = matches.filter_map(|decision| routes.get(decision.route));
    let asked = matched.filter(|route| only.is_none_or(|only| route.name == *only));
    Ok(asked.flat_map(|route| route.deliver.iter().map(move |target| (route, target))).collect())
}

/// When the target would hear of it, in words. What else waits for it, and what it had before, is not known here.
fn when(timing: &Timing, of: &Notification, now: Timestamp) -> String {
    let event = &of.event;
    let what = Subject {
        received_at: of.received_at,
        level: of.effective_level,
        source: of.source.as_str(),
        name: &event.name,
        subject: event.subject.as_deref(),
        acknowledged: Acknowledged::No,
    };
    match plan(timing, Stage::Matched, &what, &Standing::default(), now) {
        Step::Go => "at once".to_owned(),
        Step::Suppress => "never: it is acknowledged".to_owned(),
        Step::Wait { until } if timing.unless.is_some() => format!("at {until}, unless it is acknowledged before"),
        Step::Wait { until } => format!("at {until}"),
        Step::Gather { why: Why::Hold, until, .. } => format!("at {until}, when its quiet hours end"),
        Step::Gather { until, .. } => format!("at {until}, with what comes until then in one message"),
    }
}

fn answers(file: Option<&Path>) -> Result<Vec<Answer>, ExitCode> {
    let Some(file) = file else { return Ok(Vec::new()) };
    let wrong = |why: &dyn std::fmt::Display| fail(format_args!("--answers {}: {why}", file.display()));
    let text = subject::read(file, ANSWERS_BYTES_MAX).map_err(|error| wrong(&error))?;
    let list: Vec<Box<RawValue>> = serde_json::from_str(&text)
        .map_err(|error| wrong(&format_args!("a JSON list of answers is needed: {error}")))?;
    let answer = |(number, answer): (usize, &RawValue)| {
        answer_from_json(answer.get()).map_err(|error| wrong(&format_args!("answer {number}: {error}")))
    };
    (1..).zip(list.iter().map(AsRef::as_ref)).map(answer).collect()
}
