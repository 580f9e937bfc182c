//! What can go wrong with a relay, and what it is to a plugin.
//!
//! | what | reach | code |
//! | --- | --- | --- |
//! | no connection | `unsent` | `connect` |
//! | TLS failed; the certificate is not accepted | `unsent` | `tls`, `certificate` |
//! | no STARTTLS, no way to sign in | `unsent` | `no-starttls`, `no-sign-in` |
//! | the relay turned this server away (greeting, EHLO, STARTTLS) | `refused` (4yz), `unsent` (5yz) | `relay-refused` |
//! | the relay did not take user and password | `refused` | `sign-in` |
//! | the relay did not take this recipient or this mail | `refused` | `recipient-refused` |
//! | the relay closes (421) | `refused` | `relay-closing` |
//! | lost before the final dot | `unsent` | `lost` |
//! | lost after it | `unanswered` | `no-answer` |

use std::error::Error as _;

use lettre::transport::smtp::Error;

use crate::send::effect::fault;
use crate::wasm::{Fault, Reach};

/// The relay's reply when it closes the connection (RFC 5321 §3.8): busy, stopping, or too many connections.
const CLOSING: u16 = 421;

/// Replies that a person must mend `mail.user` or `mail.password` for (RFC 4954 §6).
const SIGN_IN: [u16; 4] = [530, 534, 535, 538];

/// What went wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// There is no connection.
    Connect(String),
    /// TLS did not begin.
    Tls(String),
    /// The relay's certificate is not accepted.
    Certificate(String),
    /// The relay offers no STARTTLS.
    NoStartTls,
    /// The relay offers no mechanism to sign in that is known here.
    NoSignIn,
    /// The relay turned this server away before any mail, with a status and its words.
    Door(u16, String),
    /// The relay did not take user and password, with a status and its words.
    SignIn(u16, String),
    /// The relay answered no, with a status and its words.
    No(u16, String),
    /// The connection is lost, or what came over it is no answer.
    Lost(String),
}

/// What came of a transaction.
#[derive(Debug)]
pub(super) enum Came {
    /// The relay took the mail.
    Accepted,
    /// The relay answered no; the conversation goes on.
    Refused(Fault),
    /// The relay answered no and closes.
    Closing(Fault),
    /// The connection had died before anything was said.
    Stale,
    /// The connection is lost.
    Lost(Fault),
}

impl Trouble {
    /// What an error of the library means.
    pub(super) fn of(error: &Error) -> Self {
        let mut innermost: &dyn std::error::Error = error;
        while let Some(cause) = innermost.source() {
            innermost = cause;
        }
        match error.status() {
            Some(code) => {
                Self::No(code.into(), error.source().map(|words| plain(&words.to_string())).unwrap_or_default())
            }
            None => Self::Lost(plain(&innermost.to_string())),
        }
    }

    /// Why TLS did not begin.
    pub(super) fn of_tls(error: std::io::Error) -> Self {
        let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match cause {
            Some(rustls::Error::InvalidCertificate(why)) => Self::Certificate(plain(&why.to_string())),
            _ => Self::Tls(plain(&error.to_string())),
        }
    }

    /// Before any mail.
    pub(super) fn at_the_door(self) -> Self {
        match self {
            Self::No(status, words) => Self::Door(status, words),
            other => other,
        }
    }

    /// While user and password are judged.
    pub(super) fn at_signing_in(self) -> Self {
        match self {
            Self::No(CLOSING, words) => Self::Door(CLOSING, words),
            Self::No(status, words) => Self::SignIn(status, words),
            other => other,
        }
    }

    /// During a transaction whose final dot was not sent.
    pub(super) fn before_the_dot(self) -> Came {
        match self {
            Self::No(CLOSING, _) => Came::Closing(self.fault()),
            Self::No(..) => Came::Refused(self.fault()),
            other => Came::Lost(other.fault()),
        }
    }

    /// Once the final dot was sent.
    pub(super) fn after_the_dot(self) -> Came {
        match self {
            Self::Lost(why) => {
                let message = format!("the mail was sent whole, but the relay did not say that it took it: {why}");
                Came::Lost(fault(Reach::Unanswered, "no-answer", message))
            }
            other => other.before_the_dot(),
        }
    }

    /// What a plugin is told.
    pub(super) fn fault(self) -> Fault {
        let unsent = |code, message| fault(Reach::Unsent, code, message);
        match self {
            Self::Connect(why) => unsent("connect", format!("no connection to the relay: {why}")),
            Self::Tls(why) => {
                unsent("tls", format!("no TLS with the relay: {why}; is `mail.tls` right for this port?"))
            }
            Self::Certificate(why) => {
                let remedy =
                    "the operator may have this machine trust its issuer, or name the relay as its certificate does";
                unsent("certificate", format!("the relay's certificate is not accepted: {why}; {remedy}"))
            }
            Self::NoStartTls => unsent(
                "no-starttls",
                "the relay offers no STARTTLS, so it got nothing: the operator may mend `mail.tls` or the relay"
                    .to_owned(),
            ),
            Self::NoSignIn => unsent(
                "no-sign-in",
                "the relay offers neither PLAIN nor LOGIN to sign in: the operator may mend `mail.user` or the relay"
                    .to_owned(),
            ),
            Self::Door(status, words) => {
                not_about_the_mail(status, "relay-refused", "the relay turned this server away", &words)
            }
            Self::SignIn(status, words) => {
                let what = "the relay did not take `mail.user` and `mail.password`";
                if SIGN_IN.contains(&status) {
                    refused(status, "sign-in", what, &words)
                } else {
                    not_about_the_mail(status, "sign-in", what, &words)
                }
            }
            Self::No(CLOSING, words) => refused(CLOSING, "relay-closing", "the relay closed the connection", &words),
            Self::No(status, words) => refused(status, "recipient-refused", "the relay refused", &words),
            Self::Lost(why) => {
                unsent("lost", format!("the connection to the relay was lost before the mail was: {why}"))
            }
        }
    }
}

fn refused(status: u16, code: &str, what: &str, words: &str) -> Fault {
    let message = format!("{what}: {status} {words}").trim_end().to_owned();
    Fault { status: Some(status), ..fault(Reach::Refused, code, message) }
}

/// A refusal that says nothing of the mail. One for good would have a plugin give the mail up, which another day the relay
/// takes; so to a plugin there was no connection.
fn not_about_the_mail(status: u16, code: &str, what: &str, words: &str) -> Fault {
    let fault = refused(status, code, what, words);
    if status < 500 { fault } else { Fault { reach: Reach::Unsent, ..fault } }
}

/// Words of a relay on one line, without control characters. They are cut once secrets are out of them.
fn plain(words: &str) -> String {
    words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
