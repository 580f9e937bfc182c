//! One request and its answer on a connection. While it waits it holds no buffer: what is sent is let go of, and what
//! comes is read into room on the stack first.

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::Method;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::message::{self, Head, Malformed};
use crate::wasm::Response;

/// Bytes of the head of an answer, interim answers included: more is an error, and not memory.
pub(super) const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Bytes read at once.
const READ_BYTES: usize = 8 * 1024;

/// Why no whole answer came.
#[derive(Debug)]
pub(super) enum Cut {
    Broken(io::Error),
    Closed,
    Malformed(Malformed),
}

impl std::fmt::Display for Cut {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Broken(error) => write!(out, "{error}"),
            Self::Closed => out.write_str("the connection was closed before the end of the answer"),
            Self::Malformed(Malformed(why)) => out.write_str(why),
        }
    }
}

impl From<io::Error> for Cut {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

impl From<Malformed> for Cut {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

/// Sends a request and reads its answer, of whose body at most `kept_bytes` are kept; with it comes whether the
/// connection may be used again.
///
/// # Errors
/// Why no whole answer came; the request may have been understood.
pub(super) async fn exchange<C: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut C,
    request: Vec<u8>,
    asked: Method,
    kept_bytes: usize,
) -> Result<(Response, bool), Cut> {
    let mut bytes = Vec::new();
    let all_sent = send(connection, request, &mut bytes).await?;
    let Head { status, headers, mut body, goes_on } = head(connection, &mut bytes, &asked).await?;
    let (mut content, mut truncated, mut at_end) = (Vec::new(), false, false);
    loop {
        let taken = body.take(&bytes, &mut |piece: &[u8]| {
            let room = kept_bytes.saturating_sub(content.len());
            truncated |= piece.len() > room;
            content.extend(piece.iter().take(room));
        })?;
        if truncated || at_end || body.is_whole() {
            let reusable = all_sent && goes_on && body.is_whole() && taken == bytes.len();
            let response = Response { status, headers, body: content, truncated, extras: "{}".to_owned() };
            return Ok((response, reusable));
        }
        bytes.clear();
        at_end = read(connection, &mut bytes).await? == 0;
        if at_end && body != super::body::Body::UntilClosed {
            return Err(Cut::Closed);
        }
    }
}

/// Sends all, or as much as the other side takes before it begins to answer, and says whether it was all.
async fn send<C>(connection: &mut C, request: Vec<u8>, answer: &mut Vec<u8>) -> io::Result<bool>
where
    C: AsyncRead + AsyncWrite + Unpin,
{
    let mut rest = request.as_slice();
    poll_fn(|context| {
        while !rest.is_empty() {
            match Pin::new(&mut *connection).poll_write(context, rest)? {
                Poll::Ready(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(count) => rest = rest.get(count..).unwrap_or_default(),
                Poll::Pending => {
                    let count = ready!(poll_read(connection, context, answer))?;
                    let early = if count > 0 { Ok(false) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
                    return Poll::Ready(early);
                }
            }
        }
        Pin::new(&mut *connection).poll_flush(context).map_ok(|()| true)
    })
    .await
}

/// Reads the head of the final answer, and leaves in `bytes` what came behind it.
async fn head(connection: &mut (impl AsyncRead + Unpin), bytes: &mut Vec<u8>, asked: &Method) -> Result<Head, Cut> {
    let (mut looked_at, mut interim) = (0, 0);
    loop {
        if message::may_end(bytes, looked_at)
            && let Some((head, end)) = message::head(bytes, asked)?
        {
            bytes.drain(..end);
            match head.status {
                // Nobody asked for another protocol.
                101 => return Err(Malformed("the answer changes the protocol").into()),
                ..200 => (looked_at, interim) = (0, interim + end),
                _ => return Ok(head),
            }
            continue;
        }
        looked_at = bytes.len();
        if interim + looked_at > HEAD_BYTES_MAX {
            return Err(Malformed("the headers of the answer are larger than 64 KiB").into());
        }
        if read(connection, bytes).await? == 0 {
            return Err(Cut::Closed);
        }
    }
}

async fn read(connection: &mut (impl AsyncRead + Unpin), into: &mut Vec<u8>) -> io::Result<usize> {
    poll_fn(|context| poll_read(connection, context, into)).await
}

fn poll_read(
    connection: &mut (impl AsyncRead + Unpin),
    context: &mut Context<'_>,
    into: &mut Vec<u8>,
) -> Poll<io::Result<usize>> {
    let mut room = [MaybeUninit::uninit(); READ_BYTES];
    let mut read = ReadBuf::uninit(&mut room);
    ready!(Pin::new(connection).poll_read(context, &mut read))?;
    into.extend_from_slice(read.filled());
    Poll::Ready(Ok(read.filled().len()))
}
