//! Parameters of queries: lists with commas between, moments, patterns.

use std::fmt::Display;
use std::str::FromStr;

use jiff::Timestamp;
use serde::de::{Deserialize, Deserializer, Error};

use crate::serve::problem::Problem;

/// Items of one parameter.
pub(super) const ITEMS_MAX: usize = 1_000;

/// A list with commas between its items, which must not be empty.
pub(super) fn listed<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    let text = String::deserialize(deserializer)?;
    let items = text.split(',').map(|item| item.parse().map_err(|why| D::Error::custom(format!("{item:?}: {why}"))));
    let items: Vec<T> = items.collect::<Result<_, _>>()?;
    if items.len() > ITEMS_MAX {
        return Err(D::Error::custom(format!("{} items: name at most {ITEMS_MAX}", items.len())));
    }
    Ok(items)
}

/// A moment of RFC 3339.
pub(super) fn moment(name: &str, text: Option<&str>) -> Result<Option<Timestamp>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let wrong = |_| Problem::Wrong(format!("{name}: {text:?} is no moment of RFC 3339, such as 2026-12-01T03:00:00Z"));
    text.parse().map(Some).map_err(wrong)
}

/// How many items one answer has.
pub(super) fn limit(asked: u32, most: u32) -> Result<u32, Problem> {
    match (1..=most).contains(&asked) {
        true => Ok(asked),
        false => Err(Problem::Wrong(format!("limit: {asked}: ask for 1 to {most}"))),
    }
}

/// Refuses a text of no characters, or of too many.
pub(super) fn length(name: &str, text: Option<&str>, chars_max: usize) -> Result<(), Problem> {
    match text.map(|text| text.chars().count()) {
        None => Ok(()),
        Some(count) if (1..=chars_max).contains(&count) => Ok(()),
        Some(count) => Err(Problem::Wrong(format!("{name}: {count} characters: write 1 to {chars_max}"))),
    }
}
