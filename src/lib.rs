//! Switchbell reads the outboxes of MCP servers, keeps every event in a durable inbox, decides by an admin's routes who
//! should hear of it, and has a sandboxed WebAssembly plugin say how each match is delivered.
//!
//! The modules stand in the order of flow:
//!
//! 1. [`cli`] and [`config`]: what the operator and the admins ask for;
//! 2. [`fetch`]: events come in from outboxes over MCP;
//! 3. [`inbox`]: they are written, with the deliveries they owe;
//! 4. [`route`]: pure decisions about who is owed what;
//! 5. [`send`]: what is owed is carried out;
//! 6. [`serve`]: what others read over HTTP;
//! 7. [`wasm`]: the sandbox in which plugins decide how.
//!
//! [`app`] puts them together. [`address`], [`clock`], [`findings`], [`notification`], [`private_file`], [`telemetry`], [`text`] and
//! [`tools`] serve them all.

pub mod address;
pub mod app;
pub mod cli;
pub mod clock;
pub mod config;
pub mod fetch;
pub mod findings;
pub mod inbox;
pub mod notification;
pub mod private_file;
pub mod reload;
pub mod route;
pub mod send;
pub mod serve;
mod sse;
pub mod telemetry;
pub mod text;
pub mod tools;
pub mod wasm;
