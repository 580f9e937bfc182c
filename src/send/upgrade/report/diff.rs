//! Two actions side by side, for a person.

use serde_json::Value;
use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};

use crate::text;

/// Lines shown of one difference.
const LINES_MAX: usize = 40;

/// Lines that are the same shown before and after those that differ.
const CONTEXT: usize = 2;

/// Characters shown of a line.
const CHARS_MAX: usize = 160;

/// Characters shown before the first that differs, of a line that is too long.
const CHARS_BEFORE: usize = 40;

/// The lines of two actions, which are JSON: with `-` those of the first alone, with `+` those of the second alone, with a
/// space others around them. `...` stands for lines that are the same, and for what is too much.
pub(super) fn lines(old: &str, new: Option<&str>) -> Vec<String> {
    let (old, new) = (pretty(old), new.map(pretty).unwrap_or_default());
    let operations = capture_diff_slices(Algorithm::Myers, &old, &new);
    let mut out = Vec::new();
    for (index, group) in group_diff_ops(operations, CONTEXT).into_iter().enumerate() {
        if index > 0 {
            out.push("  ...".to_owned());
        }
        group.iter().for_each(|operation| out.extend(shown(operation, &old, &new)));
    }
    if out.len() > LINES_MAX {
        let rest = out.len() - LINES_MAX;
        out.truncate(LINES_MAX);
        out.push(format!("  ... {rest} more lines"));
    }
    out
}

fn shown(operation: &DiffOp, old: &[String], new: &[String]) -> Vec<String> {
    let old = old.get(operation.old_range()).unwrap_or_default();
    let new = new.get(operation.new_range()).unwrap_or_default();
    if let DiffOp::Equal { .. } = operation {
        return old.iter().map(|line| format!("  {}", cut(line, 0))).collect();
    }
    // A line that is replaced is cut around what differs.
    let at = |index: usize| old.get(index).zip(new.get(index)).map_or(0, |(old, new)| common(old, new));
    let marked = |mark: char, lines: &[String]| -> Vec<String> {
        lines.iter().enumerate().map(|(index, line)| format!("{mark} {}", cut(line, at(index)))).collect()
    };
    [marked('-', old), marked('+', new)].concat()
}

/// Characters that two lines begin with.
fn common(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count()
}

/// A line with its indentation, or of a long one what stands around the character with this number.
fn cut(line: &str, at: usize) -> String {
    let said = line.trim_start_matches(' ');
    let indentation = line.len() - said.len();
    let is_long = said.chars().count() > CHARS_MAX;
    let skipped = if is_long { at.saturating_sub(indentation + CHARS_BEFORE) } else { 0 };
    let before = if skipped > 0 { "…" } else { "" };
    let shown: String = said.chars().skip(skipped).collect();
    format!("{:indentation$}{before}{}", "", text::line(&shown, CHARS_MAX))
}

/// JSON in lines, in which texts that are JSON stand as such, and texts of several lines as lists of lines.
fn pretty(action: &str) -> Vec<String> {
    let Ok(value) = serde_json::from_str::<Value>(action) else { return vec![action.to_owned()] };
    let text = serde_json::to_string_pretty(&opened(value, true)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// JSON in a text of JSON in a text stays a text: what is nested without end would be.
fn opened(value: Value, opens_json: bool) -> Value {
    match value {
        Value::String(text) if opens_json && text.starts_with(['{', '[']) => match serde_json::from_str(&text) {
            Ok(inner) => opened(inner, false),
            Err(_) => Value::String(text),
        },
        Value::String(text) if text.contains('\n') => text.split('\n').map(Value::from).collect(),
        Value::Array(items) => items.into_iter().map(|item| opened(item, opens_json)).collect(),
        Value::Object(members) => members.into_iter().map(|(key, member)| (key, opened(member, opens_json))).collect(),
        plain => plain,
    }
}
