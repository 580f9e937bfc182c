//! An outbox in memory that breaks one rule at a time: that rule is reported, and no other.

mod pretend;

use std::collections::BTreeSet;

use futures_util::future::FutureExt;
use serde_json::json;

use super::*;
use crate::fetch::outbox::ReadError;
use pretend::{Fault, Pretend, RESOURCE, pretend};

const QUARTER: Duration = Duration::from_secs(90 * 86_400);

fn asked(resource: &str) -> Asked<'_> {
    Asked {
        resource,
        cursor: None,
        age_max: QUARTER,
        wait: Duration::ZERO,
        trigger: None,
        latency_max: Duration::from_secs(60),
        is_program: true,
    }
}

/// Checks the outbox while four events happen in it.
async fn report(fault: Fault, asked: Asked<'_>) -> Report {
    let mut outbox = pretend(fault);
    let other = Pretend { fault, events: outbox.events.clone(), reads: 0, closed: false };
    let trigger = async move {
        other.happen(4);
        Ok(())
    };
    check(&mut outbox, Asked { trigger: Some(trigger.boxed()), ..asked }, &Clock::system()).await
}

fn wrong(report: &Report) -> Vec<(&'static str, Verdict)> {
    let wrong = report.findings.iter().filter(|finding| finding.verdict > Verdict::Pass);
    wrong.map(|finding| (finding.rule.id, finding.verdict)).collect()
}

#[tokio::test]
async fn a_good_outbox_keeps_every_rule() {
    let report = report(Fault::None, asked(RESOURCE)).await;
    let kept = |finding: &&Finding| finding.verdict != Verdict::Pass;
    let not_kept: Vec<_> = report.findings.iter().filter(kept).collect();
    assert!(not_kept.is_empty(), "{not_kept:#?}");
    assert!(report.reads < 60 && !report.is_cut && report.could_not_run.is_none(), "{report:#?}");
}

const FAULTS: &[(Fault, &[(&str, Verdict)])] = {
    use Fault::*;
    use Verdict::{Broken, Warning};
    &[
        (CannotBeReached, &[("connection", Broken)]),
        (KnowsNoBareUri, &[("bootstrap.bare", Broken)]),
        (KnowsNoBoundsAlone, &[("bootstrap.bounds", Broken)]),
        (KnowsTheWholeTemplateOnly, &[("bootstrap.bare", Broken), ("bootstrap.bounds", Broken)]),
        (KnowsNothing, &[("bootstrap.bare", Broken), ("bootstrap.bounds", Broken)]),
        (DumpsItsBacklog, &[("bootstrap.empty", Broken)]),
        (HasNoFirstCursor, &[("bootstrap.cursor", Broken)]),
        (StartsFromTheOldest, &[("bootstrap.fresh", Broken)]),
        (RefusesReadsAfterACursor, &[("read.answered", Broken)]),
        (AnswersNoText, &[("answer.text", Broken)]),
        (AnswersTooMuch, &[("answer.size", Broken)]),
        (AnswersWords, &[("answer.json", Broken)]),
        (AnswersAMap, &[("answer.events", Broken)]),
        (AnswersFlagsAsTexts, &[("answer.flags", Broken)]),
        (WishesInSeconds, &[("next-poll", Warning)]),
        (WishesTheImpossible, &[("next-poll", Broken)]),
        (HasLongCursors, &[("cursor.valid", Broken)]),
        (ForgetsTheCursor, &[("cursor.present", Broken)]),
        (IncludesTheCursor, &[("cursor.strictly-after", Broken)]),
        (KeepsTheCursor, &[("cursor.position", Broken)]),
        (JumpsToTheNewest, &[("cursor.position", Broken)]),
        (PutsEventCursorsBefore, &[("cursor.of-event", Broken)]),
        (DecodesNothing, &[("cursor.encoding", Broken)]),
        (DecodesNothingAndUsesPlus, &[("cursor.encoding", Broken)]),
        (TakesAnyCursor, &[("cursor.unknown", Warning)]),
        (DiesOfAnUnknownCursor, &[("cursor.unknown", Warning)]),
        (SaysNothingOfAnUnknownCursor, &[("cursor.unknown", Warning)]),
        (TurnsPagesRound, &[("events.oldest-first", Broken)]),
        (SortsOneWrong, &[("events.oldest-first", Warning)]),
        (MintsIds, &[("event-id.stable", Broken)]),
        (UsesOneId, &[("event-id.unique", Broken)]),
        (ChangesData, &[("event.unchanged", Warning)]),
        (ForgetsWhatWasRead, &[("events.kept", Broken)]),
        (InventsALevel, &[("event.valid", Broken)]),
        (SendsAHugeEvent, &[("event.size", Broken)]),
        (ShoutsNames, &[("event.name", Warning)]),
        (HasNoTimeZone, &[("event.timestamp", Warning)]),
        (WritesNovels, &[("event.text", Warning)]),
        (SendsActions, &[("event.fields", Warning)]),
        (PutsTheLevelOutside, &[("event.fields", Warning)]),
        (IgnoresMaxEvents, &[("max-events", Broken)]),
        (IgnoresMaxAge, &[("max-age", Broken)]),
        (CountsAgeIn32BitsOrFails, &[("max-age.large", Broken)]),
        (CountsAgeIn32BitsAndWraps, &[("max-age.large", Broken)]),
        (NeverSaysMore, &[("has-more.cut", Broken)]),
        (AlwaysSaysMore, &[("has-more.end", Broken)]),
        (SaysMoreOfAFullPage, &[("has-more.end", Warning)]),
        (NeverSaysTruncated, &[("truncated.told", Broken)]),
        (AlwaysSaysTruncated, &[("truncated.false-alarm", Broken)]),
        (WritesToStandardOutput, &[("stdout", Broken)]),
        (LosesItsMemory, &[("cursor.durable", Warning)]),
        (DrawsCursorsAnew, &[("cursor.durable", Warning)]),
    ]
};

#[tokio::test]
async fn each_fault_breaks_its_rule_and_no_other() {
    let mut mistaken = String::new();
    for (fault, expected) in FAULTS {
        let report = report(*fault, asked(RESOURCE)).await;
        if wrong(&report) != *expected {
            let told: Vec<_> = report.findings.iter().filter(|finding| finding.verdict > Verdict::Pass).collect();
            mistaken.push_str(&format!("{fault:?} is to break {expected:?}: {told:#?}\n"));
        }
        assert!(!report.is_cut, "{fault:?} takes {} reads", report.reads);
        assert_eq!(report.could_not_run.is_some(), *fault == Fault::CannotBeReached, "{fault:?}");
    }
    assert!(mistaken.is_empty(), "{mistaken}");
}

#[tokio::test]
async fn a_uri_that_no_host_polls_is_not_read() {
    for uri in ["ui://notifications", "acme://notifications?x=1", "acme://notifications#x", "notifications"] {
        let report = report(Fault::None, asked(uri)).await;
        assert_eq!(wrong(&report), [("declaration", Verdict::Broken)], "{uri}");
        assert_eq!(report.reads, 0, "{uri}");
    }
}

#[tokio::test]
async fn without_events_what_needs_them_is_not_seen() {
    let report = check(&mut pretend(Fault::None), asked(RESOURCE), &Clock::system()).await;
    assert_eq!(wrong(&report), []);
    let not_seen: Vec<_> = report.findings.iter().filter(|finding| finding.verdict == Verdict::NotSeen).collect();
    let ids: Vec<_> = not_seen.iter().map(|finding| finding.rule.id).collect();
    for id in ["cursor.strictly-after", "event.valid", "max-events", "max-age", "bootstrap.fresh"] {
        assert!(ids.contains(&id), "{id} is not among {ids:?}");
    }
    assert!(not_seen.iter().all(|finding| finding.seen == [finding.rule.needs]), "{not_seen:#?}");
}

#[tokio::test]
async fn an_older_cursor_shows_older_events() {
    let asked = Asked { cursor: Some("p:0="), ..asked(RESOURCE) };
    let report = check(&mut pretend(Fault::None), asked, &Clock::system()).await;
    assert_eq!(wrong(&report), []);
    assert!(report.findings.iter().any(|found| found.rule.id == "event.valid" && found.verdict == Verdict::Pass));
}

#[tokio::test]
async fn what_is_honest_is_no_fault() {
    for fault in [Fault::IsBusy, Fault::IsAskedTooOften] {
        let honest = report(fault, asked(RESOURCE)).await;
        assert_eq!(wrong(&honest), [], "{honest:#?}");
    }
    let pruned = report(Fault::HasPruned, Asked { cursor: Some("p:0="), ..asked(RESOURCE) }).await;
    assert_eq!(wrong(&pruned), [], "{pruned:#?}");
    let not_ours =
        check(&mut pretend(Fault::None), Asked { cursor: Some("x"), ..asked(RESOURCE) }, &Clock::system()).await;
    assert_eq!(wrong(&not_ours), []);
    assert!(not_ours.could_not_run.is_some_and(|why| why.contains("--cursor is refused")));
}

#[tokio::test]
async fn a_read_that_takes_long_is_told() {
    let report = report(Fault::None, Asked { latency_max: Duration::ZERO, ..asked(RESOURCE) }).await;
    assert_eq!(wrong(&report), [("latency", Verdict::Warning)]);
}

#[tokio::test]
async fn a_trigger_that_fails_ends_the_check_with_its_words() {
    let trigger = async { Err("the trigger exited with status 1".to_owned()) };
    let asked = Asked { trigger: Some(trigger.boxed()), ..asked(RESOURCE) };
    let report = check(&mut pretend(Fault::None), asked, &Clock::system()).await;
    assert_eq!(report.could_not_run.as_deref(), Some("the trigger exited with status 1"));
    assert_eq!(wrong(&report), []);
}

/// Never comes to an end: it says `hasMore` with one new event in every answer.
#[derive(Debug)]
struct Endless(u64);

impl Outbox for Endless {
    fn read<'a>(&'a mut self, uri: &'a str) -> BoxFuture<'a, Result<String, ReadError>> {
        self.0 += 1;
        let event =
            json!({"eventId": self.0.to_string(), "name": "a.b", "timestamp": "2026-09-01T18:42:10Z", "data": {}});
        let events = if uri.contains("cursor") { vec![event] } else { Vec::new() };
        let answer = json!({"events": events, "cursor": self.0.to_string(), "hasMore": uri.contains("cursor")});
        std::future::ready(Ok(answer.to_string())).boxed()
    }

    fn changed(&mut self) -> BoxFuture<'_, ()> {
        std::future::pending().boxed()
    }

    fn revision(&self) -> Option<String> {
        Some("2025-11-25".to_owned())
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }
}

#[tokio::test]
async fn an_outbox_without_an_end_is_left_in_time() {
    let report = check(&mut Endless(0), asked(RESOURCE), &Clock::system()).await;
    assert!(report.reads <= READS_MAX, "{}", report.reads);
    let wait = Asked { wait: Duration::from_millis(1), ..asked(RESOURCE) };
    assert!(check(&mut pretend(Fault::None), wait, &Clock::system()).await.reads < 20);
}

#[test]
fn every_rule_has_an_id_of_its_own_and_words_to_show() {
    let ids: BTreeSet<_> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), RULES.len());
    let empty = RULES.iter().find(|rule| rule.wording.is_empty() || rule.remedy.is_empty() || rule.needs.is_empty());
    assert_eq!(empty, None);
    let broken: BTreeSet<_> = FAULTS.iter().flat_map(|(_, told)| told.iter().map(|told| told.0)).collect();
    let untried: Vec<_> = ids.difference(&broken).copied().collect();
    assert_eq!(untried, ["declaration", "latency"], "tested by themselves");
}
