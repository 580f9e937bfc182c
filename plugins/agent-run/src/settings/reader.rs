//! Collects the mistakes while it reads.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use switchbell_kit::types::Problem;

use super::{Agent, Poll, Protocol, Tool, arguments, values};
use crate::json::{Kind, Value};

/// The longest pause between two questions, in seconds: an answer is not left lying for longer than an hour.
const PAUSE_MAX: u32 = 3_600;

/// The most tokens of an answer: more than any model gives.
const TOKENS_MAX: u32 = 1_000_000;

/// Every setting, as a message lists them.
const SETTINGS: [&str; 12] = [
    "protocol",
    "url",
    "prompt",
    "model",
    "api_key",
    "api_key_header",
    "connector",
    "tool",
    "arguments",
    "max_tokens",
    "poll",
    "report",
];

pub(super) fn read(settings: &str) -> Result<Agent, Vec<Problem>> {
    let settings = Value::new(settings);
    if settings.kind() != Some(Kind::Object) {
        let message = "write settings by name: protocol, prompt, and where the agent is".to_owned();
        return Err(vec![Problem { path: String::new(), message }]);
    }
    let mut reader = Reader { settings, problems: Vec::new() };
    match reader.agent() {
        Some(agent) if reader.problems.is_empty() => Ok(agent),
        _ => Err(reader.problems),
    }
}

struct Reader<'a> {
    settings: Value<'a>,
    problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    /// None when something is wrong, which is said then.
    fn agent(&mut self) -> Option<Agent> {
        let protocol = self.protocol();
        self.refuse_unfit(protocol);
        let url = self.url(protocol);
        let prompt = self.text("prompt", values::prompt);
        let model = self.text("model", values::model);
        let api_key = self.text("api_key", values::api_key);
        let header = self.text("api_key_header", values::header);
        let max_tokens = self.max_tokens();
        let poll = self.poll();
        let report = self.report();
        let tool = self.tool();
        let protocol = protocol?;
        self.require(protocol);
        let usual = || protocol.usual_url().unwrap_or_default().to_owned();
        let header = header.map_or_else(|| protocol.usual_header().to_owned(), |name| name.to_ascii_lowercase());
        Some(Agent {
            protocol,
            url: url.map_or_else(usual, |url| url.trim_end_matches('/').to_owned()),
            prompt: prompt.unwrap_or_default(),
            model: model.unwrap_or_default(),
            api_key,
            api_key_header: header,
            max_tokens,
            poll,
            report,
            tool: if protocol == Protocol::Mcp { Some(tool?) } else { None },
        })
    }

    fn refuse(&mut self, path: &str, message: String) {
        self.problems.push(Problem { path: path.to_owned(), message });
    }

    fn has(&self, name: &str) -> bool {
        self.setting(name).is_some()
    }

    /// The setting, `null` too.
    fn setting(&self, name: &str) -> Option<Value<'a>> {
        self.settings.field(name)
    }

    fn protocol(&mut self) -> Option<Protocol> {
        let known = "a2a, openai, openai-chat, anthropic or mcp";
        if !self.has("protocol") {
            self.refuse("/protocol", format!("missing: write {known}"));
            return None;
        }
        let name = self.text("protocol", |_| Ok(()))?;
        let protocol = Protocol::named(&name);
        if protocol.is_none() {
            self.refuse("/protocol", format!("unknown protocol {name:?}: write {known}"));
        }
        protocol
    }

    /// Says of each setting that nobody knows, or that the protocol does not take, what is known and who takes it.
    fn refuse_unfit(&mut self, protocol: Option<Protocol>) {
        for (name, _) in self.settings.fields() {
            let path = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
            if !SETTINGS.contains(&name.as_str()) {
                self.refuse(&path, format!("unknown setting {name:?} (known: {})", SETTINGS.join(", ")));
            } else if let Some(protocol) = protocol.filter(|protocol| !protocol.takes(&name)) {
                let takers = Protocol::ALL.into_iter().filter(|other| other.takes(&name));
                let takers = takers.map(Protocol::name).collect::<Vec<_>>().join(", ");
                let message = format!("{} takes no {name}: leave it out (it is for {takers})", protocol.name());
                self.refuse(&path, message);
            }
        }
    }

    fn require(&mut self, protocol: Protocol) {
        let mut missing = |name: &str, what: &str| {
            if !self.has(name) {
                self.refuse(&format!("/{name}"), format!("missing: {what}"));
            }
        };
        missing("prompt", "write what the agent is to do");
        match protocol {
            Protocol::A2a => missing("url", "write the URL of the agent's JSON-RPC endpoint"),
            Protocol::Mcp => {
                missing("connector", "write the name of the connector whose tool starts the agent");
                missing("tool", "write the name of the tool");
                missing("arguments", arguments::EXAMPLE);
            }
            _ => {
                missing("model", "write the model's name");
                if !self.has("url") && !self.has("api_key") {
                    self.refuse("/api_key", "missing: the vendor asks for one: write a secret".to_owned());
                }
            }
        }
    }

    /// The setting as text, if it is there and good.
    fn text(&mut self, name: &str, check: fn(&str) -> Result<(), String>) -> Option<String> {
        let value = self.setting(name)?;
        let checked = match value.text() {
            Some(text) => check(&text).map(|()| text),
            None => Err(format!("write text, not {}", described(value))),
        };
        checked.map_err(|message| self.refuse(&format!("/{name}"), message)).ok()
    }

    fn url(&mut self, protocol: Option<Protocol>) -> Option<String> {
        self.text("url", if protocol.is_some_and(Protocol::is_a_models) { values::base } else { values::endpoint })
    }

    fn max_tokens(&mut self) -> Option<u32> {
        let value = self.setting("max_tokens")?;
        let tokens = value.whole::<u32>().filter(|tokens| (1..=TOKENS_MAX).contains(tokens));
        if tokens.is_none() {
            self.refuse("/max_tokens", format!("write a whole number from 1 to {TOKENS_MAX}"));
        }
        tokens
    }

    fn report(&mut self) -> bool {
        let Some(value) = self.setting("report") else { return false };
        if value.kind() != Some(Kind::Bool) {
            self.refuse("/report", format!("write true or false, not {}", described(value)));
        }
        value.is_true()
    }

    fn poll(&mut self) -> Poll {
        let Some(value) = self.setting("poll") else { return Poll::USUAL };
        if value.kind() != Some(Kind::Object) {
            self.refuse("/poll", "write {first: 2s, most: 5m, give_up: 12h}, or leave it out".to_owned());
            return Poll::USUAL;
        }
        let mut poll = Poll::USUAL;
        let mut named = Vec::new();
        for (name, value) in value.fields() {
            let path = format!("/poll/{}", name.replace('~', "~0").replace('/', "~1"));
            let place = match name.as_str() {
                "first" => &mut poll.first,
                "most" => &mut poll.most,
                "give_up" => &mut poll.give_up,
                _ => {
                    self.refuse(&path, format!("unknown setting {name:?} (known: first, most, give_up)"));
                    continue;
                }
            };
            let seconds = value.text().ok_or_else(|| format!("write a duration as text, not {}", described(value)));
            match seconds.and_then(|text| values::seconds(&text)) {
                Ok(seconds) => *place = seconds,
                Err(message) => self.refuse(&path, message),
            }
            named.push(name);
        }
        self.in_order(poll, &named)
    }

    /// What was left out gives way to what was written.
    fn in_order(&mut self, mut poll: Poll, named: &[String]) -> Poll {
        let has = |name: &str| named.iter().any(|found| found == name);
        if !has("most") {
            poll.most = poll.most.max(poll.first);
        }
        if !has("first") {
            poll.first = poll.first.min(poll.most);
        }
        if poll.first > poll.most {
            self.refuse("/poll/first", "not longer than most".to_owned());
        }
        if poll.most > PAUSE_MAX {
            self.refuse(if has("most") { "/poll/most" } else { "/poll/first" }, "at most 1h".to_owned());
        }
        poll
    }

    fn tool(&mut self) -> Option<Tool> {
        let connector = self.text("connector", values::connector);
        let name = self.text("tool", values::tool);
        let arguments = self.setting("arguments").and_then(|value| match arguments::check(value) {
            Ok(()) => Some(value.raw().to_owned()),
            Err(message) => {
                self.refuse("/arguments", message);
                None
            }
        });
        Some(Tool { connector: connector?, name: name?, arguments: arguments? })
    }
}

/// What a value is, for a person.
fn described(value: Value<'_>) -> &'static str {
    match value.kind() {
        Some(Kind::Null) => "null",
        Some(Kind::Bool) => "true or false",
        Some(Kind::Number) => "a number",
        Some(Kind::Text) => "text",
        Some(Kind::List) => "a list",
        Some(Kind::Object) => "a mapping",
        None => "nothing",
    }
}
