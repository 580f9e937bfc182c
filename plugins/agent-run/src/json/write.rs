//! JSON as it is sent.

use alloc::borrow::ToOwned;
use alloc::string::String;

/// The text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    quote(&mut out, text);
    out
}

fn quote(out: &mut String, text: &str) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..' ' => {
                out.push_str("\\u00");
                out.extend([u32::from(letter) >> 4, u32::from(letter) & 15].into_iter().filter_map(hex));
            }
            _ => out.push(letter),
        }
    }
    out.push('"');
}

fn hex(digit: u32) -> Option<char> {
    char::from_digit(digit, 16)
}

/// An object being written.
pub(crate) struct Object(String);

impl Object {
    pub(crate) fn new() -> Self {
        Self("{".to_owned())
    }

    /// A field whose value is JSON already.
    pub(crate) fn raw(mut self, name: &str, json: &str) -> Self {
        self.name(name);
        self.0.push_str(json);
        self
    }

    pub(crate) fn text(mut self, name: &str, text: &str) -> Self {
        self.name(name);
        quote(&mut self.0, text);
        self
    }

    /// A field that is left out when there is nothing to say.
    pub(crate) fn text_if(self, name: &str, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(name, text),
            None => self,
        }
    }

    pub(crate) fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        quote(&mut self.0, name);
        self.0.push(':');
    }
}
