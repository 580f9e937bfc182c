//! The store for one machine: SQLite.
