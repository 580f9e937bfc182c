//! The guard of mail: pure code that decides on a mail, the grants and the operator's list of recipients.

use lettre::Address;
use serde_json::Value;
use url::Url;

use super::address::{checked, is_allowed};
use crate::config::MailRelay;
use crate::send::effect::secret::MISPLACED;
use crate::send::effect::{Permission, denied};
use crate::wasm::{Fault, Message};

/// Most recipients of one mail: each costs a transaction of its own, and all must fit into [`super::MAIL_TIME_MAX`].
pub const RECIPIENTS_MAX: usize = 50;
/// Longest subject, bytes of UTF-8: as long as a line of a mail may be (RFC 5322 §2.1.1).
pub const SUBJECT_BYTES_MAX: usize = 998;
/// Longest text, bytes of UTF-8: as large as a digest may be.
pub const TEXT_BYTES_MAX: usize = 256 * 1024;
/// Longest `thread`, bytes: it is hashed, never sent.
pub const THREAD_BYTES_MAX: usize = 4 * 1024;
/// Longest address to unsubscribe at, bytes: it must fit into one line of a mail.
pub const UNSUBSCRIBE_BYTES_MAX: usize = 512;

/// What may be sent.
#[derive(Debug)]
pub struct AllowedMail {
    /// One line without control characters.
    pub subject: String,
    /// The text; lines end in `\n`, and no other carriage return stands in it.
    pub text: String,
    /// What the mail is shown under together with others.
    pub thread: Option<String>,
    /// An `https:` or `mailto:` URI of printable ASCII without `<`, `>` and `,`.
    pub unsubscribe: Option<String>,
    /// The recipients in the order given, each with its address as it is sent, or why it gets nothing.
    pub recipients: Vec<(String, Result<Address, Fault>)>,
}

/// Judges a mail.
///
/// # Errors
/// Why all of it is refused, and what the operator or the plugin's author should change. What is wrong with one
/// recipient is told with that recipient and keeps no other from the mail.
pub fn judge(message: Message, permission: &Permission<'_>, relay: &MailRelay) -> Result<AllowedMail, Fault> {
    granted(permission)?;
    if message.to.is_empty() || message.to.len() > RECIPIENTS_MAX {
        let found = message.to.len();
        return Err(denied("recipients", format!("a mail has 1 to {RECIPIENTS_MAX} recipients, not {found}")));
    }
    no_placeholder(&message, permission)?;
    let subject = subject(message.subject)?;
    let text = text(&message.text)?;
    if message.thread.as_ref().is_some_and(|thread| thread.len() > THREAD_BYTES_MAX) {
        return Err(denied("thread", format!("mail.thread has at most {THREAD_BYTES_MAX} bytes")));
    }
    let unsubscribe = unsubscribe(&message.extras, permission)?;
    let judged = |text: String| {
        let address = recipient(&text, relay);
        (text, address)
    };
    let recipients = message.to.into_iter().map(judged).collect();
    Ok(AllowedMail { subject, text, thread: message.thread, unsubscribe, recipients })
}

/// The refusal where there is no relay.
pub fn not_configured() -> Fault {
    let message = "there is no mail relay: the operator may name one in switchbell.yaml under the key `mail`, as in \
                   mail: { relay: \"smtp.example.com:587\", tls: starttls, … }";
    denied("not-configured", message.to_owned())
}

fn granted(permission: &Permission<'_>) -> Result<(), Fault> {
    let Permission { plugin, workspace, grant, .. } = permission;
    let message = if !grant.mail {
        format!(
            "plugin {plugin} is not granted mail: the operator may add `mail: true` in switchbell.yaml under \
             plugins.grants.{plugin}"
        )
    } else if !grant.allows_in(workspace) {
        format!(
            "plugin {plugin} is not granted mail in workspace {workspace}: the operator may add {workspace} in \
             switchbell.yaml to plugins.grants.{plugin}.workspaces"
        )
    } else {
        return Ok(());
    };
    Err(denied("not-granted", message))
}

/// No rule of a secret lets it stand in a mail, so no placeholder may.
fn no_placeholder(message: &Message, permission: &Permission<'_>) -> Result<(), Fault> {
    let texts = [("mail.subject", &message.subject), ("mail.text", &message.text), ("mail.extras", &message.extras)];
    let thread = message.thread.iter().map(|thread| ("mail.thread", thread));
    let recipients = message.to.iter().map(|address| ("mail.to", address));
    for (place, text) in texts.into_iter().chain(thread).chain(recipients) {
        placeless(place, text, permission)?;
    }
    Ok(())
}

fn placeless(place: &str, text: &str, permission: &Permission<'_>) -> Result<(), Fault> {
    match permission.seals.found_in(text.as_bytes()) {
        Some(name) => {
            let message =
                format!("secret {name} may not stand in a mail, where no secret has its place, but does in {place}");
            Err(denied(MISPLACED, message))
        }
        None => Ok(()),
    }
}

fn subject(subject: String) -> Result<String, Fault> {
    if subject.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        return Err(denied("subject", "mail.subject is one line without control characters".to_owned()));
    }
    if subject.len() > SUBJECT_BYTES_MAX {
        let found = subject.len();
        return Err(denied("subject", format!("mail.subject has {found} bytes; at most {SUBJECT_BYTES_MAX}")));
    }
    Ok(subject)
}

fn text(text: &str) -> Result<String, Fault> {
    if text.len() > TEXT_BYTES_MAX {
        let found = text.len();
        return Err(denied("text-too-large", format!("mail.text has {found} bytes; at most {TEXT_BYTES_MAX}")));
    }
    Ok(text.replace("\r\n", "\n").replace('\r', "\n"))
}

fn unsubscribe(extras: &str, permission: &Permission<'_>) -> Result<Option<String>, Fault> {
    let wrong = || {
        let message = format!(
            "mail.extras.list_unsubscribe is an https: or mailto: URI of at most {UNSUBSCRIBE_BYTES_MAX} printable ASCII \
             characters, without < > and commas"
        );
        denied("list-unsubscribe", message)
    };
    let extras: Value = serde_json::from_str(extras).unwrap_or_default();
    let uri = match extras.get("list_unsubscribe") {
        None | Some(Value::Null) => return Ok(None),
        Some(value) => value.as_str().ok_or_else(wrong)?,
    };
    placeless("mail.extras.list_unsubscribe", uri, permission)?;
    let is_plain = uri.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>,".contains(&byte));
    if !is_plain || uri.len() > UNSUBSCRIBE_BYTES_MAX {
        return Err(wrong());
    }
    let parsed = Url::parse(uri).map_err(|_| wrong())?;
    let is_known = matches!(parsed.scheme(), "https" | "mailto") && !parsed.path().is_empty();
    if is_known { Ok(Some(uri.to_owned())) } else { Err(wrong()) }
}

fn recipient(text: &str, relay: &MailRelay) -> Result<Address, Fault> {
    let address = checked(text).map_err(|why| denied("address", format!("this is no address for mail: {why}")))?;
    if is_allowed(&address, &relay.recipients) {
        return Ok(address);
    }
    let message = format!(
        "mail may not go to {address}: the operator may add \"{address}\" or \"*@{domain}\" in switchbell.yaml to \
         mail.recipients",
        domain = address.domain().to_ascii_lowercase(),
    );
    Err(denied("recipient-not-allowed", message))
}

#[cfg(test)]
mod tests;
