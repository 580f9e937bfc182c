//! A connection on which the other side speaks only when asked, as SMTP without pipelining is.
//!
//! A relay that says more than one reply to one question is cut off: an answer that was put in before TLS began, or that
//! came while nobody asked, must never count as the answer to a later question.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use lettre::transport::smtp::client::AsyncTokioStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Most bytes of one reply: the longest lists of a relay's extensions have a few hundred.
const REPLY_BYTES_MAX: usize = 16 * 1024;

/// The line that stands for the greeting on a connection that was greeted before TLS began: the library waits for one.
const GREETED: &[u8] = b"220 greeted\r\n";

/// How a relay says, whenever it likes, that it closes the connection.
const CLOSING: &[u8] = b"421";

/// A stream that takes turns.
#[derive(Debug)]
pub(super) struct Turns<S> {
    stream: S,
    peer: SocketAddr,
    /// What is handed out before anything is read.
    before: &'static [u8],
    reply: Reply,
    /// Whether the other side said that it closes the connection.
    closes: bool,
}

/// How far the reply of this turn has come.
#[derive(Debug, Default)]
struct Reply {
    bytes: usize,
    /// Bytes of the line that is under way.
    line_bytes: usize,
    /// Whether this line is the last one: its fourth byte is no hyphen.
    is_last: bool,
    is_complete: bool,
    after_return: bool,
}

impl<S> Turns<S> {
    /// On a new connection, where the other side speaks first.
    pub(super) fn new(stream: S, peer: SocketAddr) -> Self {
        Self { stream, peer, before: b"", reply: Reply::default(), closes: false }
    }

    /// On a connection where the greeting is over.
    pub(super) fn greeted(stream: S, peer: SocketAddr) -> Self {
        Self { before: GREETED, ..Self::new(stream, peer) }
    }
}

impl Reply {
    /// Follows what was read, and makes it ASCII: a relay's words may be in any encoding. Says how much of it is the
    /// reply: behind one, a relay may only say that it closes the connection (RFC 5321 §3.8), which is not handed out.
    fn take(&mut self, read: &mut [u8]) -> io::Result<usize> {
        let all = read.len();
        for at in 0..all {
            if self.is_complete {
                return match read.get(at..) {
                    Some(rest) if rest.starts_with(CLOSING) => Ok(at),
                    _ => Err(broken("the relay spoke out of turn")),
                };
            }
            let Some(byte) = read.get_mut(at) else { break };
            self.bytes += 1;
            self.line_bytes += 1;
            if self.line_bytes == 4 {
                self.is_last = *byte != b'-';
            }
            if *byte == b'\n' {
                // Whoever reads the reply waits for both.
                if !self.after_return {
                    return Err(broken("the relay ends a line without a carriage return"));
                }
                // A line of fewer bytes is no reply; whoever reads it says so.
                self.is_complete = self.is_last || self.line_bytes < 4;
                self.line_bytes = 0;
            }
            self.after_return = *byte == b'\r';
            if !byte.is_ascii() {
                *byte = b'?';
            }
        }
        if self.bytes > REPLY_BYTES_MAX {
            return Err(broken("the relay's reply never ends"));
        }
        Ok(all)
    }
}

fn broken(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}

impl<S: AsyncRead + Unpin> AsyncRead for Turns<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.before.is_empty() {
            let (now, later) = this.before.split_at(this.before.len().min(buffer.remaining()));
            buffer.put_slice(now);
            this.before = later;
            return Poll::Ready(Ok(()));
        }
        if this.closes {
            return Poll::Ready(Ok(()));
        }
        let filled = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        let read = buffer.filled_mut().get_mut(filled..).unwrap_or_default();
        let (all, taken) = (read.len(), this.reply.take(read)?);
        this.closes = taken < all;
        buffer.set_filled(filled + taken);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Turns<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.closes {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        this.reply = Reply::default();
        Pin::new(&mut this.stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + Sync + std::fmt::Debug> AsyncTokioStream for Turns<S> {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parts: &[&[u8]]) -> Result<String, String> {
        let mut reply = Reply::default();
        let mut read = String::new();
        for part in parts {
            let mut part = part.to_vec();
            let taken = reply.take(&mut part).map_err(|error| error.to_string())?;
            part.truncate(taken);
            read.push_str(&String::from_utf8(part).unwrap());
        }
        Ok(read)
    }

    #[test]
    fn one_reply_is_read_in_any_pieces() {
        for parts in [
            vec![&b"250 ok\r\n"[..]],
            vec![b"2", b"50", b" o", b"k\r", b"\n"],
            vec![b"250-first\r\n250-second\r\n250 last\r\n"],
            vec![b"250\r\n"],
            vec![b"25\r\n"],
        ] {
            assert_eq!(read(&parts), Ok(parts.iter().map(|part| str::from_utf8(part).unwrap()).collect()));
        }
        assert_eq!(read(&[b"250 gr\xc3\xb6\xdfe\r\n"]), Ok("250 gr???e\r\n".to_owned()));
    }

    #[test]
    fn whatever_comes_after_a_reply_cuts_the_relay_off() {
        let out_of_turn = Err("the relay spoke out of turn".to_owned());
        assert_eq!(read(&[b"220 go ahead\r\n250 injected\r\n"]), out_of_turn);
        assert_eq!(read(&[b"250-a\r\n250 b\r\n", b"2"]), out_of_turn);
        assert_eq!(read(&[b"250 ok\r\n421 closing\r\n"]), Ok("250 ok\r\n".to_owned()));
        assert_eq!(read(&[b"250 ok\n"]), Err("the relay ends a line without a carriage return".to_owned()));
        let endless = vec![b'2'; REPLY_BYTES_MAX + 1];
        assert_eq!(read(&[&endless]), Err("the relay's reply never ends".to_owned()));
    }
}
