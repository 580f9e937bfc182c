//! Integration tests: one binary, modules in the order of the pipeline.

mod tidy;
