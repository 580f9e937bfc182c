//! `mail:` of the operator's file: the one relay that mail goes through.

use crate::notification::Name;

/// The relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailRelay {
    /// Its name or IP literal, without brackets. It is the operator's own and may be at a private address.
    pub host: String,
    /// The port: never guessed.
    pub port: u16,
    /// How the connection is protected: never guessed.
    pub tls: MailTls,
    /// The user and the secret (`in: mail`) with the password. With `tls: none` only a loopback literal may have one.
    pub sign_in: Option<(String, Name)>,
    /// The From of every mail.
    pub from: Mailbox,
    /// Whom mail may go to; nobody when empty.
    pub recipients: Vec<RecipientPattern>,
}

impl MailRelay {
    /// What is shown to those who have none.
    pub const EXAMPLE: &str = "mail: { relay: \"smtp.example.com:587\", tls: starttls, from: bell@example.com, \
                               recipients: [\"*@example.com\"] }";
}

/// How the connection to the relay is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailTls {
    /// TLS from the first byte (RFC 8314), usually port 465.
    Implicit,
    /// STARTTLS (RFC 3207) before anything is said; a relay without it gets nothing.
    StartTls,
    /// None.
    None,
}

/// An address with a display name, such as `Switchbell <bell@example.com>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mailbox {
    /// The display name, where there is one.
    pub name: Option<String>,
    /// The address.
    pub address: String,
}

/// Whom mail may go to. Domains are compared without regard to case, what is before the `@` with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecipientPattern {
    /// This address, its domain in lower case.
    Exact(String),
    /// Every address of this domain, in lower case: `*@example.com`.
    Domain(String),
    /// Every address: `*`, quoted.
    Anyone,
}
