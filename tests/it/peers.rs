//! The poller against servers on every SDK that people write outboxes with, over stdio and over streamable HTTP.

use std::time::Duration;

use serde_json::{Value, json};
use switchbell::config::Poll;
use switchbell::telemetry::Happening;

use crate::support::{Over, Peer, Polling, Stage};

/// Waits are short: the servers are on this machine.
const QUICK: Poll = Poll {
    base: Duration::from_millis(100),
    floor: Duration::from_millis(50),
    ceiling: Duration::from_millis(200),
    events_max: 2,
    chained_reads_max: 5,
    age_max: Duration::from_secs(90 * 86_400),
};

/// After the first read nothing is due before the test is over.
const HOURLY: Poll = Poll {
    base: Duration::from_secs(3_600),
    floor: Duration::from_secs(3_600),
    ceiling: Duration::from_secs(3_600),
    ..QUICK
};

/// Where the outbox stands at the first read: base64 with all that is special in it.
const START: &str = "b64/start+of/it==";

/// Titles and cursors of what comes then. Each second cursor ends a page, so that it is read from.
const ROWS: [(&str, &str); 12] = [
    ("one", "c-1"),
    ("two", "a+b/c=="),
    ("three", "c-3"),
    ("four", "100%25 %2B%zz%"),
    ("five", "c-5"),
    ("six", "zwei Wörter, 🙂 \u{200d}☃"),
    ("seven", "c-7"),
    ("eight", "q?x=1&y=2#fragment;a,b:c@d"),
    ("nine", "c-9"),
    ("ten", "\"<>\\^`{|}~'()*!$[]"),
    ("eleven", "c-11"),
    ("twelve", " padded\ttwice\n "),
];

/// Reads that bring [`ROWS`].
const PAGES: usize = ROWS.len() / QUICK.events_max as usize;

/// What a poller told that runs against a stage.
struct Reader {
    polling: Polling,
    /// Events in all answers so far.
    events: usize,
    /// The wait after each read that brought events.
    waits: Vec<Duration>,
}

impl Reader {
    fn start(stage: &Stage, poll: Poll) -> Self {
        Self { polling: stage.poll(poll), events: 0, waits: Vec::new() }
    }

    async fn expect_bootstrap(&mut self) {
        let next = self.polling.next_of_all().await;
        assert!(matches!(next, Happening::Read { events: 0, bootstrap: true, .. }), "{next:?}");
    }

    /// The next event. A read that fails before it is told as well where `may_fail`.
    async fn expect_event(&mut self, number: u64, title: &str, may_fail: bool) {
        loop {
            match self.polling.next_of_all().await {
                Happening::Read { bootstrap: false, events: 0, .. } => {}
                Happening::Read { bootstrap: false, events, next_in, .. } => {
                    self.events += events;
                    self.waits.push(next_in);
                }
                Happening::ReadFailed { .. } if may_fail => {}
                Happening::Accepted { seq, event, .. } => {
                    assert_eq!((seq, event.title.as_str()), (number, title));
                    assert_eq!(serde_json::from_str::<Value>(&event.data).unwrap(), json!({ "b": 1, "a": [2.5] }));
                    return;
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Reads at once. Returns why that failed, if it did.
    async fn poll(&self) -> Option<String> {
        self.polling.handle().poll().await.unwrap().failure
    }

    /// Stops, having read so many events, none of them twice.
    async fn stop(self, events: usize) {
        assert_eq!(self.events, events, "events in answers");
        self.polling.stop().await;
    }
}

/// The reads a server was asked for, one after another, have these cursors; the same one again is left out.
async fn check_cursors(stage: &mut Stage, expected: &[Option<&str>]) {
    // A server may be answering faster than it reports.
    let last = |reads: &[Value]| reads.last().map(|read| read["cursor"].as_str().map(str::to_owned));
    let expected_last = expected.last().map(|cursor| cursor.map(str::to_owned));
    let mut reads = stage.all_once("read", |reads| last(reads) == expected_last).await;
    assert_eq!(reads.first().map(|read| read["cursor"].is_null()), Some(true), "the first read has no cursor");
    for read in &reads[1..] {
        let bounds = (&read["maxEvents"], &read["maxAgeMs"]);
        assert_eq!(bounds, (&json!(2), &json!(7_776_000_000_u64)), "{read}");
    }
    reads.dedup_by(|next, before| next["cursor"] == before["cursor"]);
    let cursors: Vec<_> = reads.iter().map(|read| read["cursor"].as_str()).collect();
    assert_eq!(cursors, expected);
}

async fn check(peer: Peer, over: Over) {
    let mut stage = Stage::new(peer, over, START).await;
    a_burst_arrives_in_order(&mut stage).await;
    let reader = a_new_poller_goes_on(&mut stage).await;
    let reader = a_restart_of_the_server_costs_nothing(&mut stage, reader, peer, over).await;
    reader.stop(if peer.hints() { 4 } else { 2 }).await;
}

/// What was there before the first read is left alone. What comes after arrives once, in order, in as many reads at
/// once as are allowed, and every cursor comes back as it was handed out.
async fn a_burst_arrives_in_order(stage: &mut Stage) {
    let mut reader = Reader::start(stage, QUICK);
    reader.expect_bootstrap().await;
    stage.add(&ROWS, false);
    for (number, (title, _)) in (1..).zip(ROWS) {
        reader.expect_event(number, title, false).await;
    }
    let at_once = reader.waits.iter().filter(|wait| wait.is_zero()).count();
    assert_eq!((reader.waits.len(), at_once), (PAGES, QUICK.chained_reads_max as usize - 1), "{:?}", reader.waits);
    reader.stop(ROWS.len()).await;
    stage.add(&[("while nobody read", "c-13")], false);
}

/// A poller that takes over begins after the last cursor; then a hint is all that makes it read.
async fn a_new_poller_goes_on(stage: &mut Stage) -> Reader {
    let mut reader = Reader::start(stage, HOURLY);
    reader.expect_event(13, "while nobody read", false).await;
    let ends = ROWS.iter().skip(1).step_by(2).map(|&(_, cursor)| Some(cursor));
    check_cursors(stage, &[None, Some(START)].into_iter().chain(ends).collect::<Vec<_>>()).await;
    reader
}

async fn a_restart_of_the_server_costs_nothing(
    stage: &mut Stage,
    mut reader: Reader,
    peer: Peer,
    over: Over,
) -> Reader {
    let mut number = 14;
    if peer.hints() {
        stage.add(&[("hinted", "c-14")], true);
        reader.expect_event(number, "hinted", false).await;
        number += 1;
    }
    let asked_before = stage.all("http").len();
    stage.restart().await;
    stage.add(&[("after the restart", "c-15")], false);
    let is_killed = reader.poll().await.inspect(|why| assert!(why.contains("ended by signal 9"), "{why}")).is_some();
    if is_killed {
        // The read began before the end of the child was noticed. The next one has another child.
        assert_eq!((over, reader.poll().await), (Over::Stdio, None));
    }
    // A second hint of the same may have begun a read that the end of the server cut off.
    reader.expect_event(number, "after the restart", is_killed || peer.hints()).await;
    let answers = &stage.all("http")[asked_before..];
    let forgotten = answers.iter().filter(|answer| answer["status"] == 404).count();
    let is_forgotten = over == Over::Http && peer.keeps_sessions();
    assert_eq!(forgotten > 0, is_forgotten, "a session that was forgotten is begun anew: {answers:?}");
    let reads = answers.iter().filter(|answer| **answer == json!({ "method": "POST", "status": 404 })).count();
    assert!(reads <= 1, "only once: {answers:?}");
    if peer.hints() {
        stage.add(&[("hinted again", "c-16")], true);
        reader.expect_event(number + 1, "hinted again", false).await;
    }
    reader
}

macro_rules! tests {
    ($($name:ident: $peer:ident, $over:ident;)*) => {
        $(#[tokio::test]
        async fn $name() {
            check(Peer::$peer, Over::$over).await;
        })*
    };
}

tests! {
    an_outbox_on_fastmcp_2_over_stdio: FastMcp2, Stdio;
    an_outbox_on_fastmcp_2_over_http: FastMcp2, Http;
    an_outbox_on_fastmcp_3_over_stdio: FastMcp3, Stdio;
    an_outbox_on_fastmcp_3_over_http: FastMcp3, Http;
    an_outbox_on_fastmcp_4_over_stdio: FastMcp4, Stdio;
    an_outbox_on_fastmcp_4_over_http: FastMcp4, Http;
    an_outbox_on_the_python_sdk_1_over_stdio: Python1, Stdio;
    an_outbox_on_the_python_sdk_1_over_http: Python1, Http;
    an_outbox_on_the_python_sdk_2_over_stdio: Python2, Stdio;
    an_outbox_on_the_python_sdk_2_over_http: Python2, Http;
    an_outbox_on_the_typescript_sdk_1_over_stdio: TypeScript1, Stdio;
    an_outbox_on_the_typescript_sdk_1_over_http: TypeScript1, Http;
    an_outbox_on_the_typescript_sdk_2_over_stdio: TypeScript2, Stdio;
    an_outbox_on_the_typescript_sdk_2_over_http: TypeScript2, Http;
}
