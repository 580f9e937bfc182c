//! Agent2Agent over JSON-RPC: revision 1.0 (a2a-protocol.org/v1.0.0/specification), and 0.3 for servers that know no
//! other. Both are asked to answer at once; the task is asked for afterwards.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use switchbell_kit::types::{Action, Delivery, FailureKind};

use crate::input::Input;
use crate::json::{Object, Value};
use crate::progress::{Revision, Run};
use crate::refusal::{Refusal, Reply};
use crate::request::Ask;
use crate::settings::Agent;
use crate::verdict::{Answered, Said};

/// How many tasks are looked through for one that may have begun: the newest, as many as a server gives at once.
const SOUGHT_MAX: &str = "100";

/// How many messages of each are looked at: ours is the first, and an agent that has said more than this is found by
/// nobody.
const HISTORY_MAX: &str = "10";

/// Codes of JSON-RPC and A2A.
mod code {
    pub(super) const PARSE: i64 = -32_700;
    pub(super) const INTERNAL: i64 = -32_603;
    pub(super) const INVALID_PARAMS: i64 = -32_602;
    pub(super) const METHOD_NOT_FOUND: i64 = -32_601;
    pub(super) const INVALID_REQUEST: i64 = -32_600;
    /// The first of A2A's own; those up to [`EXTENDED_CARD`] refuse, but for one.
    pub(super) const TASK_NOT_FOUND: i64 = -32_001;
    /// The agent ran, and what it said was no good.
    pub(super) const INVALID_ANSWER: i64 = -32_006;
    pub(super) const EXTENDED_CARD: i64 = -32_007;
    pub(super) const EXTENSION_REQUIRED: i64 = -32_008;
    pub(super) const VERSION: i64 = -32_009;
}

/// Sends the message that begins a task. `key` is the message's id, by which a server may know a repeated one.
pub(crate) fn start(agent: &Agent, delivery: &Delivery, key: &str, revision: Revision) -> Action {
    let input = Input::new(&agent.prompt, delivery);
    let is_one = revision == Revision::One;
    let part = |text: &str| {
        let part = if is_one { Object::new() } else { Object::new().text("kind", "text") };
        part.text("text", text).end()
    };
    let parts = format!("[{},{}]", part(&input.instruction), part(&input.content));
    let metadata = Object::new()
        .text("onBehalfOf", &delivery.on_behalf_of)
        .text("workspace", &delivery.workspace)
        .text("route", &delivery.route)
        .text("delivery", &delivery.id)
        .end();
    let message = if is_one { Object::new() } else { Object::new().text("kind", "message") };
    let message = message
        .text("messageId", key)
        .text("role", if is_one { "ROLE_USER" } else { "user" })
        .raw("parts", &parts)
        .raw("metadata", &metadata)
        .end();
    let configuration = match revision {
        Revision::One => Object::new().raw("returnImmediately", "true").end(),
        Revision::ZeroThree => Object::new().raw("blocking", "false").end(),
    };
    let params = Object::new().raw("message", &message).raw("configuration", &configuration).end();
    call(agent, delivery, revision, if is_one { "SendMessage" } else { "message/send" }, &params)
}

/// Asks for a task.
pub(crate) fn ask(agent: &Agent, delivery: &Delivery, run: &Run) -> Action {
    let method = if run.revision == Revision::One { "GetTask" } else { "tasks/get" };
    let params = Object::new().text("id", &run.id).raw("historyLength", "0").end();
    call(agent, delivery, run.revision, method, &params)
}

/// Asks for the newest tasks.
pub(crate) fn seek(agent: &Agent, delivery: &Delivery) -> Action {
    let params = Object::new().raw("pageSize", SOUGHT_MAX).raw("historyLength", HISTORY_MAX).end();
    call(agent, delivery, Revision::One, "ListTasks", &params)
}

fn call(agent: &Agent, delivery: &Delivery, revision: Revision, method: &str, params: &str) -> Action {
    let body = Object::new().text("jsonrpc", "2.0").raw("id", "1").text("method", method).raw("params", params).end();
    Ask::new(agent, delivery).with("a2a-version", revision.name()).post("", body)
}

/// The id of the task that the message with this id began.
pub(crate) fn found(reply: &Reply<'_>, key: &str) -> Option<String> {
    let tasks = reply.value().at(&["result", "tasks"])?;
    let is_ours = |message: Value<'_>| message.text_at(&["messageId"]).as_deref() == Some(key);
    let ours = tasks.items().find(|task| task.get("history").is_some_and(|history| history.items().any(is_ours)))?;
    ours.text_at(&["id"])
}

/// Whether the agent has looked, or says that it cannot: not whether it could not be asked.
pub(crate) fn has_looked(reply: &Reply<'_>) -> bool {
    let answer = reply.value();
    (reply.is_good() && answer.get("result").is_some()) || answer.at(&["error", "code"]).is_some()
}

/// What an answer says of the task; none when it is no answer of an A2A server. `asked` is the task that was asked for, if
/// it was not to begin.
pub(crate) fn read(reply: &Reply<'_>, asked: Option<&str>) -> Option<Said> {
    let answer = reply.value();
    // What an error of JSON-RPC says is more than what the status of its HTTP answer does, unless that is about who asks
    // and how often.
    let is_plain = reply.is_good() || matches!(reply.response.status, 400 | 404 | 405 | 500 | 501);
    if let Some(error) = answer.get("error").filter(|_| is_plain) {
        let code = error.get("code")?.whole()?;
        let words = format!("{} ({code})", error.text_at(&["message"]).unwrap_or_default());
        return Some(asked.map_or_else(|| error_of_start(code, &words), |id| error_of_poll(code, &words, id)));
    }
    let result = answer.get("result").filter(|_| reply.is_good())?;
    // 1.0 wraps what a message is answered with.
    let result = result.get("task").or_else(|| result.get("message")).unwrap_or(result);
    match result.text_at(&["status", "state"]) {
        Some(state) => task(result, &state),
        None if result.get("parts").is_some() => Some(Said::Answered(Answered {
            reference: result.text_at(&["taskId"]).or_else(|| result.text_at(&["messageId"])),
            text: texts(result),
            note: None,
        })),
        None => None,
    }
}

fn error_of_start(code: i64, words: &str) -> Said {
    match code {
        code::METHOD_NOT_FOUND | code::VERSION | code::INVALID_REQUEST => {
            Said::OtherRevision(format!("the agent speaks neither A2A 1.0 nor 0.3 here: {words}"))
        }
        code::PARSE | code::INVALID_PARAMS | code::EXTENSION_REQUIRED => refused(FailureKind::Reject, words),
        code::EXTENDED_CARD..=code::TASK_NOT_FOUND if code != code::INVALID_ANSWER => {
            refused(FailureKind::Reject, words)
        }
        _ => {
            let reason = format!("the agent failed, and a run may have begun: {words}");
            Said::Refused(Refusal::new(FailureKind::Unknown, reason))
        }
    }
}

fn refused(kind: FailureKind, words: &str) -> Said {
    Said::Refused(Refusal::new(kind, format!("the agent refused: {words}")))
}

fn error_of_poll(code: i64, words: &str, id: &str) -> Said {
    Said::Refused(match code {
        code::TASK_NOT_FOUND => Refusal::gone(id, words),
        code::INTERNAL => Refusal::new(FailureKind::Retry, format!("task {id} cannot be asked for now: {words}")),
        _ => {
            let reason = format!("task {id} was begun but cannot be asked for: {words}");
            Refusal::new(FailureKind::Unknown, reason)
        }
    })
}

/// 1.0 writes `TASK_STATE_INPUT_REQUIRED` where 0.3 writes `input-required`.
fn task(task: Value<'_>, state: &str) -> Option<Said> {
    let id = task.text_at(&["id"])?;
    let state = state.trim_start_matches("TASK_STATE_").to_ascii_lowercase().replace('_', "-");
    let message = task.at(&["status", "message"]).map(texts).unwrap_or_default();
    let words = if message.is_empty() { String::new() } else { format!(": {message}") };
    Some(match state.as_str() {
        "completed" => Said::Answered(Answered { reference: Some(id), text: result(task, message), note: None }),
        "failed" => Said::Over(format!("task {id} failed{words}")),
        "rejected" => Said::Over(format!("the agent refused task {id}{words}")),
        "canceled" | "cancelled" => Said::Over(format!("task {id} was canceled{words}")),
        "input-required" => {
            let reason = format!("task {id} asks for input, which a person must give to the agent{words}");
            Said::Stuck { id, kind: FailureKind::Reject, reason }
        }
        "auth-required" => {
            let reason = format!("task {id} asks to be authorised by a person{words}");
            Said::Stuck { id, kind: FailureKind::Reconnect, reason }
        }
        _ => Said::Running(id),
    })
}

/// What the task made, or else what it said last.
fn result(task: Value<'_>, message: String) -> String {
    let artifacts = task.get("artifacts").map(|artifacts| artifacts.items().map(texts).collect::<Vec<_>>());
    let made = artifacts.unwrap_or_default().join("\n");
    if made.trim().is_empty() { message } else { made }
}

/// The texts of a message or an artifact, and its data as JSON.
fn texts(holder: Value<'_>) -> String {
    let Some(parts) = holder.get("parts") else { return String::new() };
    let text = |part: Value<'_>| part.text_at(&["text"]).or_else(|| Some(String::from(part.get("data")?.raw())));
    parts.items().filter_map(text).collect::<Vec<_>>().join("\n")
}
