//! Whole numbers as JSON may spell them: `41` and `41.0` are the same (JSON Schema, "integer").

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// 2⁶⁴: the first number that does not fit.
const END: f64 = 18_446_744_073_709_551_616.0;

struct Whole(u64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reading).map(Self)
    }
}

struct Reading;

impl Visitor<'_> for Reading {
    type Value = u64;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a whole number that is not negative")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        Ok(number)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<u64, E> {
        let fits = number.fract() == 0.0 && (0.0..END).contains(&number);
        let whole = number as u64;
        fits.then_some(whole).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Float(number), &self))
    }
}

/// Reads a list of them.
pub(in crate::serve) fn all<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u64>, D::Error> {
    Vec::<Whole>::deserialize(deserializer).map(|all| all.into_iter().map(|Whole(number)| number).collect())
}

/// Reads one that may be absent.
pub(in crate::serve) fn one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Option::<Whole>::deserialize(deserializer).map(|one| one.map(|Whole(number)| number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Option<Vec<u64>> {
        serde_json::from_str::<Vec<Whole>>(json).ok().map(|all| all.into_iter().map(|Whole(number)| number).collect())
    }

    #[test]
    fn a_whole_number_may_be_written_with_a_point() {
        assert_eq!(read("[41, 41.0, 4.1e1, 0.0, 18446744073709551615]"), Some(vec![41, 41, 41, 0, u64::MAX]));
        for refused in ["[41.5]", "[-1]", "[-1.0]", "[1e20]", "[18446744073709551616]", "[\"41\"]", "[null]"] {
            assert_eq!(read(refused), None, "{refused}");
        }
    }
}
