mod properties;
mod simulation;
mod target;

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::time;
use jiff::tz::TimeZone;

use super::*;
use crate::route::timing::{After, Collect, Hold};
use Acknowledged::{ByAgent, ByPerson, No};
use Level::{Attention, Info, Urgent};
use Stage::{Closed, Matched, Waited};

pub(in crate::route) use properties::any_timing;

const MINUTE: Duration = Duration::from_secs(60);

/// 15 minutes.
fn after(except: Except) -> Timing {
    Timing { after: Some(After { wait: 15 * MINUTE, except }), ..Timing::default() }
}

/// 22:00 to 07:00.
fn hold(except: Except) -> Timing {
    let (from, to) = (time(22, 0, 0, 0), time(7, 0, 0, 0));
    Timing { hold: Some(Hold { from, to, zone: TimeZone::UTC, except }), ..Timing::default() }
}

/// 5 minutes, by subject.
fn collect(except: Except) -> Timing {
    Timing { collect: Some(Collect { by: By::Subject, wait: 5 * MINUTE, most: 3, except }), ..Timing::default() }
}

/// 2 in an hour.
fn at_most(except: Except) -> Timing {
    Timing { at_most: Some(AtMost { count: 2, per: 60 * MINUTE, except }), ..Timing::default() }
}

fn unless(unless: Unless) -> Timing {
    Timing { unless: Some(unless), ..Timing::default() }
}

/// Day of June 2026 and time of day, in UTC: `1 12:00`.
fn moment(text: &str) -> Timestamp {
    let (day, time) = text.split_once(' ').unwrap();
    format!("2026-06-{day:0>2}T{time}:00Z").parse().unwrap()
}

fn day_and_time(moment: Timestamp) -> String {
    moment.strftime("%-d %H:%M").to_string()
}

/// What the plan is asked: by default of something new at noon that is worth attention, of a target that did nothing yet.
#[derive(Clone, Debug)]
struct Asked {
    stage: Stage,
    now: &'static str,
    received: Option<&'static str>,
    level: Level,
    subject: Option<&'static str>,
    acknowledged: Acknowledged,
    reached: &'static [&'static str],
    going: u32,
    surplus_until: Option<&'static str>,
}

const NOON: Asked = Asked {
    stage: Matched,
    now: "1 12:00",
    received: None,
    level: Attention,
    subject: Some("a"),
    acknowledged: No,
    reached: &[],
    going: 0,
    surplus_until: None,
};

const NIGHT: Asked = Asked { now: "1 23:00", ..NOON };

/// Twice within the hour before noon.
const FULL: Asked = Asked { reached: &["1 11:20", "1 11:30"], ..NOON };

/// Checks the step that is next; `parts` are put together to the target's timing.
fn check(parts: &[Timing], asked: &Asked, expected: &str) {
    let mut timing = Timing::default();
    for part in parts {
        timing.after = timing.after.or_else(|| part.after.clone());
        timing.unless = timing.unless.or(part.unless);
        timing.hold = timing.hold.or_else(|| part.hold.clone());
        timing.collect = timing.collect.or_else(|| part.collect.clone());
        timing.at_most = timing.at_most.or_else(|| part.at_most.clone());
    }
    let reached: Vec<Timestamp> = asked.reached.iter().map(|text| moment(text)).collect();
    let what = Subject {
        received_at: moment(asked.received.unwrap_or(asked.now)),
        level: asked.level,
        source: "registrar",
        name: "domain.active",
        subject: asked.subject,
        acknowledged: asked.acknowledged,
    };
    let target = Standing { reached: &reached, going: asked.going, surplus_until: asked.surplus_until.map(moment) };
    let seen = match plan(&timing, asked.stage, &what, &target, moment(asked.now)) {
        Step::Wait { until } => format!("wait until {}", day_and_time(until)),
        Step::Suppress => "suppress".to_owned(),
        Step::Gather { key, why, until } => format!("{why:?} {key:?} until {}", day_and_time(until)),
        Step::Go => "go".to_owned(),
    };
    assert_eq!(seen, expected, "{asked:?} of {timing:?}");
}

#[test]
fn without_timing_all_goes_at_once() {
    check(&[], &NOON, "go");
    check(&[], &Asked { acknowledged: ByPerson, going: 99, ..NIGHT }, "go");
}

#[test]
fn each_stage_alone() {
    let nothing = Except::Nothing;
    check(&[after(nothing)], &NOON, "wait until 1 12:15");
    check(&[after(nothing)], &Asked { received: Some("1 11:50"), ..NOON }, "wait until 1 12:05");
    check(&[after(nothing)], &Asked { received: Some("1 11:45"), ..NOON }, "go");
    check(&[after(nothing)], &Asked { stage: Waited, received: Some("1 11:45"), ..NOON }, "go");
    check(&[hold(nothing)], &NOON, "go");
    check(&[hold(nothing)], &NIGHT, r#"Hold "hold" until 2 07:00"#);
    check(&[hold(nothing)], &Asked { stage: Closed, now: "2 07:00", ..NOON }, "go");
    check(&[collect(nothing)], &NOON, r#"Collect "subject a" until 1 12:05"#);
    check(&[collect(nothing)], &Asked { stage: Closed, ..NOON }, "go");
    check(&[at_most(nothing)], &NOON, "go");
    check(&[at_most(nothing)], &FULL, r#"Surplus "surplus" until 1 12:20"#);
    check(&[at_most(nothing)], &Asked { stage: Closed, now: "1 12:20", ..FULL }, "go");
}

#[test]
fn a_longer_wait_after_a_reload_is_waited_for() {
    check(&[after(Except::Nothing)], &Asked { stage: Waited, received: Some("1 11:50"), ..NOON }, "wait until 1 12:05");
    check(&[after(Except::Nothing)], &Asked { stage: Closed, received: Some("1 11:50"), ..NOON }, "go");
}

#[test]
fn what_is_collected_shares_what_the_target_says() {
    let by =
        |by| Timing { collect: collect(Except::Nothing).collect.map(|one| Collect { by, ..one }), ..Timing::default() };
    check(&[by(By::Subject)], &NOON, r#"Collect "subject a" until 1 12:05"#);
    check(&[by(By::Subject)], &Asked { subject: None, ..NOON }, r#"Collect "no subject" until 1 12:05"#);
    check(&[by(By::Source)], &NOON, r#"Collect "source registrar" until 1 12:05"#);
    check(&[by(By::Name)], &NOON, r#"Collect "name domain.active" until 1 12:05"#);
    check(&[by(By::None)], &NOON, r#"Collect "all" until 1 12:05"#);
}

#[test]
fn a_limit_counts_what_reached_the_destination_and_what_is_on_its_way() {
    let limit = &[at_most(Except::Nothing)];
    check(limit, &Asked { reached: &["1 11:30"], ..NOON }, "go");
    check(limit, &Asked { reached: &["1 11:00", "1 11:30"], ..NOON }, "go");
    check(limit, &Asked { going: 1, ..NOON }, "go");
    check(limit, &Asked { going: 2, ..NOON }, r#"Surplus "surplus" until 1 13:00"#);
    check(limit, &Asked { going: 1, reached: &["1 11:30"], ..NOON }, r#"Surplus "surplus" until 1 12:30"#);
    check(limit, &Asked { going: 1, ..FULL }, r#"Surplus "surplus" until 1 12:30"#);
    check(limit, &Asked { going: 9, ..FULL }, r#"Surplus "surplus" until 1 13:00"#);
    check(limit, &Asked { reached: &["1 11:10", "1 11:20", "1 11:30"], ..NOON }, r#"Surplus "surplus" until 1 12:20"#);
}

#[test]
fn a_clock_that_was_set_back_neither_opens_the_gate_nor_shuts_it_for_years() {
    let limit = &[at_most(Except::Nothing)];
    check(limit, &Asked { reached: &["1 12:40", "1 12:50"], ..NOON }, r#"Surplus "surplus" until 1 13:40"#);
    check(limit, &Asked { reached: &["2 12:40", "3 12:50"], ..NOON }, "go");
}

#[test]
fn nothing_overtakes_a_surplus_that_should_have_closed() {
    let limit = &[at_most(Except::Urgent)];
    let open = |until| Asked { surplus_until: Some(until), ..NOON };
    check(limit, &open("1 11:59"), r#"Surplus "surplus" until 1 11:59"#);
    check(limit, &open("1 12:00"), r#"Surplus "surplus" until 1 12:00"#);
    check(limit, &Asked { stage: Closed, ..open("1 12:00") }, r#"Surplus "surplus" until 1 12:00"#);
    check(limit, &open("1 12:01"), "go");
    check(limit, &Asked { level: Urgent, ..open("1 11:59") }, "go");
    check(&[], &open("1 11:59"), "go");
}

#[test]
fn an_escalation_meets_the_stages_after_it() {
    let (after, hold, collect, at_most) =
        (after(Except::Nothing), hold(Except::Nothing), collect(Except::Nothing), at_most(Except::Nothing));
    // after and hold
    check(&[after.clone(), hold.clone()], &NIGHT, "wait until 1 23:15");
    check(&[after.clone(), hold.clone()], &Asked { now: "1 21:50", ..NOON }, "wait until 1 22:05");
    let waited = Asked { stage: Waited, now: "1 22:05", received: Some("1 21:50"), ..NOON };
    check(&[after.clone(), hold.clone()], &waited, r#"Hold "hold" until 2 07:00"#);
    check(&[after.clone(), hold], &Asked { now: "1 12:15", received: Some("1 12:00"), ..waited.clone() }, "go");
    // after and collect
    check(&[after.clone(), collect.clone()], &NOON, "wait until 1 12:15");
    let waited = Asked { stage: Waited, now: "1 12:15", received: Some("1 12:00"), ..NOON };
    check(&[after.clone(), collect], &waited, r#"Collect "subject a" until 1 12:20"#);
    // after and at_most
    check(&[after.clone(), at_most.clone()], &FULL, "wait until 1 12:15");
    let waited = Asked { reached: FULL.reached, ..waited };
    check(&[after.clone(), at_most.clone()], &waited, r#"Surplus "surplus" until 1 12:20"#);
    check(&[after, at_most], &Asked { reached: &[], ..waited }, "go");
}

#[test]
fn quiet_hours_come_before_digests_and_limits() {
    let (hold, collect, at_most) = (hold(Except::Nothing), collect(Except::Nothing), at_most(Except::Nothing));
    // hold and collect: one digest for each group, at the end of the quiet hours, and no second wait
    let both = &[hold.clone(), collect.clone()];
    check(both, &NOON, r#"Collect "subject a" until 1 12:05"#);
    check(both, &NIGHT, r#"Hold "hold/subject a" until 2 07:00"#);
    check(both, &Asked { now: "2 06:58", ..NOON }, r#"Hold "hold/subject a" until 2 07:00"#);
    check(both, &Asked { now: "2 07:00", stage: Closed, ..NOON }, "go");
    // One that was opened before them is held in its turn, with what came during them.
    check(both, &Asked { now: "1 21:58", ..NOON }, r#"Collect "subject a" until 1 22:03"#);
    check(both, &Asked { now: "1 22:03", stage: Closed, ..NOON }, r#"Hold "hold/subject a" until 2 07:00"#);
    // hold and at_most
    let both = &[hold, at_most.clone()];
    check(both, &FULL, r#"Surplus "surplus" until 1 12:20"#);
    let full_at_night = Asked { reached: &["1 22:50", "1 22:55"], ..NIGHT };
    check(both, &full_at_night, r#"Hold "hold" until 2 07:00"#);
    check(both, &Asked { stage: Closed, ..full_at_night }, r#"Hold "hold" until 2 07:00"#);
    let in_the_morning = Asked { stage: Closed, now: "2 07:00", reached: &["2 06:30", "2 06:40"], ..NOON };
    check(both, &in_the_morning, r#"Surplus "surplus" until 2 07:30"#);
    // collect and at_most: what is above the limit is one digest for all groups
    let both = &[collect, at_most];
    check(both, &FULL, r#"Collect "subject a" until 1 12:05"#);
    check(both, &Asked { stage: Closed, ..FULL }, r#"Surplus "surplus" until 1 12:20"#);
    check(both, &Asked { stage: Closed, now: "1 12:20", ..FULL }, "go");
}

#[test]
fn an_acknowledgement_makes_it_needless_wherever_it_waits() {
    let nothing = Except::Nothing;
    let stages = [after(nothing), hold(nothing), collect(nothing), at_most(nothing)];
    for (who, met_by) in
        [(Unless::AcknowledgedByPerson, &[ByPerson][..]), (Unless::AcknowledgedByAnyone, &[ByPerson, ByAgent])]
    {
        for acknowledged in [No, ByAgent, ByPerson] {
            for stage in [Matched, Waited, Closed] {
                for level in Level::ALL {
                    let asked = Asked { acknowledged, stage, level, going: 9, ..NIGHT };
                    let is_met = met_by.contains(&acknowledged);
                    assert_eq!(who.is_met(acknowledged), is_met);
                    for with in &stages {
                        if is_met {
                            check(&[unless(who), with.clone()], &asked, "suppress");
                        }
                    }
                    check(&[unless(who)], &asked, if is_met { "suppress" } else { "go" });
                }
            }
        }
    }
    check(&[unless(Unless::AcknowledgedByPerson), after(nothing)], &NOON, "wait until 1 12:15");
    check(&[unless(Unless::AcknowledgedByPerson), hold(nothing)], &NIGHT, r#"Hold "hold" until 2 07:00"#);
    let by_an_agent = Asked { acknowledged: ByAgent, ..NOON };
    check(
        &[unless(Unless::AcknowledgedByPerson), collect(nothing)],
        &by_an_agent,
        r#"Collect "subject a" until 1 12:05"#,
    );
    let by_an_agent = Asked { acknowledged: ByAgent, ..FULL };
    check(
        &[unless(Unless::AcknowledgedByPerson), at_most(nothing)],
        &by_an_agent,
        r#"Surplus "surplus" until 1 12:20"#,
    );
}

#[test]
fn what_is_excepted_from_a_stage_meets_the_next() {
    let (nothing, urgent) = (Except::Nothing, Except::Urgent);
    for (level, expected) in [(Info, "wait until 1 23:15"), (Attention, "wait until 1 23:15"), (Urgent, "go")] {
        check(&[after(urgent)], &Asked { level, ..NIGHT }, expected);
    }
    let cry = Asked { level: Urgent, going: 9, ..NIGHT };
    check(&[hold(urgent)], &cry, "go");
    check(&[hold(urgent)], &NIGHT, r#"Hold "hold" until 2 07:00"#);
    check(&[collect(urgent)], &cry, "go");
    check(&[collect(urgent)], &NOON, r#"Collect "subject a" until 1 12:05"#);
    check(&[at_most(urgent)], &cry, "go");
    check(&[at_most(urgent)], &FULL, r#"Surplus "surplus" until 1 12:20"#);

    check(&[after(urgent), hold(nothing)], &cry, r#"Hold "hold" until 2 07:00"#);
    check(&[after(urgent), collect(nothing)], &cry, r#"Collect "subject a" until 1 23:05"#);
    check(&[after(urgent), at_most(nothing)], &cry, r#"Surplus "surplus" until 2 00:00"#);
    check(&[after(nothing), hold(urgent), collect(urgent), at_most(urgent)], &cry, "wait until 1 23:15");
    // What is excepted from digests alone is not hidden in one of its subject.
    check(&[hold(nothing), collect(urgent)], &cry, r#"Hold "hold" until 2 07:00"#);
    check(&[hold(urgent), collect(nothing)], &cry, r#"Collect "subject a" until 1 23:05"#);
    check(&[hold(urgent), collect(nothing)], &Asked { stage: Closed, ..cry.clone() }, "go");
    check(&[hold(nothing), at_most(urgent)], &cry, r#"Hold "hold" until 2 07:00"#);
    check(&[hold(urgent), at_most(nothing)], &cry, r#"Surplus "surplus" until 2 00:00"#);
    check(&[collect(nothing), at_most(urgent)], &Asked { stage: Closed, ..cry.clone() }, "go");
    check(&[collect(urgent), at_most(nothing)], &cry, r#"Surplus "surplus" until 2 00:00"#);
    check(&[after(urgent), hold(urgent), collect(urgent), at_most(urgent)], &cry, "go");
}
