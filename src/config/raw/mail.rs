//! The relay that mail goes through.

use super::super::read::Placed;
use super::super::section::Need::{Optional, Required};
use super::super::section::section;
use super::super::values::{Relay, SmtpUser};
use super::super::{MailTls, Mailbox, RecipientPattern};
use super::RawSecretName;

/// Said to those who write the two parts of the relay apart.
const RELAY: &str = "host and port are written together: `relay: \"smtp.example.com:587\"`";

section! {
    /// The relay that mail goes through.
    struct RawMail {
        /// Its host and port.
        "relay" => relay: Relay, Required;
        /// How the connection to it is protected.
        "tls" => tls: MailTls, Required;
        /// The user to sign in as.
        "user" => user: SmtpUser, Optional;
        /// The secret with the user's password.
        "password" => password: RawSecretName, Optional;
        /// The sender of every mail.
        "from" => from: Mailbox, Required;
        /// Whom mail may go to; nobody when left out.
        "recipients" => recipients: Vec<Placed<RecipientPattern>>, Optional;
    }
    not yet: []
    elsewhere: {
        "host": RELAY,
        "port": RELAY,
        "server": RELAY,
        "smtp": RELAY,
        "starttls": "write `tls: starttls`",
        "ssl": "write `tls: implicit`",
        "to": "whom mail goes to is said by the settings of a target; whom it may go to is written `recipients`",
    }
}
