//! One conversation with the relay: connect, protect it as configured, sign in, and hand mails over one by one.
//!
//! The commands are the library's, the order is ours: each recipient has a transaction of its own, and what was lost
//! before the final dot (nothing was sent) is told from what was lost after it (it may have been sent).

use std::fmt;
use std::iter::{from_fn, once};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lettre::Address;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, AsyncTokioStream};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt, Rset, Starttls};
use lettre::transport::smtp::extension::{ClientId, Extension};
use lettre::transport::smtp::response::{Response, Severity};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;

use super::trouble::{Came, Trouble};
use super::turns::Turns;
use crate::config::MailTls;

/// The longest a connection may take to open, and TLS to begin.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// The longest a reply may take, but for the one to a whole mail: that may take as long as the mail has, since giving up
/// early is what makes duplicates (RFC 5321 §4.5.3.2.6).
const REPLY_TIME_MAX: Duration = Duration::from_secs(60);

/// Where the relay is and how to speak to it.
pub(super) struct Door {
    /// Its name or IP literal.
    pub(super) host: String,
    /// Its port.
    pub(super) port: u16,
    /// How the connection is protected.
    pub(super) tls: MailTls,
    /// Whom TLS trusts; not looked at without TLS.
    pub(super) trust: Arc<ClientConfig>,
    /// What signs in, where the relay wants that.
    pub(super) credentials: Option<Credentials>,
}

impl fmt::Debug for Door {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Door").field("host", &self.host).field("port", &self.port).finish_non_exhaustive()
    }
}

/// A connection that is ready for a transaction.
pub(super) struct Conversation {
    smtp: AsyncSmtpConnection,
    /// Transactions it carried.
    pub(super) carried: u32,
}

impl fmt::Debug for Conversation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Conversation").field("carried", &self.carried).finish_non_exhaustive()
    }
}

impl Door {
    /// Opens a connection that is protected and signed in as configured; else nothing goes over it.
    pub(super) async fn open(&self) -> Result<Conversation, Trouble> {
        let connecting = TcpStream::connect((self.host.as_str(), self.port));
        let tcp =
            timeout(CONNECT_TIME_MAX, connecting).await.map_err(|_| Trouble::Connect("it did not answer".into()))?;
        let tcp = tcp.map_err(|error| Trouble::Connect(error.to_string()))?;
        let unusable = |error: std::io::Error| Trouble::Connect(error.to_string());
        // Commands are small, and each waits for the reply to the one before.
        tcp.set_nodelay(true).map_err(unusable)?;
        let peer = tcp.peer_addr().map_err(unusable)?;
        let hello = hello(&tcp);
        let smtp = match self.tls {
            MailTls::None => greet(Box::new(Turns::new(tcp, peer)), &hello).await?,
            MailTls::Implicit => greet(Box::new(Turns::new(self.protect(tcp).await?, peer)), &hello).await?,
            MailTls::StartTls => {
                let tcp = start_tls(tcp, &hello).await?;
                greet(Box::new(Turns::greeted(self.protect(tcp).await?, peer)), &hello).await?
            }
        };
        let mut conversation = Conversation { smtp, carried: 0 };
        if let Some(credentials) = &self.credentials {
            conversation.sign_in(credentials).await?;
        }
        Ok(conversation)
    }

    async fn protect(&self, tcp: TcpStream) -> Result<tokio_rustls::client::TlsStream<TcpStream>, Trouble> {
        let name = ServerName::try_from(self.host.clone()).map_err(|error| Trouble::Tls(error.to_string()))?;
        let connector = TlsConnector::from(Arc::clone(&self.trust));
        let protecting = timeout(CONNECT_TIME_MAX, connector.connect(name, tcp)).await;
        let protected = protecting.map_err(|_| Trouble::Tls("it did not answer".into()))?;
        protected.map_err(Trouble::of_tls)
    }
}

/// Asks for TLS, and gives the bare connection back, on which TLS begins.
async fn start_tls(tcp: TcpStream, hello: &ClientId) -> Result<TcpStream, Trouble> {
    let unusable = |error: std::io::Error| Trouble::Connect(error.to_string());
    let peer = tcp.peer_addr().map_err(unusable)?;
    // The library keeps what it is handed, so it gets a second handle. What it has read and not used goes with it: nothing
    // that was said in clear counts once TLS has begun.
    let tcp = tcp.into_std().map_err(unusable)?;
    let kept = tcp.try_clone().map_err(unusable)?;
    let tcp = TcpStream::from_std(tcp).map_err(unusable)?;
    let mut smtp = greet(Box::new(Turns::new(tcp, peer)), hello).await?;
    if !smtp.server_info().supports_feature(Extension::StartTls) {
        return Err(Trouble::NoStartTls);
    }
    answer(&mut smtp, Starttls, within_a_reply(), Severity::PositiveCompletion).await.map_err(Trouble::at_the_door)?;
    drop(smtp);
    TcpStream::from_std(kept).map_err(unusable)
}

/// Waits for the greeting and introduces this server.
async fn greet(stream: Box<dyn AsyncTokioStream>, hello: &ClientId) -> Result<AsyncSmtpConnection, Trouble> {
    let greeting = timeout(REPLY_TIME_MAX, AsyncSmtpConnection::connect_with_transport(stream, hello)).await;
    let greeted = greeting.map_err(|_| Trouble::Lost("no greeting came in time".into()))?;
    greeted.map_err(|error| Trouble::of(&error)).map_err(Trouble::at_the_door)
}

/// The address of this end: the one name of itself that a client always knows (RFC 5321 §4.1.4).
fn hello(tcp: &TcpStream) -> ClientId {
    match tcp.local_addr().map(|address| address.ip().to_canonical()) {
        Ok(std::net::IpAddr::V4(address)) => ClientId::Ipv4(address),
        Ok(std::net::IpAddr::V6(address)) => ClientId::Ipv6(address),
        Err(_) => ClientId::default(),
    }
}

fn within_a_reply() -> Instant {
    Instant::now() + REPLY_TIME_MAX
}

/// Says something and waits for a reply of this kind.
async fn answer(
    smtp: &mut AsyncSmtpConnection,
    command: impl fmt::Display,
    until: Instant,
    expected: Severity,
) -> Result<Response, Trouble> {
    let reply = timeout_at(until.min(within_a_reply()), smtp.command(command)).await;
    let reply =
        reply.map_err(|_| Trouble::Lost("no reply came in time".into()))?.map_err(|error| Trouble::of(&error))?;
    if reply.code().severity == expected { Ok(reply) } else { Err(Trouble::Lost(format!("a {} came", reply.code()))) }
}

impl Conversation {
    async fn sign_in(&mut self, credentials: &Credentials) -> Result<(), Trouble> {
        let known = [Mechanism::Plain, Mechanism::Login];
        let offered = |mechanism: &Mechanism| self.smtp.server_info().supports_auth_mechanism(*mechanism);
        if !known.iter().any(offered) {
            return Err(Trouble::NoSignIn);
        }
        let signed_in = timeout(REPLY_TIME_MAX, self.smtp.auth(&known, credentials)).await;
        let signed_in = signed_in.map_err(|_| Trouble::Lost("no reply came in time".into()))?;
        signed_in.map(drop).map_err(|error| Trouble::of(&error).at_signing_in())
    }

    /// Hands a mail over to one recipient: one transaction.
    pub(super) async fn hand_over(&mut self, from: &Address, to: &Address, mail: &[u8], until: Instant) -> Came {
        let was_used = self.carried > 0;
        self.carried = self.carried.saturating_add(1);
        let begun =
            answer(&mut self.smtp, Mail::new(Some(from.clone()), vec![]), until, Severity::PositiveCompletion).await;
        match begun {
            Ok(_) => {}
            // It died, or was given up by the relay, while nothing was said; nothing of this mail has been.
            Err(Trouble::Lost(_) | Trouble::No(421, _)) if was_used => return Came::Stale,
            Err(trouble) => return trouble.before_the_dot(),
        }
        let named = answer(&mut self.smtp, Rcpt::new(to.clone(), vec![]), until, Severity::PositiveCompletion).await;
        if let Err(trouble) = named {
            return trouble.before_the_dot();
        }
        match answer(&mut self.smtp, Data, until, Severity::PositiveIntermediate).await {
            Ok(_) => self.transmit(mail, until).await,
            Err(trouble) => trouble.before_the_dot(),
        }
    }

    async fn transmit(&mut self, mail: &[u8], until: Instant) -> Came {
        let is_whole = AtomicBool::new(false);
        // The library asks for a next part once the mail is written, and writes the final dot when there is none.
        let ended = from_fn(|| {
            is_whole.store(true, Ordering::Relaxed);
            None
        });
        let reply = timeout_at(until, self.smtp.message_iter(once(mail).chain(ended))).await;
        let trouble = match reply {
            Ok(Ok(reply)) if reply.code().severity == Severity::PositiveCompletion => return Came::Accepted,
            Ok(Ok(reply)) => Trouble::Lost(format!("a {} came", reply.code())),
            Ok(Err(error)) => Trouble::of(&error),
            Err(_) => Trouble::Lost("no reply came in time".into()),
        };
        if is_whole.load(Ordering::Relaxed) { trouble.after_the_dot() } else { trouble.before_the_dot() }
    }

    /// Makes it ready for another transaction after one that was refused; whether it is.
    pub(super) async fn reset(&mut self, until: Instant) -> bool {
        answer(&mut self.smtp, Rset, until, Severity::PositiveCompletion).await.is_ok()
    }

    /// Says goodbye, and waits for the answer no longer than this.
    pub(super) async fn close(mut self, patience: Duration) {
        // Whatever comes of it, the connection is over.
        let _ = timeout(patience, self.smtp.quit()).await;
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};

    use super::*;
    use crate::wasm::{Fault, Reach};

    /// Answers up to the mail, reads this much of it, and breaks the connection.
    async fn relay(stream: DuplexStream, read_bytes: usize) {
        let mut stream = BufReader::new(stream);
        for reply in ["220 hi\r\n", "250 relay.example\r\n", "250 ok\r\n", "250 ok\r\n", "354 go\r\n"] {
            stream.write_all(reply.as_bytes()).await.unwrap();
            if !reply.starts_with("354") {
                stream.read_line(&mut String::new()).await.unwrap();
            }
        }
        stream.read_exact(&mut vec![0; read_bytes]).await.unwrap();
    }

    async fn handed_over(mail: &[u8], read_bytes: usize) -> Came {
        let (ours, theirs) = duplex(64);
        let sending = async {
            let peer = SocketAddr::from(([127, 0, 0, 1], 25));
            let smtp = greet(Box::new(Turns::new(ours, peer)), &ClientId::default()).await.unwrap();
            let address = "ops@example.com".parse().unwrap();
            Conversation { smtp, carried: 0 }.hand_over(&address, &address, mail, within_a_reply()).await
        };
        tokio::join!(sending, relay(theirs, read_bytes)).0
    }

    #[tokio::test]
    async fn only_a_mail_whose_final_dot_was_sent_may_have_been_taken() {
        let mail = vec![b'a'; 1_000];
        let with_dot = mail.len() + "\r\n.\r\n".len();
        for (read_bytes, expected) in [(0, Reach::Unsent), (500, Reach::Unsent), (with_dot, Reach::Unanswered)] {
            match handed_over(&mail, read_bytes).await {
                Came::Lost(Fault { reach, .. }) => assert_eq!(reach, expected, "after {read_bytes} bytes"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn no_password_shows_in_what_is_logged() {
        let trust = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let trust = trust.with_safe_default_protocol_versions().unwrap();
        let trust = trust.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
        let credentials = Some(Credentials::new("bell".to_owned(), "very-secret".to_owned()));
        let (host, tls, trust) = ("smtp.example.com".to_owned(), MailTls::StartTls, Arc::new(trust));
        let shown = format!("{:?}", Door { host, port: 587, tls, trust, credentials });
        assert!(shown.contains("smtp.example.com") && !shown.contains("very-secret"), "{shown}");
    }
}
