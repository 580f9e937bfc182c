//! The MCP server: the tools, the inbox as an outbox, and the relay over standard input and output.

mod clients;
mod feeding;
mod listening;
mod marks;
mod outbox;
pub mod relay;
mod rights;
pub mod stage;
mod tools;
