//! The queues of consumers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fastrand::Rng;
use futures_util::FutureExt;
use switchbell::inbox::{
    Consumed, Entry, Intake, PAGE_BYTES_MAX, PAGE_EVENTS_MAX, Pending, QUEUE_EVENTS_MAX, QueueView,
};
use switchbell::notification::{Event, global_id};

use super::stage::{Gate, Place, Stage, at, entries, entry, intake, large, name, owing, rule};

/// For these consumers, and no target.
fn to(entry: Entry, consumers: &[&str]) -> Entry {
    Entry { consumers: consumers.iter().map(|consumer| name(consumer)).collect(), ..owing(entry, &[]) }
}

fn all_to(entries: Vec<Entry>, consumers: &[&str]) -> Vec<Entry> {
    entries.into_iter().map(|entry| to(entry, consumers)).collect()
}

fn id(event_id: &str) -> String {
    global_id(&name("acme"), &name("registrar"), event_id)
}

async fn page(stage: &Stage, consumer: &str, after: u64, limit: u32) -> Pending {
    stage.inbox().pending(&name("acme"), &name(consumer), after, limit).await.unwrap()
}

/// The numbers of the first page, and whether there is more.
async fn waiting(stage: &Stage, consumer: &str) -> (Vec<u64>, bool) {
    let page = page(stage, consumer, 0, u32::MAX).await;
    (page.items.iter().map(|one| one.seq).collect(), page.has_more)
}

async fn consume(stage: &Stage, consumer: &str, ids: &[String]) -> Consumed {
    stage.inbox().consume(&name("acme"), &name(consumer), ids.to_vec(), at(50)).await.unwrap()
}

async fn view(stage: &Stage, consumer: &str) -> QueueView {
    let views = stage.inbox().queues(&name("acme")).await.unwrap();
    views.into_iter().find(|view| view.consumer == name(consumer)).unwrap()
}

/// Removes notifications; more than is in one write of retention, so in several.
async fn expire(stage: &Stage, seqs: std::ops::RangeInclusive<u64>) {
    stage.inbox().expire(&name("acme"), seqs.collect(), at(70)).await.unwrap();
}

pub async fn an_event_joins_the_queues_it_is_for_and_stays_until_it_is_acknowledged(place: Place) {
    let mut stage = Stage::new(place, Vec::new()).await;
    let mut pushed = to(entry("e1"), &["audit", "triage"]);
    pushed.event = Event { content: Some(r#"[{"type": "text", "text":"a"}]"#.to_owned()), ..pushed.event };
    stage.accept(at(1), vec![pushed.clone(), to(entry("e2"), &["audit"]), to(entry("e3"), &[])]).await;
    stage.reopen(at(2)).await;
    assert_eq!(waiting(&stage, "audit").await, (vec![1, 2], false));
    let page = page(&stage, "triage", 0, 10).await;
    assert_eq!(page.items, [stage.inbox().notification(&name("acme"), 1).await.unwrap().unwrap()]);
    assert_eq!(page.items[0].event, pushed.event, "as it came");
    assert_eq!(consume(&stage, "triage", &[id("e1")]).await, Consumed { taken: 1, pending: 0 });
    assert_eq!(waiting(&stage, "triage").await, (vec![], false));
    assert_eq!(waiting(&stage, "audit").await, (vec![1, 2], false), "each consumer acknowledges for itself");
    stage.reopen(at(3)).await;
    let expected = QueueView {
        consumer: name("audit"),
        pending: 2,
        oldest: Some((1, at(1))),
        joined: 2,
        acknowledged: 0,
        acknowledged_at: None,
        lost: 0,
        too_old: 0,
        lost_at: None,
        losses: 0,
        is_losing: false,
    };
    let done = QueueView {
        consumer: name("triage"),
        pending: 0,
        oldest: None,
        joined: 1,
        acknowledged: 1,
        acknowledged_at: Some(at(50)),
        ..expected.clone()
    };
    assert_eq!(stage.inbox().queues(&name("acme")).await.unwrap(), [expected, done]);
}

pub async fn an_event_that_is_repeated_joins_nothing_whatever_became_of_it(place: Place) {
    let mut stage = Stage::new(place, Vec::new()).await;
    let both = || all_to(entries(1, 2), &["triage"]);
    stage.try_accept(at(1), both().into_iter().chain(both()).collect()).await.unwrap();
    assert_eq!(waiting(&stage, "triage").await, (vec![1, 2], false));
    consume(&stage, "triage", &[id("e1")]).await;
    stage.reopen(at(2)).await;
    stage.try_accept(at(3), both()).await.unwrap();
    assert_eq!(waiting(&stage, "triage").await, (vec![2], false));
    // Also for somebody else than before: the first write wins.
    stage.try_accept(at(4), all_to(entries(1, 1), &["audit"])).await.unwrap();
    assert_eq!(waiting(&stage, "audit").await, (vec![], false));
    expire(&stage, 1..=2).await;
    stage.try_accept(at(5), both()).await.unwrap();
    assert_eq!(waiting(&stage, "triage").await, (vec![], false));
    assert_eq!(view(&stage, "triage").await.joined, 2);
}

pub async fn an_id_that_was_forgotten_while_it_waited_joins_once(place: Place) {
    let stage = Stage::new(place, Vec::new()).await;
    stage.accept(at(1), all_to(entries(1, 1), &["triage"])).await;
    let later = at(1_000 * 86_400);
    assert_eq!(stage.inbox().forget_seen(later, 10).await.unwrap(), 1);
    assert_eq!(stage.accept(later, all_to(entries(1, 2), &["triage"])).await, [2, 3], "nothing is wedged");
    assert_eq!(waiting(&stage, "triage").await, (vec![1, 3], false));
    let view = view(&stage, "triage").await;
    assert_eq!((view.pending, view.joined), (2, 2));
}

pub async fn a_page_is_bounded_in_number_and_in_bytes(place: Place) {
    let stage = Stage::new(place, Vec::new()).await;
    stage.accept(at(1), all_to(entries(1, 150), &["triage"])).await;
    let (first, has_more) = waiting(&stage, "triage").await;
    assert!(has_more && first.into_iter().eq(1..=u64::from(PAGE_EVENTS_MAX)));
    let seqs = |page: &Pending| page.items.iter().map(|one| one.seq).collect::<Vec<_>>();
    let some = page(&stage, "triage", 0, 2).await;
    assert_eq!((seqs(&some), some.has_more), (vec![1, 2], true));
    let next = page(&stage, "triage", 2, 2).await;
    assert_eq!((seqs(&next), next.has_more), (vec![3, 4], true));
    let last = page(&stage, "triage", 148, 2).await;
    assert_eq!((seqs(&last), last.has_more), (vec![149, 150], false));
    assert_eq!(page(&stage, "triage", 149, 0).await.items.len(), 1, "a page holds one at least");
    for nothing in [150, 1 << 40, u64::MAX] {
        assert_eq!(page(&stage, "triage", nothing, 9).await, Pending::default(), "{nothing}");
    }
    let big = |number: usize| to(large(entry(&format!("b{number}")), 60_000), &["bytes"]);
    stage.accept(at(2), (1..=20).map(big).collect()).await;
    let some = page(&stage, "bytes", 0, 100).await;
    let fits = PAGE_BYTES_MAX / 61_000..=PAGE_BYTES_MAX / 60_000;
    assert!(fits.contains(&some.items.len()) && some.has_more, "{} in a page", some.items.len());
    let rest = page(&stage, "bytes", some.items.last().unwrap().seq, 100).await;
    assert_eq!((some.items.len() + rest.items.len(), rest.has_more), (20, false));
    stage.accept(at(3), vec![to(large(entry("huge"), 2 * PAGE_BYTES_MAX), &["huge"])]).await;
    assert_eq!(page(&stage, "huge", 0, 9).await.items.len(), 1, "the first is in it whatever its size");
}

pub async fn ids_of_others_are_passed_over_in_silence(place: Place) {
    let stage = Stage::new(place, Vec::new()).await;
    stage.accept(at(1), vec![to(entry("mine"), &["triage"]), to(entry("theirs"), &["audit"])]).await;
    stage.inbox().accept(intake("other", at(1), all_to(entries(1, 1), &["triage"]))).await.unwrap();
    let abroad = global_id(&name("other"), &name("registrar"), "e1");
    let foreign = [id("theirs"), abroad.clone(), "nonsense".to_owned(), String::new(), "mine".to_owned()];
    assert_eq!(consume(&stage, "triage", &foreign).await, Consumed { taken: 0, pending: 1 });
    assert_eq!(consume(&stage, "nobody", &[id("mine")]).await, Consumed::default());
    assert_eq!(waiting(&stage, "audit").await, (vec![2], false));
    let there = stage.inbox().pending(&name("other"), &name("triage"), 0, 9).await.unwrap();
    assert_eq!(there.items.len(), 1);
    assert_eq!(stage.inbox().pending(&name("nowhere"), &name("triage"), 0, 9).await.unwrap(), Pending::default());
    let view_before = view(&stage, "triage").await;
    assert_eq!(view_before.acknowledged_at, None, "nothing was acknowledged");
    for _ in 0..2 {
        let twice = [id("mine"), id("mine")];
        assert_eq!(consume(&stage, "triage", &twice).await.pending, 0);
    }
    assert_eq!(view(&stage, "triage").await.acknowledged, 1);
}

pub async fn a_follower_of_a_queue_is_told_of_each_commit_and_never_too_early(place: Place) {
    let mut stage = Stage::new(place, vec![rule("t")]).await;
    let (acme, triage) = (name("acme"), name("triage"));
    stage.accept(at(1), all_to(entries(1, 2), &["triage"])).await;
    let mut told = stage.inbox().follow_queue(&acme, &triage).await.unwrap();
    assert_eq!(*told.borrow_and_update(), 2, "what was there before");
    stage.accept(at(2), vec![to(entry("e3"), &["audit"])]).await;
    assert!(!told.has_changed().unwrap(), "of this queue only");
    stage.accept(at(3), vec![to(entry("e4"), &["triage"]), to(entry("e5"), &["triage"]), to(entry("e6"), &[])]).await;
    assert!(told.has_changed().unwrap());
    assert_eq!(*told.borrow_and_update(), 5);
    assert!(waiting(&stage, "triage").await.0.contains(&5));
    consume(&stage, "triage", &[id("e5")]).await;
    assert!(!told.has_changed().unwrap(), "what leaves is no news");
    stage.let_in(Gate { breaks: true, ..Gate::with_room_for(0) }).await;
    let fails = vec![to(entry("e7"), &["triage"]), entry("e8")];
    assert!(stage.try_accept(at(4), fails).await.is_err());
    assert!(!told.has_changed().unwrap(), "what was rolled back is not told");
    assert_eq!(waiting(&stage, "triage").await, (vec![1, 2, 4], false));
    let nothing = stage.inbox().follow_queue(&acme, &name("nobody")).await.unwrap();
    assert_eq!(*nothing.borrow(), 0);
}

pub async fn a_queue_that_is_full_loses_its_oldest_and_says_so(place: Place) {
    let mut stage = Stage::new(place, Vec::new()).await;
    let mut losses = stage.inbox().follow_losses();
    losses.borrow_and_update();
    let most = usize::try_from(QUEUE_EVENTS_MAX).unwrap();
    stage.accept(at(1), all_to(entries(1, most), &["triage"])).await;
    assert!(!losses.has_changed().unwrap());
    assert_eq!((view(&stage, "triage").await.lost, view(&stage, "triage").await.pending), (0, QUEUE_EVENTS_MAX));
    stage.accept(at(2), all_to(entries(most + 1, most + 1), &["audit", "triage"])).await;
    assert!(losses.has_changed().unwrap(), "it is told with the commit");
    losses.borrow_and_update();
    stage.accept(at(3), all_to(entries(most + 2, most + 3), &["triage"])).await;
    assert!(!losses.has_changed().unwrap(), "once for each time that it begins");
    stage.reopen(at(4)).await;
    let full = view(&stage, "triage").await;
    assert_eq!((full.pending, full.oldest), (QUEUE_EVENTS_MAX, Some((4, at(1)))));
    assert_eq!((full.lost, full.too_old, full.losses, full.lost_at), (3, 0, 1, Some(at(3))));
    assert!(full.is_losing && !view(&stage, "audit").await.is_losing);
    assert!(stage.inbox().notification(&name("acme"), 1).await.unwrap().is_some(), "it stays in the inbox");
    // It is over once the queue was empty.
    let mut rest = (4..=most + 3).map(|number| id(&format!("e{number}"))).collect::<Vec<_>>();
    let last = rest.split_off(rest.len() - 1);
    assert_eq!(consume(&stage, "triage", &rest).await.pending, 1);
    assert!(view(&stage, "triage").await.is_losing);
    consume(&stage, "triage", &last).await;
    let done = view(&stage, "triage").await;
    assert_eq!((done.is_losing, done.lost, done.losses), (false, 3, 1));
    assert_eq!(done.joined, done.acknowledged + done.lost + done.pending);
}

pub async fn what_retention_takes_out_of_a_queue_is_counted(place: Place) {
    let stage = Stage::new(place, Vec::new()).await;
    let mut losses = stage.inbox().follow_losses();
    losses.borrow_and_update();
    stage.accept(at(1), all_to(entries(1, 4), &["audit", "triage"])).await;
    consume(&stage, "triage", &[id("e1")]).await;
    expire(&stage, 1..=2).await;
    assert!(losses.has_changed().unwrap());
    losses.borrow_and_update();
    assert_eq!(waiting(&stage, "triage").await, (vec![3, 4], false));
    let counts = |view: QueueView| (view.pending, view.lost, view.too_old, view.losses, view.is_losing);
    assert_eq!(counts(view(&stage, "triage").await), (2, 1, 1, 1, true));
    assert_eq!(counts(view(&stage, "audit").await), (2, 2, 2, 1, true));
    assert_eq!(view(&stage, "audit").await.lost_at, Some(at(70)), "when it was taken out");
    expire(&stage, 3..=3).await;
    assert!(!losses.has_changed().unwrap(), "it goes on");
    expire(&stage, 4..=4).await;
    assert_eq!(counts(view(&stage, "triage").await), (0, 3, 3, 1, false), "nothing is left to lose");
    stage.accept(at(2), all_to(entries(5, 5), &["triage"])).await;
    expire(&stage, 5..=5).await;
    assert!(losses.has_changed().unwrap());
    assert_eq!(counts(view(&stage, "triage").await), (0, 4, 4, 2, false));
}

pub async fn the_hosts_notices_join_queues_like_any_other(place: Place) {
    let stage = Stage::new(place, Vec::new()).await;
    let notices = vec![to(entry("notice"), &["triage"])];
    stage.inbox().accept(Intake { notices, ..intake("acme", at(1), Vec::new()) }).await.unwrap();
    let ids = [global_id(&name("acme"), &name("switchbell"), "notice")];
    assert_eq!(consume(&stage, "triage", &ids).await, Consumed { taken: 1, pending: 0 });
}

/// What a queue should be.
#[derive(Default)]
struct Model {
    waits: VecDeque<(u64, String)>,
    joined: u64,
    acknowledged: u64,
    lost: u64,
    losses: u64,
    is_losing: bool,
}

impl Model {
    fn join(&mut self, seq: u64, id: String) {
        self.waits.push_back((seq, id));
        self.joined += 1;
    }

    fn take(&mut self, ids: &BTreeSet<String>) {
        let before = self.waits.len();
        self.waits.retain(|(_, id)| !ids.contains(id));
        self.acknowledged += (before - self.waits.len()) as u64;
        self.is_losing &= !self.waits.is_empty();
    }

    fn lose(&mut self, seq: u64) {
        let before = self.waits.len();
        self.waits.retain(|(waits, _)| *waits != seq);
        if self.waits.len() < before {
            self.lost += 1;
            self.losses += u64::from(!self.is_losing);
            self.is_losing = !self.waits.is_empty();
        }
    }
}

const CONSUMERS: [&str; 3] = ["audit", "triage", "watch"];

async fn act(stage: &mut Stage, models: &mut BTreeMap<&'static str, Model>, random: &mut Rng, last: &mut u64) {
    match random.u32(..10) {
        0..=3 => {
            let number = |random: &mut Rng| random.usize(1..400);
            let sent: Vec<Entry> = (0..random.usize(1..6))
                .map(|_| {
                    let consumers: Vec<&str> = CONSUMERS.into_iter().filter(|_| random.bool()).collect();
                    to(entry(&format!("e{}", number(random))), &consumers)
                })
                .collect();
            let seqs = stage.try_accept(at(*last), sent.clone()).await.unwrap().seqs;
            for (seq, sent) in seqs.into_iter().zip(sent).filter_map(|(seq, sent)| Some((seq?, sent))) {
                *last = seq;
                for consumer in &sent.consumers {
                    models.get_mut(consumer.as_str()).unwrap().join(seq, id(&sent.event.event_id));
                }
            }
        }
        4..=6 => {
            let ids: BTreeSet<String> =
                (0..random.usize(..40)).map(|_| id(&format!("e{}", random.usize(1..400)))).collect();
            let consumer = CONSUMERS[random.usize(..3)];
            consume(stage, consumer, &ids.iter().cloned().collect::<Vec<_>>()).await;
            models.get_mut(consumer).unwrap().take(&ids);
        }
        7 => {
            let seqs: Vec<u64> = (0..random.u64(1..4)).map(|_| random.u64(1..=*last + 1)).collect();
            stage.inbox().expire(&name("acme"), seqs.clone(), at(70)).await.unwrap();
            seqs.iter().for_each(|seq| models.values_mut().for_each(|model| model.lose(*seq)));
        }
        8 if random.u32(..6) == 0 => drop(stage.reopen(at(*last)).await),
        _ => {
            let consumer = CONSUMERS[random.usize(..3)];
            let ids = models[consumer].waits.iter().map(|(_, id)| id.clone()).collect::<BTreeSet<_>>();
            consume(stage, consumer, &ids.iter().cloned().collect::<Vec<_>>()).await;
            models.get_mut(consumer).unwrap().take(&ids);
        }
    }
}

pub async fn queues_hold_what_a_model_of_them_holds(place: Place) {
    let mut random = Rng::with_seed(7);
    let mut stage = Stage::new(place, Vec::new()).await;
    let mut models: BTreeMap<&str, Model> = CONSUMERS.into_iter().map(|name| (name, Model::default())).collect();
    let mut last = 0;
    for step in 0..300 {
        act(&mut stage, &mut models, &mut random, &mut last).await;
        let views = stage.inbox().queues(&name("acme")).await.unwrap();
        for (consumer, model) in models.iter().filter(|(_, model)| model.joined > 0) {
            let (mut after, mut found) = (0, Vec::new());
            loop {
                let limit = random.u32(1..9);
                let page = stage.inbox().pending(&name("acme"), &name(consumer), after, limit).await.unwrap();
                found.extend(page.items.iter().map(|one| (one.seq, one.global_id())));
                after = page.items.last().map_or(after, |one| one.seq);
                if !page.has_more {
                    break;
                }
            }
            assert!(found.iter().eq(&model.waits), "step {step}, {consumer}: {found:?}");
            let view = views.iter().find(|view| view.consumer == name(consumer)).unwrap();
            let counts = (view.pending, view.joined, view.acknowledged, view.lost, view.losses, view.is_losing);
            let Model { waits, joined, acknowledged, lost, losses, is_losing } = model;
            assert_eq!(counts, (waits.len() as u64, *joined, *acknowledged, *lost, *losses, *is_losing), "step {step}");
            assert_eq!(view.oldest.map(|(seq, _)| seq), waits.front().map(|(seq, _)| *seq), "step {step}");
            let told = stage.inbox().follow_queue(&name("acme"), &name(consumer)).now_or_never();
            assert!(told.is_none_or(|told| *told.unwrap().borrow() <= last), "step {step}");
        }
    }
    let lost: u64 = models.values().map(|model| model.lost).sum();
    assert!(lost > 3 && models.values().all(|model| model.acknowledged > 20), "too little happened");
}
