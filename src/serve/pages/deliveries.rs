//! The deliveries of a workspace: what waits for a person first.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use url::form_urlencoded::Serializer;

use super::frame::{Frame, Section, page as framed};
use super::parts::{Asked, count, empty, moment, said, state_chip, state_kind};
use super::visitor::{Place, Refused, Visitor};
use crate::inbox::delivery::State as Stands;
use crate::inbox::{DeliveryView, Page, QUERY_LIMIT_MAX, Query, Which};
use crate::notification::Name;
use crate::serve::Served;
use crate::serve::auth::Right;

/// Deliveries of a page.
const CARDS_MAX: u32 = 50;

/// Deliveries that wait for a person and stand above all others.
const STUCK_MAX: u32 = 10;

/// Deliveries of one notification: more than one page holds is not cut in the middle.
const OF_ONE_MAX: u32 = 1_000;

/// The word that means every state that waits for a person.
const STUCK: &str = "stuck";

/// What is shown.
#[derive(Clone, Debug, Default)]
struct Filter {
    state: Option<String>,
    route: Option<Name>,
    plugin: Option<Name>,
    before: Option<u64>,
}

impl Filter {
    fn read(asked: &Asked) -> Self {
        let name = |key| asked.one(key).and_then(|value| value.parse().ok());
        let known = |word: &&str| *word == STUCK || Stands::parse(word).is_some();
        Self {
            state: asked.one("state").filter(known).map(str::to_owned),
            route: name("route"),
            plugin: name("plugin"),
            before: asked.number("before"),
        }
    }

    fn states(&self) -> Vec<Stands> {
        match self.state.as_deref() {
            Some(STUCK) => stuck(),
            Some(word) => Stands::parse(word).into_iter().collect(),
            None => Vec::new(),
        }
    }

    fn which(&self) -> Which {
        Which { states: self.states(), route: self.route.clone(), plugin: self.plugin.clone(), ..Which::default() }
    }

    /// Whether it is the first page of all.
    fn is_whole(&self) -> bool {
        self.state.is_none() && self.route.is_none() && self.plugin.is_none() && self.before.is_none()
    }

    fn address(&self, before: Option<u64>) -> String {
        let mut query = Serializer::new(String::new());
        query.extend_pairs(self.state.as_ref().map(|state| ("state", state)));
        query.extend_pairs(self.route.as_ref().map(|route| ("route", route.as_str())));
        query.extend_pairs(self.plugin.as_ref().map(|plugin| ("plugin", plugin.as_str())));
        query.extend_pairs(before.map(|before| ("before", before.to_string())));
        let text = query.finish();
        if text.is_empty() { "deliveries".to_owned() } else { format!("deliveries?{text}") }
    }
}

fn stuck() -> Vec<Stands> {
    Stands::ALL.into_iter().filter(|state| state_kind(*state) == "stuck").collect()
}

/// The page.
pub(super) async fn page(
    State(served): State<Arc<Served>>,
    visitor: Visitor,
    Path(workspace): Path<String>,
    asked: Asked,
) -> Result<Response, Refused> {
    let place = Place::enter(served, visitor, &workspace, Right::ReadWork).await?;
    let filter = Filter::read(&asked);
    let waiting = if filter.is_whole() { stuck_of(&place).await? } else { Vec::new() };
    let (found, older) = find(&place, &filter).await?;
    let titles = titles(&place, waiting.iter().chain(&found)).await?;
    let body = html! {
        h1 { "Deliveries" }
        (filters(&place, &filter))
        div #found data-live { (lists(&place, &filter, (&waiting, &found, &titles), older)) }
    };
    Ok(framed(&Frame::of(&place, "Deliveries", Section::Deliveries).following("delivery. reset"), &body))
}

fn lists(
    place: &Place,
    filter: &Filter,
    (waiting, found, titles): (&[DeliveryView], &[DeliveryView], &Titles),
    older: Option<u64>,
) -> Markup {
    html! {
        @if !waiting.is_empty() {
            section aria-labelledby="waiting-title" {
                h2 #waiting-title { "Waiting for a person" }
                (form(place, "waiting", (waiting, titles), |_| html! {}))
                @if waiting.len() >= STUCK_MAX as usize {
                    p { a href={ "deliveries?state=" (STUCK) } { "All that wait for a person" } }
                }
            }
            h2 { "All, newest first" }
        }
        @if found.is_empty() {
            (empty("No deliveries", &html! {
                @if filter.is_whole() { "Nothing was owed to anybody yet. " a href="routes" { "What the routes ask for" } "." }
                @else { "None fits. " a href="deliveries" { "Show all" } "." }
            }))
        } @else {
            (form(place, "all", (found, titles), |label| turn(filter, older, label)))
        }
    }
}

async fn stuck_of(place: &Place) -> Result<Vec<DeliveryView>, Refused> {
    let page = Page { workspace: place.name().clone(), before: None, limit: STUCK_MAX };
    Ok(place.served.store.deliveries(page, Which { states: stuck(), ..Which::default() }).await?)
}

/// A page, and where it goes on. A page ends between two notifications, so that the next one misses nothing.
async fn find(place: &Place, filter: &Filter) -> Result<(Vec<DeliveryView>, Option<u64>), Refused> {
    let ask = async |limit| {
        let page = Page { workspace: place.name().clone(), before: filter.before, limit };
        place.served.store.deliveries(page, filter.which()).await
    };
    let (mut found, mut limit) = (ask(CARDS_MAX).await?, CARDS_MAX);
    let first = |view: &DeliveryView| view.seqs.first().copied();
    if found.first().map(first) == found.last().map(first) && found.len() >= limit as usize {
        limit = OF_ONE_MAX;
        found = ask(limit).await?;
    }
    if found.len() < limit as usize {
        return Ok((found, None));
    }
    let last = found.last().and_then(first);
    if found.first().and_then(first) != last {
        found.retain(|view| first(view) != last);
    }
    let older = found.last().and_then(first);
    Ok((found, older))
}

fn filters(place: &Place, of: &Filter) -> Markup {
    let routes = place.admitted.workspace().map(|workspace| workspace.routes.as_slice()).unwrap_or_default();
    let mut plugins: Vec<&Name> = routes.iter().flat_map(|route| &route.deliver).map(|target| &target.plugin).collect();
    plugins.sort();
    plugins.dedup();
    html! {
        form.filters role="search" method="get" action="deliveries" { div.first {
            label.vh for="state" { "State" }
            select #state name="state" {
                option value="" { "Any state" }
                option value=(STUCK) selected[of.state.as_deref() == Some(STUCK)] { "Waiting for a person" }
                @for state in Stands::ALL {
                    option value=(state) selected[of.state.as_deref() == Some(state.as_str())] { (state.as_str().replace('_', " ")) }
                }
            }
            label.vh for="route" { "Route" }
            select #route name="route" {
                option value="" { "Any route" }
                @for route in routes { option value=(route.name) selected[of.route.as_ref() == Some(&route.name)] { (route.name) } }
                @if let Some(gone) = of.route.as_ref().filter(|named| routes.iter().all(|route| route.name != **named)) {
                    option value=(gone) selected { (gone) }
                }
            }
            label.vh for="plugin" { "Plugin" }
            select #plugin name="plugin" {
                option value="" { "Any plugin" }
                @for plugin in plugins { option value=(plugin) selected[of.plugin.as_ref() == Some(plugin)] { (plugin) } }
            }
            button type="submit" { "Show" }
        } }
    }
}

fn form(place: &Place, id: &str, (found, titles): (&[DeliveryView], &Titles), turn: impl Fn(&str) -> Markup) -> Markup {
    html! {
        form id=(id) method="post" action="deliveries/change" data-act {
            div.over-list {
                @if place.caller.may(Right::ChangeWork) {
                    label.tick.needs-script { input type="checkbox" data-all autocomplete="off"; " All" span.vh { " of this list" } }
                    span.needs-script {
                        button type="submit" name="do" value="retry" { "Retry" }
                        button type="submit" name="do" value="cancel" { "Cancel" }
                    }
                }
                (turn("Pages of the list"))
            }
            (cards_with(place, (found, titles), Some(id).filter(|_| place.caller.may(Right::ChangeWork))))
            @if found.len() > 10 { div.under-list { (turn("Pages of the list, again")) } }
        }
    }
}

fn turn(filter: &Filter, older: Option<u64>, label: &str) -> Markup {
    html! {
        nav.turn aria-label=(label) {
            @if filter.before.is_some() { a href=(filter.address(None)) rel="prev" { "First page" } }
            @else { span aria-hidden="true" { "First page" } }
            @if older.is_some() { a href=(filter.address(older)) rel="next" { "Older" } }
            @else { span aria-hidden="true" { "Older" } }
        }
    }
}

/// A short view of each, where it is known what they stand for.
pub(super) fn cards(place: &Place, found: &[DeliveryView]) -> Markup {
    cards_with(place, (found, &Titles::new()), None)
}

/// With boxes, if they stand in a form of this name.
fn cards_with(place: &Place, (found, titles): (&[DeliveryView], &Titles), form: Option<&str>) -> Markup {
    html! { ul.cards { @for one in found { (card(place, one, titles, form)) } } }
}

/// Titles of notifications, by their numbers.
type Titles = BTreeMap<u64, String>;

/// The titles of the first notifications that these stand for.
async fn titles(place: &Place, of: impl Iterator<Item = &DeliveryView>) -> Result<Titles, Refused> {
    let mut seqs: Vec<u64> = of.filter_map(|one| one.seqs.first().copied()).collect();
    seqs.sort_unstable();
    seqs.dedup();
    if seqs.is_empty() {
        return Ok(Titles::new());
    }
    let query = Query { seqs, ..Query::all(place.name().clone(), QUERY_LIMIT_MAX) };
    let found = place.served.store.list(query).await?.items;
    Ok(found.into_iter().map(|(one, _)| (one.seq, one.event.title)).collect())
}

fn card(place: &Place, one: &DeliveryView, titles: &Titles, form: Option<&str>) -> Markup {
    let last = one.attempts.last();
    let why = one.why.as_ref().or_else(|| last.and_then(|last| last.reason.as_ref()));
    html! {
        li.card id={ (form.unwrap_or("d")) "-" (one.id) } {
            @if form.is_some() {
                label.pick.needs-script {
                    input type="checkbox" name="id" value=(one.id) autocomplete="off" aria-label={ "Select delivery " (one.id) };
                }
            }
            div.what {
                (state_chip(one.state))
                a.title href=(place.path(&format!("deliveries/{}", one.id))) {
                    (one.route) span aria-hidden="true" { " → " } span.vh { " to " } (one.plugin)
                }
                @if let Some(title) = one.seqs.first().and_then(|seq| titles.get(seq)) { span.about-what { (said(title)) } }
                span.muted { (stands_for(one)) @if !one.attempts.is_empty() { ", " (count(one.attempts.len(), "attempt")) } }
            }
            @if let Some(why) = why { p.reason-line.is-bad[state_kind(one.state) == "stuck"] { (said(why)) } }
            @if let Some(next) = one.next_at.filter(|_| !one.state.is_final()) { p.next { span.muted { "moves on " } (moment(next)) } }
            @else { p.next { (moment(last.map_or(one.created_at, |last| last.ended_at))) } }
        }
    }
}

/// What a delivery stands for.
fn stands_for(one: &DeliveryView) -> String {
    let first = one.seqs.first().map_or_else(|| "nothing".to_owned(), |seq| format!("#{seq}"));
    match one.seqs.len().saturating_sub(1) + one.omitted as usize {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
