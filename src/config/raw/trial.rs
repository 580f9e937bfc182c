//! A file of tests of routes.

use super::super::read::{Placed, Text, Whole};
use super::super::section::Need::{Default, Optional, Required};
use super::super::section::section;
use super::super::values::{EventName, MarkedBy, Moment};
use crate::notification::{Level, Name};

/// Most events of one test, and most tests of one file: what a person writes and reads.
pub(in crate::config) const EVENTS_MAX: u32 = 1_000;

section! {
    /// A file of tests of routes.
    struct RawTrials {
        /// The workspace whose routes are tested.
        "workspace" => workspace: Name, Optional;
        /// The tests.
        "tests" => tests: Vec<Placed<RawTrial>>, Required;
    }
    not yet: []
    elsewhere: {
        "events": "`events` stands in a test: write `tests: [ { name: …, events: […], expect: […] } ]`",
        "expect": "`expect` stands in a test: write `tests: [ { name: …, events: […], expect: […] } ]`",
    }
    examples: [r#"{ tests: [ { name: a failure is told at once, events: [ { source: registrar, name: domain.failed } ], expect: [ { route: news } ] } ] }"#]
}

section! {
    /// One test: what comes, and what is to be sent then.
    struct RawTrial {
        /// What it shows, in a sentence.
        "name" => name: Text, Required;
        /// The moment that durations are counted from.
        "start" => start: Moment, Default("2026-06-01T12:00:00Z");
        /// What comes.
        "events" => events: Vec<Placed<RawTrialEvent>>, Required;
        /// Who acknowledges what.
        "acknowledge" => acknowledge: Vec<Placed<RawTrialMark>>, Optional;
        /// When nobody looks any more; when nothing waits any more, if left out.
        "until" => until: Moment, Optional;
        /// The routes that are looked at; all when left out.
        "routes" => routes: Vec<Placed<Name>>, Optional;
        /// Every delivery that is to be made, and no other.
        "expect" => expect: Vec<Placed<RawExpected>>, Required;
    }
    not yet: []
    examples: [r#"{ name: a failure is told at once, events: [ { source: registrar, name: domain.failed } ], expect: [ { route: news } ] }"#]
}

section! {
    /// An event.
    struct RawTrialEvent {
        /// When it is received: how long after the start, or a moment.
        "at" => moment: Moment, Default("0s");
        /// The connector.
        "source" => source: Name, Required;
        /// The dotted name.
        "name" => name: EventName, Required;
        /// The level that the source gives, before the ceiling.
        "level" => level: Level, Default("info");
        /// What it is about.
        "subject" => subject: Text, Optional;
    }
    not yet: []
    elsewhere: {
        "effectiveLevel": "the effective level is the `level`, capped by the connector's ceiling: write `level`",
        "data": "routes know nothing of the payload: remove it",
        "title": "routes know nothing of the title: remove it",
        "body": "routes know nothing of the body: remove it",
    }
    examples: ["{ at: 5m, source: registrar, name: domain.failed, level: urgent, subject: a.example }"]
}

section! {
    /// An acknowledgement.
    struct RawTrialMark {
        /// When: how long after the start, or a moment.
        "at" => moment: Moment, Required;
        /// The number of the event in `events`, from 1.
        "event" => event: Whole<1, EVENTS_MAX>, Required;
        /// Who: a person or an agent.
        "by" => by: MarkedBy, Default("person");
    }
    not yet: []
    examples: ["{ at: 10m, event: 1, by: person }"]
}

section! {
    /// A delivery that is to be made. What is left out may be anything.
    struct RawExpected {
        /// The route.
        "route" => route: Name, Required;
        /// The target's `id`.
        "target" => target: Text, Optional;
        /// The target's plugin.
        "plugin" => plugin: Name, Optional;
        /// When: how long after the start, or a moment.
        "at" => moment: Moment, Optional;
        /// The numbers of the events it stands for, in any order.
        "events" => events: Vec<Placed<Whole<1, EVENTS_MAX>>>, Optional;
        /// How many more it counts.
        "omitted" => omitted: Whole<0, EVENTS_MAX>, Optional;
    }
    not yet: []
    elsewhere: {
        "event": "write `events: [1]`",
        "notifications": "the events are named by their numbers: write `events: [1]`",
    }
    examples: ["{ route: news, target: page, at: 15m, events: [1] }"]
}
