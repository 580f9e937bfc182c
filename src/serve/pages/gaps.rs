//! Where a source skipped events: what it had to tell and never did.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::html;

use super::frame::{Frame, Section, page as framed};
use super::parts::{Asked, empty, moment, said};
use super::visitor::{Place, Refused, Visitor};
use crate::inbox::Query;
use crate::notification::HOST_SOURCE;
use crate::route::{Matcher, PreparedMatcher};
use crate::serve::Served;
use crate::serve::auth::Right;
use crate::serve::problem::Problem;

/// The name of the host's notice about a gap (`fetch/notice.rs`).
const GAP: &str = "connector.gap";

/// Gaps of a page.
const ROWS_MAX: u32 = 50;

/// The page.
pub(super) async fn page(
    State(served): State<Arc<Served>>,
    visitor: Visitor,
    Path(workspace): Path<String>,
    asked: Asked,
) -> Result<Response, Refused> {
    let place = Place::enter(served, visitor, &workspace, Right::ReadInbox).await?;
    let matcher = Matcher { source: vec![HOST_SOURCE.to_owned()], name: vec![GAP.to_owned()], ..Matcher::default() };
    let when = PreparedMatcher::new(matcher).map_err(|error| Problem::Unavailable(error.to_string()))?;
    let before = asked.number("before");
    let query = Query { when: Some(Arc::new(when)), before, ..Query::all(place.name().clone(), ROWS_MAX) };
    let found = place.served.store.list(query).await?;
    let body = html! {
        h1 { "Gaps" }
        p.muted { "Where a source skipped events. What it skipped is not in the inbox and cannot be had from here; "
            "the source itself may still know." }
        div #gaps data-live {
            @if found.items.is_empty() && found.next.is_none() && before.is_none() {
                (empty("No gaps", &html! { "No source has skipped anything that this inbox remembers." }))
            }
            @if !found.items.is_empty() { ul.cards {
                @for (one, _) in &found.items {
                    li.card id={ "n-" (one.seq) } {
                        div.what {
                            span.chip.is-stuck { "gap" }
                            a.title href={ "inbox/" (one.seq) } { @match &one.event.subject { Some(source) => { (said(source)) } None => { "#" (one.seq) } } }
                        }
                        @if let Some(body) = &one.event.body { p.reason-line { (said(body)) } }
                        p.next { (moment(one.received_at)) }
                    }
                }
            } }
            @if let Some(next) = found.next { nav.turn aria-label="Pages of the list" { a rel="next" href={ "gaps?before=" (next) } { "Older" } } }
        }
    };
    Ok(framed(&Frame::of(&place, "Gaps", Section::Gaps).following("gap reset"), &body))
}
