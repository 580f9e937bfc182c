//! Servers that misbehave over stdio: `tests/peers/misbehaving`.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use switchbell::fetch::mcp::Times;
use tempfile::TempDir;

use super::stage::{CEILING, FLOOR, Setting, Stage, hasty, patient};
use crate::support::misbehaving::Wayward;
use crate::support::{PATIENCE, prepared, root};

const HOUR: Duration = Duration::from_secs(3_600);

/// The server's folder. Dropping it asserts that no process of any server is left.
struct Peer {
    folder: TempDir,
}

impl Peer {
    fn new() -> Self {
        let peer = Self { folder: tempfile::tempdir().unwrap() };
        for name in ["mode", "events", "log"] {
            fs::write(peer.folder.path().join(name), "").unwrap();
        }
        peer
    }

    fn setting(&self, times: Times) -> Setting {
        let python = prepared("examples/outbox-python/.venv/bin/python", "deps");
        let (server, folder) = (root().join("tests/peers/misbehaving/server.py"), self.folder.path());
        let run = format!("[{python:?}, -I, -S, {server:?}, {folder:?}]");
        Setting {
            commands: format!("{{ outbox: {{ run: {run}, workspaces: [acme] }} }}"),
            server: "command: outbox".to_owned(),
            poll: "{}",
            times,
        }
    }

    fn misbehave(&self, mode: &str) {
        let (new, path) = (self.folder.path().join("mode.new"), self.folder.path().join("mode"));
        fs::write(&new, mode).unwrap();
        fs::rename(new, path).unwrap();
    }

    /// What the servers wrote down of what begins so.
    fn log(&self, beginning: &str) -> Vec<String> {
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap();
        log.lines().filter_map(|line| Some(line.strip_prefix(beginning)?.trim().to_owned())).collect()
    }

    /// How many servers were started.
    fn starts(&self) -> usize {
        self.log("start ").len()
    }

    /// Waits until the poller has seen the end of the last server.
    async fn last_is_gone(&self) {
        let (started, last) = (Instant::now(), self.log("start ").pop().unwrap());
        while fs::exists(format!("/proc/{last}")).unwrap() {
            assert!(started.elapsed() < PATIENCE, "the server does not end");
            tokio::task::yield_now().await;
        }
    }

    /// Ends the server that runs.
    async fn kill(&self) {
        let last = self.log("start ").pop().unwrap();
        assert_eq!(processes_of(&BTreeSet::from([last.clone()])).len(), 1, "one that runs is found by its group");
        kill_process(Pid::from_raw(last.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
        self.last_is_gone().await;
    }
}

impl Wayward for Peer {
    fn behave(&self) {
        self.misbehave("");
    }

    fn happen(&self, title: &str) {
        let path = self.folder.path().join("events");
        let events = fs::read_to_string(&path).unwrap();
        fs::write(path, format!("{events}{title}\n")).unwrap();
    }

    fn calls(&self) -> Vec<String> {
        self.log("").into_iter().filter(|line| !line.starts_with("start ") && !line.starts_with("child ")).collect()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let groups: BTreeSet<String> = self.log("start ").into_iter().collect();
        assert!(!groups.is_empty(), "no server was started");
        let started = Instant::now();
        while let Some(left) = processes_of(&groups).pop() {
            assert!(started.elapsed() < PATIENCE, "a process is left: {left}");
            std::thread::yield_now();
        }
    }
}

/// The processes of these groups that are not over.
fn processes_of(groups: &BTreeSet<String>) -> Vec<String> {
    let stats =
        fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("stat")).ok());
    let is_left = |stat: &String| {
        let mut fields = stat.rsplit(") ").next().unwrap().split(' ');
        let (state, group) = (fields.next(), fields.nth(1));
        state != Some("Z") && group.is_some_and(|group| groups.contains(group))
    };
    stats.filter(is_left).collect()
}

/// Reads fail for this reason so many times, and the first good one brings what happened meanwhile. A server that
/// misbehaves at its start is ended first.
async fn check(mode: &str, times: Times, failures: u32, says: &[&str]) {
    let peer = Peer::new();
    let mut stage = Stage::start(&peer.setting(times));
    stage.begins().await;
    peer.misbehave(mode);
    peer.happen("one");
    if mode.contains("start") || mode.contains("discovery") {
        peer.kill().await;
    }
    stage.fails(&peer, failures, says).await;
    peer.behave();
    stage.recovers(failures, "one", "c-1").await;
    stage.stop().await;
}

/// The server does well enough: reads bring what happened.
async fn bears(mode: &str) {
    let peer = Peer::new();
    let mut stage = Stage::start(&peer.setting(patient()));
    peer.misbehave(mode);
    stage.begins().await;
    peer.happen("one");
    stage.recovers(0, "one", "c-1").await;
    peer.happen("two");
    stage.recovers(0, "two", "c-2").await;
    stage.stop().await;
}

#[tokio::test]
async fn a_server_that_dies_is_quoted_and_started_again() {
    let says = ["exited with status 7 before it answered; its last words: out of cheese"];
    check("dies_in_the_middle", patient(), 3, &says).await;
    check("is_killed_in_the_middle", patient(), 3, &["was ended by signal 9 before it answered", "run it by hand"])
        .await;
}

#[tokio::test]
async fn a_server_that_dies_between_two_reads_is_started_again_and_nobody_is_bothered() {
    let peer = Peer::new();
    let mut stage = Stage::start(&peer.setting(patient()));
    stage.begins().await;
    peer.misbehave("dies_after_the_answer");
    for number in 1..=4 {
        peer.happen("one more");
        let turn = stage.turn().await.worked();
        assert_eq!((turn.accepted.len(), turn.notices.len()), (1, 0), "{turn:?}");
        peer.last_is_gone().await;
        assert_eq!(peer.starts(), number);
    }
    stage.stop().await;
}

#[tokio::test]
async fn twenty_failed_starts_in_a_row_are_no_reason_to_give_up() {
    let says = ["exited with status 3 before it answered", "ModuleNotFoundError: No module named 'cheese'"];
    check("exits_at_the_start", patient(), 20, &says).await;
}

#[tokio::test]
async fn five_failures_after_a_recovery_count_anew() {
    let peer = Peer::new();
    let mut stage = Stage::start(&peer.setting(patient()));
    stage.begins().await;
    for (number, title) in (1..).zip(["one", "two", "three"]) {
        peer.misbehave("dies_in_the_middle");
        peer.happen(title);
        stage.fails(&peer, 5, &["exited with status 7"]).await;
        peer.behave();
        stage.recovers(5, title, &format!("c-{number}")).await;
    }
    stage.stop().await;
}

#[tokio::test]
async fn a_server_that_hangs_at_its_start_is_cut_off_and_ended() {
    let times = Times { connect: Duration::from_secs(3), ..patient() };
    check("hangs_at_the_start", times, 1, &["the server did not answer within 3 s"]).await;
}

#[tokio::test]
async fn a_server_that_hangs_in_the_middle_is_cut_off_and_ended() {
    check("hangs", hasty(), 1, &["the server did not answer within 1.5 s"]).await;
}

#[tokio::test]
async fn a_server_from_before_discovery_may_be_silent_to_it_and_is_not_asked_twice() {
    let peer = Peer::new();
    peer.misbehave("is_silent_to_discovery");
    let setting = peer.setting(patient());
    let mut stage = Stage::start(&setting);
    stage.begins().await;
    peer.kill().await;
    peer.happen("one");
    stage.recovers(0, "one", "c-1").await;
    assert_eq!((peer.starts(), peer.log("server/discover").len()), (2, 1));
    stage.stop().await;
}

#[tokio::test]
async fn a_server_from_before_discovery_may_refuse_it_in_any_words() {
    for code in [-32601, -32600, -32602, -32603, -32700, -32002, -32000, -1, 0, 401] {
        let peer = Peer::new();
        peer.misbehave(&format!("answers_discovery_with {code}"));
        let mut stage = Stage::start(&peer.setting(patient()));
        stage.begins().await;
        stage.stop().await;
    }
}

#[tokio::test]
async fn a_server_that_dies_of_discovery_is_quoted_and_read_without_it_the_next_time() {
    let peer = Peer::new();
    peer.misbehave("exits_at_discovery");
    let mut stage = Stage::start(&peer.setting(patient()));
    let says = ["exited with status 1 before it answered; its last words: KeyError: 'server/discover'"];
    stage.turn().await.failed(&says);
    stage.begins().await;
    stage.stop().await;
}

#[tokio::test]
async fn children_that_a_dead_server_leaves_are_ended_with_it() {
    check("leaves_a_child_at_the_start", patient(), 3, &["exited with status 3 before it answered"]).await;
    check("leaves_a_child_and_dies", patient(), 3, &["exited with status 7 before it answered"]).await;
}

#[tokio::test]
async fn a_line_that_is_too_long_is_a_failed_read_and_the_next_good_one_brings_all() {
    for mode in ["writes_a_line_that_is_too_long", "writes_without_end"] {
        let peer = Peer::new();
        let mut stage = Stage::start(&peer.setting(patient()));
        stage.begins().await;
        peer.misbehave(mode);
        peer.happen("one");
        // Fewer events are asked for, down to one, and then once from now: none of it helps.
        for failures in 1..=4 {
            let turn =
                stage.turn().await.failed(&["more than 16777216 bytes; let the outbox answer with fewer events"]);
            assert!(turn.failures == failures && (FLOOR..=CEILING).contains(&turn.wait), "{turn:?}");
            assert_eq!(stage.position().await.as_deref(), Some("c-0"));
        }
        assert!(peer.log("resources/read").len() <= 14, "{:?}", peer.log("resources/read"));
        peer.behave();
        stage.recovers(4, "one", "c-1").await;
        stage.stop().await;
    }
}

#[tokio::test]
async fn a_line_without_an_end_is_told_as_such() {
    let says = ["began a line and did not end it (40 bytes); a message is one whole line, flushed at once"];
    check("begins_a_line_and_hangs", hasty(), 1, &says).await;
    check("begins_a_line_and_dies", patient(), 3, &["exited with status 7 before it answered"]).await;
}

#[tokio::test]
async fn lines_of_a_log_between_messages_do_no_harm() {
    bears("logs_between_messages").await;
}

#[tokio::test]
async fn a_log_in_the_line_of_an_answer_is_told_as_what_came_instead() {
    let says = ["answered with a line that is not JSON: trailing characters"];
    check("glues_a_log_after_the_answer", patient(), 3, &says).await;
    check("glues_a_log_before_the_answer", hasty(), 1, &["did not answer within 1.5 s"]).await;
}

#[tokio::test]
async fn standard_error_of_any_size_does_no_harm() {
    bears("fills_standard_error").await;
}

#[tokio::test]
async fn what_is_pushed_and_nobody_asked_for_does_no_harm_and_makes_nobody_read() {
    bears("pushes_what_nobody_asked_for").await;
    let peer = Peer::new();
    peer.misbehave("pushes_what_nobody_asked_for");
    let mut stage = Stage::start(&peer.setting(patient()));
    stage.begins().await;
    let turns = stage.turns_of(HOUR).await;
    assert!(turns.len() <= 18, "{} reads in an hour", turns.len());
    stage.stop().await;
}

#[tokio::test]
async fn an_answer_to_another_request_is_told_as_such() {
    check("answers_another_request", hasty(), 1, &["answered a request that nobody made"]).await;
}
