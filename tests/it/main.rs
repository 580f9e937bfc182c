//! Integration tests: one binary, modules in the order of the pipeline.

#![allow(unreachable_pub, missing_docs, reason = "nobody imports a test binary")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may fail so"
)]

mod agent_run;
mod api;
mod check;
mod cli;
mod compiling;
mod connector;
mod crash;
mod deliveries;
mod docs;
mod explain;
mod fetch_real;
mod hostile;
mod inbox_contract;
mod limits;
mod login;
mod mail;
mod mcp;
mod misbehaving;
mod oauth;
mod outbox_check;
mod pages;
mod peers;
mod pipeline;
mod plugins;
mod preview;
mod push;
mod registry;
mod reloading;
mod remote;
mod reports;
mod resume;
mod routes_diff;
mod routes_test;
mod schema;
mod secrecy;
mod simulation;
mod stream;
mod support;
mod threads;
mod tidy;
mod tokens;
mod tool_calls;
mod upgrades;
mod webhooks;
