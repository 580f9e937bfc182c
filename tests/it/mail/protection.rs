//! TLS and passwords: what is configured is done, or nothing is sent.

use switchbell::config::{MailRelay, MailTls};
use switchbell::send::effect::MailClient;

use super::relay::{PASSWORD, Relay, Setup, USER, of_kind};
use super::stage::{Identity, client, config, mail, name, outcomes, plain, protected, send};

async fn delivered(tls: &str, configured: MailTls) {
    let identity = Identity::new(&["localhost"]);
    let setup = Setup { tls, identity: Some((&identity.certificate, &identity.key)), signs_in: true };
    let relay = Relay::start(setup).await;
    let config = config(Some(protected(relay.port, configured)), PASSWORD);
    let client = MailClient::trusting(&config, identity.trust()).unwrap();
    let mailed = send(&client, mail(&["one", "echo", "two"])).await;
    let echoed = "refused recipient-refused 550: the relay refused: 550 5.7.1 your password is [secret smtp]";
    assert_eq!(outcomes(&mailed), ["ok", echoed, "ok"]);
    let reports = relay.stop().await;
    let mails = of_kind(&reports, "mail");
    assert!(
        mails.len() == 2 && mails.iter().all(|mail| mail["protected"] == true && mail["signedIn"] == true),
        "{mails:?}"
    );
    assert_eq!(of_kind(&reports, "signedIn").len(), 1, "once for a connection");
}

#[tokio::test]
async fn mail_goes_over_tls_from_the_first_byte_signed_in() {
    delivered("implicit", MailTls::Implicit).await;
}

#[tokio::test]
async fn mail_goes_over_starttls_signed_in() {
    delivered("starttls", MailTls::StartTls).await;
}

#[tokio::test]
async fn a_wrong_password_is_told_and_not_shown() {
    let identity = Identity::new(&["localhost"]);
    let setup = Setup { tls: "starttls", identity: Some((&identity.certificate, &identity.key)), signs_in: true };
    let relay = Relay::start(setup).await;
    let wrong = "another-password-of-the-tests";
    let client =
        MailClient::trusting(&config(Some(protected(relay.port, MailTls::StartTls)), wrong), identity.trust()).unwrap();
    let outcomes = outcomes(&send(&client, mail(&["one", "two"])).await);
    let expected = "refused sign-in 535: the relay did not take `mail.user` and `mail.password`: 535 5.7.8";
    assert!(outcomes.iter().all(|outcome| outcome.starts_with(expected)), "{outcomes:?}");
    let shown = format!("{client:?}");
    assert!(!shown.contains(wrong) && !shown.contains(PASSWORD), "{shown}");
    let reports = relay.stop().await;
    assert_eq!(
        (of_kind(&reports, "signedIn").len(), of_kind(&reports, "mail").len()),
        (1, 0),
        "it is not tried again and again"
    );
}

#[tokio::test]
async fn a_relay_without_starttls_gets_nothing() {
    let relay = Relay::start(Setup { tls: "none", identity: None, signs_in: true }).await;
    let mailed = send(&client(protected(relay.port, MailTls::StartTls)), mail(&["one"])).await;
    assert!(outcomes(&mailed)[0].starts_with("unsent no-starttls: the relay offers no STARTTLS, so it got nothing"));
    let reports = relay.stop().await;
    assert!(of_kind(&reports, "signedIn").is_empty() && of_kind(&reports, "recipient").is_empty(), "{reports:?}");
}

/// How a relay with this certificate is judged by a client that trusts what this machine trusts, and perhaps it.
async fn judged(names: &[&str], is_trusted: bool) -> String {
    let identity = Identity::new(names);
    let setup = Setup { tls: "implicit", identity: Some((&identity.certificate, &identity.key)), signs_in: true };
    let relay = Relay::start(setup).await;
    let config = config(Some(protected(relay.port, MailTls::Implicit)), PASSWORD);
    let client = if is_trusted { MailClient::trusting(&config, identity.trust()) } else { MailClient::new(&config) };
    let outcome = outcomes(&send(&client.unwrap(), mail(&["one"])).await).remove(0);
    assert!(of_kind(&relay.stop().await, "signedIn").is_empty());
    outcome
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_or_of_another_is_told_plainly() {
    for (names, is_trusted) in [(&["localhost"], false), (&["relay.example"], true)] {
        let outcome = judged(names, is_trusted).await;
        let expected = "unsent certificate: the relay's certificate is not accepted: ";
        assert!(outcome.starts_with(expected) && outcome.contains("the operator may"), "{outcome}");
    }
}

#[tokio::test]
async fn tls_with_a_relay_that_speaks_none_sends_nothing() {
    let relay = Relay::start(Setup { tls: "none", identity: None, signs_in: true }).await;
    let mailed = send(&client(protected(relay.port, MailTls::Implicit)), mail(&["one"])).await;
    assert!(outcomes(&mailed)[0].starts_with("unsent tls: no TLS with the relay"), "{:?}", outcomes(&mailed));
    let reports = relay.stop().await;
    assert!(of_kind(&reports, "signedIn").is_empty() && of_kind(&reports, "recipient").is_empty(), "{reports:?}");
}

#[test]
fn no_password_goes_in_clear_beyond_this_machine() {
    let sign_in = Some((USER.to_owned(), name("smtp")));
    for host in ["smtp.example.com", "localhost", "192.0.2.1"] {
        let relay = MailRelay { host: host.to_owned(), sign_in: sign_in.clone(), ..plain(25) };
        let error = MailClient::new(&config(Some(relay), PASSWORD)).unwrap_err().to_string();
        assert!(error.contains("sends no password but to a loopback address"), "{host}: {error}");
    }
    assert!(MailClient::new(&config(Some(MailRelay { sign_in, ..plain(25) }), PASSWORD)).is_ok());
}
