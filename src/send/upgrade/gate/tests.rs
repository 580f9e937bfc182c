//! The rule, on reports that were made by hand.

use super::*;
use crate::send::upgrade::report::sample;

const REPORT: GateMode = GateMode::Report;
const STRICT: GateMode = GateMode::Strict;

/// What becomes of the version that `change` makes of one that does nothing otherwise: in one word each, for both modes.
fn check(change: impl Fn(&mut Report), lenient: &str, strict: &str) -> [Verdict; 2] {
    let mut report = sample::report();
    change(&mut report);
    let verdicts = [report.verdict(REPORT), report.verdict(STRICT)];
    let word = |verdict: &Verdict| match verdict {
        Verdict::Pass => "pass",
        Verdict::Hold(_) => "hold",
        Verdict::Refuse(_) => "refuse",
    };
    assert_eq!([word(&verdicts[0]), word(&verdicts[1])], [lenient, strict], "{report:?}");
    verdicts
}

#[test]
fn a_version_is_as_welcome_as_what_it_does_otherwise() {
    for (class, lenient, strict) in [
        (Class::Content, "pass", "pass"),
        (Class::Target, "pass", "hold"),
        (Class::Steps, "pass", "hold"),
        (Class::Outcome, "pass", "hold"),
        (Class::Failed, "refuse", "refuse"),
    ] {
        check(|report| report.replays.different.push(sample::difference(class)), lenient, strict);
    }
    let failed_before = Difference { old_failed: true, ..sample::difference(Class::Failed) };
    check(|report| report.replays.different.push(failed_before.clone()), "pass", "hold");
    let first = |report: &mut Report| {
        (report.old, report.standing) = (None, Standing::First);
        report.replays.different.push(sample::difference(Class::Failed));
    };
    check(first, "pass", "hold");
}

#[test]
fn settings_count_where_they_were_taken_before() {
    let mistaken = |old_takes| Mistake { said: "acme.yaml: no".to_owned(), old_takes };
    check(|report| report.settings.mistakes.push(mistaken(false)), "pass", "pass");
    check(|report| report.settings.mistakes.push(mistaken(true)), "refuse", "refuse");
    let [Verdict::Refuse(why), _] = check(
        |report| {
            report.settings.mistakes = vec![mistaken(false), mistaken(true), mistaken(true)];
            report.replays.different.push(sample::difference(Class::Failed));
        },
        "refuse",
        "refuse",
    ) else {
        panic!("it is refused")
    };
    assert_eq!(why, "slack 1.3.0 does not take the settings of 2 targets that 1.2.0 takes: acme.yaml: no");
    check(|report| report.settings.unchecked = 1, "pass", "hold");
    let enough = |report: &mut Report| {
        report.settings.mistakes = vec![mistaken(false); MISTAKES_MAX];
        report.settings.unchecked = 5;
    };
    check(enough, "pass", "pass");
}

#[test]
fn what_could_not_be_compared_is_held_by_the_strict_gate_alone() {
    check(|report| report.replays.not_in_time = 1, "pass", "hold");
    check(|report| report.replays.at_limits = 1, "pass", "pass");
    check(|report| (report.replays.at_limits, report.replays.same) = (1, 0), "pass", "hold");
    check(|report| report.replays.same = 0, "pass", "pass");
    check(|report| report.replays.unreadable = 1, "pass", "pass");
}

#[test]
fn a_version_goes_forward_or_is_held() {
    for (standing, strict) in [
        (Standing::First, "pass"),
        (Standing::Forward, "pass"),
        (Standing::Identical, "pass"),
        (Standing::Back, "hold"),
        (Standing::Rebuilt, "hold"),
    ] {
        check(|report| report.standing = standing, "pass", strict);
    }
}

#[test]
fn every_reason_is_given_at_once() {
    let change = |report: &mut Report| {
        report.standing = Standing::Back;
        report.replays.different = vec![sample::difference(Class::Target), sample::difference(Class::Content)];
        report.replays.not_in_time = 2;
    };
    let [_, Verdict::Hold(why)] = check(change, "pass", "hold") else { panic!("it is held") };
    assert_eq!(
        why,
        "slack 1.3.0 does something else with 1 recorded delivery; version goes back from 1.2.0 to 1.3.0; 2 recorded \
         deliveries could not be compared in time"
    );
}
