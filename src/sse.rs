//! Server-sent events, as they come in: those of a server of Switchbell, and those of push queues.

/// Longest event where nothing else is asked for, in bytes: several times the largest notification.
const EVENT_BYTES_MAX: usize = 1024 * 1024;

/// An event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its number.
    pub(crate) id: Option<u64>,
    /// Its name; empty where only the number is told.
    pub(crate) name: String,
    /// Its data.
    pub(crate) data: String,
}

/// Makes events of the bytes of a stream.
#[derive(Debug)]
pub(crate) struct Events {
    rest: Vec<u8>,
    open: Event,
    bytes_max: usize,
}

impl Default for Events {
    fn default() -> Self {
        Self::at_most(EVENT_BYTES_MAX)
    }
}

/// An event is longer than what is read of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Events {
    /// For events of at most so many bytes.
    pub(crate) fn at_most(bytes_max: usize) -> Self {
        Self { rest: Vec::new(), open: Event::default(), bytes_max }
    }

    /// The events that these bytes complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLong> {
        self.rest.extend_from_slice(bytes);
        let mut found = Vec::new();
        while let Some(end) = memchr::memchr(b'\n', &self.rest) {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\r', '\n']);
            if line.is_empty() {
                found.extend(Some(std::mem::take(&mut self.open)).filter(|event| *event != Event::default()));
            } else {
                self.open.take(line);
            }
        }
        match self.rest.len() + self.open.data.len() > self.bytes_max {
            true => Err(TooLong),
            false => Ok(found),
        }
    }
}

impl Event {
    /// Takes a line: a field, or a comment, which begins with the colon.
    fn take(&mut self, line: &str) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.id = value.parse().ok(),
            "event" => value.clone_into(&mut self.name),
            "data" => {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_whole_wherever_a_stream_is_cut() {
        let text = "retry: 2000\n\n: here\n\nid: 3\nevent: ready\ndata: {\"number\":3}\n\nid: 4\r\nevent: gap\r\n\
                    data: {\"a\":\r\ndata:  1}\r\n\r\nid: 9\n\n";
        let event = |id, name: &str, data: &str| Event { id: Some(id), name: name.to_owned(), data: data.to_owned() };
        let expected = [event(3, "ready", "{\"number\":3}"), event(4, "gap", "{\"a\":\n 1}"), event(9, "", "")];
        for size in 1..=text.len() {
            let mut events = Events::default();
            let found: Vec<Event> =
                text.as_bytes().chunks(size).flat_map(|chunk| events.push(chunk).unwrap()).collect();
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut events = Events::default();
        assert_eq!(events.push(&vec![b'x'; EVENT_BYTES_MAX]), Ok(Vec::new()));
        assert_eq!(events.push(b"x"), Err(TooLong));
        let mut events = Events::default();
        let line = [b"data: ".as_slice(), &vec![b'x'; EVENT_BYTES_MAX / 2 - 1], b"\n"].concat();
        assert_eq!(events.push(&line), Ok(Vec::new()));
        assert_eq!(events.push(&line), Ok(Vec::new()));
        assert_eq!(events.push(&line), Err(TooLong));
    }
}
