//! The consumers of a workspace, and how their queues stand.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};

use super::frame::{Frame, Section, page as framed};
use super::parts::{conditions, empty, field, moment_of, said};
use super::visitor::{Place, Refused, Visitor};
use crate::inbox::QUEUE_EVENTS_MAX;
use crate::route::Matcher;
use crate::serve::Served;
use crate::serve::auth::Right;
use crate::serve::shapes::ConsumerJson;

/// How often the page is loaded anew, in seconds: what is acknowledged is not told live.
const EVERY_SECONDS: u32 = 10;

/// The page.
pub(super) async fn page(
    State(served): State<Arc<Served>>,
    visitor: Visitor,
    Path(workspace): Path<String>,
) -> Result<Response, Refused> {
    let place = Place::enter(served, visitor, &workspace, Right::ReadWork).await?;
    let of = place.workspace()?;
    let queues = place.served.store.queues(place.name()).await?;
    let found = ConsumerJson::served(place.name(), Some(of), &queues, &place.served.lives);
    let when = |one: &ConsumerJson| of.consumers.whens().iter().find(|(name, _)| name.as_str() == one.name);
    let body = html! {
        h1 { "Consumers" }
        p.muted { "Agents that have a queue of their own: what they have not acknowledged waits there, whether they are connected "
            "or not. They stand in the file of this workspace." }
        div #consumers data-live {
            @for one in &found { (whole(one, when(one).map(|(_, when)| when))) }
            @if found.is_empty() {
                (empty("No consumers", &html! { "No agent has a queue of its own. An admin names consumers under " code { "consumers" } " in the file of this workspace." }))
            }
        }
    };
    let frame =
        Frame::of(&place, "Consumers", Section::Consumers).following("notification.created reset").every(EVERY_SECONDS);
    Ok(framed(&frame, &body))
}

fn whole(of: &ConsumerJson, when: Option<&Matcher>) -> Markup {
    let title = format!("q-{}", of.name);
    let at = |moment: &Option<String>| {
        html! { @match moment { Some(at) => { (moment_of(at)) } None => { "never" } } }
    };
    html! {
        section.panel aria-labelledby=(title) {
            header {
                h2 id=(title) { (of.name) }
                @if of.is_live == Some(true) { span.chip.is-good { "told live" } }
                @if of.is_losing { span.chip.is-stuck { "loses events" } }
                @if !of.is_configured { span.chip.is-over { "not in the file any more" } }
            }
            @if of.is_losing {
                p.why { "Events left its queue unacknowledged: see whether the agent runs and acknowledges what it has taken over, or have fewer match." }
            }
            @if !of.is_configured { p.muted { "What waits is kept for it; nothing new joins." } }
            dl.fields {
                @if let Some(when) = when {
                    @let asked = conditions(when);
                    @if asked.is_empty() { (field("When", &html! { "whatever comes" })) }
                    @for (key, words) in asked { (field(key, &said(&words))) }
                }
                (field("Wait", &html! { (of.pending) " of at most " (QUEUE_EVENTS_MAX) }))
                @if let (Some(seq), Some(received)) = (of.oldest_seq, &of.oldest_received_at) {
                    (field("Oldest", &html! { a href={ "inbox/" (seq) } { "#" (seq) } " received " (moment_of(received)) }))
                }
                (field("Joined", &html! { (of.joined) }))
                (field("Acknowledged", &html! { (of.acknowledged) @if of.acknowledged > 0 { ", last " (at(&of.acknowledged_at)) } }))
                (field("Lost", &html! { (of.lost) @if of.lost > 0 {
                    ", last " (at(&of.lost_at))
                    @if of.lost_too_old > 0 { ", " (of.lost_too_old) " of them too old to be kept" }
                } }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_and_what_is_not_configured_any_more_is_seen() {
        let good = ConsumerJson {
            workspace_id: "acme".to_owned(),
            name: "triage".to_owned(),
            is_configured: true,
            ..ConsumerJson::default()
        };
        let everything = Matcher::default();
        let plain = whole(&good, Some(&everything)).into_string();
        assert!(plain.contains("whatever comes") && plain.contains("<dt>Lost</dt><dd>0</dd>"), "{plain}");
        assert!(!plain.contains("loses events") && !plain.contains("not in the file"), "{plain}");
        let bad = ConsumerJson {
            pending: 3,
            oldest_seq: Some(7),
            oldest_received_at: Some("2026-09-01T18:42:30Z".to_owned()),
            lost: 12,
            lost_too_old: 2,
            lost_at: Some("2026-09-01T18:42:30Z".to_owned()),
            is_losing: true,
            is_configured: false,
            ..good
        };
        let shown = whole(&bad, None).into_string();
        for text in ["loses events", "not in the file any more", "3 of at most 10000", "inbox/7", "2 of them too old"] {
            assert!(shown.contains(text), "{text} is not in {shown}");
        }
    }
}
