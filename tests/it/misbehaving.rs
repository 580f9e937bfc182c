//! The poller before servers that misbehave in the ways that users of MCP hosts met: it goes on, says what happened and
//! what to do, loses nothing, and costs the server little.

mod answers;
mod forms;
mod http;
mod stage;
mod stdio;
mod streams;
