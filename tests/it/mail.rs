//! Mail over real sockets: a scripted relay on aiosmtpd, Postfix, and what another program reads in the mails.

mod answers;
mod connections;
mod content;
mod postfix;
mod protection;
mod relay;
mod stage;
