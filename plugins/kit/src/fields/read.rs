//! The reader.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Field, Fields};

/// Reads JSON (RFC 8259). Of what is passed over it checks strings and brackets only.
///
/// Written here because it is a fraction of what a general parser adds to a component.
pub(super) struct Reader<'a> {
    json: &'a str,
    /// The byte that comes next.
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(json: &'a str) -> Self {
        Self { json, at: 0 }
    }

    /// How far it read, in bytes.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The one value that the text is; `None` if it is no JSON.
    pub(super) fn whole(&mut self, depth: u8) -> Option<Field> {
        let value = self.value(depth)?;
        self.pass_space();
        (self.at == self.json.len()).then_some(value)
    }

    fn peek(&self) -> Option<u8> {
        self.json.as_bytes().get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn pass_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// Goes past the byte if it comes next, after white space.
    fn pass(&mut self, byte: u8) -> bool {
        self.pass_space();
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn value(&mut self, depth: u8) -> Option<Field> {
        self.pass_space();
        match self.peek()? {
            b'{' if depth == 0 => self.pass_over().map(|()| Field::Object(Fields::default())),
            b'[' if depth == 0 => self.pass_over().map(|()| Field::List(Vec::new())),
            b'{' => self.object(depth - 1),
            b'[' => self.list(depth - 1),
            b'"' => self.text().map(Field::Text),
            b'n' => self.word("null", Field::Null),
            b't' => self.word("true", Field::Bool(true)),
            b'f' => self.word("false", Field::Bool(false)),
            _ => self.number().map(Field::Number),
        }
    }

    fn object(&mut self, depth: u8) -> Option<Field> {
        let mut fields = BTreeMap::new();
        self.at += 1;
        if self.pass(b'}') {
            return Some(Field::Object(Fields(fields)));
        }
        loop {
            self.pass_space();
            let name = self.text()?;
            if !self.pass(b':') {
                return None;
            }
            fields.insert(name, self.value(depth)?);
            if self.pass(b'}') {
                return Some(Field::Object(Fields(fields)));
            }
            if !self.pass(b',') {
                return None;
            }
        }
    }

    fn list(&mut self, depth: u8) -> Option<Field> {
        let mut items = Vec::new();
        self.at += 1;
        if self.pass(b']') {
            return Some(Field::List(items));
        }
        loop {
            items.push(self.value(depth)?);
            if self.pass(b']') {
                return Some(Field::List(items));
            }
            if !self.pass(b',') {
                return None;
            }
        }
    }

    /// Goes past an object or a list, without recursion.
    fn pass_over(&mut self) -> Option<()> {
        let mut open = Vec::new();
        loop {
            match self.next()? {
                b'{' => open.push(b'}'),
                b'[' => open.push(b']'),
                b'"' => {
                    self.at -= 1;
                    self.text()?;
                }
                end @ (b'}' | b']') if open.pop() != Some(end) => return None,
                _ => {}
            }
            if open.is_empty() {
                return Some(());
            }
        }
    }

    fn word(&mut self, word: &str, field: Field) -> Option<Field> {
        let is_next = self.json.get(self.at..)?.starts_with(word);
        self.at += word.len();
        is_next.then_some(field)
    }

    fn text(&mut self) -> Option<String> {
        if self.next()? != b'"' {
            return None;
        }
        let mut text = String::new();
        loop {
            let rest = self.json.get(self.at..)?;
            let plain = rest.bytes().position(|byte| byte == b'"' || byte == b'\\' || byte < b' ')?;
            text.push_str(rest.get(..plain)?);
            self.at += plain;
            match self.next()? {
                b'"' => return Some(text),
                b'\\' => text.push(self.escaped()?),
                _ => return None,
            }
        }
    }

    fn escaped(&mut self) -> Option<char> {
        Some(match self.next()? {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.code_point(),
            plain @ (b'"' | b'\\' | b'/') => char::from(plain),
            _ => return None,
        })
    }

    /// Four digits, or a pair of surrogates of four each.
    fn code_point(&mut self) -> Option<char> {
        let first = self.four_digits()?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        if self.next()? != b'\\' || self.next()? != b'u' {
            return None;
        }
        let second = self.four_digits()?.checked_sub(0xdc00).filter(|second| *second < 0x400)?;
        char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + second)
    }

    fn four_digits(&mut self) -> Option<u32> {
        let mut number = 0;
        for _ in 0..4 {
            number = number * 16 + char::from(self.next()?).to_digit(16)?;
        }
        Some(number)
    }

    fn number(&mut self) -> Option<f64> {
        let is_negative = self.peek()? == b'-';
        self.at += usize::from(is_negative);
        let (mut value, mut tens) = (0.0, 0_i32);
        self.digits(|digit| value = value * 10.0 + digit)?;
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits(|digit| {
                value = value * 10.0 + digit;
                tens = tens.saturating_sub(1);
            })?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            let is_small = self.peek() == Some(b'-');
            self.at += usize::from(matches!(self.peek(), Some(b'-' | b'+')));
            let mut exponent = 0_i32;
            self.digits(|digit| exponent = exponent.saturating_mul(10).saturating_add(digit as i32))?;
            tens = if is_small { tens.saturating_sub(exponent) } else { tens.saturating_add(exponent) };
        }
        // Beyond this every number is zero or infinite.
        let mut power = 1.0;
        (0..tens.unsigned_abs().min(800)).for_each(|_| power *= 10.0);
        let value = if tens < 0 { value / power } else { value * power };
        Some(if is_negative { -value } else { value })
    }

    /// At least one digit.
    fn digits(&mut self, mut take: impl FnMut(f64)) -> Option<()> {
        let before = self.at;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            take(f64::from(digit - b'0'));
            self.at += 1;
        }
        (self.at > before).then_some(())
    }
}
