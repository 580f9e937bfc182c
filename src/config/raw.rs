//! The two kinds of files, key by key: what may stand where, what it is for, and what stands for it when it is left out.

mod mail;
mod secret;
mod timing;
mod trial;

use super::read::{Map, NonEmpty, OneOrMore, Placed, Text, Whole};
use super::section::Need::{Default, Optional, Required};
use super::section::section;
use super::values::{
    AfterEntry, Bytes, ClientId, ConnectorUrl, HeaderName, HttpEntry, KeyEntry, Listen, Member, NamePattern, Order,
    Origin, OutboxUri, Pin, Scope, Settings, Span, Store, TextPattern, ToolEntry, UnlessEntry, VariableName,
};
use super::{GateMode, OAuthGrant, Role};
use crate::inbox::delivery::OnUnknown;
use crate::notification::{Level, Name};

pub(super) use mail::RawMail;
pub(super) use secret::{RawSecret, RawSource, RawSourceCommand, RawToken};
pub(super) use timing::{RawAfter, RawAtMost, RawCollect, RawHold, RawRetry, RawUnless};
pub(super) use trial::{EVENTS_MAX, RawExpected, RawTrial, RawTrialEvent, RawTrialMark, RawTrials};

/// Most reads of one workspace in a minute: a hundred connectors, each read a thousand times. More would be a mistake of
/// writing, and no budget.
const READS_PER_MINUTE_MAX: u32 = 100_000;

/// Said where hooks are looked for and cannot stand.
const HOOKS: &str = "hooks and lifecycle are the operator's: they stand in the manifest of an entry of `catalog` in \
                     switchbell.yaml; remove them here";

/// Said to those who look for the keys of timing under other names.
const QUIET_HOURS: &str = "quiet hours are written `hold: { from: \"22:00\", to: \"07:00\", zone: Europe/Berlin }`";
const DIGEST: &str = "a digest is written `collect: { by: subject, wait: 5m }`";
const LIMIT: &str = "a limit is written `at_most: { count: 5, per: 1h }`";

section! {
    /// The operator's file, `switchbell.yaml`.
    struct RawServer {
        /// The IP address and port that the server listens on.
        "listen" => listen: Listen, Default("127.0.0.1:7420");
        /// Where notifications and deliveries are kept: `sqlite:PATH`.
        "store" => store: Store, Default("sqlite:data/switchbell.db");
        /// The folder with one file for each workspace.
        "workspaces" => workspaces: Text, Default("workspaces/");
        /// How outboxes are polled.
        "poll" => poll: RawPoll, Optional;
        /// The only programs that a connector may start.
        "commands" => commands: Map<Name, RawCommand>, Optional;
        /// Servers that workspaces use by name.
        "catalog" => catalog: Map<Name, RawEntry>, Optional;
        /// Where plugins are, what they may reach and use.
        "plugins" => plugins: RawPlugins, Optional;
        /// Credentials, each with the one place it may be put.
        "secrets" => secrets: Map<Name, RawSecret>, Optional;
        /// The relay that mail goes through.
        "mail" => mail: RawMail, Optional;
    }
    not yet: ["public_url", "trusted_proxies", "retention"]
}

section! {
    /// How outboxes are polled.
    struct RawPoll {
        /// The usual wait between two reads.
        "base" => base: Span, Default("60s");
        /// No wait is shorter.
        "floor" => floor: Span, Default("15s");
        /// No wait is longer, but for a server's Retry-After.
        "ceiling" => ceiling: Span, Default("300s");
        /// Events asked for in one read.
        "max_events" => max_events: Whole<1, 1000>, Default("100");
        /// Reads in a row while an outbox has more.
        "chained_reads" => chained_reads: Whole<1, 20>, Default("5");
        /// How far back an outbox may replay.
        "max_age" => max_age: Span, Default("90d");
        /// Reads that the connectors of one workspace may make in a minute, all together.
        "budget_per_minute" => budget: Whole<1, READS_PER_MINUTE_MAX>, Default("60");
    }
    not yet: []
}

section! {
    /// A program that connectors may start.
    struct RawCommand {
        /// The program and its arguments, as a list.
        "run" => run: Vec<Placed<Text>>, Required;
        /// Environment variables it is started with.
        "env" => env: Map<VariableName, Text>, Optional;
        /// The workspaces that may use it; none when left out.
        "workspaces" => workspaces: Vec<Placed<Name>>, Optional;
    }
    not yet: []
}

section! {
    /// A server that the operator publishes for workspaces.
    struct RawEntry {
        /// The endpoint of a server that speaks streamable HTTP.
        "url" => url: ConnectorUrl, Optional;
        /// The name of one of `commands`.
        "command" => command: Name, Optional;
        /// Whether the name in the `url` may resolve to a private address.
        "private" => private: bool, Optional;
        /// How to sign in to the `url`.
        "auth" => auth: RawAuth, Optional;
        /// The manifest.json of the server's bundle, which declares its outbox.
        "manifest" => manifest: Text, Optional;
        /// The outbox it declares, instead of a manifest.
        "notifications" => notifications: RawEntryOutbox, Optional;
        /// The workspaces that may use it; all when left out.
        "workspaces" => workspaces: Vec<Placed<Name>>, Optional;
    }
    not yet: []
    elsewhere: {
        "hooks": "an entry's hooks stand in its manifest: write `manifest: PATH`",
        "lifecycle": "an entry's lifecycle stands in its manifest: write `manifest: PATH`",
        "headers": "`headers` stands inside `auth`: write `auth: { headers: { NAME: { secret: NAME } } }`",
        "resource": "`resource` stands inside `notifications`: write `notifications: { resource: URI }`",
        "ceiling": "each workspace that uses the entry sets its own `ceiling`: move it there",
        "poll": "each workspace that uses the entry sets its own `poll`: move it there",
    }
}

section! {
    /// The outbox of an entry.
    struct RawEntryOutbox {
        /// Its URI.
        "resource" => resource: OutboxUri, Required;
        /// What it holds, for people.
        "description" => description: Text, Optional;
    }
    not yet: []
    elsewhere: {
        "manifest": "the `manifest` of an entry stands beside its `url` or `command`, instead of `notifications`",
        "hooks": "an entry's hooks stand in its manifest: write `manifest: PATH` instead of `notifications`",
        "lifecycle": "an entry's lifecycle stands in its manifest: write `manifest: PATH` instead of `notifications`",
    }
}

section! {
    /// Where plugins are, what they may reach and use.
    struct RawPlugins {
        /// The folder with one `NAME.wasm` for each plugin.
        "directory" => directory: Text, Default("plugins/");
        /// What each plugin may reach; nothing when left out.
        "grants" => grants: Map<Name, RawGrant>, Optional;
        /// What one attempt may use.
        "limits" => limits: RawLimits, Optional;
        /// What becomes of a new version that does something else: `report` or `strict`.
        "gate" => gate: GateMode, Default("report");
        /// The public keys that plugins must be signed with.
        "trust" => trust: NonEmpty<KeyEntry>, Optional;
        /// The digest of the only file that a plugin may have.
        "pins" => pins: Map<Name, Pin>, Optional;
    }
    not yet: []
}

section! {
    /// What one plugin may reach.
    struct RawGrant {
        /// The hosts it may send HTTP requests to.
        "http" => http: Vec<Placed<HttpEntry>>, Optional;
        /// Whether it may send mail through the relay.
        "mail" => mail: bool, Optional;
        /// The tools of connectors it may call.
        "tools" => tools: Vec<Placed<ToolEntry>>, Optional;
        /// The workspaces it is limited to; all when left out.
        "workspaces" => workspaces: NonEmpty<Name>, Optional;
    }
    not yet: []
    elsewhere: {
        "private": "`private` stands in an entry of `http`: write `http: [{ host: HOST, private: true }]`",
        "secrets": "a plugin is granted no secrets: a workspace is, by `workspaces` of the secret",
    }
}

section! {
    /// A host that a plugin may send HTTP requests to.
    struct RawHttpGrant {
        /// `host`, `host:port` or `*.suffix`; https unless it begins with `http://`.
        "host" => host: Origin, Required;
        /// Whether the name may resolve to a private address.
        "private" => private: bool, Optional;
        /// The workspaces it is limited to; all when left out.
        "workspaces" => workspaces: NonEmpty<Name>, Optional;
    }
    not yet: []
}

section! {
    /// What one attempt of a plugin may use.
    struct RawLimits {
        /// Linear memory of one instance.
        "memory" => memory: Bytes, Default("32MiB");
        /// CPU time of one step.
        "step_cpu" => step_cpu: Span, Default("100ms");
        /// Steps in one attempt.
        "steps" => steps: Whole<2, 1000>, Default("64");
        /// Wall time of one attempt, waiting included.
        "attempt_time" => attempt_time: Span, Default("24h");
    }
    not yet: []
}

section! {
    /// A workspace's file, `workspaces/NAME.yaml`.
    struct RawWorkspace {
        /// The members and their roles.
        "members" => members: Map<Member, Role>, Optional;
        /// The MCP servers it uses; the name of each is the `source` of its events.
        "connectors" => connectors: Map<Name, RawConnector>, Optional;
        /// Who should hear of what.
        "routes" => routes: Vec<Placed<RawRoute>>, Optional;
    }
    not yet: ["consumers"]
}

section! {
    /// One MCP server.
    struct RawConnector {
        /// The name of a program that the operator declares.
        "command" => command: Name, Optional;
        /// The endpoint of a server that speaks streamable HTTP.
        "url" => url: ConnectorUrl, Optional;
        /// The name of a server that the operator publishes.
        "catalog" => catalog: Name, Optional;
        /// How to sign in to the `url`.
        "auth" => auth: RawAuth, Optional;
        /// The outbox it declares.
        "notifications" => notifications: RawOutbox, Optional;
        /// The highest level that what it says may have.
        "ceiling" => ceiling: Level, Default("info");
        /// How it is polled, where that differs from the operator's settings.
        "poll" => poll: RawOwnPoll, Optional;
    }
    not yet: []
    elsewhere: {
        "hooks": HOOKS,
        "lifecycle": HOOKS,
        "headers": "`headers` stands inside `auth`: write `auth: { headers: { NAME: { secret: NAME } } }`",
        "manifest": "`manifest` stands inside `notifications`: write `notifications: { manifest: PATH }`",
        "resource": "`resource` stands inside `notifications`: write `notifications: { resource: URI }`",
        "private": "a connector's `url` reaches public addresses only: the operator publishes other servers under \
                    `catalog`, where `private: true` may stand",
    }
}

section! {
    /// How to sign in to a connector.
    struct RawAuth {
        /// A secret that is sent as a bearer token.
        "bearer" => bearer: RawSecretName, Optional;
        /// Tokens that Switchbell fetches and renews.
        "oauth" => oauth: RawOAuth, Optional;
        /// Headers with the secret that each holds.
        "headers" => headers: Map<HeaderName, RawSecretName>, Optional;
    }
    not yet: []
}

section! {
    /// How tokens are had for a connector (RFC 6749).
    struct RawOAuth {
        /// `authorization_code` (a person signs in once) or `client_credentials` (the client's own id and secret).
        "grant" => grant: OAuthGrant, Default("authorization_code");
        /// The client's id at the authorization server.
        "client_id" => client_id: ClientId, Optional;
        /// The secret that goes with the id.
        "client_secret" => client_secret: RawSecretName, Optional;
        /// What access is asked for.
        "scopes" => scopes: Vec<Placed<Scope>>, Optional;
    }
    not yet: []
}

section! {
    /// A secret by its name.
    struct RawSecretName {
        /// The name it has in the operator's file.
        "secret" => secret: Text, Required;
    }
    not yet: []
    written: "{ secret: NAME }"
}

section! {
    /// The outbox that a connector declares.
    struct RawOutbox {
        /// Its URI.
        "resource" => resource: OutboxUri, Optional;
        /// The manifest.json of a bundle, which declares the outbox.
        "manifest" => manifest: Text, Optional;
        /// What it holds, for people.
        "description" => description: Text, Optional;
    }
    not yet: ["push"]
    elsewhere: {
        "hooks": HOOKS,
        "lifecycle": HOOKS,
    }
}

section! {
    /// How one connector is polled; never faster than the operator's floor nor slower than the operator's ceiling.
    struct RawOwnPoll {
        /// The usual wait between two reads.
        "base" => base: Span, Optional;
        /// No wait is shorter.
        "floor" => floor: Span, Optional;
        /// No wait is longer.
        "ceiling" => ceiling: Span, Optional;
    }
    not yet: []
}

section! {
    /// A rule: what it matches and what that is delivered to.
    struct RawRoute {
        /// The name of the route.
        "name" => name: Name, Required;
        /// The admin it acts for.
        "owner" => owner: Member, Required;
        /// What it matches; everything when left out.
        "when" => when: RawWhen, Optional;
        /// The targets, one to five.
        "deliver" => deliver: Vec<Placed<RawTarget>>, Required;
    }
    not yet: []
}

section! {
    /// What a route matches. All conditions that are given must hold.
    struct RawWhen {
        /// Patterns over the dotted name, one of which must match.
        "name" => name: OneOrMore<NamePattern>, Optional;
        /// Patterns over the dotted name, none of which may match.
        "not" => not: OneOrMore<NamePattern>, Optional;
        /// The least level after the ceiling.
        "level" => level: Level, Optional;
        /// Connectors, one of which it must come from.
        "source" => source: OneOrMore<TextPattern>, Optional;
        /// Patterns over the subject, one of which must match.
        "subject" => subject: OneOrMore<TextPattern>, Optional;
    }
    not yet: []
}

section! {
    /// One thing that a route delivers to.
    struct RawTarget {
        /// A name that keeps the target's identity when its settings change.
        "id" => id: Name, Optional;
        /// The plugin.
        "plugin" => plugin: Name, Required;
        /// The plugin's settings.
        "with" => with: Settings, Optional;
        /// How long it waits for somebody else.
        "after" => after: AfterEntry, Optional;
        /// What makes it needless.
        "unless" => unless: UnlessEntry, Optional;
        /// Its quiet hours.
        "hold" => hold: RawHold, Optional;
        /// What it gets together.
        "collect" => collect: RawCollect, Optional;
        /// How much it gets.
        "at_most" => at_most: RawAtMost, Optional;
        /// When failed attempts are repeated.
        "retry" => retry: RawRetry, Optional;
        /// What becomes of a delivery that may or may not have been made.
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
}
