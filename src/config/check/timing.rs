//! When a target wants to hear of things, and when failed attempts are repeated.

use std::time::Duration;

use jiff::civil;

use super::super::code::Code;
use super::super::node::At;
use super::super::raw::{RawAtMost, RawCollect, RawHold, RawRetry, RawTarget};
use super::super::read::Placed;
use super::super::source::Report;
use super::super::values::{AfterEntry, is_inverted, show, zone};
use super::server::within;
use crate::inbox::delivery::Schedule;
use crate::notification::Level;
use crate::route::timing::{After, AtMost, Collect, Except, Hold, Timing};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

/// Longest `after`: what nobody saw for a month is no escalation any more.
const AFTER_MAX: Duration = Duration::from_secs(30 * 86_400);
/// Longest time that a digest is open: a longer one is a report.
const COLLECT_WAIT_MAX: Duration = DAY;
/// Longest quiet hours of a day that are probably meant.
const HOLD_MAX: Duration = Duration::from_secs(22 * 3600);
/// Longest time of a limit: each attempt that reached the destination is remembered for so long.
const AT_MOST_PER_MAX: Duration = Duration::from_secs(7 * 86_400);
/// Shortest wait between two attempts: less is an assault on a destination in trouble.
const RETRY_FIRST_MIN: Duration = Duration::from_millis(100);
/// Longest wait after the first failure.
const RETRY_FIRST_MAX: Duration = HOUR;
/// Longest wait between two attempts.
const RETRY_MOST_MAX: Duration = DAY;
/// Longest time that a delivery is tried.
const GIVE_UP_MAX: Duration = Duration::from_secs(30 * 86_400);

/// Checks the stages of a target whose route matches the level `least` and more. What is unusable is left out.
pub(super) fn check(raw: &RawTarget, least: Level, report: &mut Report) -> Timing {
    let timing = Timing {
        after: raw.after.as_ref().and_then(|raw| after(raw, report)),
        unless: raw.unless.as_ref().map(|unless| unless.value.0),
        hold: raw.hold.as_ref().and_then(|raw| hold(raw, report)),
        collect: raw.collect.as_ref().and_then(|raw| collect(raw, report)),
        at_most: raw.at_most.as_ref().and_then(|raw| at_most(raw, report)),
    };
    if let Some(unless) = &raw.unless
        && !["after", "hold", "collect", "at_most"].iter().any(|stage| raw.given.has(stage))
    {
        let message =
            "nothing is waited for, so that nobody can acknowledge in time: add `after: 15m`, or remove `unless`";
        report.warning(&unless.at, Code::NothingToWaitFor.says(message));
    }
    if least == Level::Urgent {
        warn_of_stages_without_effect(raw, &timing, report);
    }
    timing
}

/// A route that matches urgent notifications only has no use for a stage that lets those pass.
fn warn_of_stages_without_effect(raw: &RawTarget, timing: &Timing, report: &mut Report) {
    let stages: [(&str, Option<&At>, Option<Except>); 4] = [
        ("after", raw.after.as_ref().map(|raw| &raw.at), timing.after.as_ref().map(|after| after.except)),
        ("hold", raw.hold.as_ref().map(|raw| &raw.at), timing.hold.as_ref().map(|hold| hold.except)),
        ("collect", raw.collect.as_ref().map(|raw| &raw.at), timing.collect.as_ref().map(|collect| collect.except)),
        ("at_most", raw.at_most.as_ref().map(|raw| &raw.at), timing.at_most.as_ref().map(|at_most| at_most.except)),
    ];
    for (stage, at, except) in stages {
        if let (Some(at), Some(Except::Urgent)) = (at, except) {
            let message = format!(
                "this route matches urgent notifications only, and `{stage}` lets those pass: write `except: none` in it, \
                 or remove it"
            );
            report.warning(at, Code::NoEffect.says(message));
        }
    }
}

fn after(raw: &AfterEntry, report: &mut Report) -> Option<After> {
    within(raw.wait.as_ref(), SECOND, AFTER_MAX, report);
    Some(After { wait: raw.wait.as_ref()?.0, except: raw.except })
}

fn hold(raw: &Placed<RawHold>, report: &mut Report) -> Option<Hold> {
    let zone = raw.zone.as_ref().and_then(|name| {
        let found = zone(&name.0).map_err(|message| report.mistake(&name.at, message)).ok()?;
        if is_inverted(&found) {
            let message = "the sign of this zone is inverted: Etc/GMT+1 is one hour behind UTC; write the name of a place \
                           such as Europe/Berlin";
            report.warning(&name.at, Code::InvertedZone.says(message));
        }
        Some(found)
    });
    let (from, to) = (raw.from.as_ref()?, raw.to.as_ref()?);
    if from.value == to.value {
        let message = "`from` and `to` are the same time, so that this hold would never end: write two times, or remove \
                       `hold`";
        report.mistake(&to.at, Code::EndlessHold.says(message));
        return None;
    }
    if let Some(text) = nearly_always(from.value.0, to.value.0) {
        report.warning(&raw.at, Code::LongHold.says(text));
    }
    Some(Hold { from: from.value.0, to: to.value.0, zone: zone?, except: or_default(raw.except.as_ref()) })
}

/// What is said of quiet hours that leave nearly nothing of the day.
fn nearly_always(from: civil::Time, to: civil::Time) -> Option<String> {
    let seconds = (to - from).total(jiff::Unit::Second).ok()?;
    let held = Duration::from_secs_f64(if seconds < 0.0 { seconds + DAY.as_secs_f64() } else { seconds });
    (held > HOLD_MAX).then(|| {
        format!(
            "these quiet hours are {} of every day, so that nearly everything waits for {}: are `from` and `to` the other way \
             round?",
            show(held),
            to.strftime("%H:%M")
        )
    })
}

fn collect(raw: &RawCollect, report: &mut Report) -> Option<Collect> {
    within(raw.wait.as_ref(), SECOND, COLLECT_WAIT_MAX, report);
    Some(Collect {
        by: raw.by.as_ref()?.value,
        wait: raw.wait.as_ref()?.0,
        most: raw.most.as_ref()?.value.0,
        except: or_default(raw.except.as_ref()),
    })
}

fn at_most(raw: &RawAtMost, report: &mut Report) -> Option<AtMost> {
    within(raw.per.as_ref(), SECOND, AT_MOST_PER_MAX, report);
    Some(AtMost {
        count: raw.count.as_ref()?.value.0,
        per: raw.per.as_ref()?.0,
        except: or_default(raw.except.as_ref()),
    })
}

/// An exception that is unusable was reported.
fn or_default(except: Option<&Placed<Except>>) -> Except {
    except.map(|except| except.value).unwrap_or_default()
}

/// Checks `retry`. Of the two waits, one that is left out gives way to what is written: `most` is no longer than
/// `give_up`, and `first` no longer than `most`.
pub(super) fn schedule(raw: Option<&Placed<RawRetry>>, report: &mut Report) -> Schedule {
    let default = Schedule::default();
    let Some(raw) = raw else { return default };
    let is_good = [
        within(raw.first.as_ref(), RETRY_FIRST_MIN, RETRY_FIRST_MAX, report),
        within(raw.most.as_ref(), RETRY_FIRST_MIN, RETRY_MOST_MAX, report),
        within(raw.give_up.as_ref(), MINUTE, GIVE_UP_MAX, report),
    ];
    let written = |key: &str, value: Option<Duration>| value.filter(|_| raw.given.has(key));
    let first = written("first", raw.first.as_ref().map(|first| first.0));
    let most = written("most", raw.most.as_ref().map(|most| most.0));
    let give_up = raw.give_up.as_ref().map_or(default.give_up, |give_up| give_up.0);
    let most_or_default = most.unwrap_or(default.most.min(give_up).max(first.unwrap_or_default()));
    let schedule =
        Schedule { first: first.unwrap_or(default.first.min(most_or_default)), most: most_or_default, give_up };
    if is_good.into_iter().all(|good| good) {
        in_order(raw, &schedule, report);
    }
    schedule
}

/// Reports waits that do not fit each other.
fn in_order(raw: &Placed<RawRetry>, schedule: &Schedule, report: &mut Report) {
    let Schedule { first, most, give_up } = *schedule;
    if first > most {
        let at = raw.most.as_ref().map_or(&raw.at, |most| &most.at);
        report.mistake(
            at,
            Code::OutOfOrder.says(format!(
                "`most` ({}) is shorter than `first` ({}): raise it, or lower `first`",
                show(most),
                show(first)
            )),
        );
    }
    if most > give_up {
        let at = raw.give_up.as_ref().map_or(&raw.at, |give_up| &give_up.at);
        let (key, wait) = if raw.given.has("most") { ("most", most) } else { ("first", first) };
        report.mistake(
            at,
            Code::OutOfOrder.says(format!(
                "`give_up` ({}) is shorter than `{key}` ({}): raise it, or lower `{key}`",
                show(give_up),
                show(wait)
            )),
        );
    }
}
