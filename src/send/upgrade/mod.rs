//! New versions of plugins: what they must pass before they take over.

pub mod gate;
pub mod report;
