//! Connections to small programs that behave, and misbehave, over stdio.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::*;
use crate::config::{Poll, Transport};
use crate::notification::Level;

/// Answers like an MCP server of the time before discovery. `$1` is what it does with a read of a resource.
const SERVER: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"%s":%s}\n' "$id" "$1" "$2"; }
text() { answer result '{"contents":[{"uri":"acme://n","text":"'"$1"'"}]}'; }
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"server/discover"'*) answer error '{"code":-32601,"message":"Method not found"}' ;;
    *'"initialize"'*) answer result '{"protocolVersion":"2025-06-18","capabilities":{"resources":{}},"serverInfo":{"name":"acme","version":"1"}}' ;;
    *'"resources/read"'*) eval "$1" ;;
  esac
done
"#;

fn outbox(script: &str, arguments: &[&str], env: &[(&str, &str)], times: Times) -> McpOutbox {
    let words = ["sh", "-c", script, "server"].into_iter().chain(arguments.iter().copied());
    run(&words.collect::<Vec<_>>(), env, times)
}

pub(super) fn run(words: &[&str], env: &[(&str, &str)], times: Times) -> McpOutbox {
    let connector = Connector {
        is_of_catalog: false,
        name: "registrar".parse().unwrap(),
        transport: Transport::Stdio {
            run: words.iter().map(|&word| word.to_owned()).collect(),
            env: env.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect(),
            directory: std::env::temp_dir(),
        },
        outbox: Some("acme://n".to_owned()),
        push: None,
        not_polled: None,
        ceiling: Level::Info,
        poll: Poll::default(),
    };
    let secrets = BTreeMap::new();
    let (clients, credentials) = (Clients::new(), Path::new("credentials"));
    let common = Common { secrets: &secrets, times, clock: Clock::system(), clients, credentials };
    McpOutbox::new(&"acme".parse().unwrap(), &connector, &common).unwrap()
}

fn patient() -> Times {
    Times::default()
}

fn hasty() -> Times {
    let short = Duration::from_millis(1_500);
    Times { connect: short, read: short, stop: Duration::from_millis(50), ..patient() }
}

/// Reads once and closes.
async fn check(mut outbox: McpOutbox, expected: Result<&str, &str>) {
    let read = outbox.read("acme://n").await;
    outbox.close().await;
    match (read, expected) {
        (Ok(text), Ok(expected)) => assert_eq!(text, expected),
        (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
        (read, expected) => panic!("{read:?} is not {expected:?}"),
    }
}

#[tokio::test]
async fn a_server_from_before_discovery_is_read_again_and_again_over_one_connection() {
    let mut outbox = outbox(SERVER, &["count=$((count+1)); text $count"], &[], patient());
    assert_eq!(outbox.read("acme://n").await, Ok("1".to_owned()));
    assert_eq!(outbox.read("acme://n").await, Ok("2".to_owned()));
    assert!(outbox.link.era().begins_with_initialize());
    outbox.close().await;
    assert_eq!(outbox.read("acme://n").await, Ok("1".to_owned()), "a later read connects again");
    outbox.close().await;
}

#[tokio::test]
async fn the_child_sees_its_workspace_and_what_was_declared_and_little_else() {
    let report = r#"text "$SWITCHBELL_WORKSPACE $DATA ${CARGO_MANIFEST_DIR-none} ${HOME:+home}""#;
    check(outbox(SERVER, &[report], &[("DATA", "rows"), ("HOME", "/tmp")], patient()), Ok("acme rows none home")).await;
}

#[tokio::test]
async fn a_resource_that_is_not_there_is_known_by_both_codes() {
    for code in ["-32602", "-32002"] {
        let refuse = format!(r#"answer error '{{"code":{code},"message":"Unknown resource\n: acme://n"}}'"#);
        let mut outbox = outbox(SERVER, &[&refuse], &[], patient());
        let read = outbox.read("acme://n").await;
        assert_eq!(read, Err(ReadError::NotFound("Unknown resource : acme://n".to_owned())), "{code}");
        assert!(outbox.connection.is_some(), "the connection is as good as before");
        outbox.close().await;
    }
}

#[tokio::test]
async fn an_error_of_the_server_is_told_without_its_secrets() {
    let refuse = r#"answer error '{"code":-32603,"message":"cannot use '$TOKEN'"}'"#;
    let outbox = outbox(SERVER, &[refuse], &[("TOKEN", "s3cret-token")], patient());
    check(outbox, Err("the server answered with the error -32603: cannot use ***")).await;
}

#[tokio::test]
async fn an_answer_without_text_is_named() {
    let blob = r#"answer result '{"contents":[{"uri":"acme://n","blob":"AAAA"}]}'"#;
    check(outbox(SERVER, &[blob], &[], patient()), Err("the answer has no text")).await;
    check(outbox(SERVER, &[r#"answer result '{"contents":[]}'"#], &[], patient()), Err("the answer has no text")).await;
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_named_with_its_folder() {
    let missing = run(&["no-such-program-as-this"], &[], patient());
    check(missing, Err("`no-such-program-as-this` cannot be started in /")).await;
    let relative = run(&["./no-such-script.sh"], &[], patient());
    check(relative, Err("`./no-such-script.sh` cannot be started")).await;
}

#[tokio::test]
async fn a_server_that_exits_at_once_is_quoted() {
    let script = "echo 'starting with s3cret-token' >&2; echo 'ModuleNotFoundError: fastmcp' >&2; exit 3";
    let exits = outbox(script, &[], &[("TOKEN", "s3cret-token")], patient());
    let expected = "`sh` exited with status 3 before it answered; its last words: starting with *** | ModuleNotFoundError: fastmcp";
    check(exits, Err(expected)).await;
    check(outbox("exit 0", &[], &[], patient()), Err("exited with status 0 before it answered, without a word")).await;
    check(outbox("kill -9 $$", &[], &[], patient()), Err("was ended by signal 9 before it answered")).await;
}

#[tokio::test]
async fn a_server_that_exits_in_the_middle_of_a_read_is_quoted_and_started_again() {
    let mut outbox = outbox(SERVER, &["echo 'out of cheese' >&2; exit 7"], &[], patient());
    for _ in 0..2 {
        let error = outbox.read("acme://n").await.unwrap_err().to_string();
        assert_eq!(error, "`sh` exited with status 7 before it answered; its last words: out of cheese");
    }
    outbox.close().await;
}

#[tokio::test]
async fn what_a_server_leaves_behind_when_it_exits_is_ended_and_does_not_hide_the_exit() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("child");
    let leave = "sleep 600 & echo $! > \"$FILE\"; exit 7";
    let mut outbox = outbox(SERVER, &[leave], &[("FILE", file.to_str().unwrap())], patient());
    let error = outbox.read("acme://n").await.unwrap_err().to_string();
    assert!(error.starts_with("`sh` exited with status 7 before it answered"), "{error}");
    is_gone(std::fs::read_to_string(&file).unwrap().trim()).await;
    outbox.close().await;
}

#[tokio::test]
async fn a_server_that_exited_between_two_reads_is_started_again_by_the_second() {
    let mut outbox = outbox(SERVER, &["text $$; exit 0"], &[], patient());
    let first = outbox.read("acme://n").await.unwrap();
    let Some(Connection { carrier: Carrier::Child(process), .. }) = outbox.connection.as_deref() else { panic!() };
    let mut ended = process.ended();
    ended.wait_for(Option::is_some).await.unwrap();
    let second = outbox.read("acme://n").await.unwrap();
    assert_ne!(first, second);
    outbox.close().await;
}

#[tokio::test]
async fn a_server_that_hangs_is_not_waited_for_for_ever() {
    check(outbox("exec sleep 600", &[], &[], hasty()), Err("the server did not answer within 1.5 s")).await;
    let times = Times { connect: Duration::from_secs(20), ..hasty() };
    check(outbox(SERVER, &["sleep 600"], &[], times), Err("the server did not answer within 1.5 s")).await;
}

#[tokio::test]
async fn a_server_that_answers_garbage_is_quoted() {
    let garbage = outbox("echo 'Listening on port 3000'; exec sleep 600", &[], &[], hasty());
    check(
        garbage,
        Err(
            "`sh` answered something that is not MCP: \"Listening on port 3000\"; its standard output is for MCP alone",
        ),
    )
    .await;
}

#[tokio::test]
async fn lines_of_log_on_standard_output_do_no_harm() {
    let chatty = format!("echo 'Listening on port 3000'\n{SERVER}");
    check(outbox(&chatty, &["echo 'reading'; text fine"], &[], patient()), Ok("fine")).await;
}

#[tokio::test]
async fn a_server_that_fills_its_standard_error_does_not_block() {
    let loud = "yes 'a line of log that says nothing at all' | head -c 2000000 >&2; text fine";
    check(outbox(SERVER, &[loud], &[], patient()), Ok("fine")).await;
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_refused_at_once() {
    let big = r#"count=$((count+1)); head -c 9000000 /dev/zero | tr '\0' x > "$TMPDIR/$$"; text "$(cat "$TMPDIR/$$")"; rm "$TMPDIR/$$""#;
    let folder = tempfile::tempdir().unwrap();
    let tmpdir = folder.path().to_str().unwrap();
    check(outbox(SERVER, &[big], &[("TMPDIR", tmpdir)], patient()), Err("the answer has more than 8388608 bytes"))
        .await;
    let endless = "exec cat /dev/zero";
    let started = Instant::now();
    check(
        outbox(SERVER, &[r#"printf '{'; exec tr '\0' x < /dev/zero"#], &[], patient()),
        Err("the answer has more than 16777216 bytes"),
    )
    .await;
    check(outbox(endless, &[], &[], patient()), Err("the answer has more than 16777216 bytes")).await;
    assert!(started.elapsed() < patient().read, "it waited for the end of what has none");
}

/// The processes of the group, by their states. A process that was killed may take a moment to be gone.
fn is_running(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !status.is_empty() && !status.contains(") Z ")
}

async fn is_gone(pid: &str) {
    let started = Instant::now();
    while is_running(pid) {
        assert!(started.elapsed() < Duration::from_secs(10), "{pid} is left running");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn closing_ends_the_child_and_its_children_however_they_resist() {
    let stubborn = format!("trap '' TERM\nsleep 600 &\nchild=$!\n{SERVER}\nwhile :; do sleep 600; done");
    let times = Times { stop: Duration::from_millis(50), ..patient() };
    let mut outbox = outbox(&stubborn, &["text \"$$ $child\""], &[], times);
    let pids = outbox.read("acme://n").await.unwrap();
    let (server, child) = pids.split_once(' ').unwrap();
    assert!(is_running(server) && is_running(child));
    outbox.close().await;
    is_gone(server).await;
    is_gone(child).await;
}

#[tokio::test]
async fn a_good_server_ends_by_itself_once_its_input_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let farewell = folder.path().join("farewell");
    let polite = format!("{SERVER}\necho gone > \"$FAREWELL\"");
    let mut outbox = outbox(
        &polite,
        &["text fine"],
        &[("FAREWELL", farewell.to_str().unwrap())],
        Times { stop: Duration::from_secs(10), ..patient() },
    );
    outbox.read("acme://n").await.unwrap();
    outbox.close().await;
    assert_eq!(std::fs::read_to_string(farewell).unwrap(), "gone\n");
}

#[tokio::test]
async fn what_is_dropped_without_a_word_is_killed_with_its_children() {
    let mut outbox = outbox(&format!("sleep 600 &\nchild=$!\n{SERVER}"), &["text \"$$ $child\""], &[], patient());
    let pids = outbox.read("acme://n").await.unwrap();
    let (server, child) = pids.split_once(' ').unwrap();
    drop(outbox);
    is_gone(server).await;
    is_gone(child).await;
}

#[tokio::test]
async fn a_read_that_is_given_up_in_the_middle_of_a_start_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let mut outbox = outbox("echo $$ > \"$FILE\"; exec sleep 600", &[], &[("FILE", file.to_str().unwrap())], patient());
    let written = async {
        while std::fs::read_to_string(&file).unwrap_or_default().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        read = outbox.read("acme://n") => panic!("{read:?}"),
        () = written => {}
    }
    let pid = std::fs::read_to_string(&file).unwrap();
    is_gone(pid.trim()).await;
}

#[tokio::test]
async fn a_server_that_is_known_from_before_is_not_asked_for_discovery_again() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let logged = SERVER.replace("  id=$(", "  printf '%s\n' \"$line\" >> \"$LOG\"\n  id=$(");
    let methods = || {
        let log = std::fs::read_to_string(&log).unwrap();
        log.lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["method"].clone())
            .collect::<Vec<_>>()
    };
    let start = |read: &str, script: &str| outbox(script, &[read], &[("LOG", log.to_str().unwrap())], patient());

    let mut known = start("text fine", &logged).remembering(Some("2025-06-18".to_owned()));
    assert_eq!(known.revision().as_deref(), Some("2025-06-18"));
    assert_eq!(known.read("acme://n").await, Ok("fine".to_owned()));
    known.close().await;
    assert_eq!(methods(), ["initialize", "notifications/initialized", "resources/read"]);
    assert_eq!(known.revision().as_deref(), Some("2025-06-18"), "it is known without a connection too");

    std::fs::write(&log, "").unwrap();
    let refuses = logged.replace("*'\"initialize\"'*) answer result", "*'\"initialize\"'*) exit 5; answer result");
    let mut changed = start("text fine", &refuses).remembering(Some("2025-06-18".to_owned()));
    for expected in [vec!["initialize"], vec!["server/discover", "initialize"]] {
        std::fs::write(&log, "").unwrap();
        changed.read("acme://n").await.unwrap_err();
        assert_eq!(methods(), expected);
    }

    std::fs::write(&log, "").unwrap();
    let mut unknown = start("text fine", &logged).remembering(Some("1999-01-01".to_owned()));
    unknown.read("acme://n").await.unwrap();
    assert_eq!(methods()[0], "server/discover");
    unknown.close().await;
}

#[tokio::test]
async fn a_server_that_floods_is_ended_and_the_flood_is_told() {
    let loud = outbox(SERVER, &["exec yes 'a line of log'"], &[], patient());
    check(loud, Err("`sh` was ended: it wrote more than 4194304 bytes of what is not MCP to its standard output"))
        .await;
    let notice =
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/later","params":{{"text":"{}"}}}}"#, "x".repeat(9_000));
    let chatty = outbox(SERVER, &[&format!("exec yes '{notice}'")], &[], patient());
    check(chatty, Err("`sh` was ended: it wrote more than 67108864 bytes to its standard output")).await;
    let noisy = outbox(SERVER, &["yes 'a line of log' >&2"], &[], patient());
    check(noisy, Err("`sh` was ended: it wrote more than 16777216 bytes to its standard error")).await;
    let early = outbox("exec yes '[INFO] starting'", &[], &[], patient());
    check(early, Err("`sh` was ended: it wrote more than 4194304 bytes of what is not MCP")).await;
}

#[tokio::test]
async fn a_server_that_floods_while_nobody_reads_is_ended_too() {
    for flood in ["yes 'a line of log'", "yes 'a line of log' >&2"] {
        let mut outbox = outbox(SERVER, &[&format!("text $$; {flood}")], &[], patient());
        let pid = outbox.read("acme://n").await.unwrap();
        let Some(Connection { carrier: Carrier::Child(process), .. }) = outbox.connection.as_deref() else { panic!() };
        let mut ended = process.ended();
        ended.wait_for(Option::is_some).await.unwrap();
        is_gone(&pid).await;
        assert!(outbox.read("acme://n").await.is_ok(), "and started again by the next read");
        outbox.close().await;
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_told_at_once_as_what_it_is() {
    let reads = |answer: &str| outbox(SERVER, &[answer], &[], patient());
    let bytes =
        r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"contents":[{"uri":"acme://n","text":"\377"}]}}\n' "$id""#;
    check(reads(bytes), Err("`sh` answered with bytes that are not UTF-8, from byte ")).await;
    check(reads(r"text '\ud83d'"), Err("`sh` answered with a line that is not JSON: ")).await;
    let bare = r#"printf '{"jsonrpc":"2.0","id":%s}\n' "$id""#;
    check(reads(bare), Err("`sh` answered with JSON that has none of the shapes of an answer")).await;
    let early = r#"read line; printf '{"jsonrpc":"2.0","id":0,"result":{"a":NaN}}\n'; exec sleep 600"#;
    check(outbox(early, &[], &[], patient()), Err("`sh` answered with a line that is not JSON: ")).await;
}

#[tokio::test]
async fn what_cannot_be_read_and_was_not_asked_for_does_not_fail_the_next_read() {
    let late = r#"text fine; printf '{"jsonrpc":"2.0","id":4711,"result":{"a":NaN}}\n'"#;
    let mut outbox = outbox(SERVER, &[late], &[], patient());
    outbox.read("acme://n").await.unwrap();
    while !outbox.connection.as_ref().is_some_and(|connection| connection.is_lost()) {
        tokio::task::yield_now().await;
    }
    assert_eq!(outbox.read("acme://n").await, Ok("fine".to_owned()));
    outbox.close().await;
}

#[tokio::test]
async fn what_came_instead_of_an_answer_is_told_when_time_is_up() {
    let times = Times { connect: Duration::from_secs(20), read: Duration::from_millis(300), ..hasty() };
    let reads = |answer: &str| outbox(SERVER, &[answer], &[], times);
    let expected = "`sh` answered a request that nobody made (id 4711); an answer carries the id of its request; nothing else \
                    came within 0.3 s";
    check(reads("id=4711; text fine"), Err(expected)).await;
    let half = r#"printf '{"jsonrpc":"2.0"'"#;
    check(reads(half), Err("`sh` began a line and did not end it (16 bytes)")).await;
    check(reads("echo 'a line of log'"), Err("the server did not answer within 0.3 s")).await;
    check(reads(r#"id="\"$id\""; text fine"#), Ok("fine")).await;
}

#[tokio::test]
async fn last_words_that_are_cut_show_no_part_of_a_secret() {
    let script = r#"head -c 994 /dev/zero | tr '\0' x >&2; echo "$TOKEN" >&2; exit 3"#;
    let mut outbox = outbox(script, &[], &[("TOKEN", "s3cret-token")], patient());
    let error = outbox.read("acme://n").await.unwrap_err().to_string();
    assert!(!error.contains("s3"), "{error}");
}
