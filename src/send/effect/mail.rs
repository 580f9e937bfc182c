//! Mail through the operator's relay, on lettre: judged, written, and handed over, one transaction for each recipient.
//!
//! `judge` decides, `compose` writes, `relay` speaks SMTP, `pool` keeps connections, `trouble` names what goes wrong.

mod address;
mod compose;
mod header;
pub mod judge;
mod pool;
mod relay;
mod trouble;
mod turns;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lettre::Address;
use lettre::message::Mailbox;
use lettre::transport::smtp::authentication::Credentials;
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{EffectsError, Permission, denied, fault};
use crate::config::{Config, MailRelay, MailTls, Secret, SecretValue};
use crate::wasm::{Fault, Mailed, Message, Reach, Recipient};
use compose::Letter;
use judge::{AllowedMail, judge, not_configured};
use pool::Pool;
use relay::{Conversation, Door};
use trouble::Came;

/// Characters kept of why a recipient got nothing: our words, and enough of the relay's.
const MESSAGE_CHARS_MAX: usize = 500;

/// The longest one mail may take, to all of its recipients together.
pub const MAIL_TIME_MAX: Duration = Duration::from_secs(5 * 60);

/// Sends mail through the one relay there is, or through none. Clones share it.
#[derive(Clone, Debug)]
pub struct MailClient {
    relay: Arc<watch::Sender<Option<Arc<Relay>>>>,
}

/// The relay of another configuration, or none.
#[derive(Clone, Debug)]
pub(super) struct OtherRelay(Option<Arc<Relay>>);

#[derive(Debug)]
struct Relay {
    config: MailRelay,
    /// What it is signed in with.
    secret: Option<Secret>,
    from: Mailbox,
    door: Door,
    pool: Pool,
    password: Option<Password>,
}

/// What the relay's words must not give away.
struct Password {
    /// In clear, and as it is sent to sign in.
    spellings: Vec<String>,
    /// What stands in its place.
    mark: String,
    /// Whether it is so short that what is masked could be guessed by trying.
    is_weak: bool,
}

impl fmt::Debug for Password {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Password").finish_non_exhaustive()
    }
}

impl MailClient {
    /// For the relay of this configuration, trusting the certificates that this machine trusts.
    ///
    /// # Errors
    /// When the system's certificates cannot be used, or the configuration does not hold together.
    pub fn new(config: &Config) -> Result<Self, EffectsError> {
        Self::trusting(config, trust_of(config)?)
    }

    /// For the relay of this configuration, trusting what `trust` says.
    ///
    /// # Errors
    /// When the configuration does not hold together.
    pub fn trusting(config: &Config, trust: ClientConfig) -> Result<Self, EffectsError> {
        let relay = config.mail.as_ref().map(|mail| Relay::new(mail, config, trust)).transpose()?;
        Ok(Self { relay: Arc::new(watch::Sender::new(relay.map(Arc::new))) })
    }

    /// What it goes over to with another configuration: the same relay, with its connections, where nothing of it changes.
    ///
    /// # Errors
    /// As [`MailClient::new`].
    pub(super) fn prepare(&self, config: &Config) -> Result<OtherRelay, EffectsError> {
        let Some(mail) = &config.mail else { return Ok(OtherRelay(None)) };
        let secret = mail.sign_in.as_ref().and_then(|(_, name)| config.secrets.get(name));
        if let Some(same) = self.relay().filter(|relay| relay.config == *mail && relay.secret.as_ref() == secret) {
            return Ok(OtherRelay(Some(same)));
        }
        Relay::new(mail, config, trust_of(config)?).map(|relay| OtherRelay(Some(Arc::new(relay))))
    }

    /// Goes over to a relay; returns the one before. What is under way goes on with the one it has.
    pub(super) fn go_over(&self, OtherRelay(relay): OtherRelay) -> OtherRelay {
        OtherRelay(self.relay.send_replace(relay))
    }

    fn relay(&self) -> Option<Arc<Relay>> {
        self.relay.borrow().clone()
    }

    /// Judges a mail and hands it over to each recipient. No recipient keeps another from it.
    ///
    /// # Errors
    /// Why all of it is refused. Whatever happens on the way to the relay is told with each recipient.
    pub async fn perform(&self, message: Message, permission: &Permission<'_>) -> Result<Mailed, Fault> {
        let relay = self.relay().ok_or_else(not_configured)?;
        let mail = judge(message, permission, &relay.config)?;
        let letter = Letter::new(&mail, permission, &relay.from);
        let message_id = letter.message_id().to_owned();
        let recipients = relay.deliver(mail, &letter, permission).await;
        Ok(Mailed { message_id, recipients })
    }

    /// Judges a mail alone: the recipients that it would not go to, and why.
    ///
    /// # Errors
    /// Why all of it is refused.
    pub fn judge(&self, message: Message, permission: &Permission<'_>) -> Result<Vec<(String, Fault)>, Fault> {
        let relay = self.relay().ok_or_else(not_configured)?;
        let mail = judge(message, permission, &relay.config)?;
        let refused = |(text, judged): (String, Result<Address, Fault>)| Some((text, judged.err()?));
        Ok(mail.recipients.into_iter().filter_map(refused).collect())
    }

    /// Closes connections that have been idle for too long, until told to stop, and those to a relay that is left.
    pub async fn tend(&self, stop: &CancellationToken) {
        let mut changes = self.relay.subscribe();
        while !stop.is_cancelled() {
            let relay = changes.borrow_and_update().clone();
            let is_left = CancellationToken::new();
            let is_another =
                |now: &Option<Arc<Relay>>| now.as_ref().map(Arc::as_ptr) != relay.as_ref().map(Arc::as_ptr);
            let left = async {
                tokio::select! {
                    _ = changes.wait_for(is_another) => {}
                    () = stop.cancelled() => {}
                }
                is_left.cancel();
            };
            let tended = async {
                match &relay {
                    Some(relay) => relay.pool.tend(&is_left).await,
                    None => is_left.cancelled().await,
                }
            };
            tokio::join!(left, tended);
        }
    }
}

/// The certificates that this machine trusts, where the relay needs any.
fn trust_of(config: &Config) -> Result<ClientConfig, EffectsError> {
    let needs_trust = config.mail.as_ref().is_some_and(|relay| relay.tls != MailTls::None);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| mistake(&error))?;
    let trust = if needs_trust {
        builder.with_platform_verifier().map_err(|error| mistake(&error))?
    } else {
        builder.with_root_certificates(rustls::RootCertStore::empty())
    };
    Ok(trust.with_no_client_auth())
}

fn mistake(error: &impl fmt::Display) -> EffectsError {
    EffectsError(format!("mail: {error}"))
}

impl Relay {
    fn new(mail: &MailRelay, config: &Config, trust: ClientConfig) -> Result<Self, EffectsError> {
        let address = address::checked(&mail.from.address).map_err(|why| mistake(&format!("`mail.from`: {why}")))?;
        let password = mail.sign_in.as_ref().map(|(user, name)| {
            let secret = config.secrets.get(name);
            // A configuration that is only judged has no values; nothing is sent with it.
            let is_unread = secret.is_some_and(|secret| matches!(secret.value, SecretValue::NotRead));
            let value = if is_unread { Some("not read") } else { secret.and_then(|secret| secret.fixed()) };
            let value = value.ok_or_else(|| mistake(&format!("secret {name} of `mail.password` has no value")))?;
            let is_loopback = mail.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
            if mail.tls == MailTls::None && !is_loopback {
                return Err(mistake(
                    &"`mail.tls: none` sends no password but to a loopback address; write starttls or implicit",
                ));
            }
            let plain = STANDARD.encode(format!("\0{user}\0{value}"));
            let spellings = vec![plain, STANDARD.encode(value), value.to_owned()];
            let is_weak = secret.is_some_and(|secret| secret.is_weak);
            let password = Password { spellings, mark: format!("[secret {name}]"), is_weak };
            Ok((Credentials::new(user.clone(), value.to_owned()), password))
        });
        let (credentials, password) = password.transpose()?.unzip();
        let door =
            Door { host: mail.host.clone(), port: mail.port, tls: mail.tls, trust: Arc::new(trust), credentials };
        let from = Mailbox::new(mail.from.name.clone(), address);
        let secret = mail.sign_in.as_ref().and_then(|(_, name)| config.secrets.get(name)).cloned();
        Ok(Self { config: mail.clone(), secret, from, door, pool: Pool::new(), password })
    }

    async fn deliver(&self, mail: AllowedMail, letter: &Letter, permission: &Permission<'_>) -> Vec<Recipient> {
        let mut round =
            Round { relay: self, letter, until: Instant::now() + MAIL_TIME_MAX, open: None, given_up: None };
        let seat = self.pool.seat(round.until).await;
        if seat.is_none() {
            round.given_up = Some(fault(Reach::Unsent, "busy", "all connections to the relay are in use".to_owned()));
        }
        // Who stands twice gets one mail.
        let mut done: BTreeMap<String, Result<(), Fault>> = BTreeMap::new();
        let mut recipients = Vec::with_capacity(mail.recipients.len());
        for (text, judged) in mail.recipients {
            let outcome = match judged {
                Err(fault) => Err(fault),
                Ok(address) => match done.get(&address::comparable(&address)) {
                    Some(outcome) => outcome.clone(),
                    None => {
                        let outcome = round.hand_over(&address).await.map_err(|fault| self.masked(fault, permission));
                        done.insert(address::comparable(&address), outcome.clone());
                        outcome
                    }
                },
            };
            recipients.push(Recipient { address: text, outcome });
        }
        if let Some(open) = round.open {
            self.pool.give_back(open);
        }
        recipients
    }

    /// The fault without secrets, whatever the relay said.
    fn masked(&self, mut fault: Fault, permission: &Permission<'_>) -> Fault {
        fault.message = permission.seals.redact(&fault.message);
        // Only while it is signed in does nobody but the operator have a say in what the relay echoes.
        if let Some(password) = self.password.as_ref().filter(|password| !password.is_weak || fault.code == "sign-in") {
            for spelling in password.spellings.iter().filter(|spelling| !spelling.is_empty()) {
                fault.message = fault.message.replace(spelling, &password.mark);
            }
        }
        // Not before: a cut would leave a part of a secret that is none of its spellings.
        if let Some((end, _)) = fault.message.char_indices().nth(MESSAGE_CHARS_MAX) {
            fault.message.truncate(end);
        }
        fault
    }
}

/// One mail on its way to its recipients, one after the other.
struct Round<'a> {
    relay: &'a Relay,
    letter: &'a Letter,
    /// When it must be over.
    until: Instant,
    /// The connection in use, ready for a transaction.
    open: Option<Conversation>,
    /// Why the recipients that are left get nothing.
    given_up: Option<Fault>,
}

impl Round<'_> {
    async fn hand_over(&mut self, address: &Address) -> Result<(), Fault> {
        if Instant::now() >= self.until {
            let message = format!("the mail took longer than {MAIL_TIME_MAX:?} before it was this recipient's turn");
            return Err(fault(Reach::Unsent, "timeout", message));
        }
        if let Some(fault) = &self.given_up {
            return Err(fault.clone());
        }
        let not_composed =
            |_| denied("from", "`mail.from` cannot be written into a mail: choose another name".to_owned());
        let bytes = self.letter.to(address).map_err(not_composed)?;
        // A connection that was open before may turn out to be dead; a new one never is for that reason.
        let mut may_be_old = true;
        loop {
            let mut conversation = self.conversation(may_be_old).await?;
            let came = conversation.hand_over(&self.relay.from.email, address, &bytes, self.until).await;
            match came {
                Came::Accepted => {
                    self.open = Some(conversation);
                    return Ok(());
                }
                Came::Refused(fault) => {
                    if conversation.reset(self.until).await {
                        self.open = Some(conversation);
                    }
                    return Err(fault);
                }
                Came::Closing(fault) => {
                    self.given_up = Some(fault.clone());
                    return Err(fault);
                }
                Came::Lost(fault) => return Err(fault),
                Came::Stale => {
                    self.relay.pool.forget();
                    may_be_old = false;
                }
            }
        }
    }

    /// The connection in use, one that is idle, or a new one. Where none can be had, none is tried again for this mail.
    async fn conversation(&mut self, may_be_old: bool) -> Result<Conversation, Fault> {
        let old = if may_be_old { self.open.take().or_else(|| self.relay.pool.take()) } else { None };
        if let Some(old) = old {
            return Ok(old);
        }
        self.relay.door.open().await.map_err(|trouble| {
            let fault = trouble.fault();
            self.given_up = Some(fault.clone());
            fault
        })
    }
}
