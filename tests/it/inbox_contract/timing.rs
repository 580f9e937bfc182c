//! What waits before it goes.

use std::time::Duration;

use jiff::civil::time;
use jiff::tz::TimeZone;
use switchbell::inbox::book::Rule;
use switchbell::inbox::delivery::{Cause, State};
use switchbell::inbox::{Actor, Deed, Finished, Mark};
use switchbell::route::timing::{After, AtMost, By, Collect, Except, Hold, Timing, Unless};

use super::stage::{
    HOUR, MINUTE, Place, Stage, about, at, dead, delivered, entries, entry, finished, large, retrying, seqs, timed,
    urgent,
};

pub fn after(minutes: u64) -> Timing {
    let after = After { wait: Duration::from_secs(minutes * MINUTE), except: Except::Nothing };
    Timing { after: Some(after), ..Timing::default() }
}

/// 13:00 to 15:00, which is an hour to three hours from the beginning of each test.
pub fn hold() -> Timing {
    let (from, to) = (time(13, 0, 0, 0), time(15, 0, 0, 0));
    Timing { hold: Some(Hold { from, to, zone: TimeZone::UTC, except: Except::Urgent }), ..Timing::default() }
}

pub fn collect(minutes: u64, most: u32) -> Timing {
    let wait = Duration::from_secs(minutes * MINUTE);
    Timing { collect: Some(Collect { by: By::Subject, wait, most, except: Except::Nothing }), ..Timing::default() }
}

pub fn at_most(count: u32) -> Timing {
    let per = Duration::from_secs(HOUR);
    Timing { at_most: Some(AtMost { count, per, except: Except::Urgent }), ..Timing::default() }
}

async fn stage(place: Place, timing: Timing) -> Stage {
    Stage::new(place, vec![timed("t", timing)]).await
}

pub async fn what_escalates_is_scheduled_and_comes_when_nobody_acknowledged_in_time(place: Place) {
    let stage = stage(place, after(15)).await;
    stage.news();
    stage.accept(at(60), entries(1, 1)).await;
    let due = at(60 + 15 * MINUTE);
    assert_eq!(stage.inbox().news().await.due[0].1, due);
    let view = stage.views().await.remove(0);
    assert_eq!((view.state, view.due_at, view.next_at), (State::Scheduled, due, Some(due)));
    let early = stage.claim(at(59 + 15 * MINUTE)).await;
    assert_eq!((early.claims.len(), early.next_due[0].1), (0, Some(due)));
    let claim = stage.claim_one(due).await;
    assert_eq!((claim.cause, claim.due_at, claim.since, claim.attempt.get()), (Cause::Escalation, due, due, 1));
}

pub async fn a_longer_wait_after_a_reload_is_waited_for(place: Place) {
    let mut stage = stage(place, after(15)).await;
    stage.accept(at(0), entries(1, 1)).await;
    stage.adopt(vec![timed("t", after(30))], at(60)).await;
    let claimed = stage.claim(at(15 * MINUTE)).await;
    assert!(claimed.claims.is_empty());
    assert_eq!(claimed.next_due[0].1, Some(at(30 * MINUTE)));
    assert_eq!(stage.states().await, [State::Scheduled]);
    assert_eq!(stage.claims(at(30 * MINUTE)).await.len(), 1);
}

pub async fn what_is_held_comes_as_one_digest_in_the_morning(place: Place) {
    let stage = stage(place, hold()).await;
    stage.accept(at(HOUR - 1), entries(1, 1)).await;
    assert_eq!(stage.deliver(at(HOUR - 1)).await, [[1]]);
    stage.accept(at(HOUR), vec![about(entry("e2"), Some("b"))]).await;
    stage.accept(at(2 * HOUR), vec![about(entry("e3"), Some("c")), urgent(entry("e4"))]).await;
    assert_eq!(stage.states().await, [State::Delivered, State::Held, State::Pending]);
    assert_eq!(stage.deliver(at(2 * HOUR)).await, [[4]], "what is excepted goes at once");
    assert!(stage.claims(at(3 * HOUR - 1)).await.is_empty());
    let claim = stage.claim_one(at(3 * HOUR)).await;
    assert_eq!((seqs(&claim), claim.omitted, claim.due_at), (vec![2, 3], 0, at(3 * HOUR)));
    assert_eq!(stage.views().await[1].seqs, [2, 3]);
}

pub async fn a_digest_closes_when_its_time_is_over(place: Place) {
    let stage = stage(place, collect(5, 50)).await;
    stage.accept(at(0), entries(1, 2)).await;
    stage.accept(at(MINUTE), vec![about(entry("other"), Some("b")), entry("e3")]).await;
    assert_eq!(stage.states().await, [State::Collecting, State::Collecting]);
    assert_eq!(stage.views().await[0].next_at, Some(at(5 * MINUTE)), "its first opens it");
    assert!(stage.claims(at(5 * MINUTE - 1)).await.is_empty());
    let claim = stage.claim_one(at(5 * MINUTE)).await;
    assert_eq!((seqs(&claim), claim.due_at, claim.cause), (vec![1, 2, 4], at(5 * MINUTE), Cause::First));
    assert_eq!(seqs(&stage.claim_one(at(6 * MINUTE)).await), [3]);
}

pub async fn a_digest_that_is_full_closes_early(place: Place) {
    let stage = stage(place, collect(5, 3)).await;
    stage.news();
    stage.accept(at(0), entries(1, 2)).await;
    stage.accept(at(10), entries(3, 4)).await;
    let due = stage.inbox().news().await.due;
    assert!(due.iter().any(|(_, at_)| *at_ <= at(10)), "{due:?}");
    assert_eq!(seqs(&stage.claim_one(at(10)).await), [1, 2, 3]);
    assert_eq!(stage.claim_one(at(10 + 5 * MINUTE)).await.notifications[0].seq, 4);
}

pub async fn what_does_not_fit_into_a_digest_that_cannot_close_early_is_counted(place: Place) {
    let stage = stage(place, hold()).await;
    stage.accept(at(HOUR), entries(1, 130)).await;
    assert_eq!(stage.states().await, [State::Held]);
    assert_eq!(stage.views().await[0].omitted, 30);
    let claim = stage.claim_one(at(3 * HOUR)).await;
    assert_eq!((claim.notifications.len(), claim.omitted), (100, 30));
    assert!(seqs(&claim).into_iter().eq(1..=100), "the oldest are named");
}

pub async fn a_digest_is_bounded_in_bytes(place: Place) {
    let five = || (1..=5).map(|number| large(entry(&format!("l{number}")), 60_000)).collect();
    let held = stage(place, hold()).await;
    held.accept(at(HOUR), five()).await;
    let claim = held.claim_one(at(3 * HOUR)).await;
    assert_eq!((claim.notifications.len(), claim.omitted), (4, 1), "256 KiB at most");
}

pub async fn what_a_digest_holds_is_fixed_at_its_first_claim(place: Place) {
    let mut stage = stage(place, collect(5, 50)).await;
    stage.accept(at(0), entries(1, 2)).await;
    let claim = stage.claim_one(at(5 * MINUTE)).await;
    stage.accept(at(5 * MINUTE), entries(3, 3)).await;
    stage.finish(&claim, at(5 * MINUTE), retrying(at(6 * MINUTE))).await;
    stage.accept(at(6 * MINUTE), entries(4, 4)).await;
    stage.reopen(at(6 * MINUTE)).await;
    let again = stage.claim_one(at(6 * MINUTE)).await;
    assert_eq!((again.notifications, again.attempt.get(), again.due_at), (claim.notifications, 2, at(5 * MINUTE)));
    assert_eq!(seqs(&stage.claim_one(at(10 * MINUTE)).await), [3, 4]);
}

pub async fn a_digest_that_closes_in_quiet_hours_is_held(place: Place) {
    let stage = stage(place, Timing { hold: hold().hold, ..collect(5, 50) }).await;
    stage.accept(at(HOUR - MINUTE), entries(1, 1)).await;
    stage.accept(at(HOUR + MINUTE), entries(2, 2)).await;
    let claimed = stage.claim(at(HOUR + 4 * MINUTE)).await;
    assert!(claimed.claims.is_empty());
    assert_eq!(claimed.next_due[0].1, Some(at(3 * HOUR)));
    assert_eq!(stage.states().await, [State::Held], "two became one");
    assert_eq!(seqs(&stage.claim_one(at(3 * HOUR)).await), [1, 2]);
}

pub async fn a_surplus_is_collected_and_comes_when_there_is_room(place: Place) {
    let stage = stage(place, at_most(2)).await;
    stage.accept(at(0), entries(1, 2)).await;
    assert_eq!(stage.deliver(at(10)).await, [[1], [2]]);
    stage.accept(at(20), entries(3, 4)).await;
    stage.accept(at(30), vec![about(entry("e5"), Some("b"))]).await;
    assert_eq!(stage.states().await[2..], [State::Collecting], "one digest of whatever subject");
    assert!(stage.claims(at(9 + HOUR)).await.is_empty());
    let claim = stage.claim_one(at(10 + HOUR)).await;
    assert_eq!((seqs(&claim), claim.omitted), (vec![3, 4, 5], 0), "nothing is dropped");
    stage.finish(&claim, at(10 + HOUR), delivered()).await;
    stage.accept(at(11 + HOUR), entries(6, 7)).await;
    assert_eq!(stage.deliver(at(11 + HOUR)).await, [[6]], "one has left the window by then");
}

pub async fn only_what_reached_the_destination_counts(place: Place) {
    let stage = stage(place, at_most(1)).await;
    stage.accept(at(0), entries(1, 1)).await;
    let claim = stage.claim_one(at(0)).await;
    stage.accept(at(1), entries(2, 2)).await;
    assert!(stage.claims(at(1)).await.is_empty(), "what is on its way counts as if it had");
    let end = Finished { reached: false, ..finished(&claim, at(2), dead()) };
    stage.inbox().finish(end).await.unwrap();
    stage.accept(at(3), entries(3, 3)).await;
    let gone = stage.deliver(at(2 + HOUR)).await.concat();
    assert_eq!(gone, [2, 3], "it waits for nobody who never came");
}

pub async fn what_was_blocked_meets_the_limit_when_it_goes_on(place: Place) {
    let mut stage = stage(place, Timing::default()).await;
    stage.accept(at(0), entries(1, 6)).await;
    let limited = timed("t", at_most(2));
    let blocked = Rule { blocked: Some("its plugin is not loaded".to_owned()), ..limited.clone() };
    stage.adopt(vec![blocked], at(1)).await;
    assert!(stage.claims(at(1)).await.is_empty());
    assert_eq!(stage.states().await, [State::Blocked; 6]);
    stage.adopt(vec![limited], at(2)).await;
    assert_eq!(stage.deliver(at(2)).await, [[1], [2]]);
    assert_eq!(stage.deliver(at(2 + HOUR)).await, [[3, 4, 5, 6]], "the rest is one digest");
}

pub async fn a_place_that_is_given_up_goes_to_the_surplus_at_once(place: Place) {
    let unless = Some(Unless::AcknowledgedByPerson);
    let stage = stage(place, Timing { unless, ..at_most(1) }).await;
    stage.accept(at(0), entries(1, 2)).await;
    assert_eq!(stage.states().await, [State::Pending, State::Collecting]);
    let by = Actor { name: "admin@example.com".to_owned(), is_agent: false };
    let acme = super::stage::name("acme");
    stage.inbox().mark(&acme, vec![1], Deed::Acknowledge, Mark { at: at(5), by }).await.unwrap();
    assert_eq!(stage.deliver(at(5)).await, [[2]]);
}

pub async fn a_digest_of_one_closes_at_once(place: Place) {
    let stage = stage(place, collect(5, 1)).await;
    stage.accept(at(0), entries(1, 2)).await;
    assert_eq!(stage.deliver(at(0)).await, [[1], [2]]);
}

pub async fn what_is_urgent_passes_a_surplus(place: Place) {
    let stage = stage(place, at_most(1)).await;
    stage.accept(at(0), entries(1, 2)).await;
    assert_eq!(stage.states().await, [State::Pending, State::Collecting]);
    stage.accept(at(1), vec![urgent(entry("cry"))]).await;
    assert_eq!(stage.deliver(at(1)).await, [[1], [3]]);
    // It counts, though it is not limited.
    assert!(stage.claims(at(HOUR)).await.is_empty());
    assert_eq!(stage.deliver(at(1 + HOUR)).await, [[2]]);
}

pub async fn a_digest_that_what_was_due_before_it_took_away_is_not_looked_at_again(place: Place) {
    let except = Except::Urgent;
    let timing = Timing {
        after: Some(After { wait: Duration::from_secs(10 * MINUTE), except }),
        collect: Some(Collect { by: By::None, wait: Duration::from_secs(10 * MINUTE), most: 2, except }),
        at_most: Some(AtMost { count: 1, per: Duration::from_secs(HOUR), except: Except::Nothing }),
        ..Timing::default()
    };
    let stage = stage(place, timing).await;
    stage.accept(at(0), vec![urgent(entry("e1")), urgent(entry("e2"))]).await;
    assert_eq!(stage.deliver(at(0)).await, [[1]]);
    stage.accept(at(2 * MINUTE), entries(3, 3)).await;
    assert!(stage.claims(at(12 * MINUTE)).await.is_empty());
    stage.accept(at(11 * MINUTE), entries(4, 4)).await;
    // The fourth fills the digest of the third, which goes to the surplus of the second; all of that is due at once.
    assert!(stage.claims(at(25 * MINUTE)).await.is_empty());
    assert_eq!(stage.states().await, [State::Delivered, State::Collecting]);
    assert_eq!(stage.deliver(at(HOUR)).await, [[2, 3, 4]]);
}

pub async fn nothing_overtakes_a_surplus_that_is_due(place: Place) {
    let stage = stage(place, at_most(1)).await;
    stage.accept(at(0), entries(1, 1)).await;
    assert_eq!(stage.deliver(at(0)).await, [[1]]);
    stage.accept(at(1), entries(2, 2)).await;
    stage.accept(at(HOUR + 1), entries(3, 3)).await;
    assert_eq!(stage.deliver(at(HOUR + 1)).await, [[2, 3]]);
}

pub async fn everything_that_waits_survives_a_restart(place: Place) {
    let rules = [("s", after(15)), ("h", hold()), ("c", collect(90, 50)), ("m", at_most(1))];
    let rules: Vec<_> = rules.map(|(target, timing)| timed(target, timing)).into();
    let mut stage = Stage::new(place, rules).await;
    let all = ["s", "h", "c", "m"];
    let sent = |number: usize| super::stage::owing(entry(&format!("e{number}")), &all);
    stage.accept(at(HOUR), vec![sent(1), sent(2)]).await;
    let first = stage.claim_one(at(HOUR)).await;
    stage.finish(&first, at(HOUR), delivered()).await;
    let before = format!("{:#?}", stage.views().await);
    let adopted = stage.reopen(at(HOUR + 1)).await;
    assert_eq!(format!("{:#?}", stage.views().await), before);
    assert_eq!(adopted.due.len(), 4, "{:?}", adopted.due);
    stage.accept(at(HOUR + 2), vec![sent(3)]).await;
    let gone = stage.deliver(at(3 * HOUR)).await;
    assert_eq!(gone.len(), 6, "three escalations, and one digest of each of the others: {gone:?}");
    assert_eq!(gone.iter().filter(|seqs| **seqs == [1, 2, 3]).count(), 2, "{gone:?}");
    assert!(gone.contains(&vec![2, 3]), "the surplus: {gone:?}");
}
