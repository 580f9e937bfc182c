//! The promise: what is sent is what receivers' own libraries read and verify.

mod formats;
mod signatures;
mod stage;
