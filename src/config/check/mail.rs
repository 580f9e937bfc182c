//! `mail:` of the operator's file.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::super::code::Code;
use super::super::node::At;
use super::super::raw::RawMail;
use super::super::read::Placed;
use super::super::source::Report;
use super::super::{MailRelay, MailTls};
use super::secret::{self, Rule, Use, Who};
use crate::notification::Name;

/// Most patterns of recipients: each recipient of each mail is compared with all.
const RECIPIENTS_MAX: usize = 500;

/// What the section is checked against.
pub(super) struct Known<'a> {
    /// Where `mail: true` of each grant stands.
    pub granted: &'a [(Name, At)],
    pub secrets: &'a BTreeMap<Name, Rule>,
}

/// Checks the section. None when there is none, or it is unusable and was reported.
pub(super) fn check(raw: Option<Placed<RawMail>>, known: &Known<'_>, report: &mut Report) -> Option<MailRelay> {
    let Some(Placed { at, value: raw }) = raw else {
        for (plugin, at) in known.granted {
            let message =
                format!("plugin {plugin} is granted mail, but there is no relay to send it through: add `mail`");
            report.warning(at, Code::NoMail.says(message));
        }
        return None;
    };
    let recipients_given = raw.given.has("recipients");
    let recipients = raw.recipients.map(|list| (list.at, list.value));
    match &recipients {
        Some((at, list)) if list.len() > RECIPIENTS_MAX => {
            report.mistake(
                at,
                Code::OutOfBounds
                    .says(format!("{} recipients: at most {RECIPIENTS_MAX} patterns may stand here", list.len())),
            );
        }
        Some((at, list)) if list.is_empty() => nobody(at, known.granted, report),
        None if !recipients_given && raw.given.is_clean() => nobody(&at, known.granted, report),
        _ => {}
    }
    let recipients = recipients.map_or_else(Vec::new, |(_, list)| list);
    let password_given = raw.given.has("password");
    let password_at = raw.password.as_ref().map(|password| password.at.clone());
    let password = raw.password.and_then(|password| password.value.secret);
    let password = password.and_then(|name| {
        let found = secret::granted(known.secrets, &name.0, &name.at, (Who::Operator, Use::Mail), report);
        found.map(|(name, _)| name.clone())
    });
    if let (Some(user), false) = (&raw.user, password_given) {
        report.mistake(
            &user.at,
            Code::MissingKey
                .says("`user` without `password`: add `password: { secret: NAME }`, a secret with `in: mail`"),
        );
    }
    if let (Some(at), false) = (&password_at, raw.given.has("user")) {
        report.mistake(at, Code::MissingKey.says("`password` without `user`: add the user that it belongs to"));
    }
    let tls = raw.tls?;
    let relay = raw.relay?;
    let signs_in = raw.given.has("user") || password_given;
    if signs_in && tls.value == MailTls::None && !is_loopback_literal(&relay.host) {
        report.mistake(
            &tls.at,
            Code::Unencrypted.says(
                "without TLS the password would be sent for everybody to read: write `starttls` or `implicit`, or remove \
                 `user` and `password` (only to a relay at 127.0.0.1 or [::1] it may be)",
            ),
        );
    }
    Some(MailRelay {
        host: relay.value.host,
        port: relay.value.port,
        tls: tls.value,
        sign_in: raw.user.map(|user| user.value.0).zip(password),
        from: raw.from?.value,
        recipients: recipients.into_iter().map(|pattern| pattern.value).collect(),
    })
}

fn nobody(at: &At, granted: &[(Name, At)], report: &mut Report) {
    if let Some((plugin, _)) = granted.first() {
        let message = format!(
            "mail may go to nobody, though plugin {plugin} is granted mail: add `recipients: [\"*@example.com\"]` with your \
             domain"
        );
        report.warning(at, Code::NoMail.says(message));
    }
}

fn is_loopback_literal(host: &str) -> bool {
    host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}
