//! The other side.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{Barrier, watch};
use tokio_rustls::TlsAcceptor;

/// What follows an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// The next request is answered too.
    Stay,
    /// The connection is closed.
    Close,
    /// It is closed when the next request has come.
    HangUpOnTheNext,
}

/// A listener that gives one answer, counts connections and remembers requests.
#[derive(Clone)]
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    scheme: &'static str,
    seen: Arc<watch::Sender<Seen>>,
    requests: Arc<Mutex<Vec<String>>>,
    answer: Arc<Vec<u8>>,
    then: Then,
    together: Arc<Barrier>,
}

#[derive(Default)]
struct Seen {
    connections: usize,
    closed: usize,
}

impl Peer {
    pub(super) async fn open(answer: impl Into<Vec<u8>>, then: Then) -> Self {
        Self::open_for(answer, then, 1).await
    }

    /// Answers when so many requests have come.
    pub(super) async fn open_for(answer: impl Into<Vec<u8>>, then: Then, together: usize) -> Self {
        Self::listen(answer.into(), then, together, None).await
    }

    /// With TLS and a certificate of its own, which the configuration trusts that comes with it.
    pub(super) async fn open_tls(answer: &str) -> (Self, ClientConfig) {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let server = server.unwrap().with_no_client_auth().with_single_cert(vec![certificate.clone()], key).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let client = client.unwrap().with_root_certificates(roots).with_no_client_auth();
        let acceptor = TlsAcceptor::from(Arc::new(server));
        (Self::listen(answer.into(), Then::Stay, 1, Some(acceptor)).await, client)
    }

    async fn listen(answer: Vec<u8>, then: Then, together: usize, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let peer = Self {
            address: listener.local_addr().unwrap(),
            scheme: if tls.is_some() { "https" } else { "http" },
            seen: Arc::default(),
            requests: Arc::default(),
            answer: Arc::new(answer),
            then,
            together: Arc::new(Barrier::new(together)),
        };
        let listening = peer.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                listening.seen.send_modify(|seen| seen.connections += 1);
                let (peer, tls) = (listening.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => peer.serve(stream).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => peer.serve(stream).await,
                            Err(_) => return,
                        },
                    }
                    peer.seen.send_modify(|seen| seen.closed += 1);
                });
            }
        });
        peer
    }

    async fn serve(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        let mut answered = false;
        while let Some(request) = request(&mut stream).await {
            self.requests.lock().unwrap().push(request);
            if answered && self.then == Then::HangUpOnTheNext {
                return;
            }
            self.together.wait().await;
            if stream.write_all(&self.answer).await.is_err() || stream.flush().await.is_err() {
                return;
            }
            if self.then == Then::Close {
                return;
            }
            answered = true;
        }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    pub(super) fn connections(&self) -> usize {
        self.seen.borrow().connections
    }

    /// Returns once so many connections are closed.
    pub(super) async fn closed(&self, count: usize) {
        self.seen.subscribe().wait_for(|seen| seen.closed >= count).await.unwrap();
    }

    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// Reads a request to its end.
pub(super) async fn request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return Some(text.into_owned());
        }
    }
}
