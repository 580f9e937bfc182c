//! A push queue as the receiver sees it: texts of JSON. How it is reached is another's business.

use std::fmt;

use futures_util::future::BoxFuture;

use super::outbox::ReadError;

/// The extension (push-notifications seed, "Extension identifier").
pub const EXTENSION: &str = "io.stagewise/push-notifications";

/// One connector's push queue.
pub trait PushQueue: Send + fmt::Debug {
    /// Opens the live stream, connecting first where there is no connection, in place of one that is open. Ready once the
    /// server has acknowledged it, in bounded time.
    fn listen(&mut self) -> BoxFuture<'_, Result<(), ReadError>>;

    /// The next thing that happens on the stream. It is never ready while there is none. Dropping the future loses
    /// nothing. What comes while nobody waits is kept, up to a bound.
    fn next(&mut self) -> BoxFuture<'_, Live>;

    /// What has come by now and was not told yet, without waiting.
    fn next_at_once(&mut self) -> Option<Live>;

    /// Asks for pending events, at most `limit`: the JSON text of the result. It ends in bounded time.
    fn get(&mut self, limit: u32) -> BoxFuture<'_, Result<String, ReadError>>;

    /// Acknowledges these events. It ends in bounded time.
    fn ack<'a>(&'a mut self, ids: &'a [String]) -> BoxFuture<'a, Result<(), ReadError>>;

    /// `said`, which quotes the server, without what it was trusted with.
    fn without_secrets(&self, said: &str) -> String {
        said.to_owned()
    }

    /// The revision of the protocol that the server spoke last, where it was reached.
    fn revision(&self) -> Option<String>;

    /// Ends the stream and closes the connection, in bounded time.
    fn close(&mut self) -> BoxFuture<'_, ()>;
}

/// What happens on a live stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Live {
    /// The JSON text of the `params` of an event's notification.
    Event(String),
    /// The server is alive.
    Alive,
    /// More came than is kept: what did not fit is still pending.
    Overflow,
    /// The server ended the stream in good order, as it does when another client of the same consumer listens.
    Closed,
    /// The stream is gone.
    Lost(ReadError),
}
