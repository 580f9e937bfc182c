//! `switchbell check --server`: what is wrong with the configuration that the running server goes by.

use std::path::Path;
use std::process::ExitCode;

use super::{Arguments, show};
use crate::cli::ask::{no_server, server};
use crate::serve::inquiry::CheckedJson;

pub(super) async fn run(file: &Path, url: &str, asked: &Arguments) -> ExitCode {
    match check(file, url, asked).await {
        Ok(code) | Err(code) => code,
    }
}

async fn check(file: &Path, url: &str, asked: &Arguments) -> Result<ExitCode, ExitCode> {
    let (control, _) = server(file, url)?;
    let checked: CheckedJson = control.get("/v1/check").await.map_err(|error| no_server(&error))?;
    Ok(show(&checked, asked, "what the server goes by is good"))
}
