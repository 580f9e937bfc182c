//! Which notifications are meant.

use std::sync::Arc;

use jiff::Timestamp;
use url::form_urlencoded::Serializer;

use crate::cli::deliveries::Since;
use crate::cli::output::fail;
use crate::inbox::{Order, QUERY_TEXT_CHARS_MAX, Query};
use crate::notification::{Level, Name};
use crate::route::{Facts, Matcher, PreparedMatcher};
use crate::serve::shapes::NotificationJson;

/// What a notification must be.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Kind {
    /// Only those of this effective level or a higher one: info, attention, urgent.
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    pub(super) level: Option<Level>,
    /// Only those of sources that this pattern matches: `*` is any text, `?` one character.
    #[arg(long, value_name = "PATTERN")]
    source: Option<String>,
    /// Only those whose dotted name this pattern matches: `*` stays within one segment, `**` crosses dots.
    #[arg(long, value_name = "PATTERN")]
    name: Option<String>,
    /// Only those whose subject this pattern matches: `*` is any text, `?` one character.
    #[arg(long, value_name = "PATTERN")]
    subject: Option<String>,
}

/// Which notifications are listed.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Filters {
    #[command(flatten)]
    kind: Kind,
    /// Only those that nobody has read.
    #[arg(long)]
    unread: bool,
    /// Only those received since: a time such as 2026-09-01T18:00:00Z or 2026-09-01 (UTC), or how long ago, such as 2h.
    #[arg(long, value_name = "TIME|DURATION")]
    since: Option<Since>,
    /// Only those with this text in their name, subject, title or body, in letters of either case.
    #[arg(long, value_name = "TEXT", value_parser = text)]
    query: Option<String>,
    /// The oldest first.
    #[arg(long)]
    oldest: bool,
    /// Only notifications with a greater number.
    #[arg(long, value_name = "SEQ")]
    after: Option<u64>,
    /// Only notifications with a smaller number.
    #[arg(long, value_name = "SEQ")]
    before: Option<u64>,
}

fn level(text: &str) -> Result<Level, &'static str> {
    Level::parse(text).ok_or("the levels are info, attention and urgent")
}

fn text(text: &str) -> Result<String, String> {
    match text.chars().count() {
        1..=QUERY_TEXT_CHARS_MAX => Ok(text.to_owned()),
        count => Err(format!("{count} characters: write 1 to {QUERY_TEXT_CHARS_MAX}")),
    }
}

impl Kind {
    /// What is asked, ready to match; none where nothing is.
    pub(super) fn matcher(&self) -> Result<Option<PreparedMatcher>, std::process::ExitCode> {
        let Self { level, source, name, subject } = self;
        if level.is_none() && [source, name, subject].iter().all(|pattern| pattern.is_none()) {
            return Ok(None);
        }
        let one = |pattern: &Option<String>| pattern.iter().cloned().collect();
        let (name, source, subject) = (one(name), one(source), one(subject));
        let matcher = Matcher { name, not: Vec::new(), level: *level, source, subject };
        let wrong = |error| fail(format_args!("--source, --name or --subject: {error}"));
        PreparedMatcher::new(matcher).map(Some).map_err(wrong)
    }

    fn parameters(&self, query: &mut Serializer<'_, String>) {
        let level = self.level.map(|level| level.to_string());
        let all = [("level", &level), ("source", &self.source), ("name", &self.name), ("subject", &self.subject)];
        for (key, value) in all {
            if let Some(value) = value {
                query.append_pair(key, value);
            }
        }
    }
}

/// Whether a matcher means a notification that a server told of.
pub(super) fn is_meant(matcher: Option<&PreparedMatcher>, one: &NotificationJson) -> bool {
    let Some(matcher) = matcher else { return true };
    let (Ok(source), Some(level)) = (one.source.parse::<Name>(), Level::parse(&one.effective_level)) else { return false };
    matcher.matches(&Facts { source: &source, name: &one.name, effective_level: level, subject: one.subject.as_deref() })
}

impl Filters {
    /// Those of this kind with a greater number, oldest first.
    pub(super) fn behind(kind: &Kind, seq: u64) -> Self {
        Self { kind: kind.clone(), oldest: true, after: Some(seq), ..Self::default() }
    }

    /// The same, with the moment that it means at this one.
    pub(super) fn since(&self, now: Timestamp) -> Self {
        Self { since: self.since.map(|since| Since::At(since.moment(now))), ..self.clone() }
    }

    /// Those behind a part that was found.
    pub(super) fn go_on(&mut self, next: u64) {
        let bound = if self.oldest { &mut self.after } else { &mut self.before };
        *bound = Some(next);
    }

    /// As a store is asked.
    pub(super) fn query(&self, workspace: Name, limit: u32) -> Result<Query, std::process::ExitCode> {
        Ok(Query {
            after: self.after,
            before: self.before,
            since: self.moment(),
            is_unread: self.unread,
            when: self.kind.matcher()?.map(Arc::new),
            text: self.query.clone(),
            order: if self.oldest { Order::Oldest } else { Order::Newest },
            ..Query::all(workspace, limit)
        })
    }

    /// As a server is asked.
    pub(super) fn path(&self, workspace: &Name, limit: u32) -> String {
        let mut query = Serializer::new(String::new());
        query.append_pair("limit", &limit.to_string());
        self.kind.parameters(&mut query);
        let numbers = [("after", self.after), ("before", self.before)];
        let numbers = numbers.into_iter().filter_map(|(key, value)| Some((key, value?.to_string())));
        let moment = self.moment().map(|at| ("since", at.to_string()));
        let text = self.query.clone().map(|text| ("query", text));
        for (key, value) in numbers.chain(moment).chain(text) {
            query.append_pair(key, &value);
        }
        if self.unread {
            query.append_pair("unread", "true");
        }
        if self.oldest {
            query.append_pair("order", "oldest");
        }
        format!("/v1/workspaces/{workspace}/notifications?{}", query.finish())
    }

    fn moment(&self) -> Option<Timestamp> {
        self.since.map(|since| since.moment(Timestamp::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_asked_what_a_store_is_asked() {
        let kind = Kind { level: Level::parse("attention"), name: Some("domain.**".to_owned()), ..Kind::default() };
        let filters = Filters { kind, unread: true, query: Some("a&b é".to_owned()), before: Some(7), ..Filters::default() };
        let workspace: Name = "acme".parse().unwrap();
        assert_eq!(
            filters.path(&workspace, 20),
            "/v1/workspaces/acme/notifications?limit=20&level=attention&name=domain.**&before=7&query=a%26b+%C3%A9&unread=true"
        );
        let query = filters.query(workspace, 20).unwrap();
        assert!(query.is_unread && query.when.is_some() && query.before == Some(7) && query.limit == 20);
    }
}
