//! Opens connections: to judged addresses only, and to exactly those.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use rustix::net::{RecvFlags, recv};
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::Verifier;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::{Host, Url};

use crate::address::is_public;

/// The longest a connection may take to open, TLS included.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// How long one address of a host has before the next is tried beside it (RFC 8305, 5).
const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(250);

/// Addresses of a host that are tried: with the pause between them, what fits into the time.
const ADDRESSES_MAX: usize = 32;

/// Why there is no connection; nothing was sent.
#[derive(Debug)]
pub(super) enum NotOpened {
    /// The host has private addresses only.
    Private,
    /// No certificate could be for such a host.
    Unnameable,
    /// What the network or TLS said.
    Failed(io::Error),
}

impl From<io::Error> for NotOpened {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// What connections are opened with.
#[derive(Clone)]
pub(super) struct Connector {
    tls: TlsConnector,
}

/// An open connection.
#[derive(Debug)]
pub(super) enum Connection {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// How TLS is spoken: as the system trusts, with one provider of cryptography. Sessions are not resumed: a ticket of one
/// workspace must not show a server who comes for another.
///
/// # Errors
/// When the system's certificates cannot be used.
pub(super) fn tls() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(Verifier::new(Arc::clone(&provider))?);
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut tls = versions.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    tls.resumption = Resumption::disabled();
    Ok(tls)
}

impl Connector {
    pub(super) fn new(tls: ClientConfig) -> Self {
        Self { tls: TlsConnector::from(Arc::new(tls)) }
    }

    /// Opens a connection to the host of a URL.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn open(&self, url: &Url, private: bool) -> Result<Connection, NotOpened> {
        let opened = timeout(CONNECT_TIME_MAX, self.open_in_time(url, private)).await;
        opened.unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "operation timed out").into()))
    }

    async fn open_in_time(&self, url: &Url, private: bool) -> Result<Connection, NotOpened> {
        let (host, port) = (url.host(), url.port_or_known_default().unwrap_or_default());
        let (name, found) = match host {
            Some(Host::Ipv4(address)) => (ServerName::from(IpAddr::from(address)), vec![(address, port).into()]),
            Some(Host::Ipv6(address)) => (ServerName::from(IpAddr::from(address)), vec![(address, port).into()]),
            Some(Host::Domain(name)) => {
                let known = ServerName::try_from(name.to_owned()).map_err(|_| NotOpened::Unnameable)?;
                (known, lookup_host((name, port)).await?.collect())
            }
            None => return Err(NotOpened::Unnameable),
        };
        let stream = dial(judged(found, private)?).await?;
        stream.set_nodelay(true)?;
        if url.scheme() == "http" {
            return Ok(Connection::Plain(stream));
        }
        Ok(Connection::Tls(Box::new(self.tls.connect(name, stream).await?)))
    }
}

/// The addresses that may be connected to.
pub(super) fn judged(mut found: Vec<SocketAddr>, private: bool) -> Result<Vec<SocketAddr>, NotOpened> {
    let any = !found.is_empty();
    found.retain(|address| private || is_public(address.ip()));
    found.truncate(ADDRESSES_MAX);
    if any && found.is_empty() { Err(NotOpened::Private) } else { Ok(found) }
}

/// Connects to the first of these addresses that answers.
async fn dial(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut untried = addresses.into_iter();
    let mut dialing = FuturesUnordered::new();
    let mut error = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    loop {
        match untried.next() {
            Some(address) => dialing.push(TcpStream::connect(address)),
            None if dialing.is_empty() => return Err(error),
            None => {}
        }
        tokio::select! {
            Some(dialed) = dialing.next() => match dialed {
                Ok(stream) => return Ok(stream),
                Err(failed) => error = failed,
            },
            () = sleep(NEXT_ADDRESS_AFTER), if untried.len() > 0 => {}
        }
    }
}

impl Connection {
    /// Whether nothing has come since the last answer: neither its end, nor bytes that nobody asked for. Asks the system
    /// itself, so that a connection whose end has arrived is never written to.
    pub(super) fn is_unused(&mut self) -> bool {
        let stream = match self {
            Self::Plain(stream) => &*stream,
            Self::Tls(stream) => {
                // TLS has messages of its own, which are no answer.
                if stream.read(&mut [0]).now_or_never().is_some() {
                    return false;
                }
                stream.get_ref().0
            }
        };
        recv(stream, &mut [0_u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT) == Err(rustix::io::Errno::AGAIN)
    }
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, into),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, into),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
