//! Which version of a plugin makes an attempt, and what it is handed of what another version wrote.

use std::time::Duration;

use super::memory::Write;
use super::*;
use crate::inbox::delivery::{OnUnknown, Outcome};
use crate::inbox::{Inbox as _, Memory as Remembered};
use crate::send::dry::replay::{Replayed, replay};
use crate::wasm::Plugin;
use crate::wasm::guests::versioned_with;

pub(super) async fn load(component: Vec<u8>) -> Plugin {
    static SANDBOX: OnceCell<Sandbox> = OnceCell::const_new();
    let open = async || Sandbox::new(Settings::new(Limits::default())).unwrap();
    SANDBOX.get_or_init(open).await.load(component).await.unwrap()
}

/// The scripted plugin in another version.
pub(super) async fn scripted(version: &str) -> Plugin {
    let says = |version: &str| format!(r#""version":"{version}""#);
    load(changed(&guest("scripted"), &says("1.0.0"), &says(version))).await
}

/// A plugin named as the scripted one that does what `tests/guests/versioned` calls by this word.
async fn version(version: &str, behaviour: &str) -> Plugin {
    load(versioned_with(&[("name", "scripted"), ("version", version), ("behaviour", behaviour)])).await
}

fn url(at: &str) -> Value {
    json!({"url": format!("{at}/200"), "wait": 60})
}

impl Stand {
    /// Has what is claimed from now on made with these plugins.
    fn change(&self, change: impl FnOnce(&Catalog) -> Catalog) {
        let current = self.means.live.get();
        let catalog = change(&current.catalog);
        self.means.live.set(Current { catalog, ..Current::clone(&current) });
    }

    fn digest(&self) -> String {
        self.means.live.get().catalog.get(&name("scripted")).unwrap().digest().to_owned()
    }

    /// The claim after the plugin's wait.
    async fn waited(&self) -> Claim {
        let Rest { kept, until, is_wait, resume } = self.rests(&claim(), &Stop::default()).await;
        assert_eq!(kept.plugin_digest, self.digest());
        let paused = crate::inbox::Paused { kept, until, is_wait, resume, lanes: Vec::new() };
        self.store.pause(paused).await.unwrap();
        self.clock.advance(Duration::from_secs(60));
        self.store.reopened(&claim())
    }

    /// The claim after a crash, once so many requests came.
    async fn cut_off(&self, claim: &Claim, requests: usize) -> Claim {
        let stop = Stop::default();
        tokio::select! {
            came = self.attempt(claim, &stop) => panic!("it came to its end: {came:?}"),
            () = self.sink.asked_times(requests) => {}
        }
        self.store.reopened(claim)
    }

    /// What the last request said, its last line.
    fn said(&self) -> String {
        let body = self.sink.requests().pop().unwrap()["body"].as_str().unwrap().to_owned();
        body.lines().last().unwrap_or_default().to_owned()
    }
}

fn ran(ended: &Ended) -> &str {
    ended.plugin.as_ref().map_or("none", |(version, _)| version)
}

#[tokio::test]
async fn an_attempt_with_effects_goes_on_on_the_version_that_it_began_on() {
    let stand = Stand::new("post AT/200/1|post AT/404/2|post AT/never/3|post AT/200/4|report").await;
    let (first, cut_off) = (stand.digest(), stand.cut_off(&claim(), 3).await);
    assert_eq!(cut_off.begun.as_ref().unwrap().plugin_digest.as_ref(), Some(&first));
    let second = scripted("2.0.0").await;
    stand.change(|catalog| catalog.with(second));
    let ended = stand.ended(&cut_off).await;
    assert_eq!((ran(&ended), ended.outcome, ended.steps), ("1.0.0", Outcome::Reject, 5));
    let Some(Write::Kept(kept)) = stand.store.written().pop() else { panic!("nothing was kept") };
    assert_eq!(kept.plugin_digest, first, "it is still in use");
    assert_eq!(ran(&stand.ended(&Claim { begun: None, ..cut_off }).await), "2.0.0", "a new attempt is of now");
    assert_eq!(stand.sink.asked()[..4], ["/200/1", "/404/2", "/never/3", "/200/4"]);
}

#[tokio::test]
async fn what_a_crash_cut_off_before_anything_was_kept_goes_on_on_the_running_version() {
    let stand = Stand::new("post AT/never/1|report").await;
    let cut_off = stand.cut_off(&claim(), 1).await;
    assert_eq!(cut_off.begun.as_ref().unwrap().plugin_digest, None);
    let second = scripted("2.0.0").await;
    stand.change(|catalog| catalog.with(second));
    let ended = stand.ended(&cut_off).await;
    assert_eq!(ran(&ended), "2.0.0");
    assert!(ended.reason.unwrap().starts_with("Reach::Unanswered cut-off"));
    assert_eq!(stand.sink.asked(), ["/never/1"]);
}

#[tokio::test]
async fn an_attempt_with_effects_whose_version_is_gone_ends_without_a_step() {
    for (script, requests, cut_off, outcome) in [
        ("post AT/200/1|post AT/never/2|done", 2, true, Outcome::Unknown),
        ("post AT/200/1|post AT/never/2|done", 2, false, Outcome::Unknown),
        ("post AT/404/1|post AT/never/2|done", 2, true, Outcome::Unknown),
        ("post AT/404/1|post AT/never/2|done", 2, false, Outcome::Retry),
    ] {
        let stand = Stand::new(script).await;
        let (first, mut begun) = (stand.digest(), stand.cut_off(&claim(), requests).await);
        begun.begun.as_mut().unwrap().cut_off = cut_off;
        let second = scripted("2.0.0").await;
        stand.change(|catalog| catalog.with(second).keeping([]));
        let ended = stand.ended(&begun).await;
        assert_eq!((ended.outcome, ended.steps, ran(&ended)), (outcome, 0, "none"), "{script} {cut_off}");
        let reason = ended.reason.unwrap();
        assert!(reason.contains(&first[..12]) && !reason.contains(&first[..13]), "{reason}");
        assert!(reason.ends_with("the next attempt is made on the running version"), "{reason}");
        assert_eq!(stand.sink.asked().len(), requests, "nothing more is sent");
    }
}

#[tokio::test]
async fn a_plugin_that_is_not_there_any_more_goes_on_with_what_it_began() {
    let stand = Stand::new("post AT/200/1|post AT/never/2|report").await;
    let cut_off = stand.cut_off(&claim(), 2).await;
    stand.change(|catalog| catalog.without(&name("scripted")));
    assert_eq!(ran(&stand.ended(&cut_off).await), "1.0.0");
    let ended = stand.ended(&claim()).await;
    assert_eq!(ended.reason.as_deref(), Some("plugin scripted is not loaded: see the log for why"));
}

#[tokio::test]
async fn what_waited_goes_on_on_its_version_or_where_that_is_gone_on_the_running_one() {
    for (began, runs, is_there, expected) in [
        ("1.0.0", "2.0.0", true, r#"1.0.0 resumes {"version":"1.0.0"}"#),
        ("2.0.0", "1.9.9", true, r#"2.0.0 resumes {"version":"2.0.0"}"#),
        ("1.0.0", "2.0.0", false, r#"2.0.0 resumes {"version":"1.0.0"}"#),
        ("1.2.0", "1.1.0", false, r#"1.1.0 resumes {"version":"1.2.0"}"#),
        ("2.0.0", "1.9.9", false, "1.9.9 resumes nothing"),
    ] {
        let stand = Stand::with("scripted", url).await;
        let first = version(began, "waits").await;
        stand.change(|catalog| catalog.with(first));
        let waited = stand.waited().await;
        let second = version(runs, "waits").await;
        stand.change(|catalog| if is_there { catalog.with(second) } else { catalog.with(second).keeping([]) });
        let (ended, next) = (stand.ended(&waited).await, stand.digest());
        assert_eq!((ended.outcome, stand.said().as_str()), (Outcome::Delivered, expected));
        assert_eq!(ran(&ended), expected.split(' ').next().unwrap());
        let Some(Write::Kept(kept)) = stand.store.written().pop() else { panic!("the end of the wait is kept") };
        assert_eq!(kept.plugin_digest == next, !is_there, "from then on it is of the version that went on");
    }
}

#[tokio::test]
async fn a_version_in_quarantine_goes_on_only_with_what_no_other_can() {
    let stand = Stand::with("scripted", url).await;
    let (bad, good) = (version("2.0.0", "waits").await, version("1.0.0", "waits").await);
    stand.change(|catalog| catalog.with(bad.clone()));
    let waited = stand.waited().await;
    stand.change(|catalog| catalog.with(good).quarantining(&name("scripted"), bad.digest()));
    assert_eq!(ran(&stand.ended(&waited).await), "1.0.0");
    assert_eq!(stand.said(), "1.0.0 resumes nothing");

    let stand = Stand::new("post AT/200/1|post AT/never/2|report").await;
    let (bad, cut_off) = (stand.digest(), stand.cut_off(&claim(), 2).await);
    let other = scripted("0.9.0").await;
    stand.change(|catalog| catalog.with(other).quarantining(&name("scripted"), &bad));
    assert_eq!(ran(&stand.ended(&cut_off).await), "1.0.0");
}

#[tokio::test]
async fn quarantine_is_of_earlier_versions_and_ends_when_one_runs_again() {
    let (bad, good, scripted) = (version("2.0.0", "waits").await, version("1.0.0", "waits").await, name("scripted"));
    let is_quarantined = |catalog: &Catalog| catalog.is_quarantined(&scripted, bad.digest());
    let running = Catalog::default().with(bad.clone()).quarantining(&scripted, bad.digest());
    assert!(!is_quarantined(&running), "what runs is not in quarantine");
    let back = running.with(good.clone()).quarantining(&scripted, bad.digest());
    assert!(is_quarantined(&back) && is_quarantined(&back.keeping([bad.clone()])));
    assert!(!is_quarantined(&back.keeping([])) && !is_quarantined(&back.with(bad.clone())));
    assert!(!back.is_quarantined(&scripted, good.digest()));
}

#[tokio::test]
async fn a_target_without_its_plugin_says_with_which_versions_attempts_go_on() {
    let plugin = name("scripted");
    let of = async |catalog: Catalog, settings: Value| {
        let routes = vec![route("news", "domain.*", vec![target("target", "scripted", settings)])];
        let (book, _) = book(&config(routes, ([127, 0, 0, 1], 1).into()), &catalog, &Keys::new(&[7; 32])).await;
        book.get(&queue("news", "target")).unwrap().goes_on.clone()
    };
    let catalog = catalog().await;
    let first = catalog.get(&plugin).unwrap().digest().to_owned();
    let second = scripted("2.0.0").await;
    let both = catalog.with(second);
    assert_eq!(of(both.clone(), json!("done")).await, Vec::<String>::new(), "it is not blocked");
    assert_eq!(of(both.clone(), json!("refuse this")).await.as_slice(), std::slice::from_ref(&first));
    assert_eq!(of(catalog.without(&plugin), json!("done")).await.as_slice(), std::slice::from_ref(&first));
    let gone = catalog.without(&plugin).quarantining(&plugin, &first);
    assert_eq!(of(gone, json!("done")).await, Vec::<String>::new(), "it goes on when the plugin is there");
}

#[tokio::test]
async fn an_effect_behind_a_wait_is_not_repeated_by_another_version() {
    let stand = Stand::new("wait 60 1 ; post AT/never/1|report").await;
    let waited = stand.waited().await;
    let second = scripted("2.0.0").await;
    let rest = {
        // A stop right before the effect: only the end of the wait is kept.
        let stop = Stop::default();
        stop.soon.cancel();
        let begun = waited.begun.clone().map(|begun| crate::inbox::Begun { cut_off: false, ..begun });
        stand.rests(&Claim { begun, ..waited.clone() }, &stop).await
    };
    assert_eq!(rest.kept.effects.len(), 1);
    let cut_off = stand.cut_off(&waited, 1).await;
    assert_eq!(cut_off.begun.as_ref().unwrap().past.len(), 1);
    stand.change(|catalog| catalog.with(second).keeping([]));
    assert_eq!(stand.ended(&cut_off).await.outcome, Outcome::Unknown, "the request may have been made");
    assert_eq!(stand.sink.asked(), ["/never/1"]);
    let begun = cut_off.begun.clone().map(|begun| crate::inbox::Begun { cut_off: false, ..begun });
    let going_on = Claim { begun, ..cut_off };
    let stop = Stop::default();
    tokio::select! {
        came = stand.attempt(&going_on, &stop) => panic!("it came to its end: {came:?}"),
        () = stand.sink.asked_times(2) => {}
    }
}

#[tokio::test]
async fn memory_of_a_newer_major_version_is_handed_to_no_older_one() {
    for (writer, runs, expected) in [
        (Some("1.0.0"), "2.0.0", r#"2.0.0 remembers {"a":1}"#),
        (Some("1.9.0"), "1.0.0", r#"1.0.0 remembers {"a":1}"#),
        (Some("2.0.0"), "1.9.0", "1.9.0 remembers nothing"),
        (None, "1.0.0", r#"1.0.0 remembers {"a":1}"#),
        (Some("two"), "1.0.0", r#"1.0.0 remembers {"a":1}"#),
    ] {
        let stand = Stand::with("scripted", url).await;
        let plugin = version(runs, "remembers").await;
        stand.change(|catalog| catalog.with(plugin));
        let written = Written { value: r#"{"a":1}"#.to_owned(), plugin_version: writer.map(str::to_owned) };
        let claim = Claim { memory: Some(Remembered { written, version: 4 }), ..claim() };
        let finished = notices::finished(&stand, vec![claim]).await.remove(0);
        assert_eq!(stand.said(), expected);
        // What it was not handed it replaces, in its own name.
        let written = Written { value: format!(r#"{{"version":"{runs}"}}"#), plugin_version: Some(runs.to_owned()) };
        assert_eq!(finished.remember, (Change::Set(written), 4));
        assert!(stand.store.written().is_empty(), "an attempt of one effect is not kept");
    }
}

#[tokio::test]
async fn what_an_unknown_outcome_means_is_the_word_of_the_version_that_ran() {
    let stand = Stand::with("scripted", |at| json!({"url": format!("{at}/200")})).await;
    let fields = |repeat| [("name", "scripted"), ("behaviour", "traps-after"), ("repeat", repeat)];
    let (first, second) =
        (load(versioned_with(&fields("harmful"))).await, load(versioned_with(&fields("harmless"))).await);
    stand.change(|catalog| catalog.with(first));
    let ended = stand.ended(&claim()).await;
    stand.change(|catalog| catalog.with(second));
    assert_eq!(ended.outcome, Outcome::Unknown);
    assert_eq!(stand.means.policy(&claim(), ended.repeat).on_unknown, OnUnknown::Stop);
    assert_eq!(stand.means.policy(&claim(), None).on_unknown, OnUnknown::Retry, "the next one is harmless");
}

#[tokio::test]
async fn what_was_handed_over_is_what_is_recorded() {
    let stand = Stand::with("scripted", url).await;
    let (newer, older) = (version("2.0.0", "waits").await, version("1.0.0", "waits").await);
    stand.change(|catalog| catalog.with(newer.clone()));
    let waited = stand.waited().await;
    stand.change(|catalog| catalog.with(older.clone()).keeping([]));
    let recording = dry::recorded(&stand, &waited).await.unwrap();
    assert_eq!(recording.plugin_version, "1.0.0");
    assert!(recording.content.contains(r#""answer":{"resumed":{}}"#), "{}", recording.content);
    assert_eq!(replay(&recording, &older).await.unwrap(), Replayed::Same);
    // The newer one is told what the older one was told.
    assert_ne!(replay(&recording, &newer).await.unwrap(), Replayed::Same);
}
