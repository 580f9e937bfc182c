//! `switchbell check --server`: what is wrong with the configuration that the running server goes by.

use std::process::ExitCode;

use super::{Arguments, show};
use crate::cli::ask::no_server;
use crate::cli::control::Control;
use crate::serve::inquiry::CheckedJson;

pub(super) async fn run(control: &Control, asked: &Arguments) -> ExitCode {
    match control.get::<CheckedJson>("/v1/check").await {
        Ok(checked) => show(&checked, asked, "what the server goes by is good"),
        Err(error) => no_server(&error),
    }
}
