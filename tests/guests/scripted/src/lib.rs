//! A plugin whose settings say, step by step, what it asks for: one JSON string of words between bars, the first for the
//! first step. The last word stands for all steps after it, too.
//!
//! Parts between ` ; ` are for deliveries with something to carry on with: `resume` is a number, which says how many parts
//! to leave out. A script may begin with the keys of its lanes: `@bot,#ops post …`; each lets out one effect a second. One
//! that begins with `refuse` is refused, and one that is a secret alone has a lane of that name. Where settings are a
//! mapping, as a configuration file has them, the script is the value of `script`, which stands alone.

mod bindings;

use bindings::exports::switchbell::delivery::plugin::{Action, Delivery, Destination, Effect, Guest, Problem};
use bindings::switchbell::delivery::types::{
    Answer, Extension, Failure, FailureKind, Lane, Level, Message, Pause, Reach, Receipt, Request, ToolCall,
};

struct Scripted;

impl Guest for Scripted {
    fn describe() -> String {
        // Tests replace parts of it by others of the same length.
        r#"{"name":"scripted","version":"1.0.0","repeat":"tolerable","agent":false,"needs":["memory"]}"#.into()
    }

    fn check(settings: String) -> Result<Destination, Vec<Problem>> {
        let (lanes, script) = parted(&settings);
        if script.starts_with("refuse") {
            return Err(vec![Problem { path: String::new(), message: "it is refused".into() }]);
        }
        let own = script.starts_with("switchbell-secret.").then_some(script);
        let keys = lanes.split(',').filter(|key| !key.is_empty()).chain(own);
        let lanes = keys.map(lane).collect();
        Ok(Destination { label: "the script".into(), lanes, extras: "{}".into() })
    }

    fn step(delivery: Delivery, past: Vec<Effect>) -> Action {
        let (_, script) = parted(&delivery.settings);
        let part = delivery.resume.as_deref().and_then(|resume| resume.parse().ok()).unwrap_or(0);
        let words: Vec<&str> = script.split(" ; ").nth(part).unwrap_or("nothing is left").split('|').collect();
        let asked = past.iter().filter(|effect| !matches!(effect.answer, Answer::Resumed(_))).count();
        let word = words.get(asked).or(words.last()).copied().unwrap_or_default();
        act(word, &delivery, &past)
    }
}

/// The keys of the lanes, and the script.
fn parted(settings: &str) -> (&str, &str) {
    let of_mapping = settings.strip_prefix(r#"{"script":""#).and_then(|rest| rest.strip_suffix(r#""}"#));
    let script = of_mapping.unwrap_or(settings.trim_matches('"'));
    script.strip_prefix('@').and_then(|rest| rest.split_once(' ')).unwrap_or(("", script))
}

fn lane(key: &str) -> Lane {
    Lane { key: key.into(), count: 1, per_seconds: 1, in_flight: 0, ordered: false }
}

fn act(word: &str, delivery: &Delivery, past: &[Effect]) -> Action {
    match word.split_once(' ').unwrap_or((word, "")) {
        ("post", url) => Action::Http(request(url)),
        ("send", url) => Action::Http(Request { body: told_of(delivery).into_bytes(), ..request(url) }),
        ("judge", _) => judge(past.last()),
        ("mail", _) => Action::Mail(Message {
            to: vec!["ops@example.com".into()],
            subject: "s".into(),
            text: "t".into(),
            thread: None,
            extras: "{}".into(),
        }),
        ("tool", how) => Action::Tool(tool(how)),
        ("tool-in", how) => {
            let (milliseconds, how) = how.split_once(' ').unwrap_or((how, ""));
            Action::Tool(ToolCall { timeout_ms: milliseconds.parse().ok(), ..tool(how) })
        }
        ("other", kind) => Action::Other(Extension { kind: kind.into(), payload: "{}".into() }),
        ("wait", how) => {
            let (seconds, resume) =
                how.split_once(' ').map_or((how, None), |(seconds, resume)| (seconds, Some(resume)));
            Action::Wait(Pause { seconds: seconds.parse().unwrap_or(1), resume: resume.map(Into::into) })
        }
        ("trap", _) => std::process::abort(),
        ("report", _) => failed(FailureKind::Reject, &past.last().map_or_else(String::new, told)),
        ("carry-on", part) => {
            Action::Failed(Failure { resume: Some(part.into()), ..failure(FailureKind::Retry, part) })
        }
        ("retry", reason) => failed(FailureKind::Retry, reason),
        ("reject", reason) => failed(FailureKind::Reject, reason),
        ("reconnect", reason) => failed(FailureKind::Reconnect, reason),
        ("unknown", reason) => failed(FailureKind::Unknown, reason),
        ("remember", what) => Action::Done(Receipt { remember: Some(what.into()), ..receipt("remembered") }),
        ("finding", title) => {
            let report = format!(r#"{{"report":{{"title":"{title}","body":"what was found"}}}}"#);
            Action::Done(Receipt { reference: Some("run-7".into()), extras: report, ..receipt("found") })
        }
        ("memory", _) => done(delivery.memory.as_deref().unwrap_or("none")),
        ("told", _) => done(&format!("{} of {:?}", delivery.now, past.first().map(|effect| &effect.at))),
        ("digest", _) => done(&format!("{} and {}", delivery.notifications.len(), delivery.omitted)),
        ("cause", _) => done(&format!("{} {} {}", delivery.cause, delivery.attempt, delivery.id)),
        _ => done(word),
    }
}

fn request(url: &str) -> Request {
    Request {
        method: "POST".into(),
        url: url.into(),
        headers: vec![],
        body: b"{}".to_vec(),
        sign: vec![],
        timeout_ms: None,
        response_max: None,
        extras: "{}".into(),
    }
}

/// `CONNECTOR/TOOL key=value …`; a value that is no whole number is a text.
fn tool(how: &str) -> ToolCall {
    let mut words = how.split(' ').filter(|word| !word.is_empty());
    let (connector, tool) = words.next().and_then(|name| name.split_once('/')).unwrap_or(("registrar", "restart"));
    let argument = |(key, value): (&str, &str)| match value.parse::<i64>() {
        Ok(_) => format!(r#""{key}":{value}"#),
        Err(_) => format!(r#""{key}":"{value}""#),
    };
    let arguments: Vec<String> = words.filter_map(|word| word.split_once('=')).map(argument).collect();
    ToolCall {
        connector: connector.into(),
        tool: tool.into(),
        arguments: format!("{{{}}}", arguments.join(",")),
        timeout_ms: None,
        extras: "{}".into(),
    }
}

/// JSON for a destination that keeps account of what it is sent.
fn told_of(delivery: &Delivery) -> String {
    let seqs: Vec<String> = delivery.notifications.iter().map(|one| one.seq.to_string()).collect();
    let urgent = delivery.notifications.iter().any(|one| one.level == Level::Urgent);
    let (id, attempt, omitted, seqs) = (&delivery.id, delivery.attempt, delivery.omitted, seqs.join(","));
    format!(r#"{{"id":"{id}","attempt":{attempt},"seqs":[{seqs}],"omitted":{omitted},"urgent":{urgent}}}"#)
}

/// What the answer to the last request means, as for a common webhook.
fn judge(last: Option<&Effect>) -> Action {
    let response = match last.map(|effect| &effect.answer) {
        Some(Answer::Http(Ok(response))) => response,
        Some(Answer::Http(Err(fault))) if fault.reach == Reach::Unanswered => {
            return failed(FailureKind::Unknown, &fault.code);
        }
        _ => return failed(FailureKind::Retry, "nothing was sent"),
    };
    let asked = response.headers.iter().find(|(name, _)| name == "retry-after");
    let after_seconds = asked.and_then(|(_, value)| value.parse().ok());
    let kind = match response.status {
        200..=299 => return done("accepted"),
        401 => FailureKind::Reconnect,
        410 => FailureKind::Reject,
        _ => FailureKind::Retry,
    };
    Action::Failed(Failure { after_seconds, ..failure(kind, &response.status.to_string()) })
}

fn done(note: &str) -> Action {
    Action::Done(receipt(note))
}

fn receipt(note: &str) -> Receipt {
    Receipt { reference: None, note: Some(note.into()), remember: None, extras: "{}".into() }
}

fn failed(kind: FailureKind, reason: &str) -> Action {
    Action::Failed(failure(kind, reason))
}

fn failure(kind: FailureKind, reason: &str) -> Failure {
    Failure { kind, reason: reason.into(), after_seconds: Some(7), resume: None, extras: "{}".into() }
}

fn told(effect: &Effect) -> String {
    match &effect.answer {
        Answer::Http(Ok(response)) => {
            format!("{} {:?} {}", response.status, response.headers, String::from_utf8_lossy(&response.body))
        }
        Answer::Http(Err(fault)) | Answer::Mail(Err(fault)) | Answer::Other(Err(fault)) => {
            format!("{:?} {}: {}", fault.reach, fault.code, fault.message)
        }
        Answer::Tool(Err(fault)) => {
            format!(
                "{:?} {}: {} (status {:?}, after {:?})",
                fault.reach, fault.code, fault.message, fault.status, fault.after_seconds
            )
        }
        Answer::Tool(Ok(answer)) => {
            format!("error {}, truncated {}: {}", answer.is_error, answer.truncated, answer.content)
        }
        other => format!("{other:?}"),
    }
}
