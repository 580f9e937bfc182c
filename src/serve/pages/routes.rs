//! The routes of a workspace, as configured, with what they owe at the moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};

use super::frame::{Frame, Section, page as framed};
use super::parts::{conditions, deliveries, empty, retry_words, said, timing_words};
use super::visitor::{Place, Refused, Visitor};
use crate::config::{Role, Route, Target};
use crate::inbox::delivery::State as Stands;
use crate::inbox::{Page, Which};
use crate::notification::Name;
use crate::serve::Served;
use crate::serve::auth::Right;

/// Deliveries that are counted.
const COUNTED_MAX: u32 = 1_000;

/// Deliveries that are not over, by route and target.
struct Open {
    by_target: BTreeMap<(Name, String), usize>,
    has_more: bool,
}

/// The page.
pub(super) async fn page(
    State(served): State<Arc<Served>>,
    visitor: Visitor,
    Path(workspace): Path<String>,
) -> Result<Response, Refused> {
    let place = Place::enter(served, visitor, &workspace, Right::ReadWork).await?;
    let of = place.workspace()?;
    let open = open_of(&place).await?;
    let body = html! {
        h1 { "Routes" }
        p.muted { "Every route that matches fires, whatever the others do. They stand in the file of this workspace; "
            "why one did or did not match is told with each notification." }
        div #routes data-live {
            @if open.has_more { p.muted { "More than " (COUNTED_MAX) " deliveries are open: the counts are of the newest." } }
            @for route in &of.routes { (whole(route, of.members.get(&route.owner).copied(), &open)) }
            @if of.routes.is_empty() {
                (empty("No routes", &html! { "Nobody is told of anything. An admin writes routes under " code { "routes" } " in the file of this workspace." }))
            }
        }
    };
    Ok(framed(&Frame::of(&place, "Routes", Section::Routes).following("delivery. reset"), &body))
}

async fn open_of(place: &Place) -> Result<Open, Refused> {
    let states = Stands::ALL.into_iter().filter(|state| !state.is_final()).collect();
    let page = Page { workspace: place.name().clone(), before: None, limit: COUNTED_MAX };
    let found = place.served.store.deliveries(page, Which { states, ..Which::default() }).await?;
    let has_more = found.len() >= COUNTED_MAX as usize;
    let mut by_target = BTreeMap::new();
    for one in found {
        *by_target.entry((one.route, one.target)).or_insert(0) += 1;
    }
    Ok(Open { by_target, has_more })
}

fn whole(route: &Route, role: Option<Role>, open: &Open) -> Markup {
    let asked = conditions(&route.when);
    html! {
        section.panel id={ "r-" (route.name) } aria-labelledby={ "r-" (route.name) "-title" } {
            header {
                h2 id={ "r-" (route.name) "-title" } { (route.name) }
                span.muted { "for " (said(&route.owner)) }
            }
            @match role {
                Some(Role::Admin) => {}
                Some(Role::Member) => { p.why { "It does not act: its owner is a member and no admin." } }
                None => { p.why { "It does not act: its owner is no member of the workspace." } }
            }
            dl.fields {
                @if asked.is_empty() { div { dt { "When" } dd { "whatever comes" } } }
                @for (key, words) in asked { div { dt { (key) } dd { (said(&words)) } } }
            }
            ul.targets { @for target in &route.deliver { (of_target(route, target, open)) } }
        }
    }
}

fn of_target(route: &Route, target: &Target, open: &Open) -> Markup {
    let many = open.by_target.get(&(route.name.clone(), target.id.clone())).copied().unwrap_or_default();
    let mut lines = timing_words(&target.timing);
    if lines.is_empty() {
        lines.push("at once, each alone".to_owned());
    }
    lines.extend(retry_words(target));
    html! {
        li {
            p { span aria-hidden="true" { "→ " } b { (target.plugin) } span.muted { " target " (said(&target.id)) }
                @if many > 0 { a.chip.is-moving href={ "deliveries?route=" (route.name) "&plugin=" (target.plugin) } { (deliveries(many)) " open" } }
            }
            ul.plain.muted { @for line in lines { li { (said(&line)) } } }
        }
    }
}
