//! What commands print: plain text for people, JSON with the seed's names for programs.

use std::fmt;
use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;

use super::COULD_NOT_RUN;

pub(super) use crate::serve::shapes::{DeliveryJson, NotificationJson};

/// Says why a command could not run.
pub(super) fn fail(why: impl fmt::Display) -> ExitCode {
    tell(format_args!("switchbell: {why}"));
    ExitCode::from(COULD_NOT_RUN)
}

/// A line on standard error. That nobody can read it is no reason to fail otherwise.
pub(super) fn tell(line: impl fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// A line on standard output, for commands that go on whether or not somebody reads.
pub(super) fn show(line: impl fmt::Display) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Writes text that holds what connectors wrote.
pub(super) fn print_for_people(text: &str) -> ExitCode {
    print(harmless(text))
}

/// A text in which characters that steer a terminal, hide or turn text are spelled out.
pub(super) fn harmless(text: &str) -> String {
    let steers = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{61c}')
    };
    let mut harmless = String::with_capacity(text.len());
    for c in text.chars() {
        if steers(c) { harmless.extend(c.escape_unicode()) } else { harmless.push(c) }
    }
    harmless
}

/// Writes to standard output. A reader that has gone (`| head`) is no failure.
pub(super) fn print(text: impl fmt::Display) -> ExitCode {
    let mut out = std::io::stdout().lock();
    let written = write!(out, "{text}").and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => fail(format_args!("cannot print: {error}")),
        _ => ExitCode::SUCCESS,
    }
}

/// Writes a value as JSON.
pub(super) fn print_json(value: &impl Serialize) -> ExitCode {
    match serde_json::to_string_pretty(value) {
        Ok(text) => print(format_args!("{text}\n")),
        Err(error) => fail(format_args!("cannot print: {error}")),
    }
}
