//! A preview as a person reads it.

use std::fmt::Write;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::inbox::delivery::Outcome;
use crate::serve::inquiry::{PreviewJson, PreviewedJson, StepJson};

pub(super) fn whole(of: &PreviewedJson) -> String {
    let one = &of.notification;
    let mut text = format!("{}: {} (from {}, {})\n", one.name, one.title, one.source, one.effective_level);
    if !of.consumers.is_empty() {
        text.push_str(&format!("joins the queues of: {}\n", of.consumers.join(", ")));
    }
    if of.targets.is_empty() {
        text.push_str("\nno route matches: nobody would hear of it\n");
        let width = of.unmatched.iter().map(|one| one.route.chars().count()).max().unwrap_or_default();
        for unmatched in &of.unmatched {
            let why = unmatched.unmet.as_ref().map_or_else(String::new, |unmet| {
                format!("{}: it asks for {}, and this has {}", unmet.field, unmet.asked, unmet.found)
            });
            text.push_str(&format!("✗ {:<width$}  {why}\n", unmatched.route));
        }
    }
    for one in &of.targets {
        text.push_str(&of_target(one));
    }
    text + "\nnothing was sent\n"
}

fn of_target(of: &PreviewJson) -> String {
    let version = of.plugin_version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    let mut text = match (&of.route, &of.target) {
        (Some(route), Some(target)) => format!("\nroute {route} -> {}{version} (target {target})\n", of.plugin),
        _ => format!("\n{}{version}\n", of.plugin),
    };
    if let Some(when) = &of.when {
        text.push_str(&field("when", when));
    }
    match &of.not_made {
        Some(why) => text.push_str(&field("not made", why)),
        None => {
            for (number, step) in (1..).zip(&of.steps) {
                text.push_str(&of_step(number, step));
            }
            text.push_str(&field("then", &then(of)));
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

fn of_step(number: usize, step: &StepJson) -> String {
    let number = number.to_string();
    let action = step.action.as_deref().map(value).unwrap_or_default();
    if let Some(wait) = action.get("wait") {
        let seconds = wait.get("seconds").and_then(Value::as_u64).unwrap_or_default();
        return field(&number, &format!("waits {seconds} s"));
    }
    let mut text = field(&number, &of_action(&action));
    for left_out in &step.left_out {
        text.push_str(&field("left out", &format!("{}: {}: {}", left_out.recipient, left_out.code, left_out.message)));
    }
    if let Some(refused) = &step.refused {
        text.push_str(&field("refused", &format!("{}: {}", refused.code, refused.message)));
    } else if let Some(answer) = &step.answer {
        text.push_str(&field("answer", answer.get()));
    }
    text
}

fn value(json: &RawValue) -> Value {
    serde_json::from_str(json.get()).unwrap_or_default()
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
fn then(of: &PreviewJson) -> String {
    let reason = of.reason.as_deref().filter(|reason| !reason.is_empty());
    let because = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    if of.needs_answer {
        return "what follows depends on the answer: a file of answers says one (--answers FILE)".to_owned();
    }
    if of.has_wrong_answer {
        return "the next of the answers is for another kind of action".to_owned();
    }
    match of.outcome.as_deref() {
        Some(outcome) if outcome == Outcome::Delivered.as_str() => format!("delivered{because}"),
        _ if of.has_fault => format!("the plugin fails{because}"),
        outcome => format!("not delivered ({}){because}", outcome.unwrap_or_default()),
    }
}
