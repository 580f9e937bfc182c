//! Writing untrusted text so that it stays in its place: no line of it begins where only our own lines begin.

use alloc::string::String;

use switchbell_kit::text;

/// How many characters a line has at most, where there is a space to break it at.
pub(crate) const WIDTH: usize = 76;

/// The most spaces at the beginning of a line that are kept.
const LEADING_MAX: usize = 20;

/// The text on one line, without characters that nobody sees.
#[inline(never)]
pub(crate) fn line(untrusted: &str) -> String {
    text::one_line(&text::visible(untrusted))
}

/// Adds a paragraph: `first` begins its first line, `rest` the others. A word that is too long stays whole: broken, a URL
/// would lead nowhere.
#[inline(never)]
pub(crate) fn paragraph(out: &mut String, first: &str, rest: &str, untrusted: &str) {
    let mut width = first.chars().count();
    out.push_str(first);
    let mut is_first = true;
    for word in line(untrusted).split(' ') {
        let length = word.chars().count();
        if !is_first && width + 1 + length > WIDTH {
            out.push('\n');
            out.push_str(rest);
            width = rest.chars().count();
        } else if !is_first {
            out.push(' ');
            width += 1;
        }
        out.push_str(word);
        width += length;
        is_first = false;
    }
    out.push('\n');
}

/// Adds a text of several lines, each of them indented: so none is a signature's separator (`-- `), a quote (`>`) or a
/// mailbox's separator (`From `), and none looks like a line of ours.
#[inline(never)]
pub(crate) fn block(out: &mut String, indent: &str, untrusted: &str) {
    for untrusted in untrusted.trim_end().split('\n') {
        let untrusted = text::visible(untrusted);
        let leading = untrusted.chars().take_while(|letter| *letter == ' ').count().min(LEADING_MAX);
        let whole = clean(untrusted.trim());
        if whole.trim().is_empty() {
            out.push('\n');
            continue;
        }
        let mut first = String::from(indent);
        first.extend(core::iter::repeat_n(' ', leading));
        if first.chars().count() + whole.chars().count() <= WIDTH {
            out.push_str(&first);
            out.push_str(&whole);
            out.push('\n');
        } else {
            paragraph(out, &first, &first, &whole);
        }
    }
}

/// Each character that would end or bend the line is a space.
fn clean(untrusted: &str) -> String {
    let plain = |letter: char| if letter.is_whitespace() || letter.is_control() { ' ' } else { letter };
    untrusted.chars().map(plain).collect()
}
