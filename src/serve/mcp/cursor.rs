//! Positions in the inbox, as they are handed to readers. One names the inbox it is of, so that a position in another, such as
//! one that was restored from a copy, is not taken for one here; and it shows by its form that a Switchbell gave it, by which
//! a connector whose outbox is another Switchbell's is known, whatever URI it is declared under.

use std::fmt;

use ring::hmac;

use crate::notification::Name;

/// How every cursor begins.
const BEGINNING: &str = "switchbell-";

/// Bytes of an inbox's tag.
const TAG_BYTES: usize = 4;

/// An inbox: a workspace of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tag(String);

impl Tag {
    /// The tag of a workspace in the store with this key.
    pub(super) fn new(key: &[u8; 32], workspace: &Name) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key);
        let signed = hmac::sign(&key, format!("outbox {workspace}").as_bytes());
        Self(signed.as_ref().iter().take(TAG_BYTES).map(|byte| format!("{byte:02x}")).collect())
    }

    /// The position after this number.
    pub(super) fn after(&self, seq: u64) -> String {
        format!("{self}{seq}")
    }

    /// The number that a cursor stands after; none where it is no cursor of this inbox.
    pub(super) fn seq(&self, cursor: &str) -> Option<u64> {
        let digits = cursor.strip_prefix(&self.to_string())?;
        digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{BEGINNING}{}-", self.0)
    }
}

/// Whether a Switchbell gave this cursor.
pub(super) fn is_of_a_switchbell(cursor: &str) -> bool {
    cursor.starts_with(BEGINNING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back_by_the_inbox_that_gave_it_and_by_no_other() {
        let (acme, globex): (Name, Name) = ("acme".parse().unwrap(), "globex".parse().unwrap());
        let tag = Tag::new(&[1; 32], &acme);
        let cursor = tag.after(17);
        assert_eq!(tag.seq(&cursor), Some(17));
        assert!(is_of_a_switchbell(&cursor) && !is_of_a_switchbell("c-17"));
        assert!(cursor.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'), "{cursor}");
        assert_eq!(Tag::new(&[1; 32], &globex).seq(&cursor), None);
        assert_eq!(Tag::new(&[2; 32], &acme).seq(&cursor), None);
        for other in ["", "17", "+17", "1 7", "-1", "99999999999999999999"] {
            assert_eq!(tag.seq(&format!("{tag}{other}")), if other == "17" { Some(17) } else { None }, "{other}");
            assert_eq!(tag.seq(other), None);
        }
    }
}
