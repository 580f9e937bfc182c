//! How a delivery's id is read back.

use std::fmt;
use std::str::FromStr;

use super::DeliveryId;

/// Digits of a store's tag.
const TAG_DIGITS: usize = 8;

/// Why a text is no [`DeliveryId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnId;

impl fmt::Display for NotAnId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a delivery's id is eight hexadecimal digits, a hyphen and a number, such as 5f3a9c01-17")
    }
}

impl std::error::Error for NotAnId {}

impl FromStr for DeliveryId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let (tag, number) = text.split_once('-').ok_or(NotAnId)?;
        let is_tag = tag.len() == TAG_DIGITS && tag.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
        let number = number.parse().ok().filter(|number| is_tag && is_number && *number > 0).ok_or(NotAnId)?;
        Ok(Self { store: tag.to_ascii_lowercase().into(), number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_back_as_it_was_shown() {
        let id: DeliveryId = "5f3a9c01-17".parse().unwrap();
        assert_eq!((&*id.store, id.number), ("5f3a9c01", 17));
        assert_eq!(id.to_string(), "5f3a9c01-17");
        assert_eq!("5F3A9C01-17".parse(), Ok(id));
        for text in
            ["", "17", "5f3a9c01", "5f3a9c01-", "5f3a9c01-0", "5f3a9c01--1", "5f3a9c01-+1", "5f3a9c0-1", "5f3a9c0x-1"]
        {
            assert_eq!(text.parse::<DeliveryId>(), Err(NotAnId), "{text}");
        }
    }
}
