//! A target's settings: which webhook, or which channel as which bot.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use switchbell_kit::link;
use switchbell_kit::secret::{identity, is_placeholder};
use switchbell_kit::settings::{Checks, pointer};
use switchbell_kit::types::{Destination, Lane, Problem};

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
        /// Whether follow-ups of one subject go into one thread.
        by_subject: bool,
    },
}

impl Target {
    /// Reads settings, or says everything that is wrong with them.
    #[inline(never)]
    pub(crate) fn read(settings: &str) -> Result<Self, Vec<Problem>> {
        let mut checks = Checks::read(settings, 1)?;
        let target = read(&mut checks);
        checks.end(target)
    }

    /// What a person calls it, and what paces it: Slack takes one message per second for each webhook or channel.
    pub(crate) fn destination(&self) -> Destination {
        let (label, key) = match self {
            Self::Webhook { url } => ("Slack webhook".to_owned(), identity(url)),
            Self::Channel { token, channel, .. } => (channel.clone(), format!("{}/{channel}", identity(token))),
        };
        let lane = Lane { key, count: 1, per_seconds: 1, in_flight: 1, ordered: true };
        let remembers = matches!(self, Self::Channel { by_subject: true, .. });
        let extras = if remembers { "{}" } else { r#"{"memory":false}"# };
        Destination { label, lanes: vec![lane], extras: extras.to_owned() }
    }

    /// The setting that is a credential when it was written out instead of coming from a secret.
    pub(crate) fn credential(&self) -> Option<&str> {
        let (Self::Webhook { url: value } | Self::Channel { token: value, .. }) = self;
        (!is_placeholder(value)).then_some(value)
    }
}

/// Reads the settings that are there.
fn read(checks: &mut Checks) -> Option<Target> {
    checks.refuse_unknown(&["webhook", "token", "channel", "thread", "api"]);
    let webhook = checks.text("webhook", webhook);
    let token = checks.text("token", token);
    let channel = checks.text("channel", channel);
    let by_subject = checks.word("thread", &["subject"]).is_some();
    let api = checks.text("api", url);
    if checks.has("webhook") {
        refuse_beside_webhook(checks);
        return Some(Target::Webhook { url: webhook? });
    }
    require_bot(checks);
    let api = api.unwrap_or_else(|| API.to_owned()).trim_end_matches('/').to_owned();
    Some(Target::Channel { token: token?, channel: channel?, api, by_subject })
}

fn refuse_beside_webhook(checks: &mut Checks) {
    for name in ["token", "channel", "api"] {
        if checks.has(name) {
            let remedy = "a webhook posts to its own channel: leave this out, or leave out webhook";
            checks.refuse(&pointer(&[name]), remedy);
        }
    }
    if checks.has("thread") {
        let remedy = "a webhook does not say which message it posted: leave this out, or use token and channel";
        checks.refuse("/thread", remedy);
    }
}

fn require_bot(checks: &mut Checks) {
    match (checks.has("token"), checks.has("channel")) {
        (true, true) => {}
        (true, false) => checks.refuse("/channel", "missing: a token needs a channel, such as \"#ops\""),
        (false, true) => checks.refuse("/token", "missing: a channel needs the bot's token"),
        (false, false) => checks.refuse("", "missing: write webhook, or token and channel"),
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
