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
        /// Its host and port. It may be at a private address; the port is never guessed.
        "relay" => relay: Relay, Required;
        /// How the connection to it is protected. It is never guessed.
        "tls" => tls: MailTls, Required;
        /// The user to sign in as. With `password`, or neither; with `tls: none` only to a loopback address that is
        /// written out.
        "user" => user: SmtpUser, Optional;
        /// The secret with the user's password, one with `in: mail`.
        "password" => password: RawSecretName, Optional;
        /// The sender of every mail. An address, or `Name <address>`.
        "from" => from: Mailbox, Required;
        /// Whom mail may go to; nobody when left out. At most 500, each an address, `"*@DOMAIN"` for a whole domain,
        /// or `"*"` for everybody.
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
    examples: [
        r#"{ relay: "smtp.example.com:587", tls: starttls, user: bell, password: { secret: smtp }, from: "Switchbell <bell@example.com>", recipients: ["*@example.com"] }"#,
    ]
}
