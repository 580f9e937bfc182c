//! Reloads through the whole program: what makes one, what it changes, and what it must leave alone.

mod connectors;
mod load;
mod mistakes;
mod stage;
mod triggers;
mod waiting;
