//! Which version of a plugin an attempt began on, and which wrote what is kept for later.

use switchbell::inbox::book::Rule;
use switchbell::inbox::delivery::State;
use switchbell::inbox::{Change, Claim, Finished, Kept, Which, Written};
use switchbell::notification::Name;

use super::attempts::{paused, with_one_claim};
use super::memory::{by_subject, next, remember, value};
use super::stage::{
    Place, Stage, about, at, delivered, entries, entry, finished, kept, name, owing, retrying, rule, written,
    written_by,
};

/// Effects kept by the version with this digest.
fn kept_by(digest: &str, claim: &Claim, from: u32, to: u32) -> Kept {
    Kept { plugin_digest: digest.to_owned(), ..kept(claim, from, to) }
}

fn digest(claim: &Claim) -> Option<&str> {
    claim.begun.as_ref()?.plugin_digest.as_deref()
}

async fn in_use(stage: &Stage) -> Vec<(Name, String)> {
    stage.inbox().plugins_in_use().await.unwrap()
}

fn versions(all: &[(&str, &str)]) -> Vec<(Name, String)> {
    all.iter().map(|(plugin, digest)| (name(plugin), (*digest).to_owned())).collect()
}

pub async fn an_attempt_that_goes_on_says_which_version_it_began_on(place: Place) {
    let (mut stage, claim) = with_one_claim(place).await;
    stage.inbox().keep(kept_by("aa", &claim, 0, 1)).await.unwrap();
    stage.reopen(at(20)).await;
    let again = stage.claim_one(at(20)).await;
    assert_eq!(digest(&again), Some("aa"));
    // Cut off once more, with nothing new.
    stage.reopen(at(21)).await;
    let again = stage.claim_one(at(21)).await;
    assert_eq!(digest(&again), Some("aa"));
    stage.inbox().pause(paused(kept_by("aa", &again, 1, 1), 30, true, Change::Keep)).await.unwrap();
    let again = stage.claim_one(at(30)).await;
    assert_eq!(digest(&again), Some("aa"), "over a wait too");
    stage.inbox().keep(kept_by("bb", &again, 0, 1)).await.unwrap();
    stage.inbox().pause(paused(kept_by("bb", &again, 1, 2), 40, false, Change::Keep)).await.unwrap();
    stage.reopen(at(35)).await;
    assert_eq!(digest(&stage.claim_one(at(40)).await), Some("bb"), "what went on after the wait is another");
}

pub async fn nothing_is_said_of_an_attempt_of_which_nothing_was_kept(place: Place) {
    let (mut stage, _) = with_one_claim(place).await;
    stage.reopen(at(20)).await;
    assert_eq!(in_use(&stage).await, []);
    let again = stage.claim_one(at(20)).await;
    assert!(again.begun.is_some() && digest(&again).is_none());
}

pub async fn a_new_attempt_began_on_no_version(place: Place) {
    let (mut stage, claim) = with_one_claim(place).await;
    stage.inbox().keep(kept_by("aa", &claim, 0, 1)).await.unwrap();
    stage.finish(&claim, at(20), retrying(at(30))).await;
    let second = stage.claim_one(at(30)).await;
    assert_eq!((second.attempt.get(), &second.begun), (2, &None));
    stage.reopen(at(31)).await;
    assert_eq!(digest(&stage.claim_one(at(31)).await), None);
}

pub async fn versions_in_use_are_those_of_attempts_that_go_on(place: Place) {
    let mut stage = Stage::new(place, vec![rule("t"), rule("u"), rule("v")]).await;
    let of = |plugin: &str, event: &str, target: &str| {
        let mut entry = owing(entry(event), &[target]);
        entry.owed[0].plugin = name(plugin);
        entry
    };
    let all = [
        ("slack", "bb", "t"),
        ("slack", "aa", "t"),
        ("slack", "bb", "u"),
        ("mail", "cc", "v"),
        ("slack", "dd", "v"),
        ("pager", "ee", "v"),
    ];
    let numbered = all.iter().zip(1..);
    stage.accept(at(1), numbered.map(|((plugin, _, target), n)| of(plugin, &format!("e{n}"), target)).collect()).await;
    let mut claims = stage.claims(at(10)).await;
    assert_eq!(in_use(&stage).await, [], "nothing is kept yet");
    claims.sort_by_key(|claim| claim.id.number);
    for (claim, (_, digest, _)) in claims.iter().zip(all) {
        stage.inbox().keep(kept_by(digest, claim, 0, 1)).await.unwrap();
    }
    let used = [("mail", "cc"), ("pager", "ee"), ("slack", "aa"), ("slack", "bb"), ("slack", "dd")];
    assert_eq!(in_use(&stage).await, versions(&used));
    stage.finish(&claims[0], at(20), delivered()).await;
    assert_eq!(in_use(&stage).await, versions(&used), "another attempt goes on on it");
    stage.finish(&claims[1], at(20), retrying(at(90))).await;
    // A wait keeps no effect, and its end clears it all the same.
    stage.inbox().pause(paused(kept_by("bb", &claims[2], 1, 1), 25, true, Change::Keep)).await.unwrap();
    let waited = stage.claim_one(at(25)).await;
    stage.finish(&waited, at(26), delivered()).await;
    assert_eq!(in_use(&stage).await, versions(&[("mail", "cc"), ("pager", "ee"), ("slack", "dd")]));
    // Cancelled by a person, and because the target is gone.
    for claim in &claims[3..] {
        stage.inbox().pause(paused(kept_by("ff", claim, 1, 1), 900, true, Change::Keep)).await.unwrap();
    }
    let which = Which { ids: vec![claims[3].id.clone()], ..Which::default() };
    assert_eq!(stage.inbox().cancel(&name("acme"), which, "why".to_owned()).await.unwrap().done.len(), 1);
    assert_eq!(in_use(&stage).await, versions(&[("pager", "ff"), ("slack", "ff")]));
    stage.reopen(at(30)).await;
    assert_eq!(in_use(&stage).await.len(), 2, "a restart changes nothing");
    stage.adopt(vec![rule("t"), rule("u")], at(40)).await;
    assert_eq!(in_use(&stage).await, []);
}

pub async fn what_is_carried_on_with_says_who_wrote_it(place: Place) {
    let (mut stage, claim) = with_one_claim(place).await;
    let wait = |claim: &Claim, until, resume| paused(kept(claim, 0, 0), until, true, resume);
    stage.inbox().pause(wait(&claim, 20, Change::Set(written_by("2.0.0", "1")))).await.unwrap();
    stage.reopen(at(15)).await;
    let again = stage.claim_one(at(20)).await;
    assert_eq!(again.resume, Some(written_by("2.0.0", "1")));
    stage.inbox().pause(wait(&again, 30, Change::Keep)).await.unwrap();
    let again = stage.claim_one(at(30)).await;
    assert_eq!(again.resume, Some(written_by("2.0.0", "1")), "whoever keeps it has not written it");
    let end = Finished { resume: Change::Set(written_by("1.5.0", "2")), ..finished(&again, at(31), retrying(at(40))) };
    stage.inbox().finish(end).await.unwrap();
    let second = stage.claim_one(at(40)).await;
    assert_eq!(second.resume, Some(written_by("1.5.0", "2")));
    stage.finish(&second, at(41), retrying(at(50))).await;
    let third = stage.claim_one(at(50)).await;
    assert_eq!(third.resume, Some(written_by("1.5.0", "2")));
    let nobody = Written { value: "3".to_owned(), plugin_version: None };
    stage.inbox().pause(wait(&third, 60, Change::Set(nobody.clone()))).await.unwrap();
    let again = stage.claim_one(at(60)).await;
    assert_eq!(again.resume, Some(nobody));
    stage.inbox().pause(wait(&again, 70, Change::Forget)).await.unwrap();
    assert_eq!(stage.claim_one(at(70)).await.resume, None);
}

pub async fn what_is_remembered_says_who_wrote_it(place: Place) {
    let mut stage = Stage::new(place, vec![by_subject("t")]).await;
    let first = next(&stage, "e1", Some("a")).await;
    remember(&stage, &first, Change::Set(written_by("2.0.0", "1"))).await;
    stage.reopen(at(101)).await;
    let second = next(&stage, "e2", Some("a")).await;
    assert_eq!(second.memory.as_ref().unwrap().written, written_by("2.0.0", "1"));
    remember(&stage, &second, Change::Keep).await;
    let third = next(&stage, "e3", Some("a")).await;
    assert_eq!(third.memory, second.memory);
    remember(&stage, &third, Change::Set(written_by("1.0.0", "2"))).await;
    let fourth = next(&stage, "e4", Some("a")).await;
    assert_eq!(fourth.memory.as_ref().unwrap().written, written_by("1.0.0", "2"));
}

pub async fn an_attempt_is_told_again_what_its_target_remembered(place: Place) {
    let mut stage = Stage::new(place, vec![by_subject("t")]).await;
    let first = next(&stage, "e1", Some("a")).await;
    remember(&stage, &first, Change::Set(written("1"))).await;
    let second = next(&stage, "e2", Some("a")).await;
    assert_eq!(value(&second), Some("1"));
    stage.inbox().keep(kept(&second, 0, 1)).await.unwrap();
    // Another version of its plugin needs no memory, or is not there.
    stage.reopen(at(101)).await;
    stage.adopt(vec![rule("t")], at(101)).await;
    let again = stage.claim_one(at(101)).await;
    assert_eq!(again.memory, second.memory);
    stage.inbox().pause(paused(kept(&again, 1, 1), 110, true, Change::Keep)).await.unwrap();
    let again = stage.claim_one(at(110)).await;
    assert_eq!(again.memory, second.memory, "after a wait too");
    stage.finish(&again, at(111), retrying(at(120))).await;
    let third = stage.claim_one(at(120)).await;
    assert_eq!((third.attempt.get(), third.memory.clone()), (2, None), "the next attempt is of now");
    // What was told nothing is told nothing.
    stage.inbox().keep(kept(&third, 0, 1)).await.unwrap();
    stage.reopen(at(121)).await;
    stage.adopt(vec![by_subject("t")], at(121)).await;
    assert_eq!(stage.claim_one(at(121)).await.memory, None);
}

pub async fn an_attempt_goes_on_where_its_version_is_there_though_the_target_is_blocked(place: Place) {
    let mut stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(1), entries(1, 2)).await;
    let claims = stage.claims(at(10)).await;
    for (claim, digest) in claims.iter().zip(["aa", "bb"]) {
        stage.inbox().pause(paused(kept_by(digest, claim, 0, 0), 20, true, Change::Keep)).await.unwrap();
    }
    let blocked = |goes_on: &[&str]| Rule {
        blocked: Some("plugin slack is not loaded".to_owned()),
        goes_on: goes_on.iter().map(|digest| (*digest).to_owned()).collect(),
        ..rule("t")
    };
    stage.adopt(vec![blocked(&["aa"])], at(15)).await;
    stage.accept(at(16), vec![about(entry("e3"), None)]).await;
    let going_on = stage.claim_one(at(20)).await;
    assert_eq!((&going_on.id, digest(&going_on)), (&claims[0].id, Some("aa")));
    assert_eq!(stage.states().await, [State::InFlight, State::Blocked, State::Blocked]);
    assert_eq!(in_use(&stage).await, versions(&[("slack", "aa"), ("slack", "bb")]), "it may come back");
    stage.finish(&going_on, at(21), retrying(at(22))).await;
    assert!(stage.claims(at(22)).await.is_empty(), "a new attempt needs the plugin");
    stage.adopt(vec![rule("t")], at(30)).await;
    let begun: Vec<_> = stage.claims(at(30)).await.iter().map(|claim| digest(claim).map(str::to_owned)).collect();
    assert_eq!(begun.len(), 3);
    assert!(begun.contains(&Some("bb".to_owned())), "its wait goes on: {begun:?}");
}
