//! What is foreseen of a target is what the store does.

use std::time::Duration;

use fastrand::Rng;
use jiff::civil::time;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use switchbell::clock::later;
use switchbell::inbox::{Actor, Claim, Deed, Entry, Mark};
use switchbell::notification::Level;
use switchbell::route::Acknowledged;
use switchbell::route::forecast::{End, Followed, Forecast, Place as Stands, Scene, Waiting, forecast};
use switchbell::route::timing::{After, AtMost, By, Collect, Except, Hold, Timing, Unless};

use super::stage::{Place, Stage, about, delivered, entry, name, owing, page, queue, seqs, timed};

/// Targets that are looked at, each with a past of its own.
const TARGETS: u64 = 40;
/// Looks at each of them.
const LOOKS: u64 = 8;
/// Before both changes of the clock, in Berlin and in New York.
const BEGINNINGS: [&str; 3] = ["2026-03-07T12:00:00Z", "2026-03-28T20:00:00Z", "2026-10-24T20:00:00Z"];

const MINUTE: Duration = Duration::from_secs(60);

fn any_timing(random: &mut Rng) -> Timing {
    let except = |random: &mut Rng| if random.bool() { Except::Nothing } else { Except::Urgent };
    let zones = ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/New_York"];
    let clock = |minute: i16| time((minute / 60 % 24) as i8, (minute % 60) as i8, 0, 0);
    let from = random.i16(0..1440);
    let mut timing = Timing::default();
    if random.bool() {
        timing.after = Some(After { wait: random.u32(1..100) * MINUTE, except: except(random) });
    }
    if random.bool() {
        timing.unless = Some([Unless::AcknowledgedByPerson, Unless::AcknowledgedByAnyone][random.usize(..2)]);
    }
    if random.bool() {
        let to = clock(from + random.i16(1..1440));
        let zone = TimeZone::get(zones[random.usize(..4)]).unwrap();
        timing.hold = Some(Hold { from: clock(from), to, zone, except: except(random) });
    }
    if random.bool() {
        let by = [By::Subject, By::Name, By::None][random.usize(..3)];
        let (wait, most) = (random.u32(1..60) * MINUTE, random.u32(1..6));
        timing.collect = Some(Collect { by, wait, most, except: except(random) });
    }
    if random.bool() {
        let (count, per) = (random.u32(1..5), random.u32(1..600) * MINUTE);
        timing.at_most = Some(AtMost { count, per, except: except(random) });
    }
    timing
}

struct World {
    stage: Stage,
    target: String,
    timing: Timing,
    random: Rng,
    now: Timestamp,
    sent: u64,
    /// Claimed and still under way.
    going: Vec<Claim>,
}

impl World {
    fn event(&mut self) -> Entry {
        self.sent += 1;
        let subject = [None, Some("a"), Some("b")][self.random.usize(..3)];
        let effective_level = Level::ALL[self.random.usize(..3)];
        let entry = owing(entry(&format!("{} {}", self.target, self.sent)), &[&self.target]);
        Entry { effective_level, ..about(entry, subject) }
    }

    /// Claims what is due, and has most of it delivered.
    async fn deliver(&mut self, leaves: bool) -> Vec<u64> {
        let claims = self.stage.claims(self.now).await;
        let gone = claims.iter().flat_map(seqs).collect();
        for claim in claims {
            if leaves && self.random.u8(..4) == 0 {
                self.going.push(claim);
            } else {
                self.stage.finish(&claim, self.now, delivered()).await;
            }
        }
        gone
    }

    async fn next_due(&mut self) -> Option<Timestamp> {
        // Nothing is due a millisecond after the epoch.
        self.stage.claim(Timestamp::UNIX_EPOCH).await.next_due[0].1
    }

    /// Lets time pass up to a moment, with everything done when it is due.
    async fn until(&mut self, end: Timestamp, leaves: bool) -> Vec<u64> {
        let mut gone = Vec::new();
        while let Some(at) = self.next_due().await.filter(|at| *at <= end) {
            self.now = self.now.max(at);
            gone.extend(self.deliver(leaves).await);
        }
        self.now = self.now.max(end);
        gone
    }

    async fn something_happens(&mut self) {
        let gap = if self.random.u8(..6) == 0 { self.random.u32(..700) } else { self.random.u32(..10) };
        self.until(later(self.now, gap * MINUTE), true).await;
        let entry = self.event();
        self.stage.accept(self.now, vec![entry]).await;
        if self.random.bool() {
            let newest = self.stage.inbox().notifications(page("acme")).await.unwrap()[0].seq;
            let seq = newest - self.random.u64(..self.sent);
            let by = Actor { name: "somebody".to_owned(), is_agent: self.random.bool() };
            let mark = Mark { at: self.now, by };
            self.stage.inbox().mark(&name("acme"), vec![seq], Deed::Acknowledge, mark).await.unwrap();
        }
    }

    async fn foresee(&self, followed: Option<&Entry>) -> Vec<(Forecast, Option<i64>)> {
        let at_most = self.timing.at_most.as_ref();
        let state = self.stage.inbox().target_state(&queue(&self.target), at_most, self.now).await.unwrap();
        let scene =
            Scene { timing: &self.timing, reached: &state.reached, going: state.going, waiting: &state.waiting };
        match followed {
            Some(entry) => {
                let new = Followed::New(Box::new(as_new(entry, self.now)));
                vec![(forecast(scene, new, self.now), None)]
            }
            None => {
                let of = |one: &Waiting| (forecast(scene, Followed::Waiting(one.number), self.now), Some(one.number));
                state.waiting.iter().map(of).collect()
            }
        }
    }

    /// What is on its way reaches its destination now.
    async fn arrive(&mut self) {
        for claim in std::mem::take(&mut self.going) {
            self.stage.finish(&claim, self.now, delivered()).await;
        }
    }

    /// Whether what stands for these goes at that moment, and not a millisecond before. Of a digest those are left out that
    /// somebody acknowledged.
    async fn check(&mut self, seen: &Forecast, seqs: &[u64]) {
        let End::Goes { at } = seen.end else { panic!("nobody acknowledged it: {seen:?}") };
        let before = at - SignedDuration::from_millis(1);
        let mut early = Vec::new();
        if before >= self.now {
            early = self.until(before, false).await;
        }
        let is_among = |gone: &[u64]| seqs.iter().any(|seq| gone.contains(seq));
        assert!(!is_among(&early), "{seqs:?} goes before {at}: {seen:#?}\n{:#?}", self.timing);
        let gone = self.until(at, false).await;
        assert!(is_among(&gone), "{seqs:?} does not go at {at}: {seen:#?}\n{:#?}", self.timing);
    }
}

fn as_new(entry: &Entry, now: Timestamp) -> Waiting {
    let event = &entry.event;
    Waiting {
        number: Waiting::NEW,
        at: now,
        place: Stands::New,
        received_at: now,
        level: entry.effective_level,
        source: "registrar".to_owned(),
        name: event.name.clone(),
        subject: event.subject.clone(),
        acknowledged: Acknowledged::No,
        items: 1,
        bytes: 300,
    }
}

/// Another target, with nothing behind it.
async fn world(mut stage: Stage, seed: u64) -> World {
    let mut random = Rng::with_seed(seed);
    let (timing, target) = (any_timing(&mut random), format!("t{seed}"));
    let now = BEGINNINGS[random.usize(..3)].parse().unwrap();
    stage.adopt(vec![timed(&target, timing.clone())], now).await;
    World { stage, target, timing, random, now, sent: 0, going: Vec::new() }
}

pub async fn what_is_foreseen_of_something_new_is_what_the_store_does(place: Place) {
    let mut waited = 0;
    let mut stage = Stage::new(place, Vec::new()).await;
    for seed in 0..TARGETS {
        let mut world = world(stage, seed).await;
        for _ in 0..LOOKS {
            world.something_happens().await;
            let entry = world.event();
            let seen = world.foresee(Some(&entry)).await.remove(0).0;
            let seq = world.stage.accept(world.now, vec![entry]).await[0];
            waited += u64::from(seen.end != End::Goes { at: world.now });
            world.arrive().await;
            world.check(&seen, &[seq]).await;
        }
        stage = world.stage;
    }
    assert!(waited > TARGETS * LOOKS / 4, "only {waited} waited");
}

pub async fn what_is_foreseen_of_what_waits_is_what_the_store_does(place: Place) {
    let mut looked = 0;
    let mut stage = Stage::new(place, Vec::new()).await;
    for seed in 1_000..1_000 + TARGETS {
        let mut world = world(stage, seed).await;
        for _ in 0..LOOKS {
            world.something_happens().await;
        }
        let views = world.stage.views().await;
        let all = world.foresee(None).await;
        world.arrive().await;
        if let Some((seen, number)) = all.into_iter().next_back() {
            let view = views.iter().find(|view| Some(view.id.number) == number).unwrap();
            match seen.end {
                End::Goes { .. } => world.check(&seen, &view.seqs).await,
                End::Suppressed { at } => {
                    let gone = world.until(at, false).await;
                    assert!(!view.seqs.iter().any(|seq| gone.contains(seq)), "{seen:#?}");
                }
                End::Open => panic!("it waits: {seen:#?}"),
            }
            looked += 1;
        }
        stage = world.stage;
    }
    assert!(looked > TARGETS / 4, "only {looked} waited");
}
