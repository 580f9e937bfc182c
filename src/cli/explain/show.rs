//! An explanation as a person reads it: a line for each route, and what there is to say of those that match.

use std::fmt::Write;

use jiff::Timestamp;

use crate::cli::table::{ahead, count};
use crate::serve::inquiry::{
    ConditionJson, ExplainedJson, ForecastJson, LaneJson, MoveJson, RouteJson, SaidJson, TargetJson,
};
use crate::serve::shapes::DeliveryJson;

/// What stands before a digest of a secret's value in the key of a lane.
const SECRET: &str = "secret:";

pub(super) fn whole(of: &ExplainedJson, now: Timestamp) -> String {
    let mut text = head(of);
    let width = of.routes.iter().map(|route| route.name.chars().count()).max().unwrap_or_default();
    for route in &of.routes {
        text.push_str(&of_route(route, of, width, now));
    }
    if of.routes.is_empty() {
        text.push_str("the workspace has no routes: nobody is told of anything\n");
    }
    if !of.other_deliveries.is_empty() {
        text.push_str("\nof routes and targets that are not in the configuration\n");
        let deliveries = of.other_deliveries.iter();
        let lines = deliveries.map(|one| format!("  {} -> {}: {}\n", one.route, one.plugin, of_delivery(one, now)));
        text.extend(lines);
    }
    text
}

fn head(of: &ExplainedJson) -> String {
    let one = &of.notification;
    let which = if of.is_stored { format!("#{}, received {}", one.seq, one.received_at) } else { "made up".to_owned() };
    let subject = one.subject.as_ref().map(|subject| format!(", about {subject}")).unwrap_or_default();
    let mut text = format!("{}: {}\n{which}, from {}{subject}\n", one.name, one.title, one.source);
    text.push_str(&format!("level {}\n", level(of)));
    if of.is_supposed {
        text.push_str(&format!("supposed to come at {}\n", of.at));
    }
    let mut targets = of.routes.iter().flat_map(|route| &route.targets);
    if let Some(blind) = targets.find_map(|target| target.forecast.blind.as_ref()) {
        text.push_str(&format!("{blind}\n"));
    }
    if let Some(by) = &one.acknowledged_by {
        text.push_str(&format!("acknowledged by {by}\n"));
    }
    if let Some(why) = &of.owes_nothing {
        text.push_str(&format!("owes nothing: {why}\n"));
    }
    if !of.consumers.is_empty() {
        text.push_str(&format!("joins the queues of: {}\n", of.consumers.join(", ")));
    }
    text + "\n"
}

/// The level as sent, as stamped, and as it would be today.
fn level(of: &ExplainedJson) -> String {
    let one = &of.notification;
    let capped = |said: &str, effective: &str, when: &str| {
        if said == effective { String::new() } else { format!(", {effective} by the ceiling of its source{when}") }
    };
    let then = if of.is_stored { " then" } else { "" };
    let mut text = format!("{}{}", one.level, capped(&one.level, &one.effective_level, then));
    match &of.ceiling {
        None => text.push_str("; no connector has that name today"),
        Some(ceiling) if of.effective_level_today != one.effective_level => {
            text.push_str(&format!("; {} today, with the ceiling {ceiling}", of.effective_level_today));
        }
        Some(_) => {}
    }
    text
}

fn of_route(route: &RouteJson, of: &ExplainedJson, width: usize, now: Timestamp) -> String {
    let sign = if route.matches { '✓' } else { '✗' };
    let unmet = route.conditions.iter().find(|condition| !condition.holds);
    let why = match unmet {
        Some(unmet) => format!("{} {}, and this has {}", asks(unmet), unmet.asked, unmet.found),
        None if route.conditions.is_empty() => "it matches everything".to_owned(),
        None => route.conditions.iter().map(met).collect::<Vec<_>>().join("; "),
    };
    let mut text = format!("{sign} {:<width$}  {why}\n", route.name);
    let mut note = |line: String| text.push_str(&format!("    {line}\n"));
    if let Some(mistake) = &route.owner_mistake {
        note(format!("it does not act: its owner {mistake}"));
    }
    if route.matches != route.matches_today {
        let would = if route.matches_today { "would match" } else { "would not match" };
        note(format!("under the ceiling of today it {would}"));
    }
    match route.matched_then {
        Some(true) if !route.matches => {
            note("it owed something when this was accepted: the route was another then".to_owned())
        }
        Some(false)
            if route.matches && of.owes_nothing.is_none() && route.targets.iter().any(|one| one.spared.is_none()) =>
        {
            note("it owed nothing when this was accepted: the route was another then, or not there".to_owned());
        }
        _ => {}
    }
    for target in &route.targets {
        text.push_str(&of_target(target, of.is_supposed, now));
    }
    text
}

fn asks(condition: &ConditionJson) -> String {
    match condition.field.as_str() {
        "not" => "not: it asks for".to_owned(),
        field => format!("{field}: it asks for"),
    }
}

fn met(condition: &ConditionJson) -> String {
    format!("{} {} ({})", condition.field, condition.asked, condition.found)
}

fn of_target(target: &TargetJson, is_supposed: bool, now: Timestamp) -> String {
    let version = target.plugin_version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let destination = target.destination.as_ref().filter(|label| !label.is_empty());
    let destination = destination.map(|label| format!(" {label}")).unwrap_or_default();
    let mut text = format!("    -> {}{version}{destination} (target {})\n", target.plugin, target.id);
    let mut field = |label: &str, value: &str| {
        for (number, line) in value.lines().enumerate() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "       {:<9} {line}", if number == 0 { label } else { "" });
        }
    };
    if let Some(spared) = &target.spared {
        field("spared", spared);
    }
    // Of what went long ago it is told what happened, and not what would happen if it came now.
    if target.deliveries.is_empty() || target.forecast.is_of_delivery || is_supposed {
        field("goes", &goes(&target.forecast, Some(now).filter(|_| !is_supposed)));
        for line in stages(&target.forecast) {
            field("", &line);
        }
    }
    for delivery in &target.deliveries {
        field("owed", &of_delivery(delivery, now));
    }
    let problems = [("blocked", &target.blocked), ("settings", &target.settings_mistake), ("refused", &target.refused)];
    for (label, problem) in problems {
        if let Some(problem) = problem {
            field(label, problem);
        }
    }
    for lack in &target.lacks {
        field("lacks", lack);
    }
    for lane in &target.lanes {
        if let Some(line) = of_lane(lane) {
            field("lane", &line);
        }
    }
    text
}

/// When it goes, by the clock that its quiet hours go by.
fn goes(of: &ForecastJson, now: Option<Timestamp>) -> String {
    let Some(at) = &of.goes_at else {
        return if of.is_needless { "never: it is acknowledged".to_owned() } else { "not foreseen".to_owned() };
    };
    if of.moves.len() <= 1 && of.moves.first().is_none_or(|only| only.at == *at) {
        return "at once".to_owned();
    }
    let moment: Option<Timestamp> = at.parse().ok();
    let distance = moment.zip(now).filter(|(at, now)| at > now).map(|(at, now)| format!(", {}", ahead(at, now)));
    let zone = of.goes_at_local.as_ref().and_then(|local| local.split_once('['));
    let zone = zone.map(|(_, zone)| format!(" {}", zone.trim_end_matches(']'))).unwrap_or_default();
    format!("{}{zone}{}", clock(at, of.goes_at_local.as_ref()), distance.unwrap_or_default())
}

/// A moment as a clock shows it, on the wall of the quiet hours where there are any.
fn clock(at: &str, local: Option<&String>) -> String {
    match local.and_then(|local| local.get(..19)) {
        Some(wall) => {
            let wall = wall.replacen('T', " ", 1);
            wall.strip_suffix(":00").map_or(wall.clone(), str::to_owned)
        }
        None => at.to_owned(),
    }
}

/// One line for each time that it is decided what happens next, but the last, which lets it go.
fn stages(of: &ForecastJson) -> Vec<String> {
    let waits = of.moves.iter().filter(|one| !matches!(one.next.as_str(), "pending" | "suppressed"));
    waits.map(stage).collect()
}

fn stage(of: &MoveJson) -> String {
    let decides = of.said.iter().rev().find(|said| said.until.is_some());
    let kept = decides.map_or_else(String::new, kept);
    let joins = match (of.joins, of.is_counted) {
        (Some(number), false) => format!(", with what waits already (delivery {number})"),
        (Some(number), true) => format!(", only counted by what waits already (delivery {number})"),
        (None, _) => String::new(),
    };
    format!("{}  {}: {kept}{joins}", clock(&of.at, of.at_local.as_ref()), of.next)
}

fn kept(said: &SaidJson) -> String {
    let until = clock(said.until.as_deref().unwrap_or_default(), said.until_local.as_ref());
    let why = match said.part.as_str() {
        "after" => "`after` waits until",
        "hold" => "quiet hours until",
        "collect" => "collected until",
        _ => "`at_most` is used up until",
    };
    format!("{why} {until}")
}

fn of_delivery(of: &DeliveryJson, now: Timestamp) -> String {
    let attempts = match of.attempts.len() {
        0 => String::new(),
        some => format!(", {}", count(some, "attempt")),
    };
    let next: Option<Timestamp> = of.next_at.as_ref().and_then(|at| at.parse().ok());
    let next = next.map(|at| format!(", moved on {}", ahead(at, now))).unwrap_or_default();
    let others = of.notifications.len().saturating_sub(1);
    let others = if others > 0 { format!(", with {others} more") } else { String::new() };
    let again = of.retry_of.as_ref().map(|old| format!(", because a person had {old} repeated")).unwrap_or_default();
    let mut text = format!("{}: {}{attempts}{next}{others}{again}", of.id, of.state);
    if let Some(why) = &of.why {
        text.push_str(&format!("\n  {why}"));
    }
    if let Some(last) = of.attempts.last() {
        let reason = last.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        text.push_str(&format!("\n  {} {}{reason}", last.ended_at, last.outcome));
    }
    text
}

/// A lane that limits something, or is paused.
fn of_lane(of: &LaneJson) -> Option<String> {
    let key = of.key.as_ref()?;
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
    let until = |what: &str, at: &Option<String>| at.as_ref().map(|at| format!("{what} until {at}"));
    parts.extend(until("the destination asked to be left alone", &of.paused_until));
    parts.extend(until("it seems dead, and is left alone", &of.dead_until));
    parts.extend(
        until("its pace is used up", &of.opens_at).filter(|_| of.paused_until.is_none() && of.dead_until.is_none()),
    );
    let told = if parts.is_empty() { "no limit".to_owned() } else { parts.join(", ") };
    Some(format!("{}: {told}", without_digests(key)))
}

/// A lane's key without what stands in it for the values of secrets.
fn without_digests(key: &str) -> String {
    let mut parts = key.split(SECRET);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("a secret");
        text.push_str(part.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    }
    text
}
