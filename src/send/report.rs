//! What an agent found out, as a notice in the inbox (`agent.report`): a receipt's `extras.report`.
//!
//! It starts no chain, whatever it says: it owes nothing to a target whose plugin starts agents, nor to the one that it
//! is from, nor to any that shares a lane with it; and a delivery that stands for notices alone reports nothing.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::notice::{SEQS_MAX, is_of_notices_alone};
use super::spare::About;
use crate::config::Workspace;
use crate::inbox::book::Book;
use crate::inbox::{Claim, Entry};
use crate::notification::{Event, HOST_SOURCE, Level, Name};
use crate::route::{Decision, entry};
use crate::text;
use crate::wasm::Receipt;

/// The notice's name.
pub(super) const NAME: &str = "agent.report";

/// Longest title, in characters, as of every notification.
const TITLE_CHARS_MAX: usize = 200;

/// Longest body, in characters, as of every notification.
const BODY_CHARS_MAX: usize = 2_000;

/// What a receipt asks to have written to the inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// One line, at most 200 characters; the notice's name where the receipt has none.
    pub title: String,
    /// At most 2,000 characters.
    pub body: Option<String>,
    /// The destination's own id for what was delivered, one line of at most 200 characters.
    pub reference: Option<String>,
}

impl Report {
    /// The report in a receipt, its texts as those of an event (see the rules of an event, `fetch/event`) and without what
    /// `redact` takes out. What is of another form is no report: the delivery was made all the same.
    pub(super) fn of(receipt: &Receipt, redact: impl Fn(&str) -> String) -> Option<Self> {
        // Nearly every receipt has these.
        if receipt.extras == "{}" {
            return None;
        }
        let extras: Value = serde_json::from_str(&receipt.extras).ok()?;
        let report = extras.get("report")?.as_object()?;
        let line = |said: &str| text::line(&redact(said), TITLE_CHARS_MAX);
        let title = report.get("title").and_then(Value::as_str).map(line).filter(|title| !title.is_empty());
        let body = report.get("body").and_then(Value::as_str);
        let body = body.map(|body| text::lines(&redact(body), BODY_CHARS_MAX)).filter(|body| !body.is_empty());
        let reference = receipt.reference.as_deref().map(line);
        Some(Self { title: title.unwrap_or_else(|| NAME.to_owned()), body, reference })
    }

    /// The notice as it is written, and what was decided about each route; none where it may not be written. `starts_agents`
    /// says of a plugin whether what it starts can write events back, as one may that is not there to be asked.
    pub(super) fn entry(
        &self,
        claim: &Claim,
        (workspace, book): (&Workspace, &Book),
        starts_agents: impl Fn(&Name) -> bool,
        now: Timestamp,
    ) -> Option<(Entry, Vec<Decision>)> {
        if is_of_notices_alone(claim) {
            return None;
        }
        let host: Name = HOST_SOURCE.parse().ok()?;
        let (mut entry, decisions) = entry(self.event(claim, now), Level::Info, (workspace, &host));
        let about = About::Report(claim.queue.clone());
        entry.owed.retain(|owed| about.spares(owed, book, &starts_agents).is_none());
        Some((entry, decisions))
    }

    fn event(&self, claim: &Claim, now: Timestamp) -> Event {
        let Claim { id, queue, plugin, notifications, .. } = claim;
        let seqs: Vec<u64> = notifications.iter().take(SEQS_MAX).map(|one| one.seq).collect();
        let data = json!({
            "delivery": id.to_string(),
            "route": queue.route.as_str(),
            "target": &*queue.target,
            "plugin": plugin.as_str(),
            "reference": self.reference,
            "notifications": seqs,
        });
        Event {
            event_id: format!("{NAME}:{id}"),
            name: NAME.to_owned(),
            timestamp: now,
            level: Level::Info,
            subject: notifications.first().and_then(|first| first.event.subject.clone()),
            title: self.title.clone(),
            body: self.body.clone(),
            link: None,
            data: data.to_string(),
            content: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(extras: &str) -> Receipt {
        Receipt { reference: Some("run-7".to_owned()), note: None, remember: None, extras: extras.to_owned() }
    }

    fn check(extras: &str, expected: Option<(&str, Option<&str>)>) {
        let report = Report::of(&receipt(extras), str::to_owned);
        let found = report.as_ref().map(|report| (report.title.as_str(), report.body.as_deref()));
        assert_eq!(found, expected, "{extras}");
    }

    #[test]
    fn a_report_is_the_one_key_of_the_extras_that_the_host_knows() {
        check(r#"{"report": {"title": "done", "body": "a\nb", "more": 1}, "more": 1}"#, Some(("done", Some("a\nb"))));
        for none in
            ["{}", "{ }", r#"{"report": null}"#, r#"{"report": "done"}"#, r#"{"report": []}"#, r#"{"reports": {}}"#]
        {
            check(none, None);
        }
        check(r#"{"report": {}}"#, Some(("agent.report", None)));
        check(r#"{"report": {"title": 1, "body": 2}}"#, Some(("agent.report", None)));
    }

    #[test]
    fn its_texts_are_those_of_an_event() {
        check(
            r#"{"report": {"title": " a\n\u0000\u202eb ", "body": "\r\na\r\n\u200b\u0001b\n"}}"#,
            Some(("a b", Some("a\n b"))),
        );
        check(r#"{"report": {"title": "\u200b ", "body": " \n "}}"#, Some(("agent.report", None)));
        let long = format!(r#"{{"report": {{"title": "{0}", "body": "{0}"}}}}"#, "ä".repeat(3_000));
        let report = Report::of(&receipt(&long), str::to_owned).unwrap();
        assert_eq!((report.title.chars().count(), report.body.unwrap().chars().count()), (200, 2_000));
        assert!(report.title.ends_with("ä…"), "{}", report.title);
    }

    #[test]
    fn secrets_are_taken_out_before_anything_is_cut() {
        let extras = format!(r#"{{"report": {{"title": "{}s3cret-token", "body": "s3cret-token"}}}}"#, "x".repeat(195));
        let report = Report::of(&receipt(&extras), |text| text.replace("s3cret-token", "***")).unwrap();
        assert_eq!((report.title, report.body.as_deref()), (format!("{}***", "x".repeat(195)), Some("***")));
    }
}
