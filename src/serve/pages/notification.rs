//! One notification: what it says, what was done with it, what became of it, and why. Its payload is not shown.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};

use super::deliveries::cards;
use super::frame::{Frame, Section, page as framed};
use super::inbox::{Filter, LOOKS_MAX};
use super::parts::{Asked, field, level_chip, link, moment, said, said_lines};
use super::visitor::{Place, Refused, Visitor};
use super::why;
use crate::inbox::{DeliveryView, Mark, Marks, Order, Page, Query, Which};
use crate::notification::Notification;
use crate::serve::Served;
use crate::serve::auth::Right;
use crate::serve::problem::Problem;

/// Deliveries of one notification that are shown: a workspace has 200 routes with 5 targets at most.
const DELIVERIES_MAX: u32 = 1_000;

/// The page. With `why` in its query the explanation is part of it.
pub(super) async fn page(
    State(served): State<Arc<Served>>,
    visitor: Visitor,
    Path((workspace, seq)): Path<(String, String)>,
    asked: Asked,
) -> Result<Response, Refused> {
    let place = Place::enter(served, visitor, &workspace, Right::ReadInbox).await?;
    let (one, marks) = find(&place, &seq).await?;
    let (filter, part) = Filter::read(&asked);
    let newer = beside(&place, &filter, (one.seq, Order::Oldest)).await?;
    let older = beside(&place, &filter, (one.seq, Order::Newest)).await?;
    let list = filter.asked(part);
    let sees_work = place.caller.may(Right::ReadWork);
    let deliveries = if sees_work { deliveries_of(&place, one.seq).await? } else { Vec::new() };
    let is_why = sees_work && asked.one("why").is_some();
    let why = if is_why { Some(why::explained(&place, one.seq).await) } else { None };
    let body = html! {
        nav.crumbs aria-label="Notification" {
            a href={ (place.path("inbox")) (list) } data-back { "← Inbox" }
            span.turn {
                (turn(newer, &list, "Newer", "prev"))
                (turn(older, &list, "Older", "next"))
            }
        }
        article.notification {
            header {
                p.facts { (level_chip(one.effective_level)) span.muted { "#" (one.seq) " from " } b { (one.source) } }
                h1 { (said(&one.event.title)) }
                @if let Some(subject) = &one.event.subject { p.subject { (said(subject)) } }
            }
            @if let Some(body) = &one.event.body { div.body { (said_lines(body)) } }
            @if let Some(resource) = &one.event.link { div.link { (link(resource)) } }
            div #marks data-live { (marked(&place, &one, &marks)) }
            dl.fields { (facts(&one)) }
        }
        @if sees_work {
            section aria-labelledby="deliveries-title" {
                h2 #deliveries-title { "Deliveries" }
                div #deliveries data-live { (owed(&place, &deliveries)) }
            }
            section #why aria-labelledby="why-title" {
                h2 #why-title { "Why" }
                @match &why {
                    Some(why) => { (why) }
                    None => { p { a.button href={ (one.seq) (list) (if list.is_empty() { "?" } else { "&" }) "why=1#why" } { "Explain who is told, when, and why not" } } }
                }
            }
        }
    };
    let frame = Frame::of(&place, &one.event.title, Section::Inbox).following("notification. delivery. reset");
    Ok(framed(&frame, &body))
}

async fn find(place: &Place, seq: &str) -> Result<(Notification, Marks), Refused> {
    let unknown = || Problem::Unknown(format!("workspace {} has no notification {seq:?}", place.name()));
    let seq: u64 = seq.parse().map_err(|_| unknown())?;
    let query = Query { seqs: vec![seq], ..Query::all(place.name().clone(), 1) };
    Ok(place.served.store.list(query).await?.items.pop().ok_or_else(unknown)?)
}

/// The number of the one before or behind it, of those that fit the filter the reader came by. None where none was found in as
/// many looks as are allowed.
async fn beside(place: &Place, filter: &Filter, (seq, order): (u64, Order)) -> Result<Option<u64>, Refused> {
    // The list itself says what is wrong with a pattern.
    let all = || Query::all(place.name().clone(), 1);
    let fitting = filter.query(place.name(), None).unwrap_or_else(|_| all());
    let mut query = Query { limit: 1, order, ..fitting };
    let mut from = Some(seq);
    for _ in 0..LOOKS_MAX {
        match order {
            Order::Oldest => query.after = from,
            Order::Newest => query.before = from,
        }
        let listed = place.served.store.list(query.clone()).await?;
        if let Some((one, _)) = listed.items.first() {
            return Ok(Some(one.seq));
        }
        from = listed.next;
        if from.is_none() {
            break;
        }
    }
    Ok(None)
}

async fn deliveries_of(place: &Place, seq: u64) -> Result<Vec<DeliveryView>, Refused> {
    let page = Page { workspace: place.name().clone(), before: None, limit: DELIVERIES_MAX };
    let mut found = place.served.store.deliveries(page, Which { seq: Some(seq), ..Which::default() }).await?;
    found.sort_by_key(|delivery| delivery.id.number);
    Ok(found)
}

fn turn(seq: Option<u64>, list: &str, word: &str, rel: &str) -> Markup {
    html! {
        @if let Some(seq) = seq { a href={ (seq) (list) } rel=(rel) { (word) } } @else { span aria-hidden="true" { (word) } }
    }
}

fn facts(one: &Notification) -> Markup {
    let event = &one.event;
    let level = html! {
        (one.effective_level)
        @if event.level != one.effective_level {
            span.muted { " – its source says " (event.level) ", the ceiling of that source was " (one.effective_level) }
        }
    };
    html! {
        (field("Level", &level))
        (field("Name", &said(&event.name)))
        (field("Source", &html! { (one.source) }))
        @if let Some(subject) = &event.subject { (field("Subject", &said(subject))) }
        (field("Happened", &moment(event.timestamp)))
        (field("Received", &moment(one.received_at)))
        (field("Event id", &said(&event.event_id)))
    }
}

/// What was done with it, and what can be.
fn marked(place: &Place, one: &Notification, marks: &Marks) -> Markup {
    let may_mark = place.caller.may(Right::Mark);
    let told = |word: &str, mark: &Option<Mark>| {
        html! {
            @if let Some(mark) = mark {
                p { (word) " by " (said(&mark.by.name)) @if mark.by.is_agent { span.muted { " (an agent)" } } " " (moment(mark.at)) }
            }
        }
    };
    let by_person = marks.acknowledged.as_ref().is_some_and(|mark| !mark.by.is_agent);
    let reads = may_mark && marks.read.is_none();
    html! {
        div.marks {
            @if may_mark && !by_person {
                form.needs-script method="post" action="mark" data-act {
                    input type="hidden" name="seq" value=(one.seq);
                    button.primary type="submit" name="deed" value="acknowledge" { "Acknowledge" }
                }
            }
            @if reads {
                form.needs-script method="post" action="mark" data-act data-quietly="opened" {
                    input type="hidden" name="seq" value=(one.seq);
                    button type="submit" name="deed" value="read" { "Mark read" }
                }
            }
            div.told {
                (told("Acknowledged", &marks.acknowledged))
                (told("Read", &marks.read))
                @if marks.read.is_none() { p.muted { "Nobody has read it yet." } }
            }
        }
    }
}

fn owed(place: &Place, found: &[DeliveryView]) -> Markup {
    html! {
        @if found.is_empty() {
            p.muted { "None: no route matched when it came. “Why” below tells what each route asks for." }
        } @else { (cards(place, found)) }
    }
}
