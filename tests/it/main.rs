//! Integration tests: one binary, modules in the order of the pipeline.

mod cli;
mod crash;
mod pipeline;
mod support;
mod tidy;
