//! How the configuration stands, for the operator, and a reload.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};

use super::acts::Told;
use super::frame::{Frame, Section, page as framed};
use super::parts::{count, deliveries, field, joined, moment_of, said, said_lines};
use super::visitor::{Refused, Visitor};
use crate::serve::Served;
use crate::serve::auth::Right;
use crate::serve::problem::Problem;
use crate::serve::shapes::{AsideJson, MistakeJson, StatusJson};

/// How often the page is loaded anew, in seconds.
const EVERY_SECONDS: u32 = 10;

/// The page.
pub(super) async fn page(State(served): State<Arc<Served>>, Visitor(caller): Visitor) -> Result<Response, Refused> {
    served.gate.operate(&caller, Right::Operate)?;
    let config = served.config.borrow().clone();
    let status = StatusJson::from(served.reload.status());
    let body = html! {
        h1 { "Configuration" }
        form.acts.needs-script method="post" action="/configuration/reload" data-act { button.primary type="submit" { "Reload" } }
        div #status data-live {
            @match &status.refused {
                None => { p.standing { span.chip.is-good { "in force" } " The files are as they were read last." } }
                Some(refused) => {
                    p.standing { span.chip.is-stuck { "refused" } " The files have changed and were not taken: what ran before goes on." }
                    @if refused.mistakes.is_empty() { p.why { (said_lines(&refused.why)) } }
                    (mistakes(&refused.mistakes, refused.omitted))
                }
            }
            @if !status.needs_restart.is_empty() {
                p { span.chip.is-moving { "restart" } " These keys have changed and hold after a restart: " code { (status.needs_restart.join(", ")) } }
            }
            (others("Set aside: left out, because the file has mistakes", &status.aside))
            (others("Goes on with the file as it was before, and with the members it had, because the new one has mistakes", &status.older))
            dl.fields {
                (field("File", &said(&config.file.display().to_string())))
                @if let Some(at) = &status.taken_at { (field("Taken", &moment_of(at))) }
                @if let Some(at) = &status.refused_at { (field("Refused", &moment_of(at))) }
                (field("Listens on", &html! { (served.gate.listen()) }))
                (field("Store", &said(&config.store.display().to_string())))
                (field("Plugins", &said(&config.plugins.directory.display().to_string())))
            }
            h2 { "Workspaces" }
            ul.plain {
                @for workspace in config.workspaces.values() {
                    li { a href={ "/w/" (workspace.name) "/inbox" } { (workspace.name) } span.muted {
                        " " (count(workspace.connectors.len(), "connector")) ", " (count(workspace.routes.len(), "route")) ", "
                        (count(workspace.members.len(), "member"))
                    } }
                }
                @for name in &config.aside { li { a href={ "/w/" (name) "/inbox" } { (name) } " " span.chip.is-stuck { "set aside" } } }
            }
        }
    };
    let frame = Frame::of_operator(&config, &caller, "Configuration", Section::Configuration).every(EVERY_SECONDS);
    Ok(framed(&frame, &body))
}

fn others(heading: &str, of: &[AsideJson]) -> Markup {
    html! {
        @for one in of {
            section.panel { header { h2 { (one.workspace_id) } } p { (heading) "." } (mistakes(&one.mistakes, one.omitted)) }
        }
    }
}

fn mistakes(of: &[MistakeJson], omitted: usize) -> Markup {
    html! {
        @for mistake in of { pre.why tabindex="0" { (said_lines(mistake.told.trim_end())) } }
        @if omitted > 0 { p.muted { "and " (count(omitted, "more mistake")) } }
    }
}

/// Reads the files again.
pub(super) async fn reload(State(served): State<Arc<Served>>, Visitor(caller): Visitor) -> Told {
    served.gate.operate(&caller, Right::Operate)?;
    let taken = served.reload.reload().await.map_err(|refused| Problem::Refused(refused.to_string()))?;
    let mut parts = vec![match taken.changes.changes.len() {
        0 => "taken: nothing differs".to_owned(),
        many => format!("taken: {} differ from before", count(many, "thing")),
    }];
    let cancelled: u64 = taken.cancelled.iter().map(|(_, many)| many).sum();
    if cancelled > 0 {
        let many = usize::try_from(cancelled).unwrap_or(usize::MAX);
        parts.push(format!("{} cancelled, because their targets are gone", deliveries(many)));
    }
    let aside: Vec<String> = taken.aside.keys().chain(taken.older.keys()).map(ToString::to_string).collect();
    if !aside.is_empty() {
        parts.push(format!("mistakes in the files of {}", joined(&aside, "and")));
    }
    if !taken.needs_restart.is_empty() {
        parts.push(format!("a restart is needed for {}", taken.needs_restart.join(", ")));
    }
    Ok(parts.join("; "))
}
