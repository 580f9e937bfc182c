//! An outbox as the poller sees it: a text for a URI. How it is reached is another's business.

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;

/// One connector's outbox.
pub trait Outbox: Send + fmt::Debug {
    /// Reads the resource `uri`, connecting first where there is no connection: the text of its first content. It
    /// ends in bounded time. Dropping the future gives the read up.
    fn read<'a>(&'a mut self, uri: &'a str) -> BoxFuture<'a, Result<String, ReadError>>;

    /// Ready when the server has said since the last time that the resource changed. It is never ready while there is
    /// no connection, or the server says no such things. Dropping the future loses nothing.
    fn changed(&mut self) -> BoxFuture<'_, ()>;

    /// `said`, which quotes the server, without what it was trusted with: a server may give its own credential back.
    fn without_secrets(&self, said: &str) -> String {
        said.to_owned()
    }

    /// The revision of the protocol that the server spoke last, where it was reached; in an earlier run, too, if that was
    /// handed in.
    fn revision(&self) -> Option<String>;

    /// The first thing the server wrote to its standard output that is not MCP, where it is a program and did so.
    fn stray(&self) -> Option<String> {
        None
    }

    /// Hands in what [`Outbox::revision`] told in an earlier run, before the first read: a server that had no discovery
    /// is then not asked for it first, which it may meet with ten seconds of silence.
    fn remember(&mut self, revision: Option<String>) {
        let _ = revision;
    }

    /// Closes the connection, in bounded time. A later read would connect again.
    fn close(&mut self) -> BoxFuture<'_, ()>;
}

/// Why a read brought no text. Its text says what happened and what to do, without a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The server knows no resource with this URI; its words.
    NotFound(String),
    /// The server answered with an error.
    Refused {
        /// The code of JSON-RPC.
        code: i32,
        /// The server's words, cut.
        message: String,
    },
    /// The server, or what stands before it, refused the request as such.
    Http {
        /// The status.
        status: u16,
        /// How long it asked to wait.
        retry_after: Option<Duration>,
    },
    /// The answer is larger than anything an outbox should say at once.
    TooLarge {
        /// The most bytes taken.
        bytes_max: usize,
    },
    /// No answer came in time.
    Timeout {
        /// How long was waited.
        waited: Duration,
    },
    /// There is an answer, but no text in it.
    NoText,
    /// The connection could not be made: why, and what to do.
    NotConnected(String),
    /// The connection ended before the answer came: why, and what to do.
    Disconnected(String),
    /// The peer answered something that is not MCP.
    NotMcp(String),
    /// No token could be had this time: why, and what to do.
    NoToken(String),
    /// The sign-in is missing, over or refused, and only a person can renew it: what to do.
    Reauthorize(String),
}

impl ReadError {
    /// How long the server asked to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Http { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether the server's own words name a cursor, as those that do not know the one they were given do. The URI that
    /// was asked for holds that word itself, so that words which only repeat a URI say nothing.
    pub fn speaks_of_cursor(&self) -> bool {
        let (Self::NotFound(words) | Self::Refused { message: words, .. }) = self else {
            return false;
        };
        let is_uri = |word: &&str| word.contains("://") || word.contains('?');
        words.split_whitespace().filter(|word| !is_uri(word)).any(|word| word.to_ascii_lowercase().contains("cursor"))
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(message) => write!(
                out,
                "the server does not know the resource ({message}); declare the URI it serves, and let it serve the \
                 template {{?cursor,maxEvents,maxAgeMs}} too"
            ),
            Self::Refused { code, message } => write!(out, "the server answered with the error {code}: {message}"),
            Self::Http { status: status @ (401 | 403), .. } => {
                write!(out, "HTTP {status}: the credential was refused, or there was none; see `auth` of the connector")
            }
            Self::Http { status: 404, .. } => {
                out.write_str("HTTP 404: nothing is served there; check the connector's url")
            }
            Self::Http { status: 429, .. } => out.write_str("HTTP 429: the server is asked too often"),
            Self::Http { status: status @ 300..=399, .. } => {
                write!(out, "HTTP {status}: redirects are not followed; give the url it leads to")
            }
            Self::Http { status, .. } => write!(out, "HTTP {status}: the server could not answer"),
            Self::TooLarge { bytes_max } => {
                write!(
                    out,
                    "the answer has more than {bytes_max} bytes; let the outbox answer with fewer events at once"
                )
            }
            Self::Timeout { waited } => {
                write!(out, "the server did not answer within {} s", waited.as_secs_f64())
            }
            Self::NoText => out.write_str("the answer has no text; the resource must be read as text, not as a blob"),
            Self::NotConnected(what)
            | Self::Disconnected(what)
            | Self::NotMcp(what)
            | Self::NoToken(what)
            | Self::Reauthorize(what) => out.write_str(what),
        }
    }
}

impl std::error::Error for ReadError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_about_a_cursor_are_told_from_words_that_repeat_the_uri() {
        let check = |words: &str, speaks: bool| {
            assert_eq!(ReadError::NotFound(words.to_owned()).speaks_of_cursor(), speaks, "{words}");
            let refused = ReadError::Refused { code: -32603, message: words.to_owned() };
            assert_eq!(refused.speaks_of_cursor(), speaks, "{words}");
        };
        let uri = "acme://notifications?cursor=c-7&maxEvents=100&maxAgeMs=7776000000";
        check("unknown cursor 'c-7': this outbox never gave it; read without a cursor to start from now", true);
        check("unknown cursor \"c-7\": this outbox never gave it; read without a cursor to start from now", true);
        check("MCP error -32602: Invalid Cursor", true);
        check("cursor=c-7 is not one of ours", true);
        check(&format!("Error reading resource '{uri}': unknown cursor c-7"), true);
        check(&format!("Error creating resource from template: {uri}: cursor expired"), true);
        check(&format!("Unknown resource: {uri}"), false);
        check(&format!("Unknown resource: '{uri}'"), false);
        check(&format!("Resource {uri} not found"), false);
        check(&format!("MCP error -32602: Resource {uri} not found"), false);
        check(&format!("Resource not found: \"{uri}\"."), false);
        check("urn:acme:outbox?cursor=c-7 is not there", false);
        check("Unknown resource: cursor://notifications", false);
        check("Internal error", false);
        check("", false);
    }

    #[test]
    fn only_the_words_of_a_server_speak_of_a_cursor() {
        let lost = ReadError::Disconnected("its last words: unknown cursor".to_owned());
        assert!(!lost.speaks_of_cursor());
    }
}
