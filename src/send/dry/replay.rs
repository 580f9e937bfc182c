//! A recorded attempt made again, on any version of its plugin: the same, or where it first does something else. Nothing
//! is sent.

use serde_json::Value;
use url::Url;

use super::{Asked, End, Leg, Scripted, steps};
use crate::inbox::Recording;
use crate::send::record::{NotARecord, Recorded};
use crate::wasm::{Answer, Plugin};

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// The plugin asked for exactly the same, and ended it in the same way.
    Same,
    /// It did something else.
    Diverged(Divergence),
}

/// Where a plugin first does something else than is recorded. What comes after it is not comparable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// How far it leads.
    pub class: Class,
    /// The step, from 1.
    pub step: usize,
    /// JSON: the action that is recorded, or that the version asks for which it is compared with.
    pub recorded: String,
    /// JSON: the action that the plugin asks for this time, with a stand-in for each secret; none when it failed.
    pub now: Option<String>,
    /// Why it failed.
    pub reason: Option<String>,
    /// Whether it failed at a limit, which may be the machine's fault and not the plugin's.
    pub is_limit: bool,
}

/// How far a divergence leads, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The same goes to the same place in other words: the method, origin and path of a request, the recipients of a mail,
    /// the tool of a call, or the outcome, are the same.
    Content,
    /// It goes somewhere else, or is another kind of effect.
    Target,
    /// It ends, or waits, where it did not, or goes on where it ended.
    Steps,
    /// It ends with another outcome.
    Outcome,
    /// The plugin trapped, passed a limit or answered what no plugin may.
    Failed,
}

impl Class {
    /// All, the least first.
    pub const ALL: [Self; 5] = [Self::Content, Self::Target, Self::Steps, Self::Outcome, Self::Failed];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::Target => "target",
            Self::Steps => "steps",
            Self::Outcome => "outcome",
            Self::Failed => "failed",
        }
    }
}

/// Makes a recorded attempt again on `plugin`, with the answers that are recorded.
///
/// # Errors
/// When the recording cannot be read.
pub async fn replay(recording: &Recording, plugin: &Plugin) -> Result<Replayed, NotARecord> {
    let (leg, actions) = leg(Recorded::from_json(&recording.content)?);
    Ok(compared(&actions, made(plugin, leg).await?))
}

/// What is handed and told to a plugin that makes it again, and the actions that are recorded, the end last.
pub(super) fn leg(recorded: Recorded) -> (Leg, Vec<String>) {
    let mut leg = Leg { delivery: recorded.delivery, resumed: None, script: Vec::new() };
    let mut actions = Vec::new();
    for effect in recorded.effects {
        match (effect.answer, effect.action) {
            (Answer::Resumed(resume), _) => leg.resumed = Some((effect.at, resume)),
            (answer, action) => {
                leg.script.push(Scripted { at: Some(effect.at), expected: action.clone(), answer });
                actions.push(action.unwrap_or_default());
            }
        }
    }
    actions.push(recorded.end);
    (leg, actions)
}

/// What a plugin makes of it.
pub(super) async fn made(plugin: &Plugin, leg: Leg) -> Result<(Vec<Asked>, End), NotARecord> {
    steps(plugin, leg).await.ok_or_else(|| NotARecord::new("its delivery is none that a host makes"))
}

/// Compares what is recorded, the end last, with what was asked for.
pub(super) fn compared(recorded: &[String], (asked, end): (Vec<Asked>, End)) -> Replayed {
    let mut now: Vec<Option<String>> = asked.into_iter().map(|asked| Some(asked.action)).collect();
    let mut failed = None;
    match end {
        End::Said(action) => now.push(Some(action)),
        // The effect that there is no answer to is the last.
        End::NeedsAnswer | End::WrongAnswer => {}
        End::Fault { reason, is_limit, .. } => {
            now.push(None);
            failed = Some((reason, is_limit));
        }
    }
    let differs = recorded.iter().zip(now).zip(1..).find(|((recorded, now), _)| Some(*recorded) != now.as_ref());
    let Some(((recorded, now), step)) = differs else { return Replayed::Same };
    let class = now.as_deref().map_or(Class::Failed, |now| class(recorded, now));
    let (reason, is_limit) = match failed.filter(|_| now.is_none()) {
        Some((reason, is_limit)) => (Some(reason), is_limit),
        None => (None, false),
    };
    Replayed::Diverged(Divergence { class, step, recorded: recorded.clone(), now, reason, is_limit })
}

/// How two actions that are not the same differ.
pub(in crate::send) fn class(recorded: &str, now: &str) -> Class {
    let (recorded, now) = (kind(recorded), kind(now));
    match (recorded.0.as_str(), now.0.as_str()) {
        ("done", "done") => Class::Content,
        ("failed", "failed") if recorded.1.get("kind") == now.1.get("kind") => Class::Content,
        ("done" | "failed", "done" | "failed") => Class::Outcome,
        ("wait", "wait") => Class::Content,
        ("wait" | "done" | "failed", _) | (_, "wait" | "done" | "failed") => Class::Steps,
        (one, other) if one == other && place(one, &recorded.1) == place(other, &now.1) => Class::Content,
        _ => Class::Target,
    }
}

/// The kind of an action, and what it holds.
pub(in crate::send) fn kind(action: &str) -> (String, Value) {
    match serde_json::from_str(action) {
        Ok(Value::Object(members)) => members.into_iter().next().unwrap_or_default(),
        _ => Default::default(),
    }
}

/// Where an effect goes.
fn place(kind: &str, effect: &Value) -> Vec<Value> {
    let member = |name: &str| effect.get(name).cloned().unwrap_or_default();
    match kind {
        "http" => {
            let url = member("url");
            let parsed = url.as_str().and_then(|url| Url::parse(url).ok());
            // A URL that is a secret has no parts.
            let place = parsed.map_or_else(
                || vec![url.clone()],
                |url| vec![Value::from(url.origin().ascii_serialization()), Value::from(url.path())],
            );
            [vec![member("method")], place].concat()
        }
        "mail" => {
            let mut to: Vec<String> = serde_json::from_value(member("to")).unwrap_or_default();
            to.sort();
            to.into_iter().map(Value::from).collect()
        }
        "tool" => vec![member("connector"), member("tool")],
        _ => vec![member("kind")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(recorded: &str, now: &str, expected: Class) {
        assert_eq!(class(recorded, now), expected, "{recorded} and {now}");
    }

    #[test]
    fn a_divergence_is_as_grave_as_where_it_leads() {
        let http = |method: &str, url: &str, body: &str| {
            format!(r#"{{"http":{{"method":"{method}","url":"{url}","body":"{body}"}}}}"#)
        };
        let post = http("POST", "https://a.example/x?y=1", "one");
        check(&post, &http("POST", "https://a.example/x?y=2", "two"), Class::Content);
        check(&post, &http("PUT", "https://a.example/x?y=1", "one"), Class::Target);
        check(&post, &http("POST", "https://a.example/z", "one"), Class::Target);
        check(&post, &http("POST", "https://a.example:8443/x?y=1", "one"), Class::Target);
        check(&post, &http("POST", "switchbell-secret.hook.0000000000000000", "one"), Class::Target);
        let mail = |to: &str, text: &str| format!(r#"{{"mail":{{"to":[{to}],"subject":"s","text":"{text}"}}}}"#);
        check(&mail(r#""a","b""#, "t"), &mail(r#""b","a""#, "t"), Class::Content);
        check(&mail(r#""a","b""#, "t"), &mail(r#""a""#, "t"), Class::Target);
        check(&post, &mail(r#""a""#, "t"), Class::Target);
        let tool = |tool: &str, count: u32| {
            format!(r#"{{"tool":{{"connector":"c","tool":"{tool}","arguments":{{"n":{count}}}}}}}"#)
        };
        check(&tool("t", 1), &tool("t", 2), Class::Content);
        check(&tool("t", 1), &tool("u", 1), Class::Target);
        let other = |kind: &str, load: u32| format!(r#"{{"other":{{"kind":"{kind}","payload":{load}}}}}"#);
        check(&other("k", 1), &other("k", 2), Class::Content);
        check(&other("k", 1), &other("l", 1), Class::Target);
        let (done, wait) = (r#"{"done":{"note":"x"}}"#, r#"{"wait":{"seconds":1}}"#);
        let failed = |kind: &str, reason: &str| format!(r#"{{"failed":{{"kind":"{kind}","reason":"{reason}"}}}}"#);
        check(done, r#"{"done":{}}"#, Class::Content);
        check(wait, r#"{"wait":{"seconds":2}}"#, Class::Content);
        check(&failed("retry", "x"), &failed("retry", "y"), Class::Content);
        check(&failed("retry", "x"), &failed("reject", "x"), Class::Outcome);
        check(done, &failed("retry", "x"), Class::Outcome);
        for (one, other) in [(done, wait), (done, &*post), (wait, &*post)] {
            check(one, other, Class::Steps);
            check(other, one, Class::Steps);
        }
    }
}
