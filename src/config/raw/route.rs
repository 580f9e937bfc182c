//! A workspace's file, `workspaces/NAME.yaml`, and its routes.

use super::super::Role;
use super::super::read::{Map, OneOrMore, Placed};
use super::super::section::Need::{Default, Optional, Required};
use super::super::section::section;
use super::super::values::{AfterEntry, Member, NamePattern, Order, Settings, TextPattern, UnlessEntry};
use super::{RawAtMost, RawCollect, RawConnector, RawHold, RawKept, RawRetry};
use crate::inbox::delivery::OnUnknown;
use crate::notification::{Level, Name};

/// Said to those who look for the keys of timing under other names.
const QUIET_HOURS: &str = "quiet hours are written `hold: { from: \"22:00\", to: \"07:00\", zone: Europe/Berlin }`";
const DIGEST: &str = "a digest is written `collect: { by: subject, wait: 5m }`";
const LIMIT: &str = "a limit is written `at_most: { count: 5, per: 1h }`";
/// Said of the operator's keys in a workspace's file.
const OPERATORS: &str = "this is the operator's to say: it stands in switchbell.yaml; remove it here";
/// Said of conditions that stand beside `when`.
const IN_WHEN: &str = "conditions stand inside `when`: write `when: { name: \"domain.*\", level: attention }`";
/// Said to those who write where a route delivers to in other words.
const TARGETS: &str = "what a route delivers to is written `deliver: [{ plugin: NAME, with: { … } }]`";
/// Said to those who look for conditions on texts.
const NOT_SEEN: &str = "a route sees the name, the level, the source and the subject of a notification, and nothing of its \
                        texts and data: match one of these";

section! {
    /// A workspace's file, `workspaces/NAME.yaml`.
    struct RawWorkspace {
        /// The members and their roles.
        "members" => members: Map<Member, Role>, Optional;
        /// The MCP servers it uses, at most 100; the name of each is the `source` of its events. `switchbell` is
        /// taken.
        "connectors" => connectors: Map<Name, RawConnector>, Optional;
        /// Who should hear of what, at most 200 routes. Every route that matches fires; their order means nothing.
        "routes" => routes: Vec<Placed<RawRoute>>, Optional;
        /// The agents that events wait for in a queue of their own, at most 200, by the names that their tokens are for.
        "consumers" => consumers: Map<Name, RawConsumer>, Optional;
        /// How long notifications are kept, where that is shorter than the operator says.
        "retention" => retention: RawKept, Optional;
    }
    not yet: []
    elsewhere: {
        "listen": OPERATORS,
        "store": OPERATORS,
        "commands": OPERATORS,
        "catalog": OPERATORS,
        "plugins": OPERATORS,
        "secrets": OPERATORS,
        "mail": OPERATORS,
        "poll": "how all outboxes are polled is the operator's to say, in switchbell.yaml; a connector has its own `poll`",
        "name": "a workspace is called as its file is: rename the file, and remove `name`",
        "workspace": "a workspace is called as its file is: rename the file, and remove `workspace`",
    }
    examples: [
        "members: { admin@example.com: admin }\nconnectors: { registrar: { command: registrar, notifications: { resource: \"acme://notifications\" } } }\nroutes: [{ name: everything, owner: admin@example.com, deliver: [{ plugin: slack, with: { webhook: { secret: slack-ops } } }] }]",
    ]
}

section! {
    /// An agent that reads a queue of events by the push-notifications extension of MCP.
    struct RawConsumer {
        /// What joins its queue from now on; everything when left out.
        "when" => when: RawWhen, Optional;
    }
    not yet: []
    elsewhere: {
        "level": IN_WHEN,
        "source": IN_WHEN,
        "subject": IN_WHEN,
        "name": IN_WHEN,
        "not": IN_WHEN,
        "deliver": "a consumer fetches its events itself: what is delivered by plugins stands under `routes`",
        "token": "a consumer's token is made by `switchbell token create --role agent --consumer NAME`: remove it here",
        "scopes": "a token has the scopes: `switchbell token create --role agent --consumer NAME --scopes read,ack`",
    }
    examples: [
        "{}",
        r#"{ when: { name: "domain.**", level: attention } }"#,
    ]
}

section! {
    /// A rule: what it matches and what that is delivered to.
    struct RawRoute {
        /// The name of the route. No two routes of a workspace have the same.
        "name" => name: Name, Required;
        /// The admin it acts for. An admin among `members`.
        "owner" => owner: Member, Required;
        /// What it matches; everything when left out.
        "when" => when: RawWhen, Optional;
        /// The targets, one to five. Every target of every route that matches gets a delivery.
        "deliver" => deliver: Vec<Placed<RawTarget>>, Required;
    }
    not yet: []
    elsewhere: {
        "level": IN_WHEN,
        "source": IN_WHEN,
        "subject": IN_WHEN,
        "not": IN_WHEN,
        "match": "what a route matches is written `when: { name: \"domain.*\", level: attention }`",
        "matchers": "what a route matches is written `when: { name: \"domain.*\", level: attention }`",
        "continue": "every route that matches fires, and their order means nothing: remove `continue`",
        "routes": "routes stand side by side in one list, and every one that matches fires: move these there",
        "receiver": TARGETS,
        "receivers": TARGETS,
        "targets": TARGETS,
        "plugin": TARGETS,
        "with": TARGETS,
        "enabled": "a route that stands here is in force: remove `enabled`, or the route",
        "disabled": "a route that stands here is in force: remove `disabled`, or the route",
    }
    examples: [
        r#"{ name: domain-news, owner: admin@example.com, when: { name: "domain.*", level: attention }, deliver: [{ plugin: slack, with: { webhook: { secret: slack-ops } } }] }"#,
    ]
}

section! {
    /// What a route matches. All conditions that are given must hold.
    struct RawWhen {
        /// Patterns over the dotted name, one of which must match. `*` stays within one part (`domain.*`), `**`
        /// crosses dots (`campaign.**`).
        "name" => name: OneOrMore<NamePattern>, Optional;
        /// Patterns over the dotted name, none of which may match.
        "not" => not: OneOrMore<NamePattern>, Optional;
        /// The least level after the ceiling.
        "level" => level: Level, Optional;
        /// Connectors, one of which it must come from. In a pattern `*` is any text, `?` one character.
        "source" => source: OneOrMore<TextPattern>, Optional;
        /// Patterns over the subject, one of which must match. What has no subject matches none.
        "subject" => subject: OneOrMore<TextPattern>, Optional;
    }
    not yet: []
    elsewhere: {
        "severity": "the least level is written `level: attention`",
        "priority": "the least level is written `level: attention`",
        "connector": "the connector is written `source: NAME`",
        "connectors": "connectors are written `source: [NAME, NAME]`",
        "event": "the event's name is written `name: \"domain.*\"`",
        "type": "the event's name is written `name: \"domain.*\"`",
        "exclude": "names that a route leaves out are written `not: [\"domain.test\"]`",
        "except": "names that a route leaves out are written `not: [\"domain.test\"]`",
        "title": NOT_SEEN,
        "body": NOT_SEEN,
        "data": NOT_SEEN,
    }
    examples: [
        r#"{ name: "domain.*", level: attention }"#,
        r#"{ name: ["domain.*", "campaign.**"], not: domain.test, source: registrar, subject: "*.example" }"#,
    ]
}

section! {
    /// One thing that a route delivers to.
    struct RawTarget {
        /// A name that keeps the target's identity when its settings change, so that what waits outlives the change.
        /// Without it, the identity is plugin and settings.
        "id" => id: Name, Optional;
        /// The plugin. The name of a file in the folder of plugins, without `.wasm`.
        "plugin" => plugin: Name, Required;
        /// The plugin's settings, at most 64 KiB. A secret is `{ secret: NAME }`, with nothing beside it.
        "with" => with: Settings, Optional;
        /// How long it waits for somebody else, from when the notification was received. `1s` to `30d`; at once when
        /// left out.
        "after" => after: AfterEntry, Optional;
        /// What makes it needless. By a person, or with `{ acknowledged: anyone }` by a person or an agent.
        "unless" => unless: UnlessEntry, Optional;
        /// Its quiet hours, every day. What comes in them waits for their end and then comes as one digest.
        "hold" => hold: RawHold, Optional;
        /// What it gets together, as digests. Everything comes alone when left out.
        "collect" => collect: RawCollect, Optional;
        /// How much it gets. The surplus is collected and goes when there is room; nothing is dropped.
        "at_most" => at_most: RawAtMost, Optional;
        /// When failed attempts are repeated.
        "retry" => retry: RawRetry, Optional;
        /// What becomes of a delivery that may or may not have been made. The plugin decides when left out.
        "on_unknown" => on_unknown: OnUnknown, Optional;
        /// Whether a delivery that fails keeps later ones back.
        "order" => order: Order, Default("best_effort");
    }
    not yet: []
    elsewhere: {
        "wait": "`wait` stands inside `after` or `collect`: write `after: 15m`, or `collect: { by: subject, wait: 5m }`",
        "delay": "a delay is written `after: 15m`",
        "quiet_hours": QUIET_HOURS,
        "mute": QUIET_HOURS,
        "digest": DIGEST,
        "batch": DIGEST,
        "group_by": DIGEST,
        "rate_limit": LIMIT,
        "limit": LIMIT,
        "throttle": LIMIT,
        "give_up": "`give_up` stands inside `retry`: write `retry: { give_up: 24h }`",
    }
    examples: [
        "{ plugin: slack, with: { webhook: { secret: slack-ops } } }",
        r#"{ id: page, plugin: mail, with: { to: [ops@example.com] }, after: 15m, unless: acknowledged, hold: { from: "22:00", to: "07:00", zone: Europe/Berlin, except: urgent }, collect: { by: subject, wait: 5m, most: 50 }, at_most: { count: 5, per: 1h }, retry: { first: 5s, give_up: 2d }, on_unknown: stop, order: strict }"#,
    ]
}
