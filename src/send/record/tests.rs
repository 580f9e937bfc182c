//! Every kind of action and answer, as JSON and back.

use super::*;
use crate::wasm::{
    Extension, Failure, FailureKind, Fault, Mailed, Message, Part, Pause, Reach, Receipt, Recipient, Request, Response,
    Signature, ToolAnswer, ToolCall,
};

fn fault(reach: Reach, status: Option<u16>) -> Fault {
    Fault { reach, code: "timeout".into(), message: "no answer".into(), status, after_seconds: status.map(|_| 30) }
}

fn response(body: &[u8]) -> Response {
    Response { status: 200, headers: vec![], body: body.to_vec(), truncated: false, extras: "{}".into() }
}

fn check_answer(answer: &Answer, expected: &str) {
    assert_eq!(answer_to_json(answer), expected);
    assert_eq!(answer_from_json(expected).as_ref(), Ok(answer));
}

#[test]
fn answers_come_back_as_they_went() {
    check_answer(&Answer::Http(Ok(response(b""))), r#"{"http":{"ok":{"status":200}}}"#);
    check_answer(
        &Answer::Http(Ok(Response {
            headers: vec![("a".into(), "1".into()), ("a".into(), "2".into())],
            truncated: true,
            extras: r#"{"b": 1.0, "a":2}"#.into(),
            ..response("ä\n".as_bytes())
        })),
        r#"{"http":{"ok":{"status":200,"headers":[["a","1"],["a","2"]],"body":"ä\n","truncated":true,"extras":{"b": 1.0, "a":2}}}}"#,
    );
    check_answer(&Answer::Http(Ok(response(&[0xff, 0]))), r#"{"http":{"ok":{"status":200,"bodyBase64":"/wA="}}}"#);
    let recipient = |outcome| Recipient { address: "ops@example.com".into(), outcome };
    let recipients = vec![recipient(Ok(())), recipient(Err(fault(Reach::Refused, Some(451))))];
    check_answer(
        &Answer::Mail(Ok(Mailed { message_id: "<1@example.com>".into(), recipients })),
        r#"{"mail":{"ok":{"messageId":"<1@example.com>","recipients":[{"address":"ops@example.com"},{"address":"ops@example.com","fault":{"reach":"refused","code":"timeout","message":"no answer","status":451,"afterSeconds":30}}]}}}"#,
    );
    let tool = |is_error| ToolAnswer { is_error, content: r#"{"content":[]}"#.into(), truncated: is_error };
    check_answer(&Answer::Tool(Ok(tool(false))), r#"{"tool":{"ok":{"content":{"content":[]}}}}"#);
    check_answer(
        &Answer::Tool(Ok(tool(true))),
        r#"{"tool":{"ok":{"isError":true,"content":{"content":[]},"truncated":true}}}"#,
    );
    check_answer(&Answer::Resumed(None), r#"{"resumed":{}}"#);
    check_answer(&Answer::Resumed(Some(r#"{"z":1,"a":2}"#.into())), r#"{"resumed":{"resume":{"z":1,"a":2}}}"#);
    check_answer(&Answer::Other(Ok("[1,2.50]".into())), r#"{"other":{"ok":[1,2.50]}}"#);
}

#[test]
fn faults_come_back_in_kind() {
    for (reach, word) in [
        (Reach::Denied, "denied"),
        (Reach::Unsent, "unsent"),
        (Reach::Refused, "refused"),
        (Reach::Unanswered, "unanswered"),
    ] {
        let said = format!(r#"{{"fault":{{"reach":"{word}","code":"timeout","message":"no answer"}}}}"#);
        check_answer(&Answer::Http(Err(fault(reach, None))), &format!(r#"{{"http":{said}}}"#));
        check_answer(&Answer::Mail(Err(fault(reach, None))), &format!(r#"{{"mail":{said}}}"#));
        check_answer(&Answer::Tool(Err(fault(reach, None))), &format!(r#"{{"tool":{said}}}"#));
        check_answer(&Answer::Other(Err(fault(reach, None))), &format!(r#"{{"other":{said}}}"#));
    }
}

#[test]
fn what_is_no_record_is_refused_with_its_place() {
    for (text, expected) in [
        ("", "EOF while parsing a value"),
        (r#"{"telepathy":{}}"#, "unknown variant `telepathy`"),
        (r#"{"http":{"ok":{}}}"#, "missing field `status`"),
        (r#"{"http":{"ok":{"status":200,"statuz":1}}}"#, "unknown field `statuz`"),
        (r#"{"http":{"ok":{"status":200,"body":"a","bodyBase64":"YQ=="}}}"#, "exclude each other"),
        (r#"{"http":{"ok":{"status":200,"bodyBase64":"%"}}}"#, "bodyBase64: "),
    ] {
        let error = answer_from_json(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

fn actions() -> Vec<(Action, &'static str)> {
    let message = vec![
        Part::Bytes(b"v0:".to_vec()),
        Part::Secret("p".into()),
        Part::Url,
        Part::Body,
        Part::BodyHash("sha256".into()),
        Part::Header("date".into()),
    ];
    let (marker, algorithm, encoding) = ("@@".into(), "hmac-sha256".into(), "hex".into());
    let sign = Signature { marker, algorithm, encoding, key: "k".into(), derive: vec![b"d".to_vec()], message };
    let request = Request {
        method: "POST".into(),
        url: "https://hooks.example/".into(),
        headers: vec![("a".into(), "1".into())],
        body: b"{}".to_vec(),
        sign: vec![sign],
        timeout_ms: Some(5),
        response_max: Some(6),
        extras: r#"{"later":1}"#.into(),
    };
    let plain = Request { sign: vec![], headers: vec![], body: vec![0xff], extras: "{}".into(), ..request.clone() };
    let mail = Message {
        to: vec!["ops@example.com".into()],
        subject: "s".into(),
        text: "t".into(),
        thread: Some("x".into()),
        extras: "{}".into(),
    };
    let call = ToolCall {
        connector: "registrar".into(),
        tool: "restart".into(),
        arguments: r#"{"b":1,"a":2}"#.into(),
        timeout_ms: None,
        extras: "{}".into(),
    };
    let receipt =
        Receipt { reference: Some("r".into()), note: None, remember: Some("[1]".into()), extras: "{}".into() };
    let failure = Failure {
        kind: FailureKind::Reconnect,
        reason: "gone".into(),
        after_seconds: Some(7),
        resume: Some("null".into()),
        extras: "{}".into(),
    };
    vec![
        (
            Action::Http(request),
            r#"{"http":{"method":"POST","url":"https://hooks.example/","headers":[["a","1"]],"body":"{}","sign":[{"marker":"@@","algorithm":"hmac-sha256","encoding":"hex","key":"k","derive":["ZA=="],"message":[{"bytes":"djA6"},{"secret":"p"},"url","body",{"bodyHash":"sha256"},{"header":"date"}]}],"timeoutMs":5,"responseMax":6,"extras":{"later":1}}}"#,
        ),
        (
            Action::Http(plain),
            r#"{"http":{"method":"POST","url":"https://hooks.example/","bodyBase64":"/w==","timeoutMs":5,"responseMax":6}}"#,
        ),
        (Action::Mail(mail), r#"{"mail":{"to":["ops@example.com"],"subject":"s","text":"t","thread":"x"}}"#),
        (Action::Tool(call), r#"{"tool":{"connector":"registrar","tool":"restart","arguments":{"b":1,"a":2}}}"#),
        (
            Action::Wait(Pause { seconds: 60, resume: Some(r#"{"job":7}"#.into()) }),
            r#"{"wait":{"seconds":60,"resume":{"job":7}}}"#,
        ),
        (Action::Done(receipt), r#"{"done":{"reference":"r","remember":[1]}}"#),
        (Action::Failed(failure), r#"{"failed":{"kind":"reconnect","reason":"gone","afterSeconds":7,"resume":null}}"#),
        (
            Action::Other(Extension { kind: "later".into(), payload: "1e2".into() }),
            r#"{"other":{"kind":"later","payload":1e2}}"#,
        ),
    ]
}

#[test]
fn every_action_is_written_in_one_way() {
    for (action, expected) in actions() {
        assert_eq!(action_to_json(&action), expected);
    }
}

#[test]
fn digests_tell_actions_apart_and_never_change() {
    let digests: std::collections::BTreeSet<String> = actions().iter().map(|(action, _)| digest(action)).collect();
    assert_eq!(digests.len(), actions().len());
    // Of the text above: one that changes would make every attempt that is resumed over an update fail.
    let wait = Action::Wait(Pause { seconds: 60, resume: Some(r#"{"job":7}"#.into()) });
    assert_eq!(digest(&wait), "b7037b2f94f00b78b61c3e7210eb17c9ffbb49256fdbbdd7ee61530a9a7d4b78");
}
