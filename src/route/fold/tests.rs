use std::time::Duration;

use super::*;
use crate::route::timing::{After, AtMost, By, Collect, DIGEST_BYTES_MAX, Except, Unless};

const MINUTE: Duration = Duration::from_secs(60);

fn at(minute: u32) -> Timestamp {
    crate::clock::later("2026-06-01T12:00:00Z".parse().unwrap(), minute * MINUTE)
}

fn one(seq: u64, level: Level) -> Matched<'static> {
    Matched { seq, source: "registrar", name: "domain.active", subject: Some("a.example"), level, bytes: 500 }
}

/// Minute, way and numbers of what is gone, with how many more it counts.
fn gone(fold: &mut Fold) -> Vec<(Timestamp, Way, Vec<u64>, u32)> {
    fold.gone().into_iter().map(|gone| (gone.at, gone.way, gone.seqs, gone.omitted)).collect()
}

#[test]
fn what_has_no_timing_goes_at_once() {
    let mut fold = Fold::new(Timing::default());
    fold.matched(at(0), &one(1, Level::Info));
    fold.matched(at(1), &one(2, Level::Info));
    assert_eq!(gone(&mut fold), [(at(0), Way::Alone, vec![1], 0), (at(1), Way::Alone, vec![2], 0)]);
    assert_eq!(fold.next_due(), None);
}

#[test]
fn an_escalation_goes_unless_somebody_acknowledges_in_time() {
    let timing = Timing {
        after: Some(After { wait: 15 * MINUTE, except: Except::Nothing }),
        unless: Some(Unless::AcknowledgedByPerson),
        ..Timing::default()
    };
    let mut fold = Fold::new(timing);
    for seq in 1..=3 {
        fold.matched(at(0), &one(seq, Level::Info));
    }
    fold.acknowledged(at(3), 2, Acknowledged::ByAgent);
    fold.acknowledged(at(4), 3, Acknowledged::ByPerson);
    fold.acknowledged(at(15), 1, Acknowledged::ByPerson);
    let expected = [
        (at(4), Way::Suppressed, vec![3], 0),
        (at(15), Way::Escalation, vec![1], 0),
        (at(15), Way::Escalation, vec![2], 0),
    ];
    assert_eq!(gone(&mut fold), expected, "what is due is done before what comes at the same moment");
}

#[test]
fn a_surplus_comes_as_one_when_there_is_room() {
    let at_most = Some(AtMost { count: 1, per: 60 * MINUTE, except: Except::Urgent });
    let mut fold = Fold::new(Timing { at_most, ..Timing::default() });
    for seq in 1..=130 {
        fold.matched(at(u32::try_from(seq).unwrap() / 10), &one(seq, Level::Info));
    }
    fold.matched(at(20), &one(131, Level::Urgent));
    fold.pass(at(59));
    assert_eq!(gone(&mut fold), [(at(0), Way::Alone, vec![1], 0), (at(20), Way::Alone, vec![131], 0)]);
    fold.pass(at(80));
    assert_eq!(gone(&mut fold), [(at(80), Way::Surplus, (2..=101).collect(), 29)], "what is urgent counts, too");
}

#[test]
fn a_digest_closes_by_time_by_number_and_by_bytes() {
    let collect = Some(Collect { by: By::Subject, wait: 5 * MINUTE, most: 3, except: Except::Nothing });
    let mut fold = Fold::new(Timing { collect, ..Timing::default() });
    for seq in 1..=4 {
        fold.matched(at(0), &one(seq, Level::Info));
    }
    assert_eq!(gone(&mut fold), [(at(0), Way::Digest, vec![1, 2, 3], 0)]);
    fold.matched(at(1), &Matched { bytes: DIGEST_BYTES_MAX, ..one(5, Level::Info) });
    assert_eq!(gone(&mut fold), [(at(1), Way::Digest, vec![4], 0)]);
    assert_eq!(fold.next_due(), Some(at(6)));
    fold.pass(at(6));
    assert_eq!(gone(&mut fold), [(at(6), Way::Digest, vec![5], 0)]);
}

#[test]
fn a_clock_that_is_set_back_does_not_turn_the_fold_back() {
    let collect = Some(Collect { by: By::Subject, wait: 5 * MINUTE, most: 3, except: Except::Nothing });
    let mut fold = Fold::new(Timing { collect, ..Timing::default() });
    fold.matched(at(10), &one(1, Level::Info));
    fold.matched(at(2), &one(2, Level::Info));
    fold.pass(at(60));
    assert_eq!(gone(&mut fold), [(at(15), Way::Digest, vec![1, 2], 0)]);
}
