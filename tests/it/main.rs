//! Integration tests: one binary, modules in the order of the pipeline.

#![allow(unreachable_pub, missing_docs, reason = "nobody imports a test binary")]

mod cli;
mod crash;
mod fetch_real;
mod pipeline;
mod support;
mod tidy;
