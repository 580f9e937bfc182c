//! Writing JSON, with pieces that stay byte for byte as they came.

use alloc::string::{String, ToString};

/// A JSON object that is being written.
#[derive(Debug)]
pub struct Object(String);

impl Default for Object {
    fn default() -> Self {
        Self::new()
    }
}

impl Object {
    /// An object without fields.
    pub fn new() -> Self {
        Self("{".to_string())
    }

    /// Adds a field whose value is JSON already.
    pub fn raw(&mut self, name: &str, json: &str) -> &mut Self {
        self.name(name);
        self.0.push_str(json);
        self
    }

    /// Adds a text.
    #[inline(never)]
    pub fn text(&mut self, name: &str, value: &str) -> &mut Self {
        self.name(name);
        push_text(&mut self.0, value);
        self
    }

    /// Adds a text, or `null`.
    #[inline(never)]
    pub fn optional(&mut self, name: &str, value: Option<&str>) -> &mut Self {
        match value {
            Some(value) => self.text(name, value),
            None => self.raw(name, "null"),
        }
    }

    /// Adds a number.
    pub fn number(&mut self, name: &str, value: u64) -> &mut Self {
        self.raw(name, &value.to_string())
    }

    /// The whole object.
    pub fn end(&mut self) -> String {
        let mut text = core::mem::take(&mut self.0);
        text.push('}');
        text
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        push_text(&mut self.0, name);
        self.0.push(':');
    }
}

/// A list of values that are JSON already.
#[inline(never)]
pub fn list<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let mut text = "[".to_string();
    for (number, item) in items.into_iter().enumerate() {
        if number > 0 {
            text.push(',');
        }
        text.push_str(item.as_ref());
    }
    text.push(']');
    text
}

/// A JSON string.
pub fn text(value: &str) -> String {
    let mut text = String::with_capacity(value.len() + 2);
    push_text(&mut text, value);
    text
}

#[inline(never)]
fn push_text(out: &mut String, value: &str) {
    out.push('"');
    let mut plain = 0;
    for (at, byte) in value.bytes().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(value.get(plain..at).unwrap_or_default());
        plain = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            _ => {
                out.push_str(if byte < 0x10 { "\\u000" } else { "\\u001" });
                out.extend(char::from_digit(u32::from(byte & 0xf), 16));
            }
        }
    }
    out.push_str(value.get(plain..).unwrap_or_default());
    out.push('"');
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::{Object, list, text};

    #[test]
    fn texts_are_escaped_so_that_every_parser_reads_them_back() {
        let every: String = (0..0x250).filter_map(char::from_u32).chain("🔔\u{2028}\u{fffd}".chars()).collect();
        for value in ["", "plain", "a\"b\\c\nd\te\u{0}f\u{1f}", &every] {
            assert_eq!(serde_json::from_str::<String>(&text(value)).unwrap(), value);
        }
    }

    #[test]
    fn pieces_stay_as_they_are() {
        let object = Object::new()
            .text("a", "x\"")
            .raw("data", r#"{"b":1,"a":1.50}"#)
            .optional("none", None)
            .number("seq", u64::MAX)
            .raw("list", &list(["1", "2"]))
            .end();
        let expected = r#"{"a":"x\"","data":{"b":1,"a":1.50},"none":null,"seq":18446744073709551615,"list":[1,2]}"#;
        assert_eq!(object, expected);
        assert_eq!((Object::new().end(), list::<&str>([])), ("{}".into(), "[]".into()));
    }
}
