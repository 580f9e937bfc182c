//! How a mail is written: the headers and the body, the same bytes for a recipient in every attempt.
//!
//! Each recipient gets a mail of its own with only its address in `To`. So what one gets does not depend on who else is
//! left when an attempt is repeated, nobody learns another's address, and an answer to all goes to nobody by accident.

use std::time::{Duration, SystemTime};

use lettre::Address;
use lettre::address::Envelope;
use lettre::message::header::{ContentTransferEncoding, ContentType, Date, HeaderName, HeaderValue, MimeVersion};
use lettre::message::{Body, Mailbox, Message, MessageBuilder};
use sha2::{Digest, Sha256};

use super::header;
use super::judge::AllowedMail;
use crate::send::effect::Permission;

/// The last second that a date in a mail can tell: the end of the year 9999.
const SECONDS_MAX: u64 = 253_402_300_799;

/// A mail for several recipients.
#[derive(Debug)]
pub(super) struct Letter {
    message_id: String,
    headers: MessageBuilder,
    body: Body,
}

/// Why a mail cannot be written.
#[derive(Debug)]
pub(super) struct NotComposed;

impl Letter {
    /// Writes what is the same for every recipient.
    pub(super) fn new(mail: &AllowedMail, permission: &Permission<'_>, from: &Mailbox) -> Self {
        let domain = from.email.domain();
        let Permission { plugin, workspace, route, delivery, .. } = permission;
        let (plugin, workspace, route) = (plugin.as_str(), workspace.as_str(), route.as_str());
        let message_id = format!("<{}@{domain}>", hash(["message", workspace, plugin, delivery]));
        let mut headers = Message::builder()
            .header(Date::new(date(permission)))
            .from(from.clone())
            .raw_header(header::subject(&mail.subject))
            .message_id(Some(message_id.clone()));
        if let Some(thread) = &mail.thread {
            // Nobody sent a mail with this id; all mails of the thread refer to it, so whichever comes first is its head.
            let root = format!("<thread.{}@{domain}>", hash(["thread", workspace, plugin, thread]));
            headers = headers.references(root.clone()).in_reply_to(root);
        }
        headers = headers
            .raw_header(named(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned()))
            .raw_header(named(HeaderName::new_from_ascii_str("List-Id"), format!("<{route}.{workspace}.{domain}>")));
        if let Some(uri) = &mail.unsubscribe {
            headers = headers.raw_header(named(HeaderName::new_from_ascii_str("List-Unsubscribe"), format!("<{uri}>")));
        }
        let headers = headers.header(MimeVersion::new(1, 0)).header(ContentType::TEXT_PLAIN);
        Self { message_id, headers, body: body(&mail.text) }
    }

    /// The `Message-ID`, the same in every attempt of the delivery and for every recipient.
    pub(super) fn message_id(&self) -> &str {
        &self.message_id
    }

    /// The mail to one recipient: lines of at most 998 bytes that end in CRLF, the last without.
    ///
    /// # Errors
    /// When the library cannot read what it wrote itself, as it may with a strange display name in the From.
    pub(super) fn to(&self, address: &Address) -> Result<Vec<u8>, NotComposed> {
        let envelope = Envelope::new(None, vec![address.clone()]).map_err(|_| NotComposed)?;
        let headers = self.headers.clone().to(Mailbox::new(None, address.clone())).envelope(envelope);
        let mail = headers.body(self.body.clone()).map_err(|_| NotComposed)?;
        let mut bytes = mail.formatted();
        // The transmission ends every mail with a line break of its own.
        if bytes.ends_with(b"\r\n") {
            bytes.truncate(bytes.len() - 2);
        }
        Ok(bytes)
    }
}

fn named(name: HeaderName, value: String) -> HeaderValue {
    HeaderValue::new(name, value)
}

/// When the delivery came due, in whole seconds; a mail can tell no moment before 1970 or after 9999.
fn date(permission: &Permission<'_>) -> SystemTime {
    let seconds = u64::try_from(permission.due_at.as_second()).unwrap_or(0);
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.min(SECONDS_MAX))
}

/// The text as ASCII: as it is where it is short lines of ASCII, else encoded.
fn body(text: &str) -> Body {
    let is_clean = !text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t'));
    let encoded = if is_clean {
        // Never chooses eight bits.
        Ok(Body::new(text.to_owned()))
    } else {
        Body::new_with_encoding(text.to_owned(), ContentTransferEncoding::Base64)
    };
    encoded.unwrap_or_else(Body::new)
}

/// 128 bits in hex of a purpose and what it is about.
fn hash<const N: usize>(parts: [&str; N]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        // With its length, so that no two lists of parts are hashed alike.
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    crate::text::hex(hash.finalize().get(..16).unwrap_or_default())
}

#[cfg(test)]
mod tests;
