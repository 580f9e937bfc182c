//! A target's settings: which webhook, or which channel as which bot.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use switchbell_kit::secret::is_placeholder;
use switchbell_kit::types::{Destination, Lane, Problem};

use crate::fields::{Field, Fields};
use crate::link;

/// The Web API, where the settings name no other.
const API: &str = "https://slack.com/api";

/// The longest URL in settings, in characters: Slack's own have about 80, and a request's URL may have 8 KiB.
const URL_MAX: usize = 2_048;

/// The longest token, in characters: Slack's have about 60, rotated ones 170.
const TOKEN_MAX: usize = 500;

/// The longest channel, in characters: Slack allows names of 80.
const CHANNEL_MAX: usize = 80;

/// Where a delivery goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// To the channel an incoming webhook was made for.
    Webhook {
        /// The webhook's URL, or a placeholder of it.
        url: String,
    },
    /// To a channel, as a bot.
    Channel {
        /// The bot's token, or a placeholder of it.
        token: String,
        /// `#name` or an id.
        channel: String,
        /// The base URL of the Web API, without a slash at its end.
        api: String,
    },
}

impl Target {
    /// Reads settings, or says everything that is wrong with them.
    pub(crate) fn read(settings: &str) -> Result<Self, Vec<Problem>> {
        let fields = match Fields::read(settings.as_bytes()) {
            Ok(fields) => fields,
            Err(error) => return Err(vec![problem("", format!("write settings by name, as a JSON object: {error}"))]),
        };
        let mut reader = Reader { fields: &fields, problems: Vec::new() };
        let target = reader.target();
        match target {
            Some(target) if reader.problems.is_empty() => Ok(target),
            _ => Err(reader.problems),
        }
    }

    /// What a person calls it, and what paces it: Slack takes one message per second for each webhook or channel.
    pub(crate) fn destination(&self) -> Destination {
        let (label, key) = match self {
            Self::Webhook { url } => ("Slack webhook".to_owned(), identity(url)),
            Self::Channel { token, channel, .. } => (channel.clone(), format!("{}/{channel}", identity(token))),
        };
        let lane = Lane { key, count: 1, per_seconds: 1, in_flight: 1, ordered: true };
        Destination { label, lanes: vec![lane], extras: "{}".to_owned() }
    }

    /// The setting that is a credential when it was written out instead of coming from a secret.
    pub(crate) fn credential(&self) -> Option<&str> {
        let (Self::Webhook { url: value } | Self::Channel { token: value, .. }) = self;
        (!is_placeholder(value)).then_some(value)
    }
}

/// What tells one credential from another without showing it: the placeholder, or a hash (64-bit FNV-1a) of the value.
fn identity(credential: &str) -> String {
    if is_placeholder(credential) {
        return credential.to_owned();
    }
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", credential.bytes().fold(0xcbf2_9ce4_8422_2325, mix))
}

fn problem(path: &str, message: String) -> Problem {
    Problem { path: path.to_owned(), message }
}

/// Collects the mistakes while it reads.
struct Reader<'a> {
    fields: &'a Fields,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn target(&mut self) -> Option<Target> {
        self.refuse_unknown();
        let webhook = self.text("webhook", webhook);
        let token = self.text("token", token);
        let channel = self.text("channel", channel);
        let api = self.text("api", url);
        if self.has("webhook") {
            self.refuse_beside_webhook();
            return Some(Target::Webhook { url: webhook? });
        }
        self.require_bot();
        let api = api.unwrap_or_else(|| API.to_owned()).trim_end_matches('/').to_owned();
        Some(Target::Channel { token: token?, channel: channel?, api })
    }

    fn has(&self, name: &str) -> bool {
        self.fields.get(name).is_some()
    }

    fn refuse(&mut self, name: &str, message: String) {
        let path = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        self.problems.push(problem(&path, message));
    }

    fn refuse_unknown(&mut self) {
        for name in self.fields.names() {
            match name {
                "webhook" | "token" | "channel" | "api" => {}
                "thread" => self.refuse(name, "not supported by this version: leave thread out".to_owned()),
                _ => self.refuse(name, format!("unknown setting {name:?} (known: webhook, token, channel, api)")),
            }
        }
    }

    /// The setting as text, if it is there and good.
    fn text(&mut self, name: &str, check: impl Fn(&str) -> Result<(), String>) -> Option<String> {
        let checked = match self.fields.get(name)? {
            Field::Text(text) => check(text).map(|()| text.clone()),
            other => Err(format!("write text, not {}", kind(other))),
        };
        checked.map_err(|message| self.refuse(name, message)).ok()
    }

    fn refuse_beside_webhook(&mut self) {
        for name in ["token", "channel", "api"] {
            if self.has(name) {
                let remedy = "a webhook posts to its own channel: leave this out, or leave out webhook";
                self.refuse(name, remedy.to_owned());
            }
        }
    }

    fn require_bot(&mut self) {
        match (self.has("token"), self.has("channel")) {
            (true, true) => {}
            (true, false) => self.refuse("channel", "missing: a token needs a channel, such as \"#ops\"".to_owned()),
            (false, true) => self.refuse("token", "missing: a channel needs the bot's token".to_owned()),
            (false, false) => {
                self.problems.push(problem("", "missing: write webhook, or token and channel".to_owned()));
            }
        }
    }
}

fn webhook(value: &str) -> Result<(), String> {
    if is_placeholder(value) { Ok(()) } else { url(value) }
}

/// Whether this can be the URL of a webhook or of an API. The value is not repeated: it may hold a credential.
fn url(value: &str) -> Result<(), String> {
    if value.chars().count() > URL_MAX {
        return Err(format!("longer than {URL_MAX} characters"));
    }
    match link::host(value) {
        Some(_) if value.contains(['#', '@']) => Err("leave out user names, passwords and fragments".to_owned()),
        Some(_) => Ok(()),
        None => Err("not a URL: write https://…, or a secret".to_owned()),
    }
}

fn token(value: &str) -> Result<(), String> {
    if value.is_empty() {
        return Err("empty: write a secret".to_owned());
    }
    if value.len() > TOKEN_MAX {
        return Err(format!("longer than {TOKEN_MAX} characters"));
    }
    if !value.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("a token has no spaces and is not preceded by Bearer: write a secret".to_owned());
    }
    Ok(())
}

fn channel(value: &str) -> Result<(), String> {
    if value.chars().count() > CHANNEL_MAX {
        return Err(format!("longer than {CHANNEL_MAX} characters"));
    }
    let plain = |name: &str| !name.is_empty() && !name.contains(|letter: char| unfit_for_channel(letter));
    let known = match value.strip_prefix('#') {
        Some(name) => plain(name),
        None => is_id(value),
    };
    if known {
        return Ok(());
    }
    Err("not a channel: write \"#name\" (quoted), or an id such as C0123456789".to_owned())
}

fn unfit_for_channel(letter: char) -> bool {
    letter.is_whitespace() || letter.is_control() || letter == '#'
}

/// Ids of channels, direct messages, private channels and users begin so.
fn is_id(value: &str) -> bool {
    let upper = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    value.starts_with(['C', 'D', 'G', 'U']) && value.len() > 1 && value.bytes().all(upper)
}

fn kind(field: &Field) -> &'static str {
    match field {
        Field::Null => "null",
        Field::Bool(_) => "true or false",
        Field::Number(_) => "a number",
        Field::Text(_) => "text",
        Field::List => "a list",
        Field::Object => "a mapping",
    }
}
