//! `switchbell deliveries`: what became of what was owed. Reading looks into the store beside a running server; what is
//! changed goes through it.

mod change;
mod list;
mod show;

use std::path::Path;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use url::form_urlencoded::Serializer;

use crate::config::duration;
use crate::inbox::Which;
use crate::inbox::delivery::State;
use crate::notification::Name;

pub(super) use list::of_one;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Lists deliveries, newest notification first.
    List(list::List),
    /// Shows the whole life of one delivery.
    Show(show::Show),
    /// Has deliveries made again, at once.
    ///
    /// Dead, blocked and retrying ones go on; of those that are over otherwise, a new delivery is made that names the old
    /// one.
    Retry(change::Meant),
    /// Cancels deliveries that are neither in flight nor over.
    Cancel(change::Meant),
}

pub(super) async fn run(file: &Path, command: &Command) -> ExitCode {
    match command {
        Command::List(asked) => list::run(file, asked).await,
        Command::Show(asked) => show::run(file, asked).await,
        Command::Retry(meant) => change::run(file, change::Change::Retry, meant).await,
        Command::Cancel(meant) => change::run(file, change::Change::Cancel, meant).await,
    }
}

/// Which deliveries are meant.
#[derive(Clone, Debug, Default, clap::Args)]
struct Filters {
    /// Only those in one of these states.
    #[arg(long, value_name = "STATE,…", value_delimiter = ',', value_parser = states())]
    state: Vec<State>,
    /// Only those of this route.
    #[arg(long, value_name = "NAME")]
    route: Option<Name>,
    /// Only those of this plugin.
    #[arg(long, value_name = "NAME")]
    plugin: Option<Name>,
    /// Only those made since: a time such as 2026-09-01T18:00:00Z or 2026-09-01 (UTC), or how long ago, such as 2h.
    #[arg(long, value_name = "TIME|DURATION")]
    since: Option<Since>,
    /// Only those of this notification.
    #[arg(long, value_name = "SEQ")]
    seq: Option<u64>,
}

impl Filters {
    /// As a server is asked.
    fn path(&self, workspace: &Name, before: Option<u64>, limit: u32, now: Timestamp) -> String {
        let mut query = Serializer::new(String::new());
        query.append_pair("limit", &limit.to_string());
        if !self.state.is_empty() {
            query.append_pair("state", &self.state.iter().map(|state| state.as_str()).collect::<Vec<_>>().join(","));
        }
        let texts = [
            ("route", self.route.as_ref().map(Name::to_string)),
            ("plugin", self.plugin.as_ref().map(Name::to_string)),
            ("since", self.since.map(|since| since.moment(now).to_string())),
            ("seq", self.seq.map(|seq| seq.to_string())),
            ("before", before.map(|seq| seq.to_string())),
        ];
        for (key, value) in texts {
            if let Some(value) = value {
                query.append_pair(key, &value);
            }
        }
        format!("/v1/workspaces/{workspace}/deliveries?{}", query.finish())
    }

    fn which(&self, now: Timestamp) -> Which {
        Which {
            ids: Vec::new(),
            states: self.state.clone(),
            route: self.route.clone(),
            plugin: self.plugin.clone(),
            since: self.since.map(|since| since.moment(now)),
            seq: self.seq,
        }
    }
}

fn states() -> impl TypedValueParser<Value = State> {
    PossibleValuesParser::new(State::ALL.map(State::as_str))
        .try_map(|text| State::parse(&text).ok_or("this is no state of a delivery"))
}

/// A moment, or how long ago it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Since {
    At(Timestamp),
    Ago(Duration),
}

impl Since {
    pub(super) fn moment(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(moment) => moment,
            Self::Ago(ago) => {
                let ago = SignedDuration::try_from(ago).unwrap_or(SignedDuration::MAX);
                now.checked_sub(ago).unwrap_or(Timestamp::MIN)
            }
        }
    }
}

impl FromStr for Since {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(ago) = duration(text) {
            return Ok(Self::Ago(ago));
        }
        let midnight = || TimeZone::UTC.to_timestamp(text.parse::<Date>().ok()?.into()).ok();
        text.parse().ok().or_else(midnight).map(Self::At).ok_or(
            "write a time such as 2026-09-01T18:00:00Z or 2026-09-01 (UTC), or how long ago, such as 2h or 1h30m",
        )
    }
}

/// The workspace and the numbers of views that tests show.
#[cfg(test)]
mod views_for_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_time_a_day_or_a_while_ago() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let now = at("2026-09-01T18:42:30Z");
        for (text, expected) in [
            ("2h", "2026-09-01T16:42:30Z"),
            ("1h30m", "2026-09-01T17:12:30Z"),
            ("2026-09-01T18:00:00+02:00", "2026-09-01T16:00:00Z"),
            ("2026-08-31", "2026-08-31T00:00:00Z"),
        ] {
            assert_eq!(text.parse::<Since>().unwrap().moment(now), at(expected), "{text}");
        }
        assert_eq!(Since::Ago(Duration::MAX).moment(now), Timestamp::MIN);
        for text in ["", "yesterday", "2", "18:00", "2026-13-01", "-2h"] {
            assert!(text.parse::<Since>().is_err(), "{text}");
        }
    }
}
