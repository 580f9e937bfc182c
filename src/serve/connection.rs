//! Connections of those who read over HTTP: whoever takes nothing of what it asked for is cut off.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::clock::Clock;
use crate::telemetry::metrics::Metrics;

/// How long a client may take nothing while there is something to send.
const TAKES_NOTHING_MAX: Duration = Duration::from_secs(10);

/// A connection. Writing fails once the client has taken nothing for a while.
pub(super) struct Connection<S> {
    stream: S,
    clock: Clock,
    metrics: Arc<Metrics>,
    /// Ready when the client has had its time; none while it takes.
    patience: Option<BoxFuture<'static, ()>>,
}

impl<S> fmt::Debug for Connection<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl<S> Connection<S> {
    pub(super) fn new(stream: S, clock: Clock, metrics: Arc<Metrics>) -> Self {
        Self { stream, clock, metrics, patience: None }
    }

    fn judge<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.patience = None;
            return written;
        }
        let clock = &self.clock;
        let patience = self.patience.get_or_insert_with(|| {
            let clock = clock.clone();
            Box::pin(async move { clock.sleep(TAKES_NOTHING_MAX).await })
        });
        match patience.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                self.patience = None;
                self.metrics.cut_off();
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, from);
        self.judge(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, from);
        self.judge(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.judge(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(context);
        self.judge(ended, context)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use jiff::Timestamp;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn a_client_that_takes_nothing_for_ten_seconds_is_cut_off() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let metrics = Arc::new(Metrics::default());
        let (mut client, server) = duplex(8);
        let mut server = Connection::new(server, clock.clone(), Arc::clone(&metrics));
        server.write_all(b"12345678").await.unwrap();
        let mut more = Box::pin(server.write_all(b"9abcdefgh"));
        assert!((&mut more).now_or_never().is_none());
        clock.advance(9 * SECOND);
        assert!((&mut more).now_or_never().is_none());
        // A byte is enough to be given time again, however long nothing was to be sent meanwhile.
        client.read_exact(&mut [0]).await.unwrap();
        assert!((&mut more).now_or_never().is_none());
        clock.advance(9 * SECOND);
        assert!((&mut more).now_or_never().is_none());
        assert!(!metrics.text().unwrap().contains("cut_off_total 1"));
        clock.advance(SECOND);
        assert_eq!(more.await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(metrics.text().unwrap().contains("switchbell_connections_cut_off_total 1"));
    }

    #[tokio::test]
    async fn a_connection_that_is_silent_is_not_cut_off() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let (mut client, server) = duplex(8);
        let mut server = Connection::new(server, clock.clone(), Arc::default());
        server.write_all(b"1").await.unwrap();
        clock.advance(1_000 * SECOND);
        server.write_all(b"2").await.unwrap();
        let mut taken = [0; 2];
        client.read_exact(&mut taken).await.unwrap();
        assert_eq!(&taken, b"12");
    }
}
