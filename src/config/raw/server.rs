//! The operator's file, `switchbell.yaml`: what runs and is reached.

use super::super::read::{Map, Placed, Text, Whole};
use super::super::section::Need::{Default, Optional, Required};
use super::super::section::section;
use super::super::values::{ConnectorUrl, EventName, Listen, Network, OutboxUri, PublicUrl, Span, Store, VariableName};
use super::{RawAuth, RawMail, RawPlugins, RawRetention, RawSecret};
use crate::notification::{Level, Name};

/// Most reads of one workspace in a minute: a hundred connectors, each read a thousand times. More would be a mistake of
/// writing, and no budget.
const READS_PER_MINUTE_MAX: u32 = 100_000;

/// Said of a workspace's keys in the operator's file.
const WORKSPACES: &str = "this is a workspace's to say: it stands in workspaces/NAME.yaml; move it there";

section! {
    /// The operator's file, `switchbell.yaml`.
    struct RawServer {
        /// The IP address and port that the server listens on. While it is a loopback address, connectors may be on
        /// this machine too.
        "listen" => listen: Listen, Default("127.0.0.1:7420");
        /// Where people and programs reach the server: `http` or `https`, a host, perhaps a port. Links lead there, and
        /// it is the only name that browsers may use for the server. While `listen` is a loopback address, this machine's
        /// names with its port do too. `https` needs a proxy that ends TLS.
        "public_url" => public_url: PublicUrl, Optional;
        /// The networks of the proxies before the server, at most 100: what they say in `X-Forwarded-For` about where a
        /// request comes from counts.
        "trusted_proxies" => trusted_proxies: Vec<Placed<Network>>, Optional;
        /// Where notifications and deliveries are kept: `sqlite:PATH`. The database is for one server at a time and
        /// is made when it is missing; its log (`-wal`) stays near 20 MB, unless a program that reads it never ends
        /// its reading.
        "store" => store: Store, Default("sqlite:data/switchbell.db");
        /// The folder with one file for each workspace. What begins with a dot is not read.
        "workspaces" => workspaces: Text, Default("workspaces/");
        /// How outboxes are polled.
        "poll" => poll: RawPoll, Optional;
        /// How long notifications and what belongs to them are kept.
        "retention" => retention: RawRetention, Optional;
        /// The only programs that a connector may start, by name.
        "commands" => commands: Map<Name, RawCommand>, Optional;
        /// Servers that workspaces use by name, at most 200.
        "catalog" => catalog: Map<Name, RawEntry>, Optional;
        /// Where plugins are, what they may reach and use.
        "plugins" => plugins: RawPlugins, Optional;
        /// Credentials, each with the one place it may be put.
        "secrets" => secrets: Map<Name, RawSecret>, Optional;
        /// The relay that mail goes through. Without it no plugin can send mail.
        "mail" => mail: RawMail, Optional;
    }
    not yet: []
    elsewhere: {
        "members": WORKSPACES,
        "connectors": WORKSPACES,
        "routes": WORKSPACES,
        "grants": "grants stand inside `plugins`: write `plugins: { grants: { NAME: { http: [HOST] } } }`",
        "smtp": "the relay that mail goes through is written `mail: { relay: \"HOST:587\", … }`",
    }
    examples: [
        "listen: 127.0.0.1:7420\nstore: sqlite:data/switchbell.db\nworkspaces: workspaces/",
        "listen: 0.0.0.0:7420\npublic_url: https://bell.example.com\ntrusted_proxies: [10.0.0.0/8]",
    ]
}

section! {
    /// How outboxes are polled.
    struct RawPoll {
        /// The usual wait between two reads of an outbox. Floor ≤ base ≤ ceiling.
        "base" => base: Span, Default("60s");
        /// No wait is shorter. `10ms` to `1d`.
        "floor" => floor: Span, Default("15s");
        /// No wait is longer, but for a server's Retry-After. `10ms` to `1d`.
        "ceiling" => ceiling: Span, Default("300s");
        /// Events asked for in one read.
        "max_events" => max_events: Whole<1, 1000>, Default("100");
        /// Reads in a row while an outbox says `hasMore`.
        "chained_reads" => chained_reads: Whole<1, 20>, Default("5");
        /// How far back an outbox may replay. `1m` to `3650d`.
        "max_age" => max_age: Span, Default("90d");
        /// Reads that the connectors of one workspace may make in a minute, all together.
        "budget_per_minute" => budget: Whole<1, READS_PER_MINUTE_MAX>, Default("60");
    }
    not yet: []
    examples: [
        "{ base: 60s, floor: 15s, ceiling: 5m, max_events: 100, chained_reads: 5, max_age: 90d, budget_per_minute: 60 }",
    ]
}

section! {
    /// A program that connectors may start.
    struct RawCommand {
        /// The program and its arguments, as a list. With a `/` the program is a path, else it is looked for in PATH;
        /// it starts in the folder of this file.
        "run" => run: Vec<Placed<Text>>, Required;
        /// Environment variables it is started with, besides PATH, HOME, LANG, TMPDIR and SWITCHBELL_WORKSPACE, which
        /// the host sets.
        "env" => env: Map<VariableName, Text>, Optional;
        /// The workspaces that may use it; none when left out.
        "workspaces" => workspaces: Vec<Placed<Name>>, Optional;
    }
    not yet: []
    examples: [
        "{ run: [python3, server.py], workspaces: [acme] }",
        "{ run: [python3, server.py], env: { OUTBOX_DB: data/outbox.db }, workspaces: [acme] }",
    ]
}

section! {
    /// A server that the operator publishes for workspaces.
    struct RawEntry {
        /// The endpoint of a server that speaks streamable HTTP, http or https. This or `command` is required.
        "url" => url: ConnectorUrl, Optional;
        /// The name of one of `commands`. This or `url` is required.
        "command" => command: Name, Optional;
        /// Whether the name in the `url` may resolve to a private address. `false` when left out.
        "private" => private: bool, Optional;
        /// How to sign in to the `url`.
        "auth" => auth: RawAuth, Optional;
        /// The manifest.json of the server's bundle, which declares its outbox. It may be anywhere.
        "manifest" => manifest: Text, Optional;
        /// The outbox it declares, instead of a `manifest`. With neither, each workspace says it.
        "notifications" => notifications: RawEntryOutbox, Optional;
        /// The workspaces that may use it; all when left out, nobody with `[]`.
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
    examples: [
        r#"{ url: "https://mcp.crm.example/mcp", manifest: catalog/crm.json }"#,
        r#"{ url: "http://tickets.corp.example/mcp", private: true, auth: { bearer: { secret: tickets } }, notifications: { resource: "tickets://outbox" }, workspaces: [acme] }"#,
        "{ command: registrar }",
    ]
}

section! {
    /// The outbox of an entry, or that it has a push queue.
    struct RawEntryOutbox {
        /// Its URI. A scheme of its own, no `?` and no `#`, at most 512 characters. This or `push` is required.
        "resource" => resource: OutboxUri, Optional;
        /// `true` where the server has no outbox but a push queue: the extension `io.stagewise/push-notifications`. Not
        /// beside `resource`.
        "push" => push: bool, Optional;
        /// The level of what the queue brings, by the type of the event, at most 200. A run of white space in a type is
        /// written `_`. `info` for all others; the `ceiling` caps it. Only beside `push`.
        "levels" => levels: Map<EventName, Level>, Optional;
        /// What it holds, for people, at most 500 characters.
        "description" => description: Text, Optional;
    }
    not yet: []
    elsewhere: {
        "manifest": "the `manifest` of an entry stands beside its `url` or `command`, instead of `notifications`",
        "hooks": "an entry's hooks stand in its manifest: write `manifest: PATH` instead of `notifications`",
        "lifecycle": "an entry's lifecycle stands in its manifest: write `manifest: PATH` instead of `notifications`",
    }
    examples: [
        r#"{ resource: "acme://notifications", description: Domains and replies }"#,
        "{ push: true, levels: { process.exited: attention } }",
    ]
}
