//! The client under test, with a permission of one delivery.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::generate_simple_self_signed;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use switchbell::config::{Config, Grant, MailRelay, MailTls, Mailbox, RecipientPattern, Secret, SecretPlace, load};
use switchbell::notification::Name;
use switchbell::send::effect::secret::{Occasion, seal};
use switchbell::send::effect::{MailClient, Permission};
use switchbell::send::keys::Keys;
use switchbell::wasm::{Fault, Mailed, Message, Reach};
use tempfile::TempDir;

use super::relay::{PASSWORD, USER};

/// A certificate for this machine, and who trusts it.
pub struct Identity {
    pub certificate: PathBuf,
    pub key: PathBuf,
    trusted: CertificateDer<'static>,
    _folder: TempDir,
}

impl Identity {
    pub fn new(names: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let made =
            generate_simple_self_signed(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
        let (certificate, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        Self { certificate, key, trusted: made.cert.der().clone(), _folder: folder }
    }

    pub fn trust(&self) -> ClientConfig {
        trusting([self.trusted.clone()])
    }
}

/// Trusts these certificates and no others.
pub fn trusting(certificates: impl IntoIterator<Item = CertificateDer<'static>>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    certificates.into_iter().for_each(|certificate| roots.add(certificate).unwrap());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    builder.with_root_certificates(roots).with_no_client_auth()
}

/// A relay on this machine that is used without TLS and password.
pub fn plain(port: u16) -> MailRelay {
    MailRelay {
        host: "127.0.0.1".to_owned(),
        port,
        tls: MailTls::None,
        sign_in: None,
        from: Mailbox { name: Some("Switchbell".to_owned()), address: "bell@example.com".to_owned() },
        recipients: vec![RecipientPattern::Domain("example.com".to_owned())],
    }
}

/// The same with TLS, under the name of the certificate, and signed in.
pub fn protected(port: u16, tls: MailTls) -> MailRelay {
    let sign_in = Some((USER.to_owned(), name("smtp")));
    MailRelay { host: "localhost".to_owned(), tls, sign_in, ..plain(port) }
}

pub fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// A configuration with this relay and the secret with its password.
pub fn config(relay: Option<MailRelay>, password: &str) -> Config {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("switchbell.yaml");
    for needed in ["workspaces", "plugins"] {
        std::fs::create_dir_all(folder.path().join(needed)).unwrap();
    }
    std::fs::write(&file, "store: sqlite:store.db\nworkspaces: workspaces/\nplugins: { directory: plugins/ }\n")
        .unwrap();
    let mut config = load(&file, &|_| None).unwrap().config;
    config.mail = relay;
    config.secrets.insert(name("smtp"), Secret::new(password.to_owned(), SecretPlace::Mail));
    config
}

/// A client for this relay that trusts nobody.
pub fn client(relay: MailRelay) -> MailClient {
    MailClient::trusting(&config(Some(relay), PASSWORD), trusting([])).unwrap()
}

/// A mail to these recipients at example.com.
pub fn mail(to: &[&str]) -> Message {
    Message {
        to: to.iter().map(|local| format!("{local}@example.com")).collect(),
        subject: "a subject".to_owned(),
        text: "a text\n".to_owned(),
        thread: None,
        extras: "{}".to_owned(),
    }
}

/// Sends a mail as the mail plugin's delivery of this number.
pub async fn send_as(client: &MailClient, message: Message, delivery: u32) -> Result<Mailed, Fault> {
    let secrets = std::collections::BTreeMap::new();
    let id = format!("0badcafe-{delivery}");
    let occasion = Occasion { keys: &Keys::new(&[7; 32]), delivery: &id, attempt: 1 };
    let sealed = seal(&json!({}), &secrets, occasion).unwrap();
    let (plugin, workspace, route) = (name("mail"), name("acme"), name("domain-news"));
    let grant = Grant { mail: true, ..Grant::default() };
    let permission = Permission {
        plugin: &plugin,
        workspace: &workspace,
        route: &route,
        grant: &grant,
        seals: &sealed.seals,
        delivery: &id,
        due_at: "2026-09-01T18:42:10.5Z".parse().unwrap(),
        on_behalf_of: "admin@example.com",
    };
    client.perform(message, &permission).await
}

/// Sends a mail.
pub async fn send(client: &MailClient, message: Message) -> Mailed {
    send_as(client, message, 1).await.unwrap()
}

/// What came of each recipient, in one line: `ok`, or reach, code, status and words.
pub fn outcomes(mailed: &Mailed) -> Vec<String> {
    let line = |fault: &Fault| {
        let reach = match fault.reach {
            Reach::Denied => "denied",
            Reach::Unsent => "unsent",
            Reach::Refused => "refused",
            Reach::Unanswered => "unanswered",
        };
        let status = fault.status.map(|status| format!(" {status}")).unwrap_or_default();
        assert_eq!(fault.after_seconds, None);
        format!("{reach} {}{status}: {}", fault.code, fault.message)
    };
    let outcome = |outcome: &Result<(), Fault>| outcome.as_ref().map_or_else(line, |()| "ok".to_owned());
    mailed.recipients.iter().map(|recipient| outcome(&recipient.outcome)).collect()
}
