//! What was owed, and whether what came of it keeps the promises.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use jiff::Timestamp;
use jiff::civil::time;
use jiff::tz::TimeZone;
use switchbell::inbox::delivery::{Outcome, State};
use switchbell::inbox::{DeliveryView, Inbox, Owed};

use super::engine::{Engine, WORKSPACE, after, name};
use super::sink::Sent;

/// Attempts that a run must have made to say anything.
const ATTEMPTS_LEAST: usize = 10_000;

#[derive(Debug, Default)]
pub struct Ledger {
    /// The notifications that each route is to deliver.
    owed: BTreeMap<String, BTreeSet<u64>>,
    /// Deliveries that a person had made again: limits and quiet hours do not stop a person.
    pub by_hand: HashSet<String>,
}

impl Ledger {
    pub fn owes(&mut self, seq: u64, owed: Vec<Owed>) {
        for owed in owed {
            self.owed.entry(owed.route.to_string()).or_default().insert(seq);
        }
    }

    pub async fn check(&self, engine: &Engine) {
        let deliveries = engine.deliveries().await;
        let sent = engine.sink.sent();
        let attempts: usize = deliveries.iter().map(|delivery| delivery.attempts.len()).sum();
        assert!(attempts >= ATTEMPTS_LEAST, "only {attempts} attempts of {} deliveries", deliveries.len());
        assert!(!self.by_hand.is_empty(), "nothing was ever dead or blocked");
        every_delivery_has_come_to_an_end(&deliveries);
        attempts_follow_each_other(&deliveries, &sent);
        self.everything_is_in_one_delivery(engine, &deliveries).await;
        strict_order_is_kept(&sent);
        for (path, from, to, urgent_passes) in
            [("/night", 22, 7, true), ("/small-hours", 1, 4, false), ("/page", 23, 6, true), ("/page-b", 23, 6, true)]
        {
            self.quiet_hours_are_kept(&sent, path, (from, to), urgent_passes);
        }
        for (path, count, seconds, urgent_passes) in [
            ("/limited", 4, 3_600, true),
            ("/anyone", 3, 3_600, true),
            ("/paced-digest", 2, 1_800, false),
            ("/page", 6, 7_200, true),
            ("/page-b", 6, 7_200, true),
        ] {
            self.limits_are_kept(&sent, path, count, seconds, urgent_passes);
        }
        assert!(sent.iter().any(|sent| sent.path == "/page-b"), "the reload changed nothing");
    }

    /// Every notification that matched is in one delivery of each target, or counted in one.
    async fn everything_is_in_one_delivery(&self, engine: &Engine, deliveries: &[DeliveryView]) {
        for (route, owed) in &self.owed {
            let of_route = || deliveries.iter().filter(|one| one.route.as_str() == route && one.retry_of.is_none());
            let mut found = BTreeSet::new();
            for delivery in of_route() {
                for seq in &delivery.seqs {
                    assert!(found.insert(*seq), "{route}: notification {seq} is in two deliveries");
                }
            }
            assert!(found.is_subset(owed), "{route} delivers what it does not owe");
            let missing: Vec<u64> = owed.difference(&found).copied().collect();
            let counted: u32 = of_route().map(|delivery| delivery.omitted).sum();
            let marks = engine.inbox.marks(&name(WORKSPACE), missing.clone()).await.unwrap();
            // What was acknowledged before its digest went is left out of it.
            let left_out = marks.iter().filter(|marks| marks.acknowledged.is_some()).count();
            let (least, most) = (missing.len() - left_out, missing.len());
            assert!(
                (least..=most).contains(&(counted as usize)),
                "{route}: {missing:?} are in no delivery, and {counted} are counted"
            );
        }
    }

    /// Whether this is a first attempt that no person asked for.
    fn is_first(&self, sent: &Sent, path: &str, seen: &mut HashSet<String>) -> bool {
        sent.path == path && !self.by_hand.contains(&sent.id) && seen.insert(sent.id.clone())
    }

    fn quiet_hours_are_kept(&self, sent: &[Sent], path: &str, (from, to): (i8, i8), urgent_passes: bool) {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let mut seen = HashSet::new();
        for sent in sent.iter().filter(|sent| sent.attempt == 1) {
            if !self.is_first(sent, path, &mut seen) || (urgent_passes && sent.urgent) {
                continue;
            }
            let local = zone.to_datetime(sent.at);
            let (now, from, to) = (local.time(), time(from, 0, 0, 0), time(to, 0, 0, 0));
            let is_quiet = if from < to { from <= now && now < to } else { now >= from || now < to };
            assert!(!is_quiet, "{local}: delivered in quiet hours: {sent:?}");
        }
        assert!(!seen.is_empty(), "{path} was never used");
    }

    fn limits_are_kept(&self, sent: &[Sent], path: &str, count: usize, seconds: u64, urgent_passes: bool) {
        let mut seen = HashSet::new();
        let mut times: Vec<Timestamp> = Vec::new();
        for sent in sent {
            if self.is_first(sent, path, &mut seen) && !(urgent_passes && sent.urgent) {
                times.push(sent.at);
            }
        }
        times.sort_unstable();
        for window in times.windows(count + 1) {
            let (first, last) = (window[0], window[count]);
            assert!(after(first, seconds) <= last, "{path}: more than {count} between {first} and {last}");
        }
        assert!(!times.is_empty(), "{path} was never used");
    }
}

fn every_delivery_has_come_to_an_end(deliveries: &[DeliveryView]) {
    let mut states: BTreeMap<State, usize> = BTreeMap::new();
    for delivery in deliveries {
        *states.entry(delivery.state).or_default() += 1;
        // A person said so, or must do something first.
        let is_stated = delivery.state == State::Blocked && delivery.why.is_some();
        assert!(delivery.state.is_final() || is_stated, "{delivery:?}");
        let last = delivery.attempts.last().map(|attempt| attempt.outcome);
        assert_eq!(delivery.state == State::Delivered, last == Some(Outcome::Delivered), "{delivery:?}");
    }

    for state in [State::Delivered, State::Suppressed, State::Cancelled] {
        assert!(states.contains_key(&state), "nothing is {state}");
    }
}

fn attempts_follow_each_other(deliveries: &[DeliveryView], sent: &[Sent]) {
    let mut times: HashMap<(&str, u64, &str), usize> = HashMap::new();
    for sent in sent {
        *times.entry((&sent.id, sent.attempt, &sent.path)).or_default() += 1;
    }
    if let Some((twice, _)) = times.iter().find(|(_, times)| **times > 1) {
        panic!("an effect was performed twice in one attempt: {twice:?}");
    }
    for delivery in deliveries {
        let numbers = delivery.attempts.iter().map(|attempt| attempt.number.get());
        assert!(numbers.eq(1..=delivery.attempts.len().try_into().unwrap()), "{delivery:?}");
    }
}

/// Nothing of a strict target is sent while an earlier delivery of it is not over.
fn strict_order_is_kept(sent: &[Sent]) {
    let strict: Vec<&Sent> = sent.iter().filter(|sent| sent.path == "/strict").collect();
    let runs: Vec<u64> = strict.chunk_by(|one, next| one.id == next.id).map(|run| run[0].seqs[0]).collect();
    assert!(runs.is_sorted_by(|one, next| one < next), "out of order: {runs:?}");
    assert!(runs.len() < strict.len(), "nothing strict ever failed");
}
