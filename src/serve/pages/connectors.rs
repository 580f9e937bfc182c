//! How the connectors of a workspace do.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};

use super::frame::{Frame, Section, page as framed};
use super::parts::{count, empty, field, moment_of, said, said_lines};
use super::visitor::{Place, Refused, Visitor};
use crate::serve::Served;
use crate::serve::auth::Right;
use crate::serve::shapes::ConnectorJson;

/// How often the page is loaded anew, in seconds: reads are not told live.
const EVERY_SECONDS: u32 = 10;

/// The page.
pub(super) async fn page(
    State(served): State<Arc<Served>>,
    visitor: Visitor,
    Path(workspace): Path<String>,
) -> Result<Response, Refused> {
    let place = Place::enter(served, visitor, &workspace, Right::ReadWork).await?;
    let seats = place.served.seats.borrow().clone();
    let of_place = seats.iter().filter(|seat| seat.workspace == *place.name());
    let found: Vec<ConnectorJson> = of_place.map(ConnectorJson::from).collect();
    let may_poll = place.caller.may(Right::ChangeWork);
    let budget = found.iter().find_map(|one| one.budget.as_ref());
    let body = html! {
        h1 { "Connectors" }
        div #connectors data-live {
            @if let Some(budget) = budget {
                p.muted { (budget.left) " of " (budget.per_minute) " reads of this workspace are left in this minute." }
            }
            @for one in &found { (whole(one, may_poll)) }
            @if found.is_empty() {
                (empty("No connectors", &html! { "Nothing can come in. An admin names MCP servers under " code { "connectors" } " in the file of this workspace." }))
            }
        }
    };
    let frame = Frame::of(&place, "Connectors", Section::Connectors).following("gap reset").every(EVERY_SECONDS);
    Ok(framed(&frame, &body))
}

/// A state as a word, and of what kind it is.
fn standing(of: &ConnectorJson) -> (&str, &str) {
    match of.state.as_str() {
        "ok" => ("good", "reads"),
        "starting" => ("moving", "starting"),
        "failing" => ("moving", "failing"),
        "open" => ("stuck", "failing, tried seldom"),
        "reauthorize" => ("stuck", "needs a new sign-in"),
        "not-polled" => ("over", "not read"),
        other => ("over", other),
    }
}

fn whole(of: &ConnectorJson, may_poll: bool) -> Markup {
    let (kind, words) = standing(of);
    let title = format!("c-{}", of.name);
    let at = |moment: &Option<String>| {
        html! { @match moment { Some(at) => { (moment_of(at)) } None => { "never" } } }
    };
    html! {
        section.panel aria-labelledby=(title) {
            header {
                h2 id=(title) { (of.name) }
                span class={ "chip is-" (kind) } { (words) }
                @if of.deferred { span.chip.is-moving { "waits for the budget" } }
                @if may_poll && of.state != "not-polled" {
                    form.needs-script method="post" action={ "connectors/" (of.name) "/poll" } data-act { button type="submit" { "Read now" } }
                }
            }
            @if let Some(reason) = &of.reason { p.muted { (said_lines(reason)) } }
            @if let Some(error) = &of.last_error {
                @if of.failures > 0 {
                    p.why { (said_lines(&error.reason)) }
                    p.muted { (count(of.failures as usize, "read")) " failed in a row. It goes on being tried. The last failed " (moment_of(&error.at)) }
                } @else {
                    details { summary { "The last failure, which is over" } p { (moment_of(&error.at)) } p.why { (said_lines(&error.reason)) } }
                }
            }
            dl.fields {
                (field("Last read", &at(&of.last_read_at)))
                @if of.next_read_at.is_some() { (field("Next read", &at(&of.next_read_at))) }
                @if !of.push { (field("Position moved", &at(&of.cursor_moved_at))) }
                @if let Some(outbox) = &of.outbox { (field("Outbox", &said(outbox))) }
                @if of.push { (field("Events come from", &html! { "a push queue, as they happen" })) }
                @if let Some(transport) = &of.transport { (field("Reached by", &html! { (transport) })) }
                @if let Some(revision) = &of.revision { (field("MCP", &said(revision))) }
            }
        }
    }
}
