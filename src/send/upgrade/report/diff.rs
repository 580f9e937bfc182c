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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: &str, new: Option<&str>, expected: &[&str]) {
        assert_eq!(lines(old, new), expected, "{old} {new:?}");
    }

    fn http(body: &str) -> String {
        serde_json::json!({"http": {"method": "POST", "url": "https://a.example/", "body": body}}).to_string()
    }

    #[test]
    fn only_what_differs_is_shown_with_a_little_around_it() {
        let (one, other) = (http(r#"{"text":"one","to":"ops"}"#), http(r#"{"text":"two","to":"ops"}"#));
        let expected = [
            r#"    "http": {"#,
            r#"      "body": {"#,
            r#"-       "text": "one","#,
            r#"+       "text": "two","#,
            r#"        "to": "ops""#,
            r#"      },"#,
        ];
        check(&one, Some(&other), &expected);
        let (one, other) = (http("first\nsecond\nthird"), http("first\n2nd\nthird"));
        let expected = [
            r#"      "body": ["#,
            r#"        "first","#,
            r#"-       "second","#,
            r#"+       "2nd","#,
            r#"        "third""#,
            r#"      ],"#,
        ];
        check(&one, Some(&other), &expected);
    }

    #[test]
    fn a_version_that_failed_shows_what_the_other_asked_for() {
        let expected = ["- {", r#"-   "done": {"#, r#"-     "note": "x""#, "-   }", "- }"];
        check(r#"{"done":{"note":"x"}}"#, None, &expected);
    }

    #[test]
    fn a_long_line_is_cut_around_what_differs() {
        let (same, rest) = ("a".repeat(1_000), "b".repeat(1_000));
        let found = lines(&http(&format!("{same}1{rest}")), Some(&http(&format!("{same}2{rest}"))));
        let minus = found.iter().find(|line| line.starts_with('-')).unwrap();
        let plus = found.iter().find(|line| line.starts_with('+')).unwrap();
        for (line, digit) in [(minus, '1'), (plus, '2')] {
            assert!(line.contains(&format!("…{}{digit}bbb", "a".repeat(CHARS_BEFORE))), "{line}");
            assert!(line.chars().count() <= CHARS_MAX + 10 && line.ends_with('…'), "{line}");
        }
    }

    #[test]
    fn what_is_much_is_cut_and_counted() {
        let body = |word: &str| (0..500).map(|line| format!("{word} {line}")).collect::<Vec<_>>().join("\n");
        let found = lines(&http(&body("one")), Some(&http(&body("two"))));
        assert_eq!(found.len(), LINES_MAX + 1);
        assert!(found.last().unwrap().ends_with("more lines"), "{found:?}");
        let far = |first: &str, last: &str| format!("{first}\n{}\n{last}", body("same"));
        let found = lines(&http(&far("a", "b")), Some(&http(&far("c", "d"))));
        assert_eq!(found.iter().filter(|line| line.trim() == "...").count(), 1, "{found:?}");
    }

    #[test]
    fn nothing_in_an_action_moves_the_terminal_or_nests_without_end() {
        let found = lines(&http("plain"), Some(&http("a\u{202e}b\u{9b}31mc\u{1b}[31md")));
        assert!(found.iter().all(|line| !line.contains(['\u{202e}', '\u{9b}', '\u{1b}'])), "{found:?}");
        let nested = (0..12).fold("[1]".to_owned(), |inner, _| serde_json::json!([inner]).to_string());
        assert!(!lines(&http(&nested), Some(&http("x"))).is_empty());
        let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
        assert!(!lines(&http(&deep), Some(&deep)).is_empty());
    }
}
