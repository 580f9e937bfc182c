//! What a request asks for, in its query or its form.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use url::form_urlencoded;

/// Pairs of names and values, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Asked(Vec<(String, String)>);

impl Asked {
    /// Those of a query or a form.
    pub(in super::super) fn read(bytes: &[u8]) -> Self {
        Self(form_urlencoded::parse(bytes).into_owned().collect())
    }

    /// The last value of this name that is not empty.
    pub(in super::super) fn one(&self, name: &str) -> Option<&str> {
        let mut values = self.0.iter().filter(|(known, _)| known == name).map(|(_, value)| value.trim());
        values.rfind(|value| !value.is_empty())
    }

    /// All values of this name that are not empty.
    pub(in super::super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let values = self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.trim());
        values.filter(|value| !value.is_empty())
    }

    /// The value of this name as a number.
    pub(in super::super) fn number(&self, name: &str) -> Option<u64> {
        self.one(name)?.parse().ok()
    }
}

impl<S: Sync> FromRequestParts<S> for Asked {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::read(parts.uri.query().unwrap_or_default().as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_counts_and_empty_ones_do_not() {
        let asked = Asked::read(b"level=info&level=urgent&name=&q=+a%20b+&seq=1&seq=x&seq=3");
        assert_eq!((asked.one("level"), asked.one("name"), asked.one("q")), (Some("urgent"), None, Some("a b")));
        assert_eq!(asked.all("seq").collect::<Vec<_>>(), ["1", "x", "3"]);
        assert_eq!((asked.number("seq"), asked.number("level"), asked.number("none")), (Some(3), None, None));
    }
}
