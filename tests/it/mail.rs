//! Mail over real sockets: a scripted relay on aiosmtpd, Postfix, and what another program reads in the mails.

mod answers;
mod connections;
mod content;
mod postfix;
mod program;
mod protection;
mod relay;
mod stage;

/// A relay that `bell` signs in to with this password, and that answers mail to `echo` with it.
pub async fn echoing_relay(password: &str) -> relay::Relay {
    let setup = relay::Setup { signs_in: true, ..relay::PLAIN };
    relay::Relay::with_password(setup, password).await
}
