//! A push queue that breaks one rule at a time: that rule is reported, and no other. And servers that speak no word of it.

mod pretend;

use std::collections::BTreeSet;

use futures_util::future::FutureExt;
use futures_util::stream::{self, StreamExt};
use reqwest::header::{AUTHORIZATION, HeaderValue};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use pretend::{Fault, TOKEN, pretend};

/// Servers that are checked at once: most of the time goes by in waits.
const AT_ONCE: usize = 8;

fn headers() -> HeaderMap {
    HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(TOKEN))])
}

fn asked<'a>(url: &'a Url, headers: &'a HeaderMap) -> Asked<'a> {
    let (wait, timeout) = (Duration::from_secs(2), Duration::from_secs(2));
    Asked { url, headers, timeout, wait, trigger: None, ack: true, keep_alive: Some(Duration::from_secs(1)) }
}

/// Checks the server while three events happen.
async fn report(fault: Fault) -> Report {
    let server = pretend(fault).await;
    let happen = server.happen();
    let trigger = async move {
        happen(3);
        Ok(())
    };
    let headers = headers();
    check(Asked { trigger: Some(trigger.boxed()), ..asked(&server.url, &headers) }, &Clock::system()).await
}

fn wrong(report: &Report) -> Vec<(&'static str, Verdict)> {
    let wrong = report.findings.iter().filter(|finding| finding.verdict > Verdict::Pass);
    wrong.map(|finding| (finding.rule.id, finding.verdict)).collect()
}

#[tokio::test]
async fn a_good_server_keeps_every_rule() {
    for fault in [Fault::Nothing, Fault::AnswersByStreams, Fault::RefusesWithAnOlderCode] {
        let report = report(fault).await;
        let not_kept: Vec<_> = report.findings.iter().filter(|finding| finding.verdict != Verdict::Pass).collect();
        assert!(not_kept.is_empty(), "{fault:?}: {not_kept:#?}");
        assert!(report.requests < 60 && !report.is_cut && report.could_not_run.is_none(), "{report:#?}");
        assert_eq!(report.events, 3);
    }
}

const FAULTS: &[(Fault, &[(&str, Verdict)])] = {
    use Fault::*;
    use Verdict::{Broken, Warning};
    &[
        (
            RefusesWithItsOwnCode,
            &[("capability.get", Warning), ("capability.ack", Warning), ("capability.listen", Warning)],
        ),
        (HidesTheExtension, &[("discover.extension", Broken)]),
        (FillsTheCapability, &[("discover.extension", Broken)]),
        (LetsAnyoneGet, &[("capability.get", Broken)]),
        (LetsAnyoneAck, &[("capability.ack", Broken)]),
        (LetsAnyoneListen, &[("capability.listen", Broken)]),
        (AnswersOtherIds, &[("answer.form", Broken)]),
        (AnswersWords, &[("answer.form", Broken)]),
        (AnswersHugePages, &[("answer.bounded", Warning)]),
        (KnowsNoGet, &[("get.answered", Broken)]),
        (AnswersAMap, &[("get.shape", Broken)]),
        (HasCursors, &[("get.no-cursor", Warning)]),
        (RefusesUnknownKeys, &[("get.unknown-keys", Warning)]),
        (TakesAnyLimit, &[("limit.positive", Broken)]),
        (WantsALimit, &[("limit.optional", Warning)]),
        (IgnoresTheLimit, &[("limit.honoured", Broken)]),
        (NeverSaysMore, &[("has-more.cut", Broken)]),
        (AlwaysSaysMore, &[("has-more.end", Broken)]),
        (Shuffles, &[("order.deterministic", Warning)]),
        (NewestFirst, &[("order.oldest-first", Warning)]),
        (ForgetsWhatWasRead, &[("pending.kept", Broken)]),
        (MintsIds, &[("event.id", Broken)]),
        (UsesOneId, &[("event.id", Broken)]),
        (LacksSources, &[("event.source", Broken)]),
        (LacksTypes, &[("event.type", Broken)]),
        (WritesDatesOnly, &[("event.created-at", Broken)]),
        (WritesOffsets, &[("event.created-at.utc", Warning)]),
        (InventsBlocks, &[("event.content", Broken)]),
        (AddsToBlocks, &[("event.content", Broken)]),
        (SendsContentAsText, &[("event.content", Broken)]),
        (BreaksBase64, &[("event.content", Broken)]),
        (SendsDataAsList, &[("event.data", Broken)]),
        (SendsPayload, &[("event.fields", Warning)]),
        (InlinesLargeMedia, &[("event.media", Warning)]),
        (TakesTheConsumerFromParameters, &[("consumer.trusted", Broken)]),
        (TakesAnyToken, &[("consumer.checked", Broken)]),
        (GivesStrangersAQueue, &[("consumer.checked", Warning)]),
        (AnswersAcks, &[("ack.empty", Broken)]),
        (RefusesUnknownIds, &[("ack.unknown", Broken), ("ack.idempotent", Broken)]),
        (TakesAnyIds, &[("ack.arguments", Warning)]),
        (KeepsWhatIsAcknowledged, &[("ack.excludes", Broken)]),
        (RefusesTheSecondAck, &[("ack.idempotent", Broken)]),
        (SendsEventsFirst, &[("listen.acknowledged", Broken)]),
        (AcksAnotherFilter, &[("listen.acknowledged", Broken)]),
        (ForgetsTheSubscriptionId, &[("listen.subscription-id", Broken)]),
        (TakesAnyFilter, &[("listen.filter", Broken)]),
        (KeepsOldStreams, &[("listen.replaced", Warning)]),
        (CutsOldStreams, &[("listen.graceful", Warning)]),
        (IsQuiet, &[("listen.alive", Warning)]),
        (PushesWithoutQueueing, &[("live.pending", Broken)]),
        (PushesOtherwise, &[("live.same", Broken)]),
        (PushesNothing, &[("live.pushed", Warning)]),
    ]
};

#[tokio::test]
async fn each_fault_breaks_its_rule_and_no_other() {
    let checked = stream::iter(FAULTS).map(|(fault, expected)| async move { (fault, expected, report(*fault).await) });
    let reports: Vec<_> = checked.buffer_unordered(AT_ONCE).collect().await;
    let mut mistaken = String::new();
    for (fault, expected, report) in reports {
        if wrong(&report) != *expected {
            let told: Vec<_> = report.findings.iter().filter(|finding| finding.verdict > Verdict::Pass).collect();
            mistaken.push_str(&format!("{fault:?} is to break {expected:?}: {told:#?} {:?}\n", report.could_not_run));
        }
    }
    assert!(mistaken.is_empty(), "{mistaken}");
}

#[test]
fn every_rule_but_that_of_the_connection_is_broken_by_some_fault() {
    let broken: BTreeSet<_> = FAULTS.iter().flat_map(|(_, rules)| rules.iter().map(|(id, _)| *id)).collect();
    let all: BTreeSet<_> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(all.len(), RULES.len(), "an id is there twice");
    assert_eq!(all.difference(&broken).copied().collect::<Vec<_>>(), ["connection"]);
    let empty = RULES.iter().find(|rule| rule.wording.is_empty() || rule.remedy.is_empty() || rule.needs.is_empty());
    assert_eq!(empty, None);
}

/// Checks a server that sends this to every connection, over and over if told so, and then says nothing more.
async fn hostile(sends: &'static [u8], is_endless: bool) -> Report {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url: Url = format!("http://{}/mcp", listener.local_addr().unwrap()).parse().unwrap();
    let serving = tokio::spawn(async move {
        let mut open = Vec::new();
        loop {
            let (mut connection, _) = listener.accept().await.unwrap();
            open.push(tokio::spawn(async move {
                let mut asked = [0; 16 << 10];
                let _ = connection.read(&mut asked).await;
                while connection.write_all(sends).await.is_ok() && is_endless {}
                let _ = connection.read_to_end(&mut Vec::new()).await;
            }));
        }
    });
    let headers = headers();
    let asked = Asked { timeout: Duration::from_millis(400), wait: Duration::ZERO, ..asked(&url, &headers) };
    let report = check(asked, &Clock::system()).await;
    serving.abort();
    report
}

#[tokio::test]
async fn a_server_that_means_harm_is_told_and_never_waited_for() {
    let cases: [(&'static [u8], bool, &str); 7] = [
        (b"", false, "no answer within 400 ms"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", false, "no answer within 400 ms"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", false, "not JSON: hello"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", false, "\"jsonrpc\" is missing in {}"),
        (b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", false, "HTTP 404"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {\r\n\r\n",
            false,
            "an event that is not JSON",
        ),
        (b"SSH-2.0-none\r\n", false, "the server is not reached"),
    ];
    for (sends, is_endless, says) in cases {
        let report = hostile(sends, is_endless).await;
        let why = report.could_not_run.unwrap_or_default();
        assert!(why.contains(says), "{says:?} is not in {why:?}");
        assert_eq!(report.requests, 1);
    }
    static ENDLESS: [u8; 1 << 16] = [b' '; 1 << 16];
    let report = hostile(&ENDLESS, true).await;
    assert!(report.could_not_run.is_some(), "{report:#?}");
}

#[tokio::test]
async fn a_body_or_an_event_without_end_is_cut_off() {
    for head in ["content-type: application/json", "content-type: text/event-stream"] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url: Url = format!("http://{}/mcp", listener.local_addr().unwrap()).parse().unwrap();
        let serving = tokio::spawn(async move {
            let (mut connection, _) = listener.accept().await.unwrap();
            let _ = connection.read(&mut [0; 16 << 10]).await;
            let head = format!("HTTP/1.1 200 OK\r\n{head}\r\ncontent-length: 1000000000\r\n\r\ndata: ");
            connection.write_all(head.as_bytes()).await.unwrap();
            while connection.write_all(&[b'x'; 1 << 16]).await.is_ok() {}
        });
        let headers = headers();
        let asked = Asked { timeout: Duration::from_secs(20), ..asked(&url, &headers) };
        let report = check(asked, &Clock::system()).await;
        let why = report.could_not_run.unwrap_or_default();
        assert!(why.contains("larger than 8 MiB"), "{why}");
        serving.await.unwrap();
    }
}
