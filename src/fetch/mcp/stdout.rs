//! What a child writes to its standard output, watched on its way: lines that are too long, and lines that are not
//! MCP. The reader behind it drops both without a word, and whoever waits for the answer would wait in vain.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;

/// Bytes kept of the first line that is not MCP.
const STRAY_BYTES_MAX: usize = 1_000;

/// What was seen. Shared by the watched stream and by who waits for an answer.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    too_long: watch::Sender<bool>,
    stray: Arc<Mutex<Vec<u8>>>,
}

impl Seen {
    pub(super) fn new() -> Self {
        Self { too_long: watch::Sender::new(false), stray: Arc::default() }
    }

    /// Returns once a line was longer than it may be.
    pub(super) async fn too_long(&self) {
        // The sender lives in `self`, so that the channel cannot close while this waits.
        let _ = self.too_long.subscribe().wait_for(|too_long| *too_long).await;
    }

    /// The first line that is not MCP, where there is one.
    pub(super) fn stray(&self) -> Option<String> {
        let stray = self.stray.lock().unwrap_or_else(PoisonError::into_inner);
        (!stray.is_empty()).then(|| String::from_utf8_lossy(&stray).into_owned())
    }
}

/// A stream of lines, watched.
#[derive(Debug)]
pub(super) struct Watched<R> {
    inner: R,
    line_bytes_max: usize,
    line: Line,
    seen: Seen,
    /// Whether the first stray line is whole.
    has_stray: bool,
}

/// The line that is being read.
#[derive(Clone, Copy, Debug)]
struct Line {
    bytes: usize,
    is_stray: bool,
}

impl Line {
    const NEW: Self = Self { bytes: 0, is_stray: false };
}

impl<R> Watched<R> {
    pub(super) fn new(inner: R, line_bytes_max: usize, seen: Seen) -> Self {
        Self { inner, line_bytes_max, line: Line::NEW, seen, has_stray: false }
    }

    fn watch(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let ends = piece.ends_with(b"\n");
            if self.line.bytes == 0 {
                self.line.is_stray = piece
                    .iter()
                    .find(|byte| !byte.is_ascii_whitespace())
                    .is_some_and(|&byte| byte != b'{' && byte != b'[');
            }
            self.line.bytes += piece.len();
            if self.line.bytes > self.line_bytes_max {
                self.seen.too_long.send_replace(true);
            }
            if self.line.is_stray && !self.has_stray {
                let mut stray = self.seen.stray.lock().unwrap_or_else(PoisonError::into_inner);
                let room = STRAY_BYTES_MAX.saturating_sub(stray.len());
                stray.extend(piece.iter().take(room));
                self.has_stray = ends;
            }
            if ends {
                self.line = Line::NEW;
            }
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Watched<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.inner).poll_read(context, buffer))?;
        this.watch(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    async fn check(chunks: &[&str], line_bytes_max: usize, stray: Option<&str>, too_long: bool) {
        let mut mock = tokio_test(chunks);
        let seen = Seen::new();
        let mut through = String::new();
        Watched::new(&mut mock, line_bytes_max, seen.clone()).read_to_string(&mut through).await.unwrap();
        assert_eq!(through, chunks.concat());
        assert_eq!((seen.stray().as_deref(), *seen.too_long.borrow()), (stray, too_long), "{chunks:?}");
    }

    /// A stream that hands out these chunks one by one.
    fn tokio_test(chunks: &[&str]) -> impl AsyncRead + Unpin {
        let chunks: Vec<&[u8]> = chunks.iter().map(|chunk| chunk.as_bytes()).collect();
        let empty: Box<dyn AsyncRead + Unpin + '_> = Box::new(tokio::io::empty());
        chunks.into_iter().rev().fold(empty, |rest, chunk| Box::new(chunk.chain(rest)))
    }

    #[tokio::test]
    async fn lines_of_mcp_pass_unnoticed() {
        check(&["{\"a\":1}\n", " {\"b\"", ":2}\n\n", "[1]\r\n"], 10, None, false).await;
    }

    #[tokio::test]
    async fn the_first_line_that_is_not_mcp_is_kept() {
        check(&["{}\n", "Listening", " on 1\n{}\nmore\n"], 100, Some("Listening on 1\n"), false).await;
        check(&["no end"], 100, Some("no end"), false).await;
        check(&[&"x".repeat(3_000)], 5_000, Some(&"x".repeat(STRAY_BYTES_MAX)), false).await;
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_noticed_before_it_ends() {
        check(&["{\"a\":1}\n"], 8, None, false).await;
        check(&["{\"a\":", "11}"], 7, None, true).await;
        check(&["{\"a\":11}\n"], 8, None, true).await;
    }
}
