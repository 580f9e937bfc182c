//! From the inbox's values to those of the contract.

use super::bindings::switchbell::delivery::types;
use crate::notification::{self, Notification};

/// A notification as plugins see it: times in RFC 3339, UTC with `Z`; the payload only when `with_data`.
pub fn notification(notification: &Notification, with_data: bool) -> types::Notification {
    let event = &notification.event;
    types::Notification {
        seq: notification.seq,
        source: notification.source.to_string(),
        event_id: event.event_id.clone(),
        name: event.name.clone(),
        timestamp: event.timestamp.to_string(),
        received_at: notification.received_at.to_string(),
        level: level(notification.effective_level),
        subject: event.subject.clone(),
        title: event.title.clone(),
        body: event.body.clone(),
        link: event.link.clone(),
        data: with_data.then(|| event.data.clone()),
        extras: match &event.content {
            Some(content) if with_data => format!(r#"{{"content":{content}}}"#),
            _ => "{}".to_owned(),
        },
    }
}

fn level(level: notification::Level) -> types::Level {
    match level {
        notification::Level::Info => types::Level::Info,
        notification::Level::Attention => types::Level::Attention,
        notification::Level::Urgent => types::Level::Urgent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notification::{Event, Level};

    #[test]
    fn a_plugin_sees_the_capped_level_utc_times_and_data_only_when_it_asks() {
        let stored = Notification {
            workspace: "acme".parse().unwrap(),
            seq: 7,
            source: "registrar".parse().unwrap(),
            received_at: "2026-01-02T03:04:05.5Z".parse().unwrap(),
            effective_level: Level::Info,
            event: Event {
                event_id: "e1".into(),
                name: "domain.active".into(),
                timestamp: "2026-01-02T05:04:05+02:00".parse().unwrap(),
                level: Level::Urgent,
                subject: Some("a.example".into()),
                title: "active".into(),
                body: None,
                link: Some("https://a.example/".into()),
                data: r#"{"b": 1.0, "a":2}"#.into(),
                content: None,
            },
        };
        let seen = notification(&stored, true);
        assert_eq!((seen.seq, seen.source.as_str(), seen.level), (7, "registrar", types::Level::Info));
        assert_eq!(
            (seen.timestamp.as_str(), seen.received_at.as_str()),
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5Z")
        );
        assert_eq!(seen.data.as_deref(), Some(r#"{"b": 1.0, "a":2}"#));
        assert_eq!((notification(&stored, false).data, seen.extras.as_str()), (None, "{}"));
        let event = Event { content: Some(r#"[{"type": "text"}]"#.into()), ..stored.event };
        let pushed = Notification { event, ..stored };
        assert_eq!(notification(&pushed, true).extras, r#"{"content":[{"type": "text"}]}"#);
        assert_eq!(notification(&pushed, false).extras, "{}");
    }
}
