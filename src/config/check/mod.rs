//! The rules that need more than one value.

mod access;
mod auth;
mod catalog;
mod connector;
mod consumer;
mod endpoint;
mod mail;
mod outbox;
mod overlap;
mod plugins;
mod push;
mod reach;
mod retention;
mod route;
mod secret;
mod server;
mod timing;
mod workspace;

pub(super) use plugins::{check as plugins, granted_tools};
pub use secret::end_programs;
pub(super) use secret::finished as finished_secrets;
pub(super) use server::{Server, mentioned_workspaces, path_of, server};
pub(super) use workspace::workspace;
