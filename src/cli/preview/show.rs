//! What a preview prints.

use std::fmt::Write;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Shown;
use crate::cli::output::NotificationJson;
use crate::inbox::Marks;
use crate::inbox::delivery::Outcome;
use crate::notification::Notification;
use crate::send::preview::{Asked, End, Previewed, Step};
use crate::send::record::answer_to_json;
use crate::wasm::Fault;

/// Whether the guard refuses an effect of it.
pub(super) fn has_refusal(previewed: &Previewed) -> bool {
    let is_refused = |step: &Step| match step {
        Step::Effect(Asked { refused, left_out, .. }) => refused.is_some() || !left_out.is_empty(),
        Step::Wait(_) => false,
    };
    previewed.steps.iter().any(is_refused)
}

pub(super) fn whole(of: &Notification, shown: &[Shown<'_>]) -> String {
    let (event, level, source) = (&of.event, of.effective_level, &of.source);
    let mut text = format!("{}: {} (from {source}, {level})\n", event.name, event.title);
    if shown.is_empty() {
        text.push_str("\nno route matches: nobody would hear of it\n");
    }
    for one in shown {
        text.push_str(&of_target(one));
    }
    text + "\nnothing was sent\n"
}

fn of_target(of: &Shown<'_>) -> String {
    let version = of.plugin_version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    let (route, target) = (&of.route.name, of.target);
    let mut text = format!("\nroute {route} -> {}{version} (target {})\n", target.plugin, target.id);
    text.push_str(&field("when", &of.when));
    match &of.came {
        Err(why) => text.push_str(&field("not made", why)),
        Ok(previewed) => {
            for (number, step) in (1..).zip(&previewed.steps) {
                text.push_str(&of_step(number, step));
            }
            text.push_str(&field("then", &then(previewed)));
        }
    }
    text
}

fn field(label: &str, value: &str) -> String {
    let mut lines = value.lines();
    let mut text = format!("{label:<9} {}\n", lines.next().unwrap_or_default());
    for line in lines {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", format_args!("{:<9} {line}", "").to_string().trim_end());
    }
    text
}

fn of_step(number: usize, step: &Step) -> String {
    let number = number.to_string();
    match step {
        Step::Wait(wait) => {
            let seconds = value(wait).pointer("/wait/seconds").and_then(Value::as_u64).unwrap_or_default();
            field(&number, &format!("waits {seconds} s"))
        }
        Step::Effect(asked) => {
            let mut text = field(&number, &of_action(&value(&asked.action)));
            for (recipient, Fault { code, message, .. }) in &asked.left_out {
                text.push_str(&field("left out", &format!("{recipient}: {code}: {message}")));
            }
            if let Some(Fault { code, message, .. }) = &asked.refused {
                text.push_str(&field("refused", &format!("{code}: {message}")));
            } else if let Some(answer) = &asked.answer {
                text.push_str(&field("answer", &answer_to_json(answer)));
            }
            text
        }
    }
}

fn value(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_default()
}

/// An effect as a person reads it.
fn of_action(action: &Value) -> String {
    let member = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(http) = action.get("http") {
        let mut text = format!("{} {}\n", member(http, "method"), member(http, "url"));
        for header in http.get("headers").and_then(Value::as_array).into_iter().flatten() {
            let part = |at: usize| header.get(at).and_then(Value::as_str).unwrap_or_default();
            let _ = writeln!(text, "{}: {}", part(0), part(1));
        }
        let bytes = http.get("bodyBase64").map(|bytes| format!("(base64) {}", bytes.as_str().unwrap_or_default()));
        let body = bytes.unwrap_or_else(|| member(http, "body"));
        return if body.is_empty() { text } else { format!("{text}\n{body}\n") };
    }
    if let Some(mail) = action.get("mail") {
        let to = mail.get("to").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let to = to.collect::<Vec<_>>().join(", ");
        return format!("mail to {to}\nsubject: {}\n\n{}\n", member(mail, "subject"), member(mail, "text"));
    }
    if let Some(tool) = action.get("tool") {
        let arguments = tool.get("arguments").map(Value::to_string).unwrap_or_default();
        return format!("tool {}/{} {arguments}", member(tool, "connector"), member(tool, "tool"));
    }
    action.to_string()
}

/// How it ends, in words.
fn then(of: &Previewed) -> String {
    let reason = of.reason.as_deref().filter(|reason| !reason.is_empty());
    let because = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    match (&of.end, of.outcome) {
        (End::NeedsAnswer, _) => {
            "what follows depends on the answer: a file of answers says one (--answers)".to_owned()
        }
        (End::WrongAnswer, _) => "the next of the answers is for another kind of action".to_owned(),
        (_, Some(Outcome::Delivered)) => format!("delivered{because}"),
        (End::Fault { .. }, _) => format!("the plugin fails{because}"),
        (_, outcome) => format!("not delivered ({}){because}", outcome.map_or("", Outcome::as_str)),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PreviewJson<'a> {
    notification: NotificationJson<'a>,
    targets: Vec<TargetJson<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TargetJson<'a> {
    route: &'a str,
    target: &'a str,
    plugin: &'a str,
    plugin_version: Option<&'a str>,
    when: &'a str,
    /// Why no attempt could be made.
    not_made: Option<&'a str>,
    steps: Vec<StepJson<'a>>,
    /// What the plugin ends with; null where it fails or that depends on an answer.
    end: Option<&'a RawValue>,
    needs_answer: bool,
    outcome: Option<&'static str>,
    reason: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StepJson<'a> {
    action: Option<&'a RawValue>,
    refused: Option<RefusedJson<'a>>,
    /// Recipients of a mail.
    left_out: Vec<LeftOutJson<'a>>,
    answer: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct LeftOutJson<'a> {
    recipient: &'a str,
    #[serde(flatten)]
    why: RefusedJson<'a>,
}

#[derive(Serialize)]
struct RefusedJson<'a> {
    code: &'a str,
    message: &'a str,
}

impl<'a> PreviewJson<'a> {
    pub(super) fn of(subject: &'a (Notification, Marks), shown: &'a [Shown<'a>]) -> Self {
        Self { notification: subject.into(), targets: shown.iter().map(TargetJson::from).collect() }
    }
}

impl<'a> From<&'a Shown<'a>> for TargetJson<'a> {
    fn from(of: &'a Shown<'a>) -> Self {
        let came = of.came.as_ref().ok();
        let end = came.and_then(|came| if let End::Said(end) = &came.end { Some(end) } else { None });
        Self {
            route: of.route.name.as_str(),
            target: &of.target.id,
            plugin: of.target.plugin.as_str(),
            plugin_version: of.plugin_version.as_deref(),
            when: &of.when,
            not_made: of.came.as_ref().err().map(String::as_str),
            steps: came.into_iter().flat_map(|came| &came.steps).map(StepJson::from).collect(),
            end: end.and_then(|end| serde_json::from_str(end).ok()),
            needs_answer: came.is_some_and(|came| came.end == End::NeedsAnswer),
            outcome: came.and_then(|came| came.outcome).map(Outcome::as_str),
            reason: came.and_then(|came| came.reason.as_deref()),
        }
    }
}

impl<'a> From<&'a Fault> for RefusedJson<'a> {
    fn from(fault: &'a Fault) -> Self {
        Self { code: &fault.code, message: &fault.message }
    }
}

impl<'a> From<&'a Step> for StepJson<'a> {
    fn from(step: &'a Step) -> Self {
        match step {
            Step::Wait(wait) => {
                Self { action: serde_json::from_str(wait).ok(), refused: None, left_out: Vec::new(), answer: None }
            }
            Step::Effect(Asked { action, refused, left_out, answer }) => Self {
                action: serde_json::from_str(action).ok(),
                refused: refused.as_ref().map(RefusedJson::from),
                left_out: left_out.iter().map(|(recipient, why)| LeftOutJson { recipient, why: why.into() }).collect(),
                answer: answer.as_ref().and_then(|answer| RawValue::from_string(answer_to_json(answer)).ok()),
            },
        }
    }
}
