//! What the YAML parser complains about, in words that help: what was probably meant and what to write.

use saphyr_parser::ScanError;

use super::Place;
use super::code::{Code, Said};
use super::node::{At, Path};
use super::parse;
use super::scalar::quote;
use super::source::Report;

/// Said of `*name`, whether or not there is such an anchor.
pub(super) const ALIAS: &str = "a plain `*` begins a YAML alias, which is not supported";

/// Most lines with a tab that are reported.
const TAB_LINES_MAX: usize = 50;

/// A mistake of form.
#[derive(Debug)]
pub(super) struct Fault {
    pub place: Place,
    pub said: Said,
    /// The byte that can be replaced so that the rest of the file can be read.
    pub step_over: Option<usize>,
}

/// Says what is wrong where the parser stopped.
pub(super) fn explain(error: &ScanError, text: &str) -> Fault {
    let place = parse::place(error.marker());
    let at = text.char_indices().nth(error.marker().index());
    let line = text.lines().nth(place.line.saturating_sub(1)).unwrap_or_default();
    let stopped_at = at.map(|(_, found)| found);
    if let Some((offset, found @ ('*' | '&' | '@' | '`' | '%'))) = at
        && steps_over(error.info())
    {
        let message = match found {
            '*' => format!("{ALIAS}: put it in quotes, {}", quote(&word(text, offset))),
            '&' => "a plain `&` begins a YAML anchor, which is not supported: put the text in quotes".to_owned(),
            other => format!("a plain text cannot begin with {other:?}: put it in quotes"),
        };
        let code = if matches!(found, '*' | '&') { Code::YamlFeature } else { Code::NotYaml };
        return Fault { place, said: code.says(message), step_over: Some(offset) };
    }
    let before: String = line.chars().take(place.column.saturating_sub(1)).collect();
    let said = Code::NotYaml.says(words(error.info(), stopped_at, &before));
    Fault { place, said, step_over: None }
}

/// The text that begins at this byte and ends where a plain text in a list would.
fn word(text: &str, offset: usize) -> String {
    let rest = text.get(offset..).unwrap_or_default();
    rest.chars().take_while(|c| !c.is_whitespace() && !matches!(c, ',' | ']' | '}')).collect()
}

fn steps_over(info: &str) -> bool {
    info.contains("unknown anchor") || info.contains("anchor or alias") || info.starts_with("unexpected character")
}

fn words(info: &str, stopped_at: Option<char>, before: &str) -> String {
    let has = |needle: &str| info.contains(needle);
    let text = if before.ends_with('$') && stopped_at == Some('{') {
        "inside `{ }` and `[ ]`, put a text with `${…}` in quotes"
    } else if has("tab") && !has("table") {
        "a tab stands where YAML wants spaces: indent with spaces"
    } else if has("mapping values are not allowed") && before.contains(": ") {
        "a second `:` on this line: put a text that holds `: ` in quotes"
    } else if has("mapping values are not allowed") {
        "this `:` fits nothing: either the line is indented deeper than the one above although that already has a \
         value, or a space is missing after the `:` above"
    } else if has("quoted scalar") && (has("end of stream") || has("indentation") || has("document indicator")) {
        "a quote is opened here and not closed: close it on the same line"
    } else if has("unknown escape") || has("hexadecimal") || has("escape code") {
        "an unknown escape in double quotes: write `\\\\` for a backslash, or use single quotes"
    } else if has("trailing content") {
        "something follows the closing quote: put the whole text in quotes, and write a quote inside single quotes twice"
    } else if has("flow sequence") || has("flow mapping") || has("flow construct") || has("illegal placement of ':'") {
        "a `[` or `{` above is not closed, or a comma is missing: close it, or put a text that begins with one in quotes"
    } else if has("did not find expected key") && before.trim_end().ends_with([']', '}']) {
        "something follows the closing bracket: put a text that begins with `[` or `{` in quotes"
    } else if has("did not find expected key") || has("expected '-' indicator") || has("invalid indentation") {
        "this line is indented like none of those above: line it up with its neighbours"
    } else if has("did not find expected node content") {
        return match stopped_at {
            Some(sign) if !sign.is_whitespace() && !sign.is_control() => format!(
                "a value is missing before this `{sign}`: write one, or remove the sign; put a text that begins with it in quotes"
            ),
            _ => "a value is missing here: write one, or close what is open above".to_owned(),
        };
    } else if has("only valid inside a block") {
        "a list item (`- `) cannot stand inside `{ }` or `[ ]`; put a text that begins with `-` in quotes"
    } else if has("scanning a block scalar") {
        "a `|` or `>` begins a text of several lines, which follow below it; put a text that begins with one in quotes"
    } else if has("comments must be separated") {
        "a `#` begins a remark only behind a space: add one, or put a text with `#` in quotes"
    } else if has("block sequence entries are not allowed") {
        "a list item (`- `) cannot begin here: put it on a line of its own below the key"
    } else if has("misplaced bracket") {
        "a bracket closes here that nothing opened: remove it, or put the text in quotes"
    } else if has("mapping keys are not allowed") {
        "a plain text cannot begin with `? `: put it in quotes"
    } else if has("simple key") {
        "a key without a `: ` after it; is a colon or the space behind it missing?"
    } else if has("unprintable") {
        "a control character that YAML forbids: remove it"
    } else {
        return format!("this is not YAML: {info}");
    };
    text.to_owned()
}

/// Reports a mistake that ends the reading of a file. Of tabs, every line that begins with one.
pub(super) fn report(fault: &Fault, report: &mut Report) {
    let tabs = if fault.said.text.contains("a tab") { tab_places(report) } else { Vec::new() };
    let places = if tabs.is_empty() { vec![fault.place] } else { tabs };
    for place in places {
        report.mistake(&At { path: Path::default(), place }, fault.said.clone());
    }
}

fn tab_places(report: &Report) -> Vec<Place> {
    let tab = |(index, line): (usize, &str)| {
        let indentation = line.chars().take_while(|c| matches!(c, ' ' | '\t')).position(|c| c == '\t')?;
        let has_content = !line.trim().is_empty() && !line.trim_start().starts_with('#');
        has_content.then_some(Place { line: index + 1, column: indentation + 1 })
    };
    report.lines().enumerate().filter_map(tab).take(TAB_LINES_MAX).collect()
}
