//! Messages on standard input, one a line, bounded.

use std::io::{self, BufRead};

/// Longest message, in bytes: more than any server takes.
const LINE_BYTES_MAX: usize = 1 << 20;

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// What may be a message.
    Message(String),
    /// Longer than [`LINE_BYTES_MAX`]: it was passed over.
    TooLong,
}

/// Reads lines.
#[derive(Debug)]
pub(super) struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    is_too_long: bool,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, line: Vec::new(), is_too_long: false }
    }

    /// The next line that is not empty; none at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let buffer = self.reader.fill_buf()?;
            let is_end = buffer.is_empty();
            let (part, taken, is_whole) = match memchr::memchr(b'\n', buffer) {
                Some(at) => (buffer.get(..at).unwrap_or_default(), at + 1, true),
                None => (buffer, buffer.len(), is_end),
            };
            if self.line.len() + part.len() > LINE_BYTES_MAX {
                (self.line, self.is_too_long) = (Vec::new(), true);
            }
            if !self.is_too_long {
                self.line.extend_from_slice(part);
            }
            self.reader.consume(taken);
            if !is_whole {
                continue;
            }
            let (line, is_too_long) = (std::mem::take(&mut self.line), std::mem::take(&mut self.is_too_long));
            if is_too_long {
                return Ok(Some(Line::TooLong));
            }
            let line = String::from_utf8_lossy(&line).trim().to_owned();
            if !line.is_empty() {
                return Ok(Some(Line::Message(line)));
            }
            if is_end {
                return Ok(None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Vec<Line> {
        let mut lines = Lines::new(text);
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(line);
        }
        found
    }

    #[test]
    fn each_line_that_says_something_is_a_message() {
        let message = |text: &str| Line::Message(text.to_owned());
        assert_eq!(read(b""), []);
        assert_eq!(read(b"{}\n\n \r\n[1]\r\n{\"a\":1}"), [message("{}"), message("[1]"), message("{\"a\":1}")]);
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_the_next_one_is_read() {
        let longest = "x".repeat(LINE_BYTES_MAX);
        let text = format!("{longest}\n{longest}y\n{{}}\n{longest}z");
        let found = read(text.as_bytes());
        assert_eq!(found, [Line::Message(longest), Line::TooLong, Line::Message("{}".to_owned()), Line::TooLong]);
    }
}
