//! HTTP requests to agents.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use switchbell_kit::secret::is_placeholder;
use switchbell_kit::types::{Action, Delivery, Request};

use crate::settings::Agent;

/// A request with the headers that all have: the key, and on whose behalf.
pub(crate) struct Ask<'a> {
    agent: &'a Agent,
    headers: Vec<(String, String)>,
}

impl<'a> Ask<'a> {
    pub(crate) fn new(agent: &'a Agent, delivery: &Delivery) -> Self {
        let mut headers = vec![header("accept", "application/json")];
        if let Some(key) = &agent.api_key {
            headers.push(header(&agent.api_key_header, &key_value(agent, key)));
        }
        headers.push(header("x-on-behalf-of", &visible(&delivery.on_behalf_of)));
        Self { agent, headers }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push(header(name, value));
        self
    }

    /// Posts JSON to the agent's URL with this appended.
    pub(crate) fn post(self, path: &str, body: String) -> Action {
        let url = format!("{}{path}", self.agent.url);
        self.with("content-type", "application/json").send("POST", url, body.into_bytes())
    }

    /// Gets the agent's URL with this appended.
    pub(crate) fn get(self, path: &str) -> Action {
        let url = format!("{}{path}", self.agent.url);
        self.send("GET", url, Vec::new())
    }

    /// The host's own limits hold for the time and for the size of the answer.
    fn send(self, method: &str, url: String, body: Vec<u8>) -> Action {
        Action::Http(Request {
            method: method.to_owned(),
            url,
            headers: self.headers,
            body,
            sign: vec![],
            timeout_ms: None,
            response_max: None,
            extras: "{}".to_owned(),
        })
    }
}

/// For a placeholder the host composes the value, `Bearer` and all, by the secret's rule.
fn key_value(agent: &Agent, key: &str) -> String {
    let is_bearer = agent.api_key_header == "authorization" && !is_placeholder(key);
    if is_bearer { format!("Bearer {key}") } else { key.to_owned() }
}

fn header(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// The text in what a header can hold: anything but visible ASCII is percent-encoded.
fn visible(text: &str) -> String {
    encoded(text, |byte| byte.is_ascii_graphic() && byte != b'%')
}

/// The text as one segment of a path.
pub(crate) fn segment(text: &str) -> String {
    encoded(text, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~'))
}

fn encoded(text: &str, is_plain: impl Fn(u8) -> bool) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if is_plain(byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
        encoded
    })
}
