//! Events come in: outboxes are read over MCP and their events judged.
//!
//! [`poller`] reads one outbox for as long as the server runs; [`pace`] says when, [`budget`] whether now, [`address`]
//! what to ask for, [`answer`] what came back, [`event`] whether an event is accepted, [`batch`] what is then written,
//! [`notice`] what the admin is told of it. The outbox is behind [`outbox::Outbox`], and [`mcp`] alone knows the protocol.
//! [`push`] follows push queues, which are behind [`queue::PushQueue`]. [`conformance`] checks other people's outboxes.

pub mod address;
pub mod answer;
pub mod batch;
pub mod budget;
pub mod conformance;
pub mod event;
mod json;
mod ledger;
pub mod mcp;
pub mod notice;
pub mod outbox;
pub mod pace;
pub mod poller;
pub mod push;
pub mod queue;
