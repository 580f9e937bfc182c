//! What of an inbox is shown: asked for in the query of its address, so that it works without script and can be kept as a link.

use std::sync::Arc;

use url::form_urlencoded::Serializer;

use super::super::parts::Asked;
use crate::inbox::{Order, QUERY_TEXT_CHARS_MAX, Query};
use crate::notification::{Level, Name};
use crate::route::{Matcher, PreparedMatcher};
use crate::text;

/// Notifications of a page.
pub(super) const ROWS_MAX: u32 = 50;

/// What comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum Sort {
    /// The newest.
    #[default]
    Newest,
    /// The loudest, and of those the newest.
    Level,
}

/// Which part of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum Part {
    /// The first.
    #[default]
    First,
    /// Behind this number.
    Before(u64),
    /// In front of this number.
    After(u64),
    /// By level: in the list of this level, behind this number.
    Within(Level, Option<u64>),
}

/// What is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Filter {
    /// The least level.
    pub(super) level: Option<Level>,
    /// The source.
    pub(super) source: Option<String>,
    /// A pattern over the name.
    pub(super) name: Option<String>,
    /// A pattern over the subject.
    pub(super) subject: Option<String>,
    /// Only what nobody has read.
    pub(super) is_unread: bool,
    /// A text in it.
    pub(super) text: Option<String>,
    /// What comes first.
    pub(super) sort: Sort,
}

impl Filter {
    /// The filter and the part that an address names. What makes no sense in it is left out.
    pub(in super::super) fn read(asked: &Asked) -> (Self, Part) {
        let line = |name| asked.one(name).map(|value| text::line(value, QUERY_TEXT_CHARS_MAX));
        let filter = Self {
            level: asked.one("level").and_then(Level::parse).filter(|level| *level > Level::Info),
            source: line("source"),
            name: line("name"),
            subject: line("subject"),
            is_unread: asked.one("unread").is_some(),
            text: line("q"),
            sort: if asked.one("sort") == Some("level") { Sort::Level } else { Sort::Newest },
        };
        let before = asked.number("before");
        let part = match (filter.sort, asked.one("within").and_then(Level::parse)) {
            (Sort::Level, Some(level)) => Part::Within(level, before),
            (Sort::Level, None) => Part::First,
            (Sort::Newest, _) => match (before, asked.number("after")) {
                (Some(before), _) => Part::Before(before),
                (None, Some(after)) => Part::After(after),
                (None, None) => Part::First,
            },
        };
        (filter, part)
    }

    /// Whether anything is left out.
    pub(super) fn is_narrow(&self) -> bool {
        Self { sort: Sort::Newest, ..self.clone() } != Self::default()
    }

    /// The address, beside those of its notifications, that shows this.
    pub(super) fn address(&self, part: Part) -> String {
        format!("inbox{}", self.asked(part))
    }

    /// The query of an address, with its question mark; empty where all is shown.
    pub(in super::super) fn asked(&self, part: Part) -> String {
        let mut query = Serializer::new(String::new());
        let level = self.level.map(Level::as_str);
        let texts = [("source", &self.source), ("name", &self.name), ("subject", &self.subject), ("q", &self.text)];
        query.extend_pairs(level.map(|level| ("level", level)));
        query.extend_pairs(texts.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))));
        query.extend_pairs(self.is_unread.then_some(("unread", "1")));
        query.extend_pairs((self.sort == Sort::Level).then_some(("sort", "level")));
        let number = |query: &mut Serializer<'_, String>, name, number: u64| {
            query.append_pair(name, &number.to_string());
        };
        match part {
            Part::First => {}
            Part::Before(before) => number(&mut query, "before", before),
            Part::After(after) => number(&mut query, "after", after),
            Part::Within(level, before) => {
                query.append_pair("within", level.as_str());
                if let Some(before) = before {
                    number(&mut query, "before", before);
                }
            }
        }
        let text = query.finish();
        if text.is_empty() { text } else { format!("?{text}") }
    }

    /// The patterns, as they were written.
    fn patterns(&self) -> String {
        let written = [("source", &self.source), ("name", &self.name), ("subject", &self.subject)];
        let quoted = written.into_iter().filter_map(|(key, value)| Some(format!("{key} {:?}", value.as_deref()?)));
        quoted.collect::<Vec<_>>().join(", ")
    }

    /// What is asked of the store: all that is at least so loud.
    ///
    /// # Errors
    /// What is wrong with a pattern.
    pub(in super::super) fn query(&self, workspace: &Name, least: Option<Level>) -> Result<Query, String> {
        let list = |pattern: &Option<String>| pattern.iter().cloned().collect::<Vec<_>>();
        let matcher = Matcher {
            name: list(&self.name),
            not: Vec::new(),
            level: least.max(self.level),
            source: list(&self.source),
            subject: list(&self.subject),
        };
        let when = match matcher == Matcher::default() {
            true => None,
            false => {
                Some(Arc::new(PreparedMatcher::new(matcher).map_err(|error| format!("{}: {error}", self.patterns()))?))
            }
        };
        Ok(Query {
            is_unread: self.is_unread,
            text: self.text.clone(),
            when,
            order: Order::Newest,
            ..Query::all(workspace.clone(), ROWS_MAX)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, expected: &str) {
        let (filter, part) = Filter::read(&Asked::read(query.as_bytes()));
        assert_eq!(filter.address(part), expected, "{query}");
        let again = expected.split_once('?').map_or("", |(_, again)| again);
        assert_eq!(Filter::read(&Asked::read(again.as_bytes())), (filter, part));
    }

    #[test]
    fn an_address_says_all_that_is_shown() {
        check("", "inbox");
        check("level=info&source=&name=&subject=&q=&sort=newest", "inbox");
        check("level=urgent&unread=1&q=a+%26+b&before=41", "inbox?level=urgent&q=a+%26+b&unread=1&before=41");
        check("after=7&name=domain.**", "inbox?name=domain.**&after=7");
        check("sort=level&within=attention&before=9", "inbox?sort=level&within=attention&before=9");
        check("sort=level&within=loud&before=9", "inbox?sort=level");
        check("sort=newest&within=urgent&before=x", "inbox");
    }

    #[test]
    fn a_pattern_that_cannot_be_used_is_said() {
        let workspace = "acme".parse().unwrap();
        let of = |name: &str| Filter { name: Some(name.to_owned()), ..Filter::default() }.query(&workspace, None);
        assert!(of("domain.**").unwrap().when.is_some());
        assert!(of("a b").unwrap_err().contains("a b"), "{:?}", of("a b"));
        assert!(Filter::default().query(&workspace, None).unwrap().when.is_none());
        let level = Filter { level: Some(Level::Attention), ..Filter::default() };
        let asked = level.query(&workspace, Some(Level::Urgent)).unwrap().when.unwrap();
        assert_eq!(asked.matcher().level, Some(Level::Urgent));
    }
}
