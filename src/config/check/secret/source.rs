//! Where values come from: the environment, files, and programs.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;

use super::super::super::code::Code;
use super::super::super::load::{Folder, read_bytes};
use super::super::super::loaded::{Reading, Secrets};
use super::super::super::mask;
use super::super::super::node::At;
use super::super::super::raw::{RawSecret, RawSource};
use super::super::super::read::{Placed, Text};
use super::super::super::source::Report;
use super::super::super::values::{CommandEntry, VariableName};
use super::super::server::path_of;
use super::program;

/// Longest value, in bytes: longer than any header that servers accept.
pub(super) const VALUE_BYTES_MAX: usize = 8 << 10;
/// Most programs that are run for values: each is waited for when the configuration is loaded.
const PROGRAMS_MAX: usize = 50;

/// The keys that say where a value comes from.
pub(super) struct Written {
    pub env: Option<Placed<VariableName>>,
    pub file: Option<Placed<Text>>,
    pub command: Option<Placed<CommandEntry>>,
}

impl Written {
    /// The first place that is written.
    pub(super) fn at(&self) -> Option<&At> {
        let env = self.env.as_ref().map(|env| &env.at);
        env.or(self.file.as_ref().map(|file| &file.at)).or(self.command.as_ref().map(|command| &command.at))
    }
}

/// What values are read from.
pub(super) struct Sources<'a> {
    folder: &'a Folder,
    reading: &'a Reading<'a>,
    /// What the programs wrote.
    written: BTreeMap<CommandEntry, Result<Vec<u8>, String>>,
}

impl<'a> Sources<'a> {
    /// Runs the programs of all secrets side by side, each once, so that loading takes no longer than the slowest.
    pub(super) fn new<'s>(
        secrets: impl Iterator<Item = &'s Placed<RawSecret>>,
        folder: &'a Folder,
        reading: &'a Reading<'a>,
        report: &mut Report,
    ) -> Self {
        let found: Vec<_> = secrets.flat_map(|secret| commands(secret)).collect();
        let mut commands = BTreeSet::new();
        for command in found {
            if commands.len() < PROGRAMS_MAX || commands.contains(&command.value) {
                commands.insert(command.value.clone());
            } else {
                report.mistake(
                    &command.at,
                    Code::OutOfBounds.says(format!("at most {PROGRAMS_MAX} programs can be run for values")),
                );
            }
        }
        let written = if reading.secrets == Secrets::NotRead {
            BTreeMap::new()
        } else {
            program::run_all(commands, &folder.absolute, &program::inherited(reading.environment))
        };
        Self { folder, reading, written }
    }

    /// Whether values are left alone: what is written is judged, and nothing is read.
    pub(super) fn are_not_read(&self) -> bool {
        self.reading.secrets == Secrets::NotRead
    }

    /// The value, with the place to report what is wrong with it; no text where values are not read. None when there is
    /// none; reported unless nothing that is usable is written.
    pub(super) fn read(&self, written: Written, report: &mut Report) -> Option<Placed<Option<String>>> {
        if self.are_not_read() {
            let at = written.at()?.clone();
            if let (None, Some(file)) = (&written.env, &written.file) {
                path_of(&file.at, &file.value.0, report)?;
            }
            return Some(Placed { at, value: None });
        }
        let (at, value) = match (written.env, written.file, written.command) {
            (Some(env), ..) => (env.at, from_environment(&env.value.0, self.reading.environment)),
            (None, Some(file), _) => {
                let path = path_of(&file.at, &file.value.0, report)?;
                let path = self.folder.shown.join(path);
                report.files.note(&path);
                (file.at, from_file(&path))
            }
            // A program that was not run is one too many, which was reported.
            (None, None, Some(command)) => (command.at, from_program(self.written.get(&command.value)?)),
            (None, None, None) => return None,
        };
        value
            .map_err(|message| report.mistake(&at, Code::BadSecret.says(message)))
            .ok()
            .map(|value| Placed { at, value: Some(value) })
    }

    /// The value of a part of `oauth`, without its line end; no text where values are not read. None when there is none;
    /// reported.
    pub(super) fn read_part(&self, raw: Placed<RawSource>, report: &mut Report) -> Option<Placed<Option<String>>> {
        let Placed { at, value: raw } = raw;
        let keys: Vec<&str> = ["env", "file", "command"].into_iter().filter(|key| raw.given.has(key)).collect();
        match keys.as_slice() {
            [_] => {}
            [] => {
                if raw.given.is_clean() {
                    report.mistake(
                        &at,
                        Code::MissingKey
                            .says("`env`, `file` or `command` is missing: write where the value comes from"),
                    );
                }
                return None;
            }
            [first, second, ..] => {
                report.mistake(&at, Code::ConflictingKeys.says(format!("both `{first}` and `{second}`: keep one")));
                return None;
            }
        }
        let written = Written { env: raw.env, file: raw.file, command: raw.command };
        let Placed { at, value } = self.read(written, report)?;
        let Some(value) = value else { return Some(Placed { at, value: None }) };
        let value = without_line_end(&value).to_owned();
        let objection = match value.len() {
            0 => "the value is empty".to_owned(),
            1..=VALUE_BYTES_MAX => return Some(Placed { at, value: Some(value) }),
            _ => too_long(),
        };
        report.mistake(&at, Code::BadSecret.says(objection));
        None
    }
}

/// The programs of one secret.
fn commands(secret: &RawSecret) -> Vec<&Placed<CommandEntry>> {
    let oauth = secret.oauth.as_ref();
    let parts = oauth.map(|oauth| [&oauth.client_secret, &oauth.refresh_token, &oauth.key]);
    let of_parts = parts.into_iter().flatten().flatten().filter_map(|part| part.command.as_ref());
    secret.command.iter().chain(of_parts).collect()
}

fn from_environment(name: &str, lookup: &dyn Fn(&str) -> Option<OsString>) -> Result<String, String> {
    // People write the value itself where its variable belongs; such a text is not repeated.
    let shown = if mask::is_variable(name) { name } else { "named here" };
    let value = lookup(name).ok_or_else(|| {
        format!("the environment variable {shown} is not set: set it where the server runs, or name another")
    })?;
    value.into_string().map_err(|_| format!("the environment variable {shown} is not Unicode"))
}

fn from_file(path: &Path) -> Result<String, String> {
    let most = u64::try_from(VALUE_BYTES_MAX + 2).unwrap_or(u64::MAX);
    match read_bytes(path, most) {
        Ok(Some(bytes)) => text(bytes, "the file named here is"),
        Ok(None) => Err(too_long()),
        Err(error) => Err(format!("the file named here cannot be read: {error}; put it there, or name another")),
    }
}

fn from_program(written: &Result<Vec<u8>, String>) -> Result<String, String> {
    text(written.clone()?, "what the program wrote is")
}

fn text(bytes: Vec<u8>, what: &str) -> Result<String, String> {
    String::from_utf8(bytes)
        .map_err(|_| format!("{what} not UTF-8: a binary key is written in base64 (for signatures behind `whsec_`)"))
}

pub(super) fn too_long() -> String {
    format!("the value is longer than {VALUE_BYTES_MAX} bytes")
}

/// A value without the one line end that editors and programs put behind it.
pub(super) fn without_line_end(value: &str) -> &str {
    value.strip_suffix('\n').map_or(value, |value| value.strip_suffix('\r').unwrap_or(value))
}
