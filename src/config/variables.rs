//! `${NAME}`, `${NAME:-default}`, `${NAME:?message}` and `$$` in the texts of the operator's file. They are filled in
//! after parsing, so a value cannot add keys or lines.

use std::ffi::OsString;

use super::code::Code;
use super::node::{At, Kind, Node};
use super::scalar::{Scalar, quote};
use super::source::Report;

/// Longest value of a variable, in bytes: no setting is longer.
const VALUE_BYTES_MAX: usize = 8 << 10;
/// Most bytes that variables add to one file, as much as a file may hold itself.
const ADDED_BYTES_MAX: usize = 1 << 20;

/// Where values come from.
pub(super) type Lookup<'a> = dyn Fn(&str) -> Option<OsString> + 'a;

/// Fills in the variables of a file.
pub(super) fn expand(root: &mut Node, lookup: &Lookup<'_>, report: &mut Report) {
    let mut left = ADDED_BYTES_MAX;
    walk(root, report, &mut |at, scalar, report| match expanded(&scalar.text, lookup) {
        Ok(None) => true,
        Ok(Some(text)) if text.len() <= left => {
            left -= text.len();
            // An empty value is an empty text, not the absence of one.
            scalar.plain &= !text.is_empty();
            scalar.written = Some(std::mem::replace(&mut scalar.text, text));
            true
        }
        Ok(Some(_)) => {
            report.mistake(
                at,
                Code::BadVariable.says(format!("variables add more than {ADDED_BYTES_MAX} bytes to this file")),
            );
            false
        }
        Err(message) => {
            report.mistake(at, Code::BadVariable.says(message));
            false
        }
    });
}

/// Refuses variables in a file that is not the operator's.
pub(super) fn refuse(root: &mut Node, report: &mut Report) {
    walk(root, report, &mut |at, scalar, report| {
        let is_fine = !scalar.text.contains("${");
        if !is_fine {
            let message = "`${` is not read here: variables belong to the operator's switchbell.yaml, so that a workspace \
                           cannot look into the server's environment; write the value itself, or `{ secret: NAME }` for \
                           a secret that the operator grants";
            report.mistake(at, Code::BadVariable.says(message));
        }
        is_fine
    });
}

/// Visits every scalar; one for which `visit` answers no counts as reported.
fn walk(node: &mut Node, report: &mut Report, visit: &mut impl FnMut(&At, &mut Scalar, &mut Report) -> bool) {
    match &mut node.kind {
        Kind::Scalar(scalar) => {
            if !visit(&node.at, scalar, report) {
                node.kind = Kind::Reported;
            }
        }
        Kind::List(items) => items.iter_mut().for_each(|item| walk(item, report, visit)),
        Kind::Mapping(entries) => {
            entries.retain_mut(|entry| {
                let is_variable = entry.key.contains("${");
                if is_variable {
                    let text = "`${` is not read in keys: write the key itself";
                    report.mistake(&entry.key_at, Code::BadVariable.says(text));
                }
                walk(&mut entry.value, report, visit);
                !is_variable
            });
        }
        Kind::Reported => {}
    }
}

/// The text with its variables filled in; none when it has none.
fn expanded(text: &str, lookup: &Lookup<'_>) -> Result<Option<String>, String> {
    if !text.contains("${") && !text.contains("$$") {
        return Ok(None);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        rest = if let Some(after) = after.strip_prefix('$') {
            out.push('$');
            after
        } else if let Some(after) = after.strip_prefix('{') {
            let (inside, after) = after.split_once('}').ok_or_else(|| {
                "`${` is not closed: write `${NAME}`, or `$${` for the characters themselves".to_owned()
            })?;
            out.push_str(&value(inside, lookup)?);
            after
        } else {
            out.push('$');
            after
        };
    }
    out.push_str(rest);
    Ok(Some(out))
}

fn value(inside: &str, lookup: &Lookup<'_>) -> Result<String, String> {
    let name_end = inside.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inside.len());
    let (name, rest) = inside.split_at(name_end);
    if !is_variable_name(name) {
        return Err(format!(
            "{} is no variable: write `${{NAME}}` with a name of letters, digits and `_`",
            quote(&format!("${{{inside}}}"))
        ));
    }
    let found = lookup(name).map(OsString::into_string).transpose();
    let found = found.map_err(|_| format!("the environment variable {name} is not Unicode"))?;
    let is_set = found.as_ref().is_some_and(|value| !value.is_empty());
    let value = if rest.is_empty() {
        found.ok_or_else(|| {
            format!("the environment variable {name} is not set; set it, or write `${{{name}:-default}}`")
        })?
    } else if let Some(default) = rest.strip_prefix(":-") {
        found.filter(|_| is_set).unwrap_or_else(|| default.to_owned())
    } else if let Some(message) = rest.strip_prefix(":?") {
        found.filter(|_| is_set).ok_or_else(|| {
            let message = if message.is_empty() { "it is required" } else { message };
            format!("the environment variable {name} is not set: {}", super::scalar::harmless(message))
        })?
    } else {
        return Err(format!("write `${{{name}}}`, `${{{name}:-default}}` or `${{{name}:?message}}`"));
    };
    if value.contains(char::is_control) {
        return Err(format!("the environment variable {name} holds a line end or another control character"));
    }
    if value.len() > VALUE_BYTES_MAX {
        return Err(format!("the environment variable {name} is longer than {VALUE_BYTES_MAX} bytes"));
    }
    Ok(value)
}

/// Whether this can be the name of an environment variable.
pub(super) fn is_variable_name(name: &str) -> bool {
    let rest = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.bytes().all(rest) && !name.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    fn check(text: &str, result: Result<Option<&str>, &str>) {
        let lookup = |name: &str| match name {
            "HOST" => Some("bell.example".into()),
            "EMPTY" => Some("".into()),
            "LINES" => Some("a\nb: c".into()),
            "DOLLAR" => Some("${HOST}".into()),
            "BYTES" => Some(OsString::from_vec(b"\xff".to_vec())),
            _ => None,
        };
        let found = expanded(text, &lookup);
        match result {
            Ok(expected) => assert_eq!(found, Ok(expected.map(str::to_owned)), "{text}"),
            Err(part) => assert!(found.as_ref().is_err_and(|error| error.contains(part)), "{text}: {found:?}"),
        }
    }

    #[test]
    fn variables_are_filled_in_once_and_only_where_they_are_whole() {
        check("plain $HOME and $ 5$", Ok(None));
        check("https://${HOST}/x", Ok(Some("https://bell.example/x")));
        check("${NONE:-a:-b}${EMPTY:-c}", Ok(Some("a:-bc")));
        check("[${EMPTY}]", Ok(Some("[]")));
        check("$${HOST} $$ $x", Ok(Some("${HOST} $ $x")));
        check("$$${HOST}", Ok(Some("$bell.example")));
        check("${DOLLAR}", Ok(Some("${HOST}")));
    }

    #[test]
    fn a_variable_that_cannot_be_filled_in_says_why() {
        check("${NONE}", Err("NONE is not set"));
        check("${NONE:?ask the operator}", Err("ask the operator"));
        check("${EMPTY:?it is needed}", Err("it is needed"));
        check("${HOST", Err("not closed"));
        check("${}", Err("is no variable"));
        check("${1A}", Err("is no variable"));
        check("${HOST-x}", Err("write `${HOST}`"));
        check("${LINES}", Err("holds a line end"));
        check("${BYTES}", Err("BYTES is not Unicode"));
        check("${BYTES:-default}", Err("BYTES is not Unicode"));
    }
}
