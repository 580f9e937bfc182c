//! All plugins and their versions, for the operator: loaded, rolled back, let in.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use maud::{Markup, html};

use super::acts::Told;
use super::frame::{Frame, Section, page as framed};
use super::parts::{Asked, count, empty, field, moment_of, said, said_lines};
use super::plugins::{all, reach};
use super::visitor::{Posted, Refused, Visitor};
use crate::config::Config;
use crate::notification::Name;
use crate::send::upgrade::{Done, Refused as NotDone, Standing};
use crate::serve::Served;
use crate::serve::auth::Right;
use crate::serve::body::{UPLOAD_TIME_MAX, asked as asked_body};
use crate::serve::problem::Problem;
use crate::serve::shapes::{PluginJson, VersionJson};
use crate::text;
use crate::wasm::PLUGIN_BYTES_MAX;

/// How often the page is loaded anew, in seconds.
const EVERY_SECONDS: u32 = 10;

/// Digits of a digest that are shown.
const DIGEST_DIGITS: usize = 12;

/// Longest name of a file that is told of, in characters.
const FROM_CHARS_MAX: usize = 200;

/// The page.
pub(super) async fn page(State(served): State<Arc<Served>>, Visitor(caller): Visitor) -> Result<Response, Refused> {
    served.gate.operate(&caller, Right::Operate)?;
    let config = served.config.borrow().clone();
    let found = all(&served).await?;
    let body = html! {
        h1 { "All plugins" }
        form.load.needs-script method="post" action="/plugins/load" data-act="upload" {
            label for="file" { "Load a component" }
            input #file type="file" name="file" accept=".wasm,application/wasm" required;
            button type="submit" { "Load" }
        }
        div #versions data-live {
            @for one in &found { (whole(one, &config)) }
            @if found.is_empty() {
                (empty("No plugins", &html! { "Nothing can be delivered. Put a component into the folder of plugins, or load one here." }))
            }
        }
    };
    let frame = Frame::of_operator(&config, &caller, "All plugins", Section::Versions).every(EVERY_SECONDS);
    Ok(framed(&frame, &body))
}

fn whole(of: &PluginJson, config: &Config) -> Markup {
    let grant = of.name.parse().ok().and_then(|name: Name| config.plugins.grants.get(&name));
    let title = format!("p-{}", of.name);
    html! {
        section.panel aria-labelledby=(title) {
            header {
                h2 id=(title) { (of.name) }
                @if of.active.is_some() { span.chip.is-good { "runs" } } @else { span.chip.is-stuck { "does not run" } }
                @if of.probation.is_some() { span.chip.is-moving { "on probation" } }
            }
            @if let Some(problem) = &of.problem { p.why { (said_lines(problem)) } }
            dl.fields {
                @if let Some(at) = &of.probation {
                    (field("Probation", &html! {
                        (count(usize::try_from(at.ended).unwrap_or(usize::MAX), "attempt")) " ended, " (at.judged) " judged, "
                        (at.at_fault) " at fault, since " (moment_of(&at.since)) }))
                }
                (field("May reach", &reach(grant, None)))
                (field("Used by", &users(&of.name, config)))
            }
            ul.versions {
                @if let Some(active) = &of.active { (version(&of.name, active, true)) }
                @for other in &of.others { (version(&of.name, other, false)) }
            }
        }
    }
}

fn users(plugin: &str, config: &Config) -> Markup {
    let mut routes = BTreeSet::new();
    for workspace in config.workspaces.values() {
        for route in workspace.routes.iter().filter(|route| route.deliver.iter().any(|to| to.plugin.as_str() == plugin))
        {
            routes.insert((&workspace.name, &route.name));
        }
    }
    html! {
        @if routes.is_empty() { "no route" } @else {
            ul.plain { @for (workspace, route) in routes { li { a href={ "/w/" (workspace) "/routes#r-" (route) } { (workspace) ": " (route) } } } }
        }
    }
}

fn version(plugin: &str, of: &VersionJson, is_active: bool) -> Markup {
    let digest = of.digest.get(..DIGEST_DIGITS).unwrap_or(&of.digest);
    let (kind, word) = match of.standing.as_str() {
        "good" if is_active => ("good", "runs"),
        "good" => ("over", "kept"),
        "held" => ("moving", "held"),
        _ => ("stuck", "quarantined"),
    };
    html! {
        li {
            div.what {
                b { (said(&of.version)) }
                span class={ "chip is-" (kind) } { (word) }
                code title=(of.digest) { (digest) }
                @if of.in_use { span.muted { "attempts that began on it go on" } }
                @if !is_active {
                    @let act = if of.standing == "held" { ("approve", "Let in") } else { ("rollback", "Roll back to this") };
                    form.needs-script method="post" action={ "/plugins/" (plugin) "/" (act.0) } data-act
                        data-ask={ (act.1) ": " (plugin) " " (super::parts::plain(&of.version)) "?" } {
                        input type="hidden" name="version" value=(of.digest);
                        button type="submit" { (act.1) }
                    }
                }
            }
            @if let Some(why) = &of.why { p.why { (said_lines(why)) } }
            p.muted.small {
                "first seen " (moment_of(&of.first_at))
                @if let Some(last) = &of.last_active_at { (if is_active { ", runs since " } else { ", ran until " }) (moment_of(last)) }
            }
        }
    }
}

/// Loads a component: the body of the request, called as `from` says.
pub(super) async fn load(
    State(served): State<Arc<Served>>,
    Visitor(caller): Visitor,
    asked: Asked,
    request: Request,
) -> Told {
    // Nobody else's body is read.
    served.gate.operate(&caller, Right::Operate)?;
    let bytes = asked_body(request, &served, PLUGIN_BYTES_MAX, UPLOAD_TIME_MAX).await?;
    let from = text::line(asked.one("from").unwrap_or("a file from the web"), FROM_CHARS_MAX);
    told(served.plugins.load(PathBuf::from(from), bytes, None).await)
}

/// Goes back to an earlier version.
pub(super) async fn roll_back(
    State(served): State<Arc<Served>>,
    Visitor(caller): Visitor,
    Path(name): Path<String>,
    Posted(body): Posted,
) -> Told {
    served.gate.operate(&caller, Right::Operate)?;
    let (name, version) = meant(&name, &body)?;
    told(served.plugins.roll_back(name, version).await)
}

/// Lets in a version that is held.
pub(super) async fn approve(
    State(served): State<Arc<Served>>,
    Visitor(caller): Visitor,
    Path(name): Path<String>,
    Posted(body): Posted,
) -> Told {
    served.gate.operate(&caller, Right::Operate)?;
    let (name, version) = meant(&name, &body)?;
    told(served.plugins.approve(name, version).await)
}

fn meant(name: &str, body: &[u8]) -> Result<(Name, Option<String>), Refused> {
    let name = name.parse().map_err(|error| Problem::Unknown(format!("there is no plugin {name:?}: {error}")))?;
    Ok((name, Asked::read(body).one("version").map(str::to_owned)))
}

fn told(came: Result<Done, NotDone>) -> Told {
    let done = came.map_err(|NotDone { why, report, .. }| {
        let report = report.map(|report| format!("\n{}", report.told())).unwrap_or_default();
        Problem::Refused(format!("{why}{report}"))
    })?;
    let (name, version) = (&done.name, &done.version);
    let mut lines = vec![match &done.standing {
        Standing::Active { before: Some(before) } => format!("{name} {version} runs; before it ran {before}"),
        Standing::Active { before: None } => format!("{name} {version} runs"),
        Standing::Already => format!("{name} {version} runs already"),
        Standing::Held { why } => format!("{name} {version} is held: {why}"),
    }];
    lines.extend(done.notes);
    lines.extend(done.report.map(|report| report.told()));
    Ok(lines.join("\n"))
}
