//! What changed, in order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fastrand::Rng;
use futures_util::FutureExt;
use jiff::Timestamp;
use switchbell::clock::later;
use switchbell::inbox::book::Rule;
use switchbell::inbox::change::{Change, GAP_NAME};
use switchbell::inbox::delivery::{Next, Outcome, State};
use switchbell::inbox::{
    Actor, CHANGES_KEPT, CHANGES_MAX, Changed, Changes, Claim, Deed, DeliveryId, Entry, Intake, Mark, Marks, Paused,
    Query, Which,
};
use switchbell::notification::HOST_SOURCE;

use super::fold;
use super::stage::{
    Gate, MINUTE, Place, Stage, about, at, delivered, entries, entry, intake, kept, large, name, owing, rule, timed,
};
use super::timing::after;

async fn changes(stage: &Stage, after: u64) -> Changes {
    stage.inbox().changes(&name("acme"), after, CHANGES_MAX).await.unwrap()
}

async fn all(stage: &Stage) -> Vec<Change> {
    let changes = changes(stage, 0).await;
    assert!(!changes.is_cut);
    assert_eq!(changes.last as usize, changes.changes.len());
    changes.changes
}

/// Each in a few words.
fn words(changes: &[Change]) -> Vec<String> {
    let word = |change: &Change| match &change.what {
        Changed::Created { seq } => format!("created {seq}"),
        Changed::Marked { seq, is_acknowledged, mark } => {
            format!("{} {seq} by {}", if *is_acknowledged { "acknowledged" } else { "read" }, mark.by.name)
        }
        Changed::Delivery { id, target, state, seq, .. } => format!("{} of {seq} to {target} {state}", id.number),
        Changed::Joined { id, into, seq } => format!("{} of {seq} joined {}", id.number, into.number),
        Changed::Gap { seq, source } => format!("gap {seq} of {source}"),
    };
    assert!(changes.windows(2).all(|pair| pair[0].number + 1 == pair[1].number), "{changes:?}");
    changes.iter().map(word).collect()
}

fn mark(seconds: u64, by: &str) -> Mark {
    Mark { at: at(seconds), by: Actor { name: by.to_owned(), is_agent: by == "agent" } }
}

async fn set_mark(stage: &Stage, seq: u64, deed: Deed, by: &str) {
    stage.inbox().mark(&name("acme"), vec![seq], deed, mark(9, by)).await.unwrap();
}

pub async fn what_is_accepted_is_told_and_then_what_it_owes(place: Place) {
    let stage = Stage::new(place, vec![rule("t"), rule("u")]).await;
    stage.accept(at(1), vec![entry("e1"), owing(entry("e2"), &["t", "u"])]).await;
    stage.accept(at(2), vec![owing(entry("e3"), &[])]).await;
    let changes = all(&stage).await;
    let expected =
        ["created 1", "created 2", "1 of 1 to t pending", "2 of 2 to t pending", "3 of 2 to u pending", "created 3"];
    assert_eq!(words(&changes), expected);
    assert_eq!(changes.iter().map(|change| change.at).collect::<Vec<_>>(), [1, 1, 1, 1, 1, 2].map(at));
    let Changed::Delivery { id, route, plugin, .. } = &changes[2].what else { panic!("{changes:?}") };
    assert_eq!((id, route, plugin), (&stage.views().await[0].id, &name("news"), &name("slack")));
}

pub async fn a_delivery_that_changes_twice_in_one_write_is_told_once(place: Place) {
    let mut stage = Stage::new(place, vec![rule("t")]).await;
    stage.let_in(Gate::with_room_for(1)).await;
    stage.accept(at(1), entries(1, 2)).await;
    let expected = ["created 1", "created 2", "1 of 1 to t in_flight", "2 of 2 to t pending"];
    assert_eq!(words(&all(&stage).await), expected);
    let news = stage.news();
    stage.finish(&news.claims[0], at(2), delivered()).await;
    assert_eq!(words(&changes(&stage, 4).await.changes), ["1 of 1 to t delivered"]);
}

pub async fn a_mark_is_told_when_it_is_new(place: Place) {
    let stage = Stage::new(place, Vec::new()).await;
    stage.accept(at(1), vec![owing(entry("e1"), &[]), owing(entry("e2"), &[])]).await;
    set_mark(&stage, 1, Deed::Read, "admin").await;
    set_mark(&stage, 1, Deed::Read, "other").await;
    set_mark(&stage, 1, Deed::Acknowledge, "agent").await;
    set_mark(&stage, 1, Deed::Acknowledge, "agent").await;
    set_mark(&stage, 1, Deed::Acknowledge, "admin").await;
    set_mark(&stage, 1, Deed::Acknowledge, "other").await;
    set_mark(&stage, 2, Deed::Acknowledge, "admin").await;
    set_mark(&stage, 3, Deed::Acknowledge, "admin").await;
    let told = changes(&stage, 2).await.changes;
    let expected = ["read 1 by admin", "acknowledged 1 by agent", "acknowledged 1 by admin", "acknowledged 2 by admin"];
    assert_eq!(words(&told), expected);
    let Changed::Marked { mark: of_agent, .. } = &told[1].what else { panic!("{told:?}") };
    assert_eq!(of_agent, &mark(9, "agent"));
}

pub async fn a_notice_of_a_gap_is_told_as_one(place: Place) {
    let stage = Stage::new(place, Vec::new()).await;
    let mut gap = about(owing(entry("g1"), &[]), Some("registrar"));
    gap.event.name = GAP_NAME.to_owned();
    stage.accept(at(1), vec![gap.clone()]).await;
    let read = Intake { notices: vec![gap.clone()], ..intake("acme", at(2), vec![owing(entry("e2"), &[])]) };
    stage.inbox().accept(read).await.unwrap();
    gap.event.event_id = "g2".to_owned();
    let of_the_host = Intake { source: name(HOST_SOURCE), ..intake("acme", at(3), vec![gap]) };
    stage.inbox().accept(of_the_host).await.unwrap();
    let expected = ["created 1", "created 2", "created 3", "gap 3 of registrar", "created 4", "gap 4 of registrar"];
    assert_eq!(words(&all(&stage).await), expected, "only the host says so");
}

pub async fn numbers_go_on_after_a_restart_and_are_parted_by_workspace(place: Place) {
    let mut stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(1), entries(1, 1)).await;
    stage.claim_one(at(2)).await;
    stage.inbox().accept(intake("globex", at(2), vec![owing(entry("e1"), &[])])).await.unwrap();
    stage.reopen(at(3)).await;
    let expected = ["created 1", "1 of 1 to t pending", "1 of 1 to t in_flight", "1 of 1 to t waiting"];
    assert_eq!(words(&all(&stage).await), expected);
    let of_other = stage.inbox().changes(&name("globex"), 0, 10).await.unwrap();
    assert_eq!((words(&of_other.changes), of_other.last), (vec!["created 1".to_owned()], 1));
    assert_eq!(stage.inbox().changes(&name("nobody"), 0, 10).await.unwrap(), Changes::default());
}

pub async fn a_page_of_changes_goes_on_where_the_last_ended(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(1), entries(1, 1_500)).await;
    let (mut after, mut told) = (0, Vec::new());
    loop {
        let page = stage.inbox().changes(&name("acme"), after, 7).await.unwrap();
        assert_eq!((page.last, page.is_cut), (3_000, false));
        let Some(last) = page.changes.last() else { break };
        assert!(page.changes.len() <= 7);
        after = last.number;
        told.extend(page.changes);
    }
    assert!(told.iter().map(|change| change.number).eq(1..=3_000));
    let most = stage.inbox().changes(&name("acme"), 0, u32::MAX).await.unwrap();
    assert_eq!(most.changes.len(), CHANGES_MAX as usize);
    assert_eq!(most.changes[..], told[..1_000]);
    let created = told.iter().filter(|change| matches!(change.what, Changed::Created { .. })).count();
    assert_eq!(created, 1_500);
}

pub async fn a_number_that_was_never_told_is_a_cut(place: Place) {
    let stage = Stage::new(place, Vec::new()).await;
    stage.accept(at(1), vec![owing(entry("e1"), &[])]).await;
    let ahead = changes(&stage, 2).await;
    assert_eq!((ahead.is_cut, ahead.last, ahead.changes), (true, 1, Vec::new()), "the store was another");
    assert!(changes(&stage, u64::MAX).await.is_cut);
    assert!(stage.inbox().changes(&name("nobody"), 1, 10).await.unwrap().is_cut);
    assert_eq!(changes(&stage, 1).await, Changes { last: 1, ..Changes::default() });
}

pub async fn only_the_newest_are_kept_and_who_was_away_longer_is_told(place: Place) {
    let stage = Stage::new(place, Vec::new()).await;
    let kept = usize::try_from(CHANGES_KEPT).unwrap();
    for from in (1..=kept + 5_000).step_by(5_000) {
        let entries = entries(from, from + 4_999).into_iter().map(|entry| owing(entry, &[])).collect();
        stage.accept(at(1), entries).await;
    }
    assert!(!changes(&stage, 0).await.is_cut, "nothing goes by itself");
    let forget = || async { stage.inbox().forget_changes(&name("acme"), 2).await.unwrap() };
    while forget().await == 2 {}
    assert_eq!(forget().await, 0);
    let last = changes(&stage, CHANGES_KEPT).await.last;
    assert!(changes(&stage, 0).await.is_cut);
    let oldest = changes(&stage, last - CHANGES_KEPT).await;
    assert_eq!((oldest.is_cut, oldest.changes[0].number), (false, last - CHANGES_KEPT + 1));
}

pub async fn what_fails_is_not_told(place: Place) {
    let mut stage = Stage::new(place, vec![rule("t")]).await;
    let follower = stage.inbox().follow(&name("acme")).await.unwrap();
    stage.let_in(Gate { breaks: true, ..Gate::default() }).await;
    let good = stage.inbox().accept(intake("acme", at(1), vec![owing(entry("e0"), &[])]));
    let (bad, good) = tokio::join!(stage.try_accept(at(1), entries(1, 3)), good);
    assert!(bad.is_err() && good.is_ok());
    assert_eq!(words(&all(&stage).await), ["created 1"]);
    assert_eq!(*follower.borrow(), 1);
    stage.let_in(Gate::default()).await;
    stage.accept(at(2), entries(4, 4)).await;
    assert_eq!(words(&all(&stage).await), ["created 1", "created 2", "1 of 2 to t pending"]);
}

pub async fn a_follower_is_told_of_each_commit_and_never_too_early(place: Place) {
    let stage = Stage::new(place, Vec::new()).await;
    stage.accept(at(1), vec![owing(entry("e0"), &[])]).await;
    let mut first = stage.inbox().follow(&name("acme")).await.unwrap();
    let mut of_other = stage.inbox().follow(&name("globex")).await.unwrap();
    assert_eq!((*first.borrow_and_update(), *of_other.borrow_and_update()), (1, 0));
    stage.accept(at(1), vec![owing(entry("e1"), &[])]).await;
    let last = *first.borrow_and_update();
    assert_eq!((last, changes(&stage, 1).await.last), (2, 2));
    set_mark(&stage, 1, Deed::Read, "admin").await;
    first.changed().await.unwrap();
    assert_eq!(*first.borrow_and_update(), 3);
    set_mark(&stage, 1, Deed::Read, "admin").await;
    assert!(first.changed().now_or_never().is_none(), "nothing changed");
    drop(first);
    let again = stage.inbox().follow(&name("acme")).await.unwrap();
    assert_eq!(*again.borrow(), 3);
    stage.inbox().accept(intake("globex", at(2), vec![owing(entry("e1"), &[])])).await.unwrap();
    of_other.changed().await.unwrap();
    assert_eq!((*of_other.borrow_and_update(), *again.borrow()), (1, 3));
}

pub async fn a_target_that_goes_with_much_that_waits_is_told_whole(place: Place) {
    const MANY: usize = 12_500;
    let mut stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(1), entries(1, MANY)).await;
    let before = changes(&stage, 0).await.last;
    let adopted = stage.adopt(Vec::new(), at(2)).await;
    assert_eq!(adopted.cancelled[0].1 as usize, MANY);
    let (mut after, mut told) = (before, 0);
    while let page = changes(&stage, after).await.changes
        && let Some(last) = page.last()
    {
        assert!(page.iter().all(|one| matches!(one.what, Changed::Delivery { state: State::Cancelled, .. })));
        after = last.number;
        told += page.len();
    }
    assert_eq!(told, MANY);
}

/// What somebody knows who only reads changes.
#[derive(Default)]
struct Folded {
    last: u64,
    states: BTreeMap<DeliveryId, State>,
    marks: BTreeMap<u64, Marks>,
    joined: usize,
    ever: BTreeSet<State>,
}

impl Folded {
    async fn follow(&mut self, stage: &Stage) {
        loop {
            let page = stage.inbox().changes(&name("acme"), self.last, 100).await.unwrap();
            assert!(!page.is_cut);
            if page.changes.is_empty() {
                assert_eq!(page.last, self.last);
                return;
            }
            for change in page.changes {
                assert_eq!(change.number, self.last + 1, "numbers have no gap");
                self.last = change.number;
                self.take(change.what);
            }
        }
    }

    fn take(&mut self, what: Changed) {
        match what {
            Changed::Created { seq } => {
                assert_eq!(seq, self.marks.len() as u64 + 1);
                self.marks.insert(seq, Marks::default());
            }
            Changed::Marked { seq, is_acknowledged, mark } => {
                let marks = self.marks.get_mut(&seq).expect("it was created before");
                marks.read.get_or_insert(mark.clone());
                if is_acknowledged {
                    marks.acknowledged = Some(mark);
                }
            }
            Changed::Delivery { id, state, seq, .. } => {
                assert!(self.marks.contains_key(&seq), "its notification was created before");
                let before = self.states.insert(id.clone(), state);
                assert_ne!(before, Some(state), "{id} stands elsewhere");
                self.ever.insert(state);
            }
            Changed::Joined { id, into, .. } => {
                assert_ne!(id, into);
                self.states.remove(&id);
                self.joined += 1;
            }
            Changed::Gap { .. } => {}
        }
    }

    /// Compares with what the store shows.
    async fn check(&self, stage: &Stage, step: &str) {
        let views = stage.views().await;
        let states: BTreeMap<DeliveryId, State> = views.iter().map(|view| (view.id.clone(), view.state)).collect();
        let differs: Vec<_> = states.iter().filter(|(id, state)| self.states.get(*id) != Some(state)).collect();
        assert!(differs.is_empty(), "after {step}: {differs:?} and {:?}", self.states);
        assert_eq!(self.states.len(), states.len(), "after {step}");
        let listed = stage.inbox().list(Query::all(name("acme"), 1_000)).await.unwrap();
        let marks: BTreeMap<u64, Marks> = listed.items.into_iter().map(|(one, marks)| (one.seq, marks)).collect();
        assert_eq!(self.marks, marks, "after {step}");
    }
}

fn end(random: &mut Rng, now: Timestamp) -> (Outcome, Next) {
    let next_at = Some(later(now, std::time::Duration::from_secs(random.u64(1..900))));
    let (outcome, state) = [
        (Outcome::Delivered, State::Delivered),
        (Outcome::Retry, State::Retrying),
        (Outcome::Reject, State::Dead),
        (Outcome::Reconnect, State::Blocked),
        (Outcome::Unknown, State::Unknown),
        (Outcome::Interrupted, State::Pending),
    ][random.usize(..6)];
    let waits = matches!(state, State::Retrying | State::Pending);
    (outcome, Next { state, next_at: next_at.filter(|_| waits) })
}

fn arrivals(random: &mut Rng, first: usize) -> Vec<Entry> {
    let targets = ["t0", "t1", "t2", "t3", "t4", "gone"];
    let one = |number: usize, random: &mut Rng| {
        let owed: Vec<&str> = targets.into_iter().filter(|_| random.u32(..4) == 0).collect();
        let entry = about(owing(entry(&format!("e{number}")), &owed), [None, Some("a")][random.usize(..2)]);
        if random.u32(..8) == 0 { large(entry, 50_000) } else { entry }
    };
    (first..first + random.usize(1..4)).map(|number| one(number, random)).collect()
}

async fn act(
    stage: &mut Stage,
    random: &mut Rng,
    held: &mut Vec<Claim>,
    now: Timestamp,
    rules: &[Rule],
) -> &'static str {
    let workspace = name("acme");
    let some = |random: &mut Rng| Which { states: vec![State::ALL[random.usize(..13)]], ..Which::default() };
    match random.u32(..16) {
        0..=3 => {
            let first = changes(stage, 0).await.last as usize * 4;
            stage.try_accept(now, arrivals(random, first)).await.unwrap();
            "an intake"
        }
        4..=6 => {
            held.extend(stage.claims(now).await);
            "a claim"
        }
        7..=9 => {
            held.extend(stage.news().claims);
            for claim in held.drain(..held.len().div_ceil(2)) {
                if random.u32(..4) == 0 {
                    let until = later(now, std::time::Duration::from_secs(60));
                    let (kept, resume) = (kept(&claim, 0, 1), switchbell::inbox::Change::Keep);
                    let is_wait = random.bool();
                    stage.inbox().pause(Paused { kept, until, is_wait, resume, lanes: Vec::new() }).await.unwrap();
                } else {
                    stage.finish(&claim, now, end(random, now)).await;
                }
            }
            "ends of attempts"
        }
        10 => {
            stage.inbox().retry(&workspace, some(random), now).await.unwrap();
            "a retry"
        }
        11 => {
            stage.inbox().cancel(&workspace, some(random), "no".to_owned()).await.unwrap();
            "a cancellation"
        }
        12 | 13 => {
            let deed = if random.bool() { Deed::Read } else { Deed::Acknowledge };
            let by = Actor { name: "somebody".to_owned(), is_agent: random.bool() };
            let seqs = (0..3).map(|_| random.u64(1..60)).collect();
            stage.inbox().mark(&workspace, seqs, deed, Mark { at: now, by }).await.unwrap();
            "marks"
        }
        14 => {
            let mut rules: Vec<Rule> = rules.iter().filter(|_| random.u32(..4) > 0).cloned().collect();
            rules.iter_mut().for_each(|rule| rule.blocked = random.bool().then(|| "no plugin".to_owned()));
            stage.let_in_by(rules, Arc::new(Gate::with_room_for(random.i64(0..20))), now).await;
            "a reload"
        }
        _ if random.u32(..4) == 0 => {
            held.clear();
            stage.reopen(now).await;
            "a restart"
        }
        _ => "nothing",
    }
}

pub async fn what_changed_adds_up_to_what_there_is(place: Place) {
    let seed = 7;
    let mut random = Rng::with_seed(seed);
    let mut rules: Vec<Rule> = (0..4).map(|number| timed(&format!("t{number}"), fold::timing(&mut random))).collect();
    rules.push(Rule { by_subject: true, ..timed("t4", after(3)) });
    rules.push(rule("gone"));
    let mut stage = Stage::new(place, rules.clone()).await;
    let (mut held, mut folded, mut now) = (Vec::new(), Folded::default(), at(0));
    for step in 0..400 {
        now = later(now, std::time::Duration::from_secs(random.u64(..20 * MINUTE)));
        let what = act(&mut stage, &mut random, &mut held, now, &rules).await;
        folded.follow(&stage).await;
        folded.check(&stage, &format!("step {step}, {what}")).await;
    }
    let Folded { ever, joined, .. } = &folded;
    assert!(ever.len() >= 11 && *joined > 0, "too little happened: {ever:?}, {joined} joined");
}
