//! Text that somebody else wrote: a connector, a plugin, a destination, a person. It is never more than text, it never turns the
//! direction of what stands beside it, and what would be invisible in it is seen.

use maud::{Markup, html};

/// One line of it.
pub(in super::super) fn said(text: &str) -> Markup {
    html! { bdi.said dir="auto" { (marked(text, false)) } }
}

/// Several lines of it.
pub(in super::super) fn said_lines(text: &str) -> Markup {
    html! { bdi.said.lines dir="auto" { (marked(text, true)) } }
}

/// It in an attribute: what is invisible is spelled out.
pub(in super::super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text, false) {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Hidden(hidden) => out.push_str(&code(hidden)),
        }
    }
    out
}

fn marked(text: &str, keeps_lines: bool) -> Markup {
    html! {
        @for piece in pieces(text, keeps_lines) {
            @match piece {
                Piece::Text(text) => { (text) }
                Piece::Hidden(hidden) => { span.hidden-char title="a character that would not be seen" { (code(hidden)) } }
            }
        }
    }
}

fn code(hidden: char) -> String {
    format!("U+{:04X}", u32::from(hidden))
}

#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    Hidden(char),
}

fn pieces(text: &str, keeps_lines: bool) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut before: Option<char> = None;
    let mut following = text.char_indices().peekable();
    while let Some((at, next)) = following.next() {
        let after = following.peek().map(|(_, after)| *after);
        if is_hidden(next, before, after, keeps_lines) {
            found.extend(text.get(start..at).filter(|piece| !piece.is_empty()).map(Piece::Text));
            found.push(Piece::Hidden(next));
            start = at + next.len_utf8();
        }
        before = Some(next);
    }
    found.extend(text.get(start..).filter(|piece| !piece.is_empty()).map(Piece::Text));
    found
}

/// Whether a character shows nothing itself, but changes how its surroundings look, or hides something in them.
fn is_hidden(next: char, before: Option<char>, after: Option<char>, keeps_lines: bool) -> bool {
    match next {
        '\n' => !keeps_lines,
        // Scripts and emoji need the joiners; between Latin letters they only make two words look like one.
        '\u{200C}' | '\u{200D}' => !(joins(before) && joins(after)),
        '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{3164}'
        | '\u{FEFF}' | '\u{FFA0}' => true,
        '\u{180B}'..='\u{180F}'
        | '\u{200B}'..='\u{200F}'
        | '\u{2028}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}'
        | '\u{FFF0}'..='\u{FFFB}'
        | '\u{1BCA0}'..='\u{1BCA3}'
        | '\u{1D173}'..='\u{1D17A}'
        | '\u{E0000}'..='\u{E0FFF}' => true,
        next => next.is_control(),
    }
}

fn joins(beside: Option<char>) -> bool {
    beside.is_some_and(|beside| u32::from(beside) > 0x02FF)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(plain(text), expected, "{text:?}");
    }

    #[test]
    fn what_would_be_invisible_is_seen() {
        check("pay\u{202E}lap", "payU+202Elap");
        check("a\u{200B}b\u{FEFF}c\u{00AD}", "aU+200BbU+FEFFcU+00AD");
        check("a\u{0}\t\u{1b}[31m\nb", "aU+0000U+0009U+001B[31mU+000Ab");
        check("hi\u{E0068}\u{E0069}", "hiU+E0068U+E0069");
        check("plain – ümlaut ✓ 漢字", "plain – ümlaut ✓ 漢字");
    }

    #[test]
    fn joiners_are_seen_only_where_they_have_no_use() {
        check("👩\u{200D}💻 می\u{200C}خواهم", "👩\u{200D}💻 می\u{200C}خواهم");
        check("pay\u{200D}pal\u{200C}", "payU+200DpalU+200C");
        check("\u{200D}👩", "U+200D👩");
    }

    #[test]
    fn markup_is_text_and_direction_ends_with_it() {
        let shown = said("<b onclick=\"x\">'&\u{202E}").into_string();
        assert_eq!(
            shown,
            "<bdi class=\"said\" dir=\"auto\">&lt;b onclick=&quot;x&quot;&gt;'&amp;<span class=\"hidden-char\" \
             title=\"a character that would not be seen\">U+202E</span></bdi>"
        );
        assert_eq!(said_lines("a\nb").into_string(), "<bdi class=\"said lines\" dir=\"auto\">a\nb</bdi>");
    }
}
