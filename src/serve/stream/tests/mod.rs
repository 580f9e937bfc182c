//! Readers of a store in memory.

mod following;
mod replay;
mod stage;
