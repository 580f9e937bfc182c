//! The plugins that a workspace's routes deliver by.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};

use super::frame::{Frame, Section, page as framed};
use super::parts::{empty, field, said, said_lines};
use super::visitor::{Place, Refused, Visitor};
use crate::config::{Grant, Workspace};
use crate::notification::Name;
use crate::send::wants::{host_text, tool_text};
use crate::serve::Served;
use crate::serve::auth::Right;
use crate::serve::problem::Problem;
use crate::serve::shapes::PluginJson;

/// The page.
pub(super) async fn page(
    State(served): State<Arc<Served>>,
    visitor: Visitor,
    Path(workspace): Path<String>,
) -> Result<Response, Refused> {
    let place = Place::enter(served, visitor, &workspace, Right::ReadWork).await?;
    let of = place.workspace()?;
    let known = all(&place.served).await?;
    let grants = &place.admitted.config().plugins.grants;
    let used = used_by(of);
    let body = html! {
        h1 { "Plugins" }
        p.muted { "What the routes of this workspace deliver by, and what the operator lets each reach here." }
        div #plugins data-live {
            @for (name, routes) in &used {
                (whole(name, routes, known.iter().find(|one| one.name == name.as_str()), grants.get(*name), place.name()))
            }
            @if used.is_empty() { (empty("No plugins", &html! { "No route of this workspace delivers to anything." })) }
        }
    };
    Ok(framed(&Frame::of(&place, "Plugins", Section::Plugins), &body))
}

/// Every plugin that the server knows.
pub(super) async fn all(served: &Served) -> Result<Vec<PluginJson>, Refused> {
    let views = served.plugins.list().await.ok_or_else(|| Problem::Unavailable("the server is stopping".to_owned()))?;
    Ok(views.into_iter().map(PluginJson::from).collect())
}

fn used_by(of: &Workspace) -> BTreeMap<&Name, Vec<&Name>> {
    let mut used: BTreeMap<&Name, Vec<&Name>> = BTreeMap::new();
    for route in &of.routes {
        for target in &route.deliver {
            let routes = used.entry(&target.plugin).or_default();
            if routes.last() != Some(&&route.name) {
                routes.push(&route.name);
            }
        }
    }
    used
}

fn whole(name: &Name, routes: &[&Name], known: Option<&PluginJson>, grant: Option<&Grant>, workspace: &Name) -> Markup {
    let active = known.and_then(|known| known.active.as_ref());
    html! {
        section.panel aria-labelledby={ "p-" (name) } {
            header {
                h2 id={ "p-" (name) } { (name) }
                @match active {
                    Some(active) => { span.chip.is-good { "runs" } span.muted { "version " (said(&active.version)) } }
                    None => { span.chip.is-stuck { "not loaded" } }
                }
            }
            @if let Some(problem) = known.and_then(|known| known.problem.as_ref()) { p.why { (said_lines(problem)) } }
            @else if active.is_none() { p.why { "There is no such plugin: the operator puts its file into the folder of plugins." } }
            dl.fields {
                (field("May reach", &reach(grant, Some(workspace))))
                (field("Used by", &html! {
                    @for (at, route) in routes.iter().enumerate() { @if at > 0 { ", " } a href={ "routes#r-" (route) } { (route) } }
                }))
            }
        }
    }
}

/// What a grant lets a plugin reach, in one workspace or in all.
pub(super) fn reach(grant: Option<&Grant>, only: Option<&Name>) -> Markup {
    let holds = |of: &[Name]| of.is_empty() || only.is_none_or(|only| of.contains(only));
    let Some(grant) = grant.filter(|grant| holds(&grant.workspaces)) else { return html! { "nothing" } };
    let mut entries = Vec::new();
    for http in grant.http.iter().filter(|http| holds(&http.workspaces)) {
        let private = if http.private { ", also at private addresses" } else { "" };
        let of = if only.is_none() { for_workspaces(&http.workspaces) } else { String::new() };
        entries.push(format!("{}{private}{of}", host_text(http)));
    }
    if grant.mail {
        entries.push("mail by the operator’s relay".to_owned());
    }
    let tools = grant.tools.iter().filter(|tool| only.is_none_or(|only| *only == tool.workspace));
    entries.extend(tools.map(|tool| format!("the tool {}", tool_text(tool))));
    html! {
        @if entries.is_empty() { "nothing" } @else {
            ul.plain { @for entry in &entries { li { (said(entry)) } } }
            @if only.is_none() && !grant.workspaces.is_empty() { span.muted { "all of it" (for_workspaces(&grant.workspaces)) } }
        }
    }
}

fn for_workspaces(names: &[Name]) -> String {
    if names.is_empty() {
        return String::new();
    }
    format!(", for {}", names.iter().map(Name::as_str).collect::<Vec<_>>().join(", "))
}
