//! `switchbell check --server`: what is wrong with the configuration that the running server goes by.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use super::Arguments;
use crate::cli::FOUND_WRONG;
use crate::cli::ask::{no_server, server};
use crate::cli::output::{print_for_people, print_json};
use crate::cli::table::count;
use crate::serve::inquiry::{CheckedJson, ProblemJson};

pub(super) async fn run(file: &Path, url: &str, asked: &Arguments) -> ExitCode {
    match check(file, url, asked).await {
        Ok(code) | Err(code) => code,
    }
}

async fn check(file: &Path, url: &str, asked: &Arguments) -> Result<ExitCode, ExitCode> {
    let (control, _) = server(file, url)?;
    let checked: CheckedJson = control.get("/check").await.map_err(|error| no_server(&error))?;
    let printed = if asked.json { print_json(&checked) } else { print_for_people(&told(&checked)) };
    let is_wrong = !checked.mistakes.is_empty() || (asked.deny_warnings && !checked.warnings.is_empty());
    Ok(if is_wrong { ExitCode::from(FOUND_WRONG) } else { printed })
}

fn told(of: &CheckedJson) -> String {
    let mut text = String::new();
    for (label, problems) in [("", &of.mistakes), ("warning: ", &of.warnings)] {
        for ProblemJson { file, line, column, path, message, .. } in problems {
            let place = line.zip(*column).map(|(line, column)| format!("{line}:{column}:")).unwrap_or_default();
            let path = if path.is_empty() { String::new() } else { format!(" {path}:") };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{label}{file}:{place}{path} {message}");
        }
    }
    let verdict = match of.mistakes.len() {
        0 => "what the server goes by is good".to_owned(),
        some => count(some, "mistake"),
    };
    let warnings = match of.warnings.len() {
        0 => String::new(),
        some => format!(", {}", count(some, "warning")),
    };
    text + &format!("{verdict}{warnings}\n")
}
