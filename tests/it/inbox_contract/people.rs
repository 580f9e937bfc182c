//! What people and agents do: mark notifications, have deliveries made again, cancel them.

use switchbell::inbox::delivery::{Cause, Next, Outcome, State};
use switchbell::inbox::{
    Actor, Change, Claim, Deed, DeliveryView, Entry, HANDLED_MAX, Mark, Marked, Page, Paused, Which,
};
use switchbell::notification::Event;
use switchbell::route::timing::{Timing, Unless};

use super::stage::{
    HOUR, MINUTE, Place, Stage, at, dead, delivered, entries, entry, finished, kept, name, owing, page, retrying, rule,
    seqs, timed,
};
use super::timing::{after, collect, hold};

fn mark(second: u64, by: &str) -> Mark {
    Mark { at: at(second), by: Actor { name: by.to_owned(), is_agent: by == "agent" } }
}

async fn acknowledge(stage: &Stage, seqs: &[u64], by: &str) -> Marked {
    stage.inbox().mark(&name("acme"), seqs.to_vec(), Deed::Acknowledge, mark(30, by)).await.unwrap()
}

fn unless(timing: Timing) -> Timing {
    Timing { unless: Some(Unless::AcknowledgedByPerson), ..timing }
}

async fn view(stage: &Stage, index: usize) -> DeliveryView {
    stage.views().await.remove(index)
}

pub async fn an_acknowledgement_suppresses_what_waits_at_once(place: Place) {
    let rules = [("s", after(15)), ("h", hold()), ("c", collect(90, 50)), ("p", Timing::default())];
    let rules = rules.map(|(target, timing)| timed(target, unless(timing)));
    let stage = Stage::new(place, rules.into()).await;
    let hour = super::stage::HOUR;
    stage.accept(at(hour), vec![owing(entry("e1"), &["s", "h", "c", "p"])]).await;
    assert_eq!(stage.states().await, [State::Scheduled, State::Held, State::Collecting, State::Pending]);
    let marked = acknowledge(&stage, &[1, 9], "person").await;
    assert_eq!((marked.seqs, marked.missing, marked.suppressed.len()), (vec![1], vec![9], 4));
    assert_eq!(stage.states().await, [State::Suppressed; 4]);
    assert!(stage.claims(at(9 * hour)).await.is_empty());
}

pub async fn an_agents_acknowledgement_counts_where_the_target_says_so(place: Place) {
    let anyone = Timing { unless: Some(Unless::AcknowledgedByAnyone), ..after(15) };
    let stage = Stage::new(place, vec![timed("person", unless(after(15))), timed("anyone", anyone)]).await;
    stage.accept(at(0), vec![owing(entry("e1"), &["person", "anyone"])]).await;
    assert_eq!(acknowledge(&stage, &[1], "agent").await.suppressed.len(), 1);
    assert_eq!(stage.states().await, [State::Scheduled, State::Suppressed]);
    assert_eq!(acknowledge(&stage, &[1], "person").await.suppressed.len(), 1);
    assert_eq!(stage.states().await, [State::Suppressed, State::Suppressed]);
}

pub async fn an_acknowledgement_is_looked_at_again_at_the_claim(place: Place) {
    let mut stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(0), entries(1, 1)).await;
    assert!(acknowledge(&stage, &[1], "person").await.suppressed.is_empty(), "nobody asked for that");
    stage.adopt(vec![timed("t", unless(Timing::default()))], at(1)).await;
    let claimed = stage.claim(at(2)).await;
    assert!(claimed.claims.is_empty());
    assert_eq!(
        claimed.moved.iter().map(|moved| (moved.seq, moved.state)).collect::<Vec<_>>(),
        [(1, State::Suppressed)]
    );
    assert_eq!(claimed.next_due[0].1, None);
}

pub async fn a_digest_is_needless_once_all_of_it_is_acknowledged(place: Place) {
    let stage = Stage::new(place, vec![timed("t", unless(collect(5, 50)))]).await;
    stage.accept(at(0), entries(1, 3)).await;
    assert!(acknowledge(&stage, &[1, 3], "person").await.suppressed.is_empty());
    assert_eq!(stage.states().await, [State::Collecting]);
    assert_eq!(acknowledge(&stage, &[2], "person").await.suppressed.len(), 1);
    stage.accept(at(MINUTE), entries(4, 5)).await;
    acknowledge(&stage, &[4], "person").await;
    let claim = stage.claim_one(at(6 * MINUTE)).await;
    assert!(seqs(&claim).contains(&5) && !seqs(&claim).contains(&1), "{:?}", seqs(&claim));
}

pub async fn a_persons_mark_takes_the_place_of_an_agents(place: Place) {
    let mut stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(0), entries(1, 1)).await;
    let workspace = name("acme");
    let set = async |deed, second, by| {
        stage.inbox().mark(&workspace, vec![1], deed, mark(second, by)).await.unwrap();
        stage.inbox().marks(&workspace, vec![1]).await.unwrap().remove(0)
    };
    let marks = set(Deed::Read, 1, "agent").await;
    assert_eq!((marks.read, marks.acknowledged), (Some(mark(1, "agent")), None));
    let marks = set(Deed::Acknowledge, 2, "agent").await;
    assert_eq!((marks.read, marks.acknowledged), (Some(mark(1, "agent")), Some(mark(2, "agent"))));
    let marks = set(Deed::Acknowledge, 3, "person").await;
    assert_eq!((marks.read, marks.acknowledged), (Some(mark(1, "agent")), Some(mark(3, "person"))));
    for later in ["agent", "another"] {
        assert_eq!(set(Deed::Acknowledge, 4, later).await.acknowledged, Some(mark(3, "person")), "the first person");
    }
    stage.reopen(at(5)).await;
    let marks = stage.inbox().marks(&workspace, vec![1]).await.unwrap().remove(0);
    assert_eq!(marks.acknowledged, Some(mark(3, "person")));
}

pub async fn marks_come_in_the_order_asked_for(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(0), entries(1, 3)).await;
    acknowledge(&stage, &[2], "person").await;
    let marks = stage.inbox().marks(&name("acme"), vec![3, 2, 1]).await.unwrap();
    assert_eq!(marks.iter().map(|marks| marks.acknowledged.is_some()).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!(marks[1].read, Some(mark(30, "person")), "acknowledging is reading, too");
    assert!(marks[0].read.is_none());
}

/// A delivery that ended so.
async fn ended(place: Place, end: (Outcome, Next)) -> (Stage, Claim) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(0), entries(1, 1)).await;
    let claim = stage.claim_one(at(0)).await;
    stage.finish(&claim, at(1), end).await;
    (stage, claim)
}

pub async fn what_is_dead_blocked_or_retrying_is_made_again_as_the_same_delivery(place: Place) {
    let stage = Stage::new(place, vec![rule("t"), rule("u"), rule("v")]).await;
    stage.accept(at(0), vec![owing(entry("e1"), &["t", "u", "v"])]).await;
    let blocked = (Outcome::Reconnect, Next { state: State::Blocked, next_at: None });
    for (claim, end) in stage.claims(at(0)).await.iter().zip([dead(), blocked, retrying(at(3_000))]) {
        stage.finish(claim, at(1), end).await;
    }
    assert_eq!(stage.states().await, [State::Dead, State::Blocked, State::Retrying]);
    stage.news();
    let handled = stage.inbox().retry(&name("acme"), Which::default(), at(60)).await.unwrap();
    assert!(handled.done.iter().all(|(_, new)| new.is_none()) && handled.done.len() == 3, "{handled:?}");
    assert_eq!(stage.inbox().news().await.due.len(), 3);
    let claims = stage.claims(at(60)).await;
    assert_eq!(claims.len(), 3, "at once");
    for claim in &claims {
        assert_eq!((claim.attempt.get(), claim.cause, claim.since, claim.due_at), (2, Cause::Manual, at(60), at(0)));
    }
}

pub async fn what_is_over_is_made_again_as_a_new_delivery_that_names_the_old(place: Place) {
    let (stage, old) = ended(place, delivered()).await;
    let workspace = name("acme");
    let which = Which { ids: vec![old.id.clone()], ..Which::default() };
    let handled = stage.inbox().retry(&workspace, which.clone(), at(60)).await.unwrap();
    let new = handled.done[0].1.clone().unwrap();
    assert_ne!(new, old.id);
    assert_eq!(view(&stage, 1).await.retry_of, Some(old.id.clone()));
    let claim = stage.claim_one(at(60)).await;
    assert_eq!((&claim.id, claim.attempt.get(), claim.cause), (&new, 1, Cause::Manual));
    assert_eq!((claim.notifications.clone(), claim.due_at, claim.since), (old.notifications, at(60), at(60)));
    assert_eq!(stage.states().await, [State::Delivered, State::InFlight], "the old one stays as it is");

    let unknown = (Outcome::Unknown, Next { state: State::Unknown, next_at: None });
    stage.finish(&claim, at(61), unknown).await;
    let which = Which { states: vec![State::Unknown], ..Which::default() };
    let handled = stage.inbox().retry(&workspace, which, at(70)).await.unwrap();
    assert!(handled.done[0].1.is_some());
    let which = Which { states: vec![State::Pending], ..Which::default() };
    stage.inbox().cancel(&workspace, which, "no".to_owned()).await.unwrap();
    let which = Which { states: vec![State::Cancelled], ..Which::default() };
    let handled = stage.inbox().retry(&workspace, which, at(80)).await.unwrap();
    assert!(handled.done[0].1.is_some());
}

pub async fn what_is_in_flight_is_neither_retried_nor_cancelled(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(0), entries(1, 1)).await;
    let claim = stage.claim_one(at(0)).await;
    let workspace = name("acme");
    let refused = vec![(claim.id.clone(), State::InFlight)];
    let handled = stage.inbox().retry(&workspace, Which::default(), at(1)).await.unwrap();
    assert_eq!((handled.done.len(), handled.refused), (0, refused.clone()));
    let handled = stage.inbox().cancel(&workspace, Which::default(), "no".to_owned()).await.unwrap();
    assert_eq!((handled.done.len(), handled.refused), (0, refused));
    stage.inbox().finish(finished(&claim, at(2), delivered())).await.unwrap();
    let handled = stage.inbox().cancel(&workspace, Which::default(), "no".to_owned()).await.unwrap();
    assert_eq!(handled.refused, [(claim.id, State::Delivered)], "nor what is over");
}

pub async fn what_waits_is_cancelled(place: Place) {
    let stage = Stage::new(place, vec![timed("s", after(15)), timed("c", collect(90, 50)), rule("p")]).await;
    stage.accept(at(0), vec![owing(entry("e1"), &["s", "c", "p"])]).await;
    let handled = stage.inbox().cancel(&name("acme"), Which::default(), "not today".to_owned()).await.unwrap();
    assert_eq!((handled.done.len(), handled.refused.len(), handled.has_more), (3, 0, false));
    assert_eq!(stage.states().await, [State::Cancelled; 3]);
    assert_eq!(view(&stage, 0).await.why.as_deref(), Some("not today"));
    assert!(stage.claims(at(100_000)).await.is_empty());
    // What comes afterwards opens a digest of its own.
    stage.accept(at(10), vec![owing(entry("e2"), &["c"])]).await;
    assert_eq!(seqs(&stage.claim_one(at(100_000)).await), [2]);
}

pub async fn numbers_that_no_notification_can_have_mean_none(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(0), entries(1, 1)).await;
    let odd = [0, 1 << 40, (1 << 40) + 1, i64::MAX as u64, u64::MAX];
    let marked = acknowledge(&stage, &odd, "admin").await;
    assert_eq!((marked.seqs, marked.missing), (vec![], odd.to_vec()));
    for seq in odd {
        let listed =
            stage.inbox().deliveries(page("acme"), Which { seq: Some(seq), ..Which::default() }).await.unwrap();
        assert!(listed.is_empty(), "{seq}");
    }
    let marks = stage.inbox().marks(&name("acme"), odd.to_vec()).await.unwrap();
    assert!(marks.iter().all(|marks| marks.read.is_none()));
}

pub async fn a_page_does_not_end_inside_a_notification(place: Place) {
    let stage = Stage::new(place, vec![rule("t"), rule("u"), rule("v")]).await;
    let entry = |id: &str| owing(entry(id), &["t", "u", "v"]);
    stage.accept(at(0), vec![entry("e1"), entry("e2"), entry("e3")]).await;
    let (mut before, mut seen) = (None, Vec::new());
    loop {
        let page = Page { before, limit: 2, ..page("acme") };
        let found = stage.inbox().deliveries(page, Which::default()).await.unwrap();
        let Some(last) = found.last() else { break };
        before = last.seqs.first().copied();
        seen.extend(found.iter().map(|view| view.id.number));
    }
    assert_eq!(seen, [9, 8, 7, 6, 5, 4, 3, 2, 1]);
}

pub async fn filters_narrow_what_is_meant(place: Place) {
    let stage = Stage::new(place, vec![rule("t"), timed("c", collect(90, 50))]).await;
    let mut of_mail = owing(entry("e3"), &["t"]);
    of_mail.owed[0].plugin = name("mail");
    stage.accept(at(0), vec![entry("e1"), owing(entry("e2"), &["c"])]).await;
    stage.accept(at(50), vec![of_mail, owing(entry("e4"), &["c"])]).await;
    let meant = async |which: Which| {
        let views = stage.inbox().deliveries(super::stage::page("acme"), which).await.unwrap();
        views.into_iter().map(|view| view.seqs[0]).collect::<Vec<_>>()
    };
    assert_eq!(meant(Which::default()).await, [3, 2, 1], "the newest first");
    assert_eq!(meant(Which { states: vec![State::Pending, State::Dead], ..Which::default() }).await, [3, 1]);
    assert_eq!(meant(Which { plugin: Some(name("mail")), ..Which::default() }).await, [3]);
    assert_eq!(meant(Which { since: Some(at(50)), ..Which::default() }).await, [3]);
    assert_eq!(meant(Which { seq: Some(4), ..Which::default() }).await, [2], "the digest that it is in");
    assert_eq!(meant(Which { route: Some(name("news")), ..Which::default() }).await, [3, 2, 1]);
    assert!(meant(Which { route: Some(name("other")), ..Which::default() }).await.is_empty());
    let ids = vec![view(&stage, 0).await.id];
    assert_eq!(meant(Which { ids: ids.clone(), ..Which::default() }).await, [1]);
    assert!(meant(Which { ids, states: vec![State::Dead], ..Which::default() }).await.is_empty());
    let cancelled = Which { plugin: Some(name("mail")), ..Which::default() };
    stage.inbox().cancel(&name("acme"), cancelled, "no".to_owned()).await.unwrap();
    assert_eq!(meant(Which { states: vec![State::Cancelled], ..Which::default() }).await, [3]);
}

pub async fn every_state_is_found_by_its_filter(place: Place) {
    let escalates = Timing { unless: Some(Unless::AcknowledgedByPerson), ..after(15) };
    let rules = vec![rule("t"), timed("c", collect(90, 50)), timed("h", hold()), timed("s", escalates)];
    let stage = Stage::new(place, rules).await;
    stage.accept(at(HOUR), entries(1, 9)).await;
    for (claim, number) in stage.claims(at(HOUR)).await.iter().zip(1..) {
        let next_at = Some(at(2 * HOUR));
        let state = match number {
            1 => State::Delivered,
            2 => State::Dead,
            3 => State::Unknown,
            4 => State::Blocked,
            5 => State::Retrying,
            6 => continue,
            7 => {
                let kept = kept(claim, 0, 0);
                let (until, resume, lanes) = (at(2 * HOUR), Change::Keep, Vec::new());
                stage.inbox().pause(Paused { kept, until, is_wait: true, resume, lanes }).await.unwrap();
                continue;
            }
            _ => State::Pending,
        };
        let (outcome, next_at) = match state {
            State::Retrying => (Outcome::Retry, next_at),
            State::Pending => (Outcome::Interrupted, next_at),
            _ => (Outcome::Reject, None),
        };
        stage.finish(claim, at(HOUR), (outcome, Next { state, next_at })).await;
    }
    let ninth = Which { seq: Some(9), ..Which::default() };
    stage.inbox().cancel(&NAME, ninth, "no".to_owned()).await.unwrap();
    let waiting = ["c", "h", "s", "s"].map(|target| owing(entry(target), &[target]));
    stage.accept(at(HOUR), waiting.into_iter().enumerate().map(|(number, one)| renamed(one, number)).collect()).await;
    let by = Actor { name: "admin@example.com".to_owned(), is_agent: false };
    stage.inbox().mark(&NAME, vec![13], Deed::Acknowledge, Mark { at: at(HOUR), by }).await.unwrap();
    let all = stage.views().await;
    for state in State::ALL {
        let which = Which { states: vec![state], ..Which::default() };
        let found = stage.inbox().deliveries(super::stage::page("acme"), which).await.unwrap();
        assert_eq!(found.iter().map(|view| view.state).collect::<Vec<_>>(), [state], "{state}: {all:#?}");
    }
    let few = Which { states: vec![State::Held, State::InFlight, State::Blocked], ..Which::default() };
    let page = Page { limit: 2, ..super::stage::page("acme") };
    let found = stage.inbox().deliveries(page, few).await.unwrap();
    assert_eq!(found.iter().map(|view| view.state).collect::<Vec<_>>(), [State::Held, State::InFlight], "the newest");
}

fn renamed(entry: Entry, number: usize) -> Entry {
    Entry { event: Event { event_id: format!("w{number}"), ..entry.event }, ..entry }
}

pub async fn one_request_handles_so_many_at_most(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(0), entries(1, 1_001)).await;
    let cancel = || stage.inbox().cancel(&NAME, Which::default(), "no".to_owned());
    let handled = cancel().await.unwrap();
    assert_eq!((handled.done.len(), handled.has_more), (HANDLED_MAX as usize, true));
    let pending = Which { states: vec![State::Pending], ..Which::default() };
    let handled = stage.inbox().cancel(&NAME, pending, "no".to_owned()).await.unwrap();
    assert_eq!((handled.done.len(), handled.has_more), (1, false));
}

static NAME: std::sync::LazyLock<switchbell::notification::Name> = std::sync::LazyLock::new(|| name("acme"));
