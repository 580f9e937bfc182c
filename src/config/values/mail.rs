//! The relay: where it is, how it is protected, who signs in to it.

use super::super::read::FromText;
use super::super::schema::{Form, Words, word};
use super::super::{HostPattern, MailTls};
use super::address::{HOST, IPV6, PORT, parse_host};
use super::grant::port_number;

/// Host and port of the relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::config) struct Relay {
    /// A name in lower case, or an IP literal without brackets.
    pub host: String,
    pub port: u16,
}

impl FromText for Relay {
    const WANTED: &'static str = "a host and a port such as `smtp.example.com:587`";
    const SEES_NUMBERS: bool = true;

    /// Never quotes the text: it may hold a credential.
    fn from_text(text: &str, _: &str) -> Result<Self, String> {
        if text.contains("://") {
            return Err(
                "only a host and a port are wanted: remove the scheme, and say by `tls` how the connection is \
                        protected"
                    .to_owned(),
            );
        }
        if text.contains('@') {
            return Err(
                "user and password do not belong here: write `user` and `password: { secret: NAME }`".to_owned()
            );
        }
        let split = if text.parse::<std::net::Ipv6Addr>().is_ok() { None } else { text.rsplit_once(':') };
        // The `:` of an IPv6 address in brackets is no port's.
        let split = split.filter(|(_, port)| !port.contains(']'));
        let host = match parse_host(split.map_or(text, |(host, _)| host))? {
            HostPattern::Exact(host) => host,
            HostPattern::Suffix(_) => return Err("one relay is wanted: a `*` cannot stand here".to_owned()),
        };
        let (_, port) = split.ok_or_else(|| {
            "the port is missing and never guessed: write `HOST:587` (usual for `tls: starttls`), `HOST:465` (usual for \
             `tls: implicit`) or another"
                .to_owned()
        })?;
        let port =
            port_number(port).ok_or_else(|| "the port is 1 to 65535, as in `smtp.example.com:587`".to_owned())?;
        Ok(Self { host, port })
    }

    fn form() -> Form {
        Form::pattern(format!("(?:{HOST}|{IPV6}):{PORT}"), &["smtp.example.com:587", "[::1]:25"])
    }
}

impl FromText for MailTls {
    const WANTED: &'static str = "`implicit`, `starttls` or `none`";
    const REMEDY: &'static str = "how the connection is protected is never guessed";

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        if let Some(tls) = word(text) {
            return Ok(tls);
        }
        let meant = match text {
            "ssl" | "tls" | "smtps" | "wrapper" | "on" | "yes" => "; TLS from the first byte is written implicit",
            "STARTTLS" | "required" | "explicit" => "; it is written starttls",
            "opportunistic" | "auto" | "if_available" => {
                "; whether a connection is protected is not left to the relay: write starttls"
            }
            "off" | "no" | "plain" | "clear" => "; no protection is written none",
            _ => "",
        };
        Err(format!(
            "{quoted} is none of implicit (TLS from the first byte, usually port 465), starttls (usually port 587) and \
             none{meant}"
        ))
    }

    fn form() -> Form {
        Form::words::<Self>()
    }
}

impl Words for MailTls {
    fn words() -> Vec<(&'static str, Self, &'static str)> {
        vec![
            ("implicit", Self::Implicit, "TLS from the first byte, usually port 465."),
            ("starttls", Self::StartTls, "STARTTLS, usually port 587; a relay without it gets nothing."),
            ("none", Self::None, "No protection."),
        ]
    }
}

/// The user to sign in as.
#[derive(Debug, Clone)]
pub(in crate::config) struct SmtpUser(pub String);

/// Longest user, in bytes, as RFC 4616 §2 allows.
const USER_BYTES_MAX: usize = 255;

impl FromText for SmtpUser {
    const WANTED: &'static str = "the user to sign in as";

    fn from_text(text: &str, _: &str) -> Result<Self, String> {
        let fits = (1..=USER_BYTES_MAX).contains(&text.len()) && !text.contains(char::is_control);
        fits.then(|| Self(text.to_owned()))
            .ok_or_else(|| format!("a user is 1 to {USER_BYTES_MAX} bytes without control characters"))
    }

    fn form() -> Form {
        Form::pattern(format!(r"[^\u0000-\u001f\u007f-\u009f]{{1,{USER_BYTES_MAX}}}"), &["bell"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_is_a_host_and_a_port() {
        for (text, host, port) in [
            ("smtp.example.com:587", "smtp.example.com", 587),
            ("SMTP.Example.COM:465", "smtp.example.com", 465),
            ("127.0.0.1:25", "127.0.0.1", 25),
            ("[::1]:2525", "::1", 2525),
            ("localhost:25", "localhost", 25),
        ] {
            assert_eq!(Relay::from_text(text, ""), Ok(Relay { host: host.to_owned(), port }));
        }
    }

    #[test]
    fn what_is_no_relay_says_what_is_missing() {
        for (text, part) in [
            ("smtp.example.com", "never guessed"),
            ("[::1]", "never guessed"),
            ("::1", "in brackets"),
            ("::1:25", "in brackets"),
            ("smtp.example.com:", "1 to 65535"),
            ("smtp.example.com:0", "1 to 65535"),
            ("smtp.example.com:smtp", "1 to 65535"),
            (":587", "a host is missing"),
            ("587", "never guessed"),
            ("smtps://smtp.example.com:465", "remove the scheme"),
            ("bell:hunter2@smtp.example.com:465", "do not belong here"),
            ("*.example.com:25", "one relay"),
        ] {
            let found = Relay::from_text(text, "");
            assert!(found.as_ref().is_err_and(|message| message.contains(part)), "{text}: {found:?}");
        }
    }
}
