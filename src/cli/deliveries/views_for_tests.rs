//! Deliveries to be shown.

use std::num::NonZeroU32;

use jiff::Timestamp;

use crate::inbox::delivery::{Outcome, State};
use crate::inbox::{Attempt, DeliveryView};

pub(super) fn at(text: &str) -> Timestamp {
    format!("2026-09-01T{text}Z").parse().unwrap()
}

pub(super) fn attempt(number: u32, outcome: Outcome, reason: Option<&str>) -> Attempt {
    let started_at = at("18:42:10");
    Attempt {
        number: NonZeroU32::new(number).unwrap(),
        started_at,
        ended_at: started_at + std::time::Duration::from_millis(120),
        outcome,
        reason: reason.map(str::to_owned),
        steps: number,
        plugin_version: Some("0.2.0".to_owned()),
        plugin_digest: Some("ab".repeat(32)),
    }
}

/// Of the notification 41, after one failed attempt.
pub(super) fn retrying() -> DeliveryView {
    DeliveryView {
        id: "5f3a9c01-17".parse().unwrap(),
        workspace: "acme".parse().unwrap(),
        route: "domain-news".parse().unwrap(),
        target: "ops".to_owned(),
        plugin: "slack".parse().unwrap(),
        state: State::Retrying,
        why: None,
        created_at: at("18:42:10"),
        due_at: at("18:42:10"),
        next_at: Some(at("18:42:42")),
        attempts: vec![attempt(1, Outcome::Retry, Some("HTTP 503: the server could not answer"))],
        seqs: vec![41],
        omitted: 0,
        retry_of: None,
    }
}

/// A digest of three and 37 more that a person had repeated.
pub(super) fn digest() -> DeliveryView {
    DeliveryView {
        id: "5f3a9c01-18".parse().unwrap(),
        state: State::Blocked,
        why: Some("plugin slack is not loaded".to_owned()),
        next_at: None,
        attempts: Vec::new(),
        seqs: vec![41, 43, 44],
        omitted: 37,
        retry_of: Some("5f3a9c01-3".parse().unwrap()),
        ..retrying()
    }
}
