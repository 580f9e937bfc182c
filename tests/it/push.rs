//! The push-notifications extension, both ends.

mod check;
mod client_fixture;
mod client_live;
mod client_stage;
mod client_stdio;
mod conformance;
mod conformance_both;
mod conformance_cases;
mod conformance_client;
mod conformance_stage;
mod scripted;
mod server_clients;
mod server_crash;
mod server_get;
mod server_live;
mod server_relay;
mod server_stage;
