//! Columns for people.

use std::fmt::Write;

use jiff::Timestamp;

use crate::clock::until;
use crate::telemetry::rounded;

/// Longest text from outside that a list repeats, in characters.
const LISTED_CHARS_MAX: usize = 80;

/// Rows with aligned columns, two spaces apart.
pub(super) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", cells.join("  ").trim_end());
    }
    text
}

/// A text from outside as one short cell.
pub(super) fn cut(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(LISTED_CHARS_MAX) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None if line.len() < text.trim_end().len() => format!("{line} …"),
        None => line.to_owned(),
    }
}

/// How far ahead a moment is.
pub(super) fn ahead(moment: Timestamp, now: Timestamp) -> String {
    if moment <= now { "now".to_owned() } else { format!("in {}", rounded(until(now, moment))) }
}

/// `1 attempt`, `2 attempts`.
pub(super) fn count(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["A", "B"], ["ü-long", ""], ["", "x"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(aligned(&rows), "A       B\nü-long\n        x\n");
        assert_eq!(aligned(&[]), "");
    }

    #[test]
    fn a_long_text_is_cut_and_a_second_line_left_out() {
        assert_eq!(cut("HTTP 503"), "HTTP 503");
        assert_eq!(cut("HTTP 503\n"), "HTTP 503");
        assert_eq!(cut("one\ntwo"), "one …");
        assert_eq!(cut(&"ü".repeat(81)), format!("{}…", "ü".repeat(80)));
    }
}
