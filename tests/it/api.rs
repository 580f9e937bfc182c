//! The HTTP API of a running server: who may what, lists, problems, and the document that describes it.

mod consumers;
mod fuzz;
mod lists;
mod problems;
mod roles;
mod same;
mod stage;
