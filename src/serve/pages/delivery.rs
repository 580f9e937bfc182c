//! The life of one delivery.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};

use super::frame::{Frame, Section, page as framed};
use super::inbox::{Besides, rows};
use super::parts::{count, field, moment, outcome_chip, said, said_lines, state_chip, state_words, took};
use super::visitor::{Place, Refused, Visitor};
use crate::inbox::delivery::State as Stands;
use crate::inbox::{Attempt, DeliveryId, DeliveryView, Marks, Order, Page, Query, Which};
use crate::notification::Notification;
use crate::serve::Served;
use crate::serve::auth::Right;
use crate::serve::desk::Change;
use crate::serve::problem::Problem;

/// Digits of a digest that are shown.
const DIGEST_DIGITS: usize = 12;

/// The page.
pub(super) async fn page(
    State(served): State<Arc<Served>>,
    visitor: Visitor,
    Path((workspace, id)): Path<(String, String)>,
) -> Result<Response, Refused> {
    let place = Place::enter(served, visitor, &workspace, Right::ReadWork).await?;
    let one = find(&place, &id).await?;
    let stands_for = content(&place, &one).await?;
    let gone = one.seqs.len().saturating_sub(stands_for.len());
    let body = html! {
        nav.crumbs aria-label="Delivery" { a href=(place.path("deliveries")) data-back { "← Deliveries" } }
        h1 { (one.route) span aria-hidden="true" { " → " } span.vh { " to " } (one.plugin) }
        div #delivery data-live {
            p.standing { (state_chip(one.state)) " " (state_words(one.state)) }
            @if let Some(why) = &one.why { p.why { (said_lines(why)) } }
            (buttons(&place, &one))
            dl.fields { (facts(&place, &one)) }
            h2 { "Attempts" }
            (attempts(&one))
        }
        h2 { "What it stands for" }
        (rows(&stands_for, (&place.path("inbox"), ""), Besides::default()))
        @if gone > 0 { p.muted { (count(gone, "notification")) " no longer in the inbox" } }
        @if one.omitted > 0 { p.muted { "and " (one.omitted) " more that it only counts" } }
    };
    let title = format!("Delivery {}", one.id);
    Ok(framed(&Frame::of(&place, &title, Section::Deliveries).following("delivery. reset"), &body))
}

async fn find(place: &Place, id: &str) -> Result<DeliveryView, Refused> {
    let unknown = || Problem::Unknown(format!("workspace {} has no delivery {id:?}", place.name()));
    let id: DeliveryId = id.parse().map_err(|_| unknown())?;
    let page = Page { workspace: place.name().clone(), before: None, limit: 1 };
    let which = Which { ids: vec![id], ..Which::default() };
    Ok(place.served.store.deliveries(page, which).await?.pop().ok_or_else(unknown)?)
}

async fn content(place: &Place, one: &DeliveryView) -> Result<Vec<(Notification, Marks)>, Refused> {
    if one.seqs.is_empty() {
        return Ok(Vec::new());
    }
    let limit = u32::try_from(one.seqs.len()).unwrap_or(u32::MAX).min(crate::inbox::QUERY_LIMIT_MAX);
    let query = Query { seqs: one.seqs.clone(), order: Order::Oldest, ..Query::all(place.name().clone(), limit) };
    Ok(place.served.store.list(query).await?.items)
}

fn buttons(place: &Place, one: &DeliveryView) -> Markup {
    let may = place.caller.may(Right::ChangeWork);
    let retries = matches!(
        one.state,
        Stands::Dead
            | Stands::Blocked
            | Stands::Retrying
            | Stands::Delivered
            | Stands::Unknown
            | Stands::Suppressed
            | Stands::Cancelled
    );
    let cancels = !one.state.is_final() && one.state != Stands::InFlight || one.state == Stands::Dead;
    let button = |change: Change, word: &str, is_main: bool| {
        html! { button.primary[is_main] type="submit" name="do" value=(change.as_str()) { (word) } }
    };
    let again =
        if matches!(one.state, Stands::Dead | Stands::Blocked | Stands::Retrying) { "Retry now" } else { "Send again" };
    html! {
        @if may && (retries || cancels) {
            form.acts.needs-script method="post" action="change" data-act {
                input type="hidden" name="id" value=(one.id);
                @if retries { (button(Change::Retry, again, matches!(one.state, Stands::Dead | Stands::Blocked))) }
                @if cancels { (button(Change::Cancel, "Cancel", false)) }
            }
        }
    }
}

fn facts(place: &Place, one: &DeliveryView) -> Markup {
    let other = |id: &DeliveryId| html! { a href=(place.path(&format!("deliveries/{id}"))) { (id) } };
    html! {
        @if let Some(next) = one.next_at { (field("Moves on", &moment(next))) }
        (field("Route", &html! { a href={ "../routes#r-" (one.route) } { (one.route) } }))
        (field("Target", &said(&one.target)))
        (field("Plugin", &html! { (one.plugin) }))
        (field("Made", &moment(one.created_at)))
        (field("Due", &moment(one.due_at)))
        @if let Some(old) = &one.retry_of { (field("Repeats", &html! { (other(old)) span.muted { ", as a person asked" } })) }
        (field("Id", &html! { code { (one.id) } }))
    }
}

fn attempts(of: &DeliveryView) -> Markup {
    html! {
        @if of.attempts.is_empty() { p.muted { "None yet." } } @else {
            ol.attempts { @for attempt in &of.attempts { (row(attempt)) } }
        }
    }
}

fn row(one: &Attempt) -> Markup {
    let digest = one.plugin_digest.as_deref().map(|digest| digest.get(..DIGEST_DIGITS).unwrap_or(digest));
    html! {
        li {
            div.what {
                span.muted { "#" (one.number) } (outcome_chip(one.outcome)) (moment(one.started_at))
                span.muted {
                    (took(one.started_at, one.ended_at)) ", " (count(one.steps as usize, "step"))
                    @if let Some(version) = &one.plugin_version { ", version " (said(version)) }
                    @if let Some(digest) = digest { " " code title="the beginning of the digest of its file" { (digest) } }
                }
            }
            @if let Some(reason) = &one.reason { p.why { (said_lines(reason)) } }
        }
    }
}
