//! Why somebody was told of a notification, and when, or why not: what `switchbell explain` says, by the same code.

use maud::{Markup, html};

use super::parts::{deliveries, joined, moment_of, said};
use super::visitor::Place;
use crate::serve::inquiry::{
    ConditionJson, ExplainAskedJson, ExplainedJson, ForecastJson, LaneJson, MoveJson, OfJson, RouteJson, TargetJson,
};

/// What stands before a digest of a secret's value in the key of a lane.
const SECRET: &str = "secret:";

/// The explanation; or why there is none.
pub(super) async fn explained(place: &Place, seq: u64) -> Markup {
    let asked = ExplainAskedJson { of: OfJson { seq: Some(seq), ..OfJson::default() }, ..ExplainAskedJson::default() };
    match place.served.inquiry.explain(place.name().as_str(), &asked).await {
        Ok(explained) => whole(&explained),
        Err(why) => html! { p.why { (said(&why.to_string())) } },
    }
}

fn whole(of: &ExplainedJson) -> Markup {
    let (matching, others): (Vec<_>, Vec<_>) =
        of.routes.iter().partition(|route| route.matches || !route.targets.is_empty());
    html! {
        @if let Some(why) = &of.owes_nothing { p.why { "It owes nothing: " (said(why)) } }
        (level(of))
        @if !of.consumers.is_empty() { p { "Joins the queues of: " (joined(&of.consumers, "and")) "." } }
        @if of.routes.is_empty() { p { "The workspace has no routes: nobody is told of anything." } }
        @else if matching.is_empty() { p { "No route matches." } }
        @for route in &matching { (matched(route, of)) }
        @if !of.other_deliveries.is_empty() {
            p { (deliveries(of.other_deliveries.len())) " of routes and targets that are not in the configuration any more." }
        }
        @if !others.is_empty() {
            h3 { (if matching.is_empty() { "What each route asks for" } else { "Routes that do not match" }) }
            ul.plain { @for route in &others { (unmatched(route)) } }
        }
    }
}

fn level(of: &ExplainedJson) -> Markup {
    let one = &of.notification;
    html! {
        @if one.level != one.effective_level {
            p { "Its source says " b { (one.level) } ", and the ceiling of that source made it " b { (one.effective_level) } "." }
        }
        @match &of.ceiling {
            None => { p.muted { "No connector has the name of its source today." } }
            Some(ceiling) => { @if of.effective_level_today != one.effective_level {
                p { "Under the ceiling of today, " b { (ceiling) } ", it would be " b { (of.effective_level_today) } "." }
            } }
        }
    }
}

fn matched(route: &RouteJson, of: &ExplainedJson) -> Markup {
    let met: Vec<String> = route.conditions.iter().map(held).collect();
    let owed_nothing = route.matched_then == Some(false)
        && route.matches
        && of.owes_nothing.is_none()
        && route.targets.iter().any(|one| one.spared.is_none());
    html! {
        section.reason {
            h3 { span.sign aria-hidden="true" { (if route.matches { "✓" } else { "✗" }) } (route.name) " "
                span.muted { (if route.matches { "matches" } else { "does not match now" }) } }
            @if route.matches {
                p.muted { @if met.is_empty() { "It matches everything." } @else { "Because of " (said(&joined(&met, "and"))) "." } }
            } @else if let Some(unmet) = route.conditions.iter().find(|one| !one.holds) { p.muted { (lacks(unmet)) } }
            @if let Some(mistake) = &route.owner_mistake { p.why { "It does not act: its owner " (said(mistake)) } }
            @if route.matches != route.matches_today {
                p { "Under the ceiling of today it would " (if route.matches_today { "match" } else { "not match" }) "." }
            }
            @if route.matched_then == Some(true) && !route.matches { p { "It owed something when this came: the route was another then." } }
            @if owed_nothing { p { "It owed nothing when this came: the route was another then, or not there." } }
            @for target in &route.targets { (of_target(target)) }
        }
    }
}

fn unmatched(route: &RouteJson) -> Markup {
    html! {
        li {
            span.sign aria-hidden="true" { "✗" } b { (route.name) } " "
            @if let Some(unmet) = route.conditions.iter().find(|one| !one.holds) { span.muted { (lacks(unmet)) } }
            @if route.matches_today { " Under the ceiling of today it would match." }
        }
    }
}

/// A condition that holds, in words.
fn held(of: &ConditionJson) -> String {
    let field = if of.field == "not" { "name" } else { of.field.as_str() };
    format!("{field} {}", of.asked)
}

fn lacks(unmet: &ConditionJson) -> Markup {
    html! { (unmet.field) ": it asks for " (said(&unmet.asked)) ", and this has " (said(&unmet.found)) "." }
}

fn of_target(of: &TargetJson) -> Markup {
    let problems = [
        ("Blocked", of.blocked.as_ref()),
        ("Settings", of.settings_mistake.as_ref()),
        ("Refused", of.refused.as_ref()),
        ("Spared", of.spared.as_ref()),
    ];
    html! {
        div.target {
            p { b { (of.plugin) } @if let Some(version) = &of.plugin_version { " " (said(version)) }
                @if let Some(to) = of.destination.as_ref().filter(|to| !to.is_empty()) { " " (said(to)) }
                span.muted { " target " (said(&of.id)) } }
            dl.fields {
                @for delivery in &of.deliveries {
                    div { dt { "Owed" } dd { a href={ "../deliveries/" (delivery.id) } { (delivery.id) } ": " (delivery.state.replace('_', " "))
                        @if let Some(last) = delivery.attempts.last() {
                            @if last.outcome != delivery.state { ", " (last.outcome) }
                            " " (moment_of(&last.ended_at))
                        } } }
                }
                @if of.deliveries.is_empty() || of.forecast.is_of_delivery { div { dt { "Goes" } dd { (goes(&of.forecast)) } } }
                @for (label, problem) in problems { @if let Some(problem) = problem { div { dt { (label) } dd { (said(problem)) } } } }
                @for lack in &of.lacks { div { dt { "Not granted" } dd { (said(lack)) } } }
                @for told in of.lanes.iter().filter_map(lane) { div { dt { "Lane" } dd { (told) } } }
            }
        }
    }
}

fn goes(of: &ForecastJson) -> Markup {
    let waits = of.moves.iter().filter(|one| !matches!(one.next.as_str(), "pending" | "suppressed"));
    html! {
        @match &of.goes_at {
            None => { (if of.is_needless { "never: it is acknowledged" } else { "not foreseen" }) }
            Some(at) => {
                @if of.moves.len() <= 1 && of.moves.first().is_none_or(|only| only.at == *at) { "at once" }
                @else { (moment_of(at)) }
            }
        }
        @for one in waits { br; span.muted { (stage(one)) } }
    }
}

fn stage(of: &MoveJson) -> Markup {
    let decides = of.said.iter().rev().find(|said| said.until.is_some());
    html! {
        (of.next) ": "
        @if let Some(decides) = decides {
            @match decides.part.as_str() {
                "after" => { "“after” waits until " }
                "hold" => { "quiet hours until " }
                "collect" => { "collected until " }
                _ => { "“at_most” is used up until " }
            }
            @if let Some(until) = &decides.until { (moment_of(until)) }
        }
        @if of.is_counted { ", only counted by what waits already" } @else if of.joins.is_some() { ", with what waits already" }
    }
}

/// A lane that limits something, or is paused.
fn lane(of: &LaneJson) -> Option<Markup> {
    let key = without_digests(of.key.as_ref()?);
    let mut parts = Vec::new();
    if of.count > 0 && of.per_seconds > 0 {
        parts.push(format!("{} in {} s", of.count, of.per_seconds));
    }
    if of.in_flight_max > 0 {
        parts.push(format!("{} at once", of.in_flight_max));
    }
    if of.ordered {
        parts.push("one after the other".to_owned());
    }
    let pauses = [
        ("the destination asked to be left alone until ", &of.paused_until),
        ("it seems dead, and is left alone until ", &of.dead_until),
    ];
    let is_paused = pauses.iter().any(|(_, until)| until.is_some());
    let opens = of.opens_at.as_ref().filter(|_| !is_paused);
    Some(html! {
        (said(&key)) ": "
        @if parts.is_empty() && !is_paused && opens.is_none() { "no limit" } @else { (parts.join(", ")) }
        @for (words, until) in pauses { @if let Some(until) = until { " " (words) (moment_of(until)) } }
        @if let Some(until) = opens { " its pace is used up until " (moment_of(until)) }
    })
}

/// A lane's key without what stands in it for the values of secrets.
fn without_digests(key: &str) -> String {
    let mut parts = key.split(SECRET);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("a secret");
        text.push_str(part.trim_start_matches(|next: char| next.is_ascii_hexdigit()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_never_shows_what_stands_for_a_secret() {
        let lane_of = LaneJson {
            key: Some("slack:secret:00ff00ff:#ops".to_owned()),
            count: 1,
            per_seconds: 1,
            in_flight_max: 0,
            ordered: true,
            in_flight: 0,
            paused_until: None,
            dead_until: None,
            opens_at: None,
        };
        let told = lane(&lane_of).unwrap().into_string();
        assert!(told.contains("slack:a secret:#ops") && told.contains("1 in 1 s, one after the other"), "{told}");
    }
}
