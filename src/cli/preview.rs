//! `switchbell preview`: what a notification would have each target sent. Nothing is sent, stored or fetched, and a running
//! server does not notice.

mod show;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;
use serde_json::value::RawValue;

use super::FOUND_WRONG;
use super::about::{About, moment, read};
use super::ask::Asker;
use super::output::{fail, print_for_people, print_json};
use super::remote::Server;
use crate::clock::Clock;
use crate::notification::Name;
use crate::serve::inquiry::{AdHocJson, OfJson, PreviewAskedJson, PreviewJson};

/// Largest file of answers, bytes: as many as an attempt may have, each of usual size.
const ANSWERS_BYTES_MAX: u64 = 768 << 10;

/// Largest file of settings, bytes: as large as a workspace's file may be.
const SETTINGS_BYTES_MAX: u64 = 1 << 20;

#[derive(Debug, clap::Args)]
#[command(override_usage = "switchbell preview --seq SEQ [OPTIONS]
       switchbell preview --event FILE --source NAME [OPTIONS]
       switchbell preview --name NAME --source NAME [OPTIONS]
       switchbell preview --plugin NAME --with JSON [OPTIONS]")]
pub(super) struct Arguments {
    #[command(flatten)]
    about: About,
    /// Only this route.
    #[arg(long, value_name = "NAME", conflicts_with = "plugin")]
    route: Option<Name>,
    /// This plugin with the settings of --with, in the place of the routes.
    #[arg(long, value_name = "NAME", requires = "with")]
    plugin: Option<Name>,
    /// The settings, as they stand under `with` of a target: a JSON object, or a file that holds one.
    #[arg(long, value_name = "JSON|FILE", requires = "plugin")]
    with: Option<String>,
    /// What the effects are answered: `success`, a plain success each; `none`, so that the attempt ends behind its first;
    /// `recorded:DELIVERY`, as in that delivery's attempt that was recorded last; or a file with a JSON list such as
    /// [{"http": {"ok": {"status": 200, "body": "ok"}}}], one answer for each effect in turn.
    #[arg(long, value_name = "ANSWERS", default_value = "success")]
    answers: String,
    /// Supposes that the attempts are made at this moment: RFC 3339, or a time with its zone such as
    /// 2026-12-01T03:00[Europe/Berlin].
    #[arg(long, value_name = "TIME", value_parser = moment)]
    at: Option<jiff::Timestamp>,
    /// The workspace; may be left out when there is one.
    #[arg(long, value_name = "NAME")]
    workspace: Option<Name>,
    #[command(flatten)]
    server: Server,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(file: &Path, asked: Arguments) -> ExitCode {
    match preview(file, &asked).await {
        Ok(code) | Err(code) => code,
    }
}

async fn preview(file: &Path, asked: &Arguments) -> Result<ExitCode, ExitCode> {
    let at = asked.at.unwrap_or_else(|| Clock::system().now());
    let ad_hoc = ad_hoc(asked)?;
    let of = if ad_hoc.is_some() && asked.about.is_empty() { OfJson::default() } else { asked.about.asked(at)? };
    let (answers, recorded) = answers(&asked.answers)?;
    let (at, route) = (asked.at.map(|at| at.to_string()), asked.route.as_ref().map(Name::to_string));
    let question = PreviewAskedJson { of, at, route, ad_hoc, answers, recorded };
    let asker = Asker::find(file, &asked.server, asked.workspace.as_ref()).await?;
    let previewed = asker.preview(&question).await?;
    let printed = if asked.json { print_json(&previewed) } else { print_for_people(&show::whole(&previewed)) };
    Ok(if previewed.targets.iter().any(PreviewJson::is_wrong) { ExitCode::from(FOUND_WRONG) } else { printed })
}

/// The plugin with settings that is asked about in the place of routes.
fn ad_hoc(asked: &Arguments) -> Result<Option<AdHocJson>, ExitCode> {
    let (Some(plugin), Some(with)) = (&asked.plugin, &asked.with) else { return Ok(None) };
    let text = if with.trim_start().starts_with('{') {
        with.clone()
    } else {
        read(Path::new(with), SETTINGS_BYTES_MAX).map_err(|error| fail(format_args!("--with {with}: {error}")))?
    };
    let settings: Value =
        serde_json::from_str(&text).map_err(|error| fail(format_args!("--with: a JSON object is needed: {error}")))?;
    Ok(Some(AdHocJson { plugin: plugin.to_string(), settings }))
}

type Given = (Option<Vec<Box<RawValue>>>, Option<String>);

/// A list of answers, or the delivery whose attempt has them; neither for a plain success.
fn answers(asked: &str) -> Result<Given, ExitCode> {
    match (asked, asked.strip_prefix("recorded:")) {
        ("success", _) => Ok((None, None)),
        ("none", _) => Ok((Some(Vec::new()), None)),
        (_, Some(id)) => Ok((None, Some(id.to_owned()))),
        (file, None) => {
            let file = PathBuf::from(file);
            let wrong = |why: &dyn std::fmt::Display| fail(format_args!("--answers {}: {why}", file.display()));
            let text = read(&file, ANSWERS_BYTES_MAX).map_err(|error| wrong(&error))?;
            let list = serde_json::from_str(&text)
                .map_err(|error| wrong(&format_args!("a JSON list of answers is needed: {error}")))?;
            Ok((Some(list), None))
        }
    }
}
