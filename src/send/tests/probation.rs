//! New versions that do well, badly, or are let down by others; and what is made again of what they failed.

mod again;

use std::time::Duration;

use futures_util::FutureExt;
use tokio::task::JoinHandle;

use super::versions::load;
use super::*;
use crate::inbox::{Begun, KeptEffect, Memory as Remembered, Progress};
use crate::send::upgrade::probation::{
    FAILED_MAX, Fault, PROBATION_ENDS, PROBATION_TIME, PROBATION_TIME_MAX, Probation, Standing,
};
use crate::wasm::Plugin;
use crate::wasm::guests::versioned_with;

/// A plugin of this version that does what `tests/guests/versioned` calls by this word.
async fn version(plugin: &str, version: &str, behaviour: &str, repeat: &str) -> Plugin {
    let fields = [("name", plugin), ("version", version), ("behaviour", behaviour), ("repeat", repeat)];
    load(versioned_with(&fields)).await
}

/// A version that takes the place of another, with the attempts of one target.
struct Trial {
    stand: Stand,
    dispatcher: Arc<Dispatcher>,
    old: Plugin,
    new: Plugin,
    attempts: i64,
    stop: Stop,
    running: JoinHandle<()>,
}

impl Trial {
    /// Version 1.1.0 that does `new` has just come for 1.0.0 that does `old`. Requests go to this path of the sink.
    async fn new(path: &str, old: &str, new: &str) -> Self {
        let trial = Self::before(path, old, new).await;
        trial.swap().await;
        trial
    }

    /// Version 1.0.0 still runs.
    async fn before(path: &str, old: &str, new: &str) -> Self {
        let old = version("scripted", "1.0.0", old, "tolerable").await;
        let new = version("scripted", "1.1.0", new, "tolerable").await;
        Self::of(|at| json!({"url": format!("{at}{path}"), "wait": 100_000}), old, new).await
    }

    async fn of(settings: impl FnOnce(&str) -> Value, old: Plugin, new: Plugin) -> Self {
        let plugin = old.manifest().name.clone();
        let deliver = |at: &str| vec![route("news", "domain.*", vec![target("target", plugin.as_str(), settings(at))])];
        let stand = Stand::having(catalog().await.with(old.clone()), deliver).await;
        let (dispatcher, stop) = (dispatcher(&stand.means).await, Stop::default());
        let running = tokio::spawn(Arc::clone(&dispatcher).run(stop.clone()));
        Self { stand, dispatcher, old, new, attempts: 0, stop, running }
    }

    fn probation(&self) -> &Arc<Probation> {
        self.dispatcher.probation()
    }

    async fn swap(&self) {
        let (plugin, catalog) = (&self.new.manifest().name, self.stand.means.live.get().catalog.clone());
        assert_eq!(self.dispatcher.change(catalog.with(self.new.clone()), plugin).await.unwrap(), []);
        self.probation().begin(self.new.clone(), self.old.clone());
    }

    /// Makes attempts of so many more deliveries, side by side, to their ends.
    async fn attempt(&mut self, count: i64) {
        for _ in 0..count {
            self.attempts += 1;
            self.hand_out(claim());
        }
        let attempts = usize::try_from(self.attempts).unwrap();
        self.stand.store.until(|store| store.finished().len() == attempts).await;
    }

    fn hand_out(&self, claim: Claim) {
        let id = DeliveryId { store: "0badcafe".into(), number: self.attempts };
        self.stand.store.hand_out(Claim { id, plugin: self.new.manifest().name.clone(), ..claim });
    }

    fn standing(&self) -> Standing {
        self.probation().of(&self.new.manifest().name).expect("it is on probation")
    }

    /// Where it stands once so many attempts were judged.
    async fn judged(&self, count: u64) -> Standing {
        loop {
            let standing = self.standing();
            if standing.judged >= count {
                return standing;
            }
            tokio::task::yield_now().await;
        }
    }

    fn fault_now(&self) -> Option<Fault> {
        self.probation().at_fault().now_or_never()
    }

    async fn end(self) {
        self.stop.soon.cancel();
        self.running.await.unwrap();
    }
}

/// Makes so many attempts after a swap, none of which is the new version's fault.
async fn check_not_at_fault(path: &str, old: &str, new: &str, count: i64) {
    let mut trial = Trial::new(path, old, new).await;
    trial.attempt(count).await;
    let standing = trial.judged(count.try_into().unwrap()).await;
    assert_eq!((standing.ended, standing.attributed, &standing.at_fault), (standing.judged, 0, &None), "{old} {new}");
    assert_eq!(trial.fault_now(), None, "{path} {old} {new}");
    trial.end().await;
}

/// The fault that is found when so many attempts were made after a swap, and not before.
async fn fault_at(path: &str, old: &str, new: &str, count: i64) -> Fault {
    let mut trial = Trial::new(path, old, new).await;
    for judged in 1..count {
        trial.attempt(1).await;
        let standing = trial.judged(judged.try_into().unwrap()).await;
        assert_eq!((standing.attributed, standing.at_fault), (standing.judged, None), "{new}");
        assert_eq!(trial.fault_now(), None, "{new}");
    }
    trial.attempt(1).await;
    let fault = trial.probation().at_fault().await;
    assert_eq!((fault.name.as_str(), fault.digest.as_str()), ("scripted", trial.new.digest()));
    assert_eq!(fault.failed.len(), usize::try_from(count).unwrap(), "{new}");
    assert_eq!(trial.fault_now(), None, "it is told once");
    trial.end().await;
    fault
}

#[tokio::test]
async fn an_outage_of_the_destination_is_no_versions_fault() {
    for path in ["/503", "/500", "/429"] {
        // Whether what it asks for is worded as before or not, or is asked at another path of the same host.
        for new in ["plain", "content", "target"] {
            check_not_at_fault(path, "plain", new, 5).await;
        }
    }
}

#[tokio::test]
async fn a_destination_that_nobody_can_connect_to_is_no_versions_fault() {
    let nobody = |_: &str| json!({"url": "http://127.0.0.1:9/"});
    let old = version("scripted", "1.0.0", "plain", "tolerable").await;
    let new = version("scripted", "1.1.0", "content", "tolerable").await;
    let mut trial = Trial::of(nobody, old, new).await;
    trial.swap().await;
    trial.attempt(5).await;
    assert_eq!(trial.judged(5).await.attributed, 0);
    trial.end().await;
}

#[tokio::test]
async fn what_both_versions_are_refused_is_no_versions_fault() {
    check_not_at_fault("/404", "plain", "plain", 5).await;
    check_not_at_fault("/200", "rejects", "rejects", 5).await;
}

#[tokio::test]
async fn what_both_versions_fail_at_is_no_versions_fault() {
    for (old, new) in [("traps", "traps"), ("traps", "rejects"), ("traps", "invalid"), ("invalid", "traps")] {
        check_not_at_fault("/200", old, new, 4).await;
    }
    check_not_at_fault("/200", "loops", "loops", 1).await;
}

#[tokio::test]
async fn a_version_that_fails_where_the_one_before_does_not_is_at_fault_at_once() {
    for (new, why) in [
        ("traps", "the plugin "),
        ("traps-after", "the plugin "),
        ("loops", "the plugin passed its CPU time limit"),
        ("hogs", "the plugin passed its memory limit"),
        ("invalid", "the plugin gave a wrong answer"),
        ("endless", "the plugin asked for more than 8 steps"),
        ("waits", "the plugin asked to wait for 27.8 h"),
    ] {
        let fault = fault_at("/200", "plain", new, 1).await;
        assert!(fault.why.starts_with(why), "{new}: {}", fault.why);
        assert!(fault.why.ends_with("; version 1.0.0 does not fail at the same delivery, 0badcafe-1"), "{}", fault.why);
    }
}

#[tokio::test]
async fn a_version_that_does_otherwise_and_fails_is_at_fault_at_the_third_time() {
    let rejects = fault_at("/200", "plain", "rejects", 3).await;
    let why = "3 attempts failed in which version 1.0.0 does otherwise, the last of delivery 0badcafe-3: at step 1 version \
               1.1.0 says reject, where 1.0.0 asks for an HTTP request (this version rejects)";
    assert_eq!(rejects.why, why);
    assert!(rejects.failed.iter().all(|failed| failed.may_repeat && !failed.accepted));
    fault_at("/200", "plain", "retries", 3).await;
    // What it words otherwise is refused: that may be why.
    let content = fault_at("/400", "plain", "content", 3).await;
    assert!(
        content.why.contains("at step 1 version 1.1.0 asks for an HTTP request in other words than 1.0.0"),
        "{content:?}"
    );
    // Where it asks now, it is refused.
    let target = fault_at("/400", "plain", "target", 3).await;
    assert!(target.why.contains("asks for an HTTP request elsewhere than 1.0.0 (HTTP 400)"), "{target:?}");
}

#[tokio::test]
async fn a_target_that_failed_before_the_swap_says_nothing_of_the_version_after_it() {
    let mut trial = Trial::before("/400", "plain", "content").await;
    trial.attempt(1).await;
    trial.swap().await;
    trial.attempt(5).await;
    assert_eq!(trial.judged(5).await.attributed, 0);
    trial.end().await;
    // But what it does by itself is its fault.
    let mut trial = Trial::before("/400", "plain", "traps").await;
    trial.attempt(1).await;
    trial.swap().await;
    trial.attempt(1).await;
    trial.probation().at_fault().await;
    trial.end().await;
}

#[tokio::test]
async fn an_attempt_that_began_on_another_version_is_not_judged() {
    let mut trial = Trial::new("/200", "plain", "traps").await;
    trial.attempts += 1;
    let begun = Begun {
        started_at: start(),
        progress: Progress::default(),
        past: Vec::new(),
        waited: true,
        cut_off: false,
        plugin_digest: Some("another".to_owned()),
    };
    trial.hand_out(Claim { begun: Some(begun), ..claim() });
    trial.stand.store.until(|store| store.finished().len() == 1).await;
    trial.attempt(1).await;
    assert_eq!(trial.probation().at_fault().await.failed[0].id.number, 2);
    assert_eq!((trial.standing().judged, trial.standing().ended), (1, 2));
    trial.end().await;
}

#[tokio::test]
async fn a_version_that_does_not_go_on_as_it_began_is_at_fault_at_the_second_time() {
    let mut trial = Trial::new("/200", "plain", "plain").await;
    let answer = crate::send::record::answer_to_json(&crate::wasm::Answer::Resumed(None));
    let kept = KeptEffect { at: start(), action_digest: "of something else".to_owned(), answer };
    for attempts in 1..=2 {
        assert_eq!(trial.fault_now(), None);
        trial.attempts = attempts;
        let begun = Begun {
            started_at: start(),
            progress: Progress { touched: true, ..Progress::default() },
            past: vec![kept.clone()],
            waited: false,
            cut_off: false,
            plugin_digest: Some(trial.new.digest().to_owned()),
        };
        trial.hand_out(Claim { begun: Some(begun), ..claim() });
        trial.judged(attempts.try_into().unwrap()).await;
    }
    let fault = trial.probation().at_fault().await;
    assert!(fault.why.starts_with("2 attempts could not go on, the last of delivery 0badcafe-2"), "{}", fault.why);
    assert!(fault.failed.iter().all(|failed| failed.accepted && !failed.may_repeat));
    trial.end().await;
}

#[tokio::test]
async fn what_only_a_newer_version_is_handed_is_not_held_against_it() {
    let check = async |new: &str, expected: u64| {
        let old = version("scripted", "1.0.0", "remembers", "tolerable").await;
        let new = version("scripted", new, "remembers", "tolerable").await;
        let mut trial = Trial::of(|at| json!({"url": format!("{at}/400")}), old, new).await;
        trial.swap().await;
        trial.attempts += 1;
        let plugin_version = Some(trial.new.manifest().version.clone());
        let written = Written { value: r#"{"version":"x"}"#.to_owned(), plugin_version };
        trial.hand_out(Claim { memory: Some(Remembered { written, version: 1 }), ..claim() });
        assert_eq!(trial.judged(1).await.attributed, expected);
        trial.end().await;
    };
    check("1.1.0", 1).await;
    check("2.0.0", 0).await;
}

#[tokio::test]
async fn a_delivery_may_be_repeated_where_no_effect_was_accepted_or_it_is_recognised() {
    let check = async |path: &str, repeat: &str, expected: (bool, bool)| {
        let old = version("scripted", "1.0.0", "plain", repeat).await;
        let new = version("scripted", "1.1.0", "traps-after", repeat).await;
        let mut trial = Trial::of(|at| json!({"url": format!("{at}{path}")}), old, new).await;
        trial.swap().await;
        trial.attempt(1).await;
        let failed = trial.probation().at_fault().await.failed.remove(0);
        assert_eq!((failed.accepted, failed.may_repeat), expected, "{path} {repeat}");
        assert_eq!((failed.workspace.as_str(), failed.id.number), ("acme", 1));
        trial.end().await;
    };
    check("/200", "harmless", (true, true)).await;
    check("/200", "tolerable", (true, false)).await;
    check("/200", "harmful", (true, false)).await;
    check("/404", "harmful", (false, true)).await;
}

#[tokio::test]
async fn probation_is_over_after_enough_attempts_and_enough_time() {
    let ends = i64::try_from(PROBATION_ENDS).unwrap();
    let mut trial = Trial::new("/200", "plain", "plain").await;
    let plugin = trial.new.manifest().name.clone();
    trial.attempt(ends - 1).await;
    trial.stand.clock.advance(PROBATION_TIME);
    assert_eq!(trial.standing().ended, PROBATION_ENDS - 1, "the time alone is not enough");
    trial.attempt(1).await;
    assert_eq!(trial.probation().of(&plugin), None);
    trial.probation().begin(trial.new.clone(), trial.old.clone());
    trial.attempt(ends).await;
    assert_eq!(trial.standing().ended, PROBATION_ENDS, "attempts alone are not enough");
    trial.stand.clock.advance(PROBATION_TIME);
    assert_eq!(trial.probation().of(&plugin), None);
    trial.probation().begin(trial.new.clone(), trial.old.clone());
    trial.stand.clock.advance(PROBATION_TIME_MAX - Duration::from_millis(1));
    assert!(trial.probation().of(&plugin).is_some());
    trial.stand.clock.advance(Duration::from_millis(1));
    assert_eq!(trial.probation().of(&plugin), None, "a day is enough");
    trial.end().await;
}

#[tokio::test]
async fn what_fails_when_probation_is_over_or_ended_is_nobodys_business() {
    let mut trial = Trial::new("/200", "plain", "traps").await;
    trial.probation().end(&name("scripted"));
    trial.attempt(3).await;
    assert_eq!((trial.probation().of(&name("scripted")), trial.fault_now()), (None, None));
    // The same version in the place of itself is none to compare.
    trial.probation().begin(trial.new.clone(), trial.new.clone());
    assert_eq!(trial.probation().of(&name("scripted")), None);
    trial.end().await;
}

#[tokio::test]
async fn a_flood_of_failures_is_remembered_as_far_as_there_is_room() {
    let most = i64::try_from(FAILED_MAX).unwrap();
    let mut trial = Trial::new("/200", "plain", "rejects").await;
    trial.attempt(most + 100).await;
    let fault = loop {
        let standing = trial.standing();
        if standing.judged + standing.unjudged == u64::try_from(most + 100).unwrap() {
            break trial.probation().at_fault().await;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(fault.failed.len(), FAILED_MAX);
    let standing = trial.standing();
    assert!(standing.unjudged > 0 && standing.attributed >= 3 && standing.at_fault == Some(fault.why), "{standing:?}");
    // What fails after it was told, because it was under way, is told once more.
    trial.attempt(1).await;
    let more = trial.probation().at_fault().await;
    assert_eq!((more.digest.as_str(), more.failed.len()), (trial.new.digest(), 1));
    trial.probation().end(&name("scripted"));
    trial.attempt(1).await;
    assert_eq!(trial.probation().at_fault().await.failed.len(), 1);
    trial.end().await;
}

#[tokio::test]
async fn judging_holds_up_neither_the_ends_of_attempts_nor_a_stop() {
    // Each judgement takes as long as a step may.
    let mut trial = Trial::new("/200", "loops", "rejects").await;
    trial.attempt(60).await;
    assert!(trial.standing().judged < 60, "attempts ended before they were judged");
    assert_eq!(trial.stand.means.queues.in_flight(), 0);
    let probation = Arc::clone(trial.probation());
    trial.end().await;
    assert!(probation.of(&name("scripted")).unwrap().judged < 60, "a stop waits for no judgement");
}
