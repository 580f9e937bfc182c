//! When a target wants to hear of things, and when failed attempts are repeated.

use super::super::read::Whole;
use super::super::section::Need::{Default, Required};
use super::super::section::section;
use super::super::values::{AcknowledgedBy, DigestSize, Span, TimeOfDay, ZoneName};
use crate::route::timing::{By, Except};

/// Most attempts that a limit may let pass in its time: more in an hour is no limit that anybody notices.
const AT_MOST_COUNT_MAX: u32 = 1000;

section! {
    /// How long a target waits for somebody else.
    struct RawAfter {
        /// How long, from when the notification was received. `1s` to `30d`.
        "wait" => wait: Span, Required;
        /// What does not wait.
        "except" => except: Except, Default("none");
    }
    not yet: []
    elsewhere: {
        "delay": "the delay is written `wait`: write `after: 15m`, or `after: { wait: 15m, except: urgent }`",
        "for": "the delay is written `wait`: write `after: 15m`, or `after: { wait: 15m, except: urgent }`",
        "unless": "`unless` stands beside `after`: move it there",
    }
    written: "{ wait: 15m, except: urgent }"
}

section! {
    /// What makes a delivery needless.
    struct RawUnless {
        /// Whose acknowledgement counts.
        "acknowledged" => acknowledged: AcknowledgedBy, Required;
    }
    not yet: []
    written: "{ acknowledged: anyone }"
}

section! {
    /// Quiet hours.
    struct RawHold {
        /// The time of day at which quiet hours begin. Never the same as `to`.
        "from" => from: TimeOfDay, Required;
        /// The time of day at which quiet hours end. The next day when it is earlier than `from`.
        "to" => to: TimeOfDay, Required;
        /// The time zone of these times. A name of the IANA time zone database, no offset and no abbreviation.
        "zone" => zone: ZoneName, Required;
        /// What is not held.
        "except" => except: Except, Default("none");
    }
    not yet: []
    elsewhere: {
        "timezone": "the time zone is written `zone: Europe/Berlin`",
        "time_zone": "the time zone is written `zone: Europe/Berlin`",
        "tz": "the time zone is written `zone: Europe/Berlin`",
        "until": "the end is written `to: \"07:00\"`",
        "days": "quiet hours are the same every day: remove `days`",
    }
    written: "{ from: \"22:00\", to: \"07:00\", zone: Europe/Berlin }"
}

section! {
    /// What a target gets together.
    struct RawCollect {
        /// What the notifications of one digest share.
        "by" => by: By, Required;
        /// How long a digest is open, from its first notification on. `1s` to `24h`.
        "wait" => wait: Span, Required;
        /// How many notifications close it early.
        "most" => most: DigestSize, Default("100");
        /// What goes alone at once.
        "except" => except: Except, Default("none");
    }
    not yet: []
    elsewhere: {
        "max": "how many close a digest early is written `most: 50`",
        "count": "how many close a digest early is written `most: 50`",
        "every": "how long a digest is open is written `wait: 5m`",
        "for": "how long a digest is open is written `wait: 5m`",
        "group_by": "what a digest shares is written `by: subject`",
    }
    written: "{ by: subject, wait: 5m }"
}

section! {
    /// How much a target gets.
    struct RawAtMost {
        /// How many attempts may reach the destination in the time `per`.
        "count" => count: Whole<1, AT_MOST_COUNT_MAX>, Required;
        /// The time in which attempts are counted, whenever it begins. `1s` to `7d`.
        "per" => per: Span, Required;
        /// What is not limited.
        "except" => except: Except, Default("urgent");
    }
    not yet: []
    elsewhere: {
        "most": "how many may pass is written `count: 5`",
        "max": "how many may pass is written `count: 5`",
        "every": "the time is written `per: 1h`",
        "wait": "the time is written `per: 1h`",
    }
    written: "{ count: 5, per: 1h }"
}

section! {
    /// When failed attempts are repeated.
    struct RawRetry {
        /// The wait after the first failure; each further one is twice as long. `100ms` to `1h`; all are spread by a
        /// quarter.
        "first" => first: Span, Default("1s");
        /// No wait is longer, but for a destination that asks for more, up to 6 h. `100ms` to `24h`.
        "most" => most: Span, Default("1h");
        /// How long a delivery is tried, from its first attempt on or from when a person asked again. `1m` to `30d`;
        /// a destination that asks to be left alone for longer than what is left of it is not asked again.
        "give_up" => give_up: Span, Default("24h");
    }
    not yet: []
    elsewhere: {
        "count": ATTEMPTS,
        "attempts": ATTEMPTS,
        "max_attempts": ATTEMPTS,
        "max": "the longest wait is written `most: 1h`",
    }
    written: "{ first: 1s, most: 1h, give_up: 24h }"
}

/// Said to those who want to count attempts.
const ATTEMPTS: &str = "attempts are not counted: write how long a delivery is tried, as in `give_up: 24h`";
