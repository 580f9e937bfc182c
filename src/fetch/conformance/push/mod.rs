//! Whether a server keeps the rules of the push-notifications extension, for people who write one.
//!
//! [`check`] asks in a fixed order and judges what it sees, rule by rule ([`RULES`]): what the server says of itself,
//! requests without the capability, live streams, pages of pending events, acknowledgement. Many of the requests are wrong
//! on purpose, which no client of MCP would make; so they are written here, byte by byte (`client`). Nothing is judged
//! that was not seen. At most [`REQUESTS_MAX`] requests are made, in [`TIME_MAX`] and what it was told to wait.

mod acknowledgement;
mod client;
mod envelope;
mod live;
mod retrieval;
mod rules;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::BoxFuture;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use url::Url;

pub use rules::RULES;

use super::report::{Finding, Ledger, Verdict};
use super::rules::Rule;
use crate::clock::{Clock, later, until};
use crate::fetch::mcp::Clients;
use crate::notification::Name;
use client::{Answer, Client, EXTENSION, Missed, REVISION, Request, said};
use rules as is;

/// Requests of one check: it needs about thirty.
pub const REQUESTS_MAX: u32 = 100;

/// Time of one check, without what it was told to wait.
pub const TIME_MAX: Duration = Duration::from_secs(180);

/// How long a quiet stream may be before people and proxies take it for dead.
pub const QUIET_MAX: Duration = Duration::from_secs(60);

/// Ids of events that are counted.
const EVENTS_MAX: usize = 10_000;

/// Whose connections these are.
const NAME: &str = "push-check";

/// An id that no event has.
const UNKNOWN: &str = "switchbell-push-check:unknown";

/// What to check.
pub struct Asked<'a> {
    /// The MCP endpoint.
    pub url: &'a Url,
    /// What is sent with every request: credentials above all.
    pub headers: &'a HeaderMap,
    /// How long one request may take.
    pub timeout: Duration,
    /// How long to wait for events on the live stream.
    pub wait: Duration,
    /// Makes events happen, once the stream is open. Its error says why it could not.
    pub trigger: Option<BoxFuture<'a, Result<(), String>>>,
    /// Whether the events that come are acknowledged, and so gone.
    pub ack: bool,
    /// How long to wait for a sign of life on the live stream; not at all when none.
    pub keep_alive: Option<Duration>,
}

impl std::fmt::Debug for Asked<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A URL and headers may hold credentials.
        out.debug_struct("Asked").field("ack", &self.ack).finish_non_exhaustive()
    }
}

/// What came of the check.
#[derive(Debug)]
pub struct Report {
    /// One for each rule, in the order of [`RULES`].
    pub findings: Vec<Finding>,
    /// Why the check could not be made, or not to its end.
    pub could_not_run: Option<String>,
    /// Different events that were judged.
    pub events: usize,
    /// Requests made.
    pub requests: u32,
    /// How long it took.
    pub took: Duration,
    /// Whether it ran out of requests or time, so that rules were not seen.
    pub is_cut: bool,
}

impl Report {
    /// How many findings have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.findings.iter().filter(|finding| finding.verdict == verdict).count()
    }
}

/// A check under way.
struct Check<'a> {
    client: Client<'a>,
    ledger: Ledger,
    ids: BTreeSet<String>,
    has_bearer: bool,
}

/// Checks a server. Its consumer has no other live stream meanwhile, if it keeps one only.
pub async fn check(asked: Asked<'_>, clock: &Clock) -> Report {
    let began = clock.now();
    let quiet = asked.keep_alive.unwrap_or_default();
    let time_max = TIME_MAX.saturating_add(asked.wait).saturating_add(quiet);
    let pair = match clients() {
        Ok(pair) => pair,
        Err(why) => return Report::blank(why),
    };
    let (http, streams) = pair;
    let client = Client {
        http,
        streams,
        url: asked.url,
        headers: asked.headers,
        timeout: asked.timeout,
        clock,
        deadline: later(began, time_max),
        requests: 0,
        requests_max: REQUESTS_MAX,
        is_cut: false,
    };
    let has_bearer = asked.headers.contains_key(reqwest::header::AUTHORIZATION);
    let mut check = Check { client, ledger: Ledger::new(RULES), ids: BTreeSet::new(), has_bearer };
    let could_not_run = check.steps(asked).await.err();
    Report {
        could_not_run,
        events: check.ids.len(),
        requests: check.client.requests,
        took: until(began, clock.now()),
        is_cut: check.client.is_cut,
        findings: check.ledger.findings(),
    }
}

/// For requests that are answered, and for streams.
fn clients() -> Result<(reqwest::Client, reqwest::Client), String> {
    let name: Name = NAME.parse().map_err(|error| format!("{NAME}: {error}"))?;
    // Whoever sits at the keyboard chooses what is reached.
    let pair = Clients::new().of(&name, true).map_err(|error| error.to_string())?;
    Ok((pair.answers, pair.streams))
}

impl Report {
    fn blank(why: String) -> Self {
        let findings = Ledger::new(RULES).findings();
        Self { findings, could_not_run: Some(why), events: 0, requests: 0, took: Duration::ZERO, is_cut: false }
    }
}

impl Check<'_> {
    /// The requests, in order. An error says why they could not be made to the end.
    async fn steps(&mut self, asked: Asked<'_>) -> Result<(), String> {
        self.discover().await?;
        self.gates().await;
        live::filter(self).await;
        let mut stream = live::listen(self).await;
        if let Some(older) = stream.take() {
            stream = live::replace(self, older).await;
        }
        let before = retrieval::page(self, json!({ "limit": retrieval::PAGE_EVENTS }), "get").await;
        if let Some(trigger) = asked.trigger {
            trigger.await?;
        }
        let heard = match &mut stream {
            Some(stream) => live::hear(self, stream, asked.wait).await,
            None => Vec::new(),
        };
        let page = retrieval::page(self, json!({ "limit": retrieval::PAGE_EVENTS }), "get").await;
        if let Some(page) = &page {
            retrieval::again(self, page).await;
            // What is retrieved under other ids cannot be known again.
            if !self.ledger.has_failed(&is::EVENT_ID) {
                live::compare(self, &heard, before.as_ref(), page, stream.is_some());
            }
            retrieval::limits(self, page).await;
            retrieval::other_parameters(self, page).await;
        }
        if self.has_bearer {
            self.strangers(page.as_ref()).await;
        }
        acknowledgement::unknown(self).await;
        acknowledgement::arguments(self).await;
        if let Some(page) = page.filter(|_| asked.ack) {
            acknowledgement::known(self, &page).await;
        }
        if let (Some(stream), Some(quiet)) = (stream, asked.keep_alive) {
            live::keep_alive(self, stream, quiet).await;
        }
        Ok(())
    }

    async fn discover(&mut self) -> Result<(), String> {
        match self.client.call(&Request::new("server/discover", json!({}))).await {
            Ok(Answer::Result(result)) => {
                let extension = result.get("capabilities").and_then(|all| all.get("extensions")?.get(EXTENSION));
                match extension {
                    Some(Value::Object(empty)) if empty.is_empty() => {
                        self.ledger.pass(&is::DISCOVER, "an empty object")
                    }
                    Some(other) => self.ledger.fail(&is::DISCOVER, format!("it is {}", said(&other.to_string()))),
                    None => self.ledger.fail(&is::DISCOVER, "server/discover does not name it"),
                }
                self.ledger.pass(&is::CONNECTION, format!("MCP {REVISION}"));
                Ok(())
            }
            Ok(Answer::Error { code, message }) => {
                self.ledger.pass(&is::CONNECTION, "server/discover is answered with an error");
                let seen = format!("server/discover is answered with the error {code}: {message}");
                self.ledger.fail(&is::DISCOVER, seen);
                Ok(())
            }
            Err(missed) => {
                let remedy = match &missed {
                    Missed::Http(status) if matches!(status.as_u16(), 401 | 403) => {
                        "give the token with --bearer-env NAME, or a header with --header-env NAME=VARIABLE"
                    }
                    _ => is::CONNECTION.remedy,
                };
                let seen = format!("server/discover: {missed}");
                self.ledger.fail_with(&is::CONNECTION, seen.clone(), remedy);
                Err(seen)
            }
        }
    }

    /// Requests of a client that did not declare the extension.
    async fn gates(&mut self) {
        let get = Request::get(json!({ "limit": 1 })).undeclared();
        let answer = self.client.call(&get).await;
        self.refused(&is::GATE_GET, "get without the capability", answer, &[-32_021, -32_003]);
        let ack = Request::ack(&json!([UNKNOWN])).undeclared();
        let answer = self.client.call(&ack).await;
        self.refused(&is::GATE_ACK, "ack without the capability", answer, &[-32_021, -32_003]);
        let listen = Request::listen(&json!({})).undeclared();
        let opened = live::opened(self, &listen).await;
        self.refused(&is::GATE_LISTEN, "listen without the capability", opened, &[-32_021, -32_003]);
    }

    /// Requests with a token that nobody was given. What is no breach by itself, since such a token may name somebody, is a
    /// warning.
    async fn strangers(&mut self, page: Option<&retrieval::Page>) {
        let get = self.client.call(&Request::get(json!({ "limit": 1 })).by_stranger()).await;
        let ack = self.client.call(&Request::ack(&json!([UNKNOWN])).by_stranger()).await;
        let listen = live::opened(self, &Request::listen(&json!({})).by_stranger()).await;
        for (what, came) in [("get", get), ("ack", ack), ("listen", listen)] {
            match came {
                Ok(Answer::Result(result)) => {
                    let events = result.get("events").and_then(Value::as_array);
                    let is_ours = |event: &Value| page.is_some_and(|page| page.has(event));
                    if events.is_some_and(|events| events.iter().any(is_ours)) {
                        self.ledger
                            .fail(&is::CONSUMER_CHECKED, format!("{what} with another token brings the same events"));
                    } else {
                        self.ledger.warn(&is::CONSUMER_CHECKED, format!("{what} takes a token that nobody was given"));
                    }
                }
                Ok(Answer::Error { .. }) | Err(Missed::Http(_)) => {
                    self.ledger.pass(&is::CONSUMER_CHECKED, "an unknown token is refused on all three");
                }
                Err(missed) => self.tell(&is::CONSUMER_CHECKED, what, &missed),
            }
        }
    }

    /// Judges an answer that is to be a refusal with the first of `codes`; the others do, too.
    fn refused(&mut self, rule: &'static Rule, what: &str, came: Result<Answer, Missed>, codes: &[i64]) {
        match came {
            Ok(Answer::Error { code, .. }) if codes.first() == Some(&code) => {
                self.ledger.pass(rule, format!("refused with {code}"));
            }
            Ok(Answer::Error { code, .. }) if codes.contains(&code) => {
                self.ledger.pass(rule, format!("refused with {code}, an older code"));
            }
            Ok(Answer::Error { code, message }) => {
                self.ledger.warn(rule, format!("{what} is refused with another code, {code}: {message}"));
            }
            Ok(Answer::Result(_)) => self.ledger.fail(rule, format!("{what} is let through")),
            Err(Missed::Http(status)) if status.is_client_error() => {
                self.ledger.warn(rule, format!("{what} is refused with HTTP {} alone", status.as_u16()));
            }
            Err(missed) => self.tell(rule, what, &missed),
        }
    }

    /// Tells why there was no answer, as a breach of `rule` where nothing more exact is known.
    fn tell(&mut self, rule: &'static Rule, what: &str, missed: &Missed) {
        let rule = match missed {
            Missed::Cut => return,
            Missed::TooLarge => &is::ANSWER_BOUNDED,
            Missed::NotAnAnswer(_) => &is::ANSWER_FORM,
            _ => rule,
        };
        self.ledger.fail(rule, format!("{what}: {missed}"));
    }

    /// Judges an event and counts it.
    fn judge(&mut self, event: &Value) {
        envelope::judge(event, &mut self.ledger);
        if let Some(id) = envelope::id_of(event).filter(|_| self.ids.len() < EVENTS_MAX) {
            self.ids.insert(id.to_owned());
        }
    }
}
