//! Connectors: how they are reached, signed in to and polled.

use super::super::OAuthGrant;
use super::super::read::{Map, Placed, Text};
use super::super::section::Need::{Default, Optional, Required};
use super::super::section::section;
use super::super::values::{ClientId, ConnectorUrl, EventName, HeaderName, OutboxUri, Scope, Span};
use crate::notification::{Level, Name};

/// Said where hooks are looked for and cannot stand.
const HOOKS: &str = "hooks and lifecycle are the operator's: they stand in the manifest of an entry of `catalog` in \
                     switchbell.yaml; remove them here";

/// Said of what a connector cannot say for itself.
const OF_ALL: &str =
    "this is the operator's to say for all connectors, under `poll` in switchbell.yaml: remove it here";

section! {
    /// One MCP server.
    struct RawConnector {
        /// The name of a program that the operator declares. This, `url` or `catalog` is required.
        "command" => command: Name, Optional;
        /// The endpoint of a server that speaks streamable HTTP, at a public address, or at `127.0.0.1` while the
        /// server listens on a loopback address.
        "url" => url: ConnectorUrl, Optional;
        /// The name of a server that the operator publishes. Beside it `auth` and `notifications` may stand only
        /// where the operator's entry does not say them.
        "catalog" => catalog: Name, Optional;
        /// How to sign in to the `url`, or to an entry of the catalog that does not say it itself.
        "auth" => auth: RawAuth, Optional;
        /// The outbox it declares, or its push queue. Without it nothing is fetched from the connector.
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
    examples: [
        r#"{ command: registrar, notifications: { resource: "acme://notifications" }, ceiling: attention }"#,
        r#"{ url: "https://mcp.example.com/mcp", auth: { bearer: { secret: mcp-token } }, notifications: { resource: "remote://outbox" }, poll: { floor: 30s } }"#,
        "{ catalog: crm, ceiling: attention }",
    ]
}

section! {
    /// How to sign in to a connector.
    struct RawAuth {
        /// A secret with `in: connector` that is sent as a bearer token. Not beside `oauth`.
        "bearer" => bearer: RawSecretName, Optional;
        /// Tokens that Switchbell fetches and renews; `{}` is enough for a server at which clients register
        /// themselves. Not beside `bearer`.
        "oauth" => oauth: RawOAuth, Optional;
        /// Headers with the secret that each holds, at most 16, each secret with `in: connector`. They may stand alone
        /// or beside `bearer` or `oauth`. None is `Authorization`, nor one that Switchbell or the connection sets.
        "headers" => headers: Map<HeaderName, RawSecretName>, Optional;
    }
    not yet: []
    examples: [
        "{ bearer: { secret: mcp-token } }",
        r#"{ oauth: { scopes: ["events:read"] } }"#,
        "{ headers: { X-Api-Key: { secret: crm-key } } }",
    ]
}

section! {
    /// How tokens are had for a connector (RFC 6749).
    struct RawOAuth {
        /// By what right tokens are had.
        "grant" => grant: OAuthGrant, Default("authorization_code");
        /// The client's id at the authorization server. Left out, the client is registered at the first login.
        "client_id" => client_id: ClientId, Optional;
        /// The secret that goes with the id, one with `in: connector`.
        "client_secret" => client_secret: RawSecretName, Optional;
        /// What access is asked for, at most 50; what the server names when left out.
        "scopes" => scopes: Vec<Placed<Scope>>, Optional;
    }
    not yet: []
    examples: [
        r#"{ scopes: ["events:read"] }"#,
        "{ grant: client_credentials, client_id: switchbell, client_secret: { secret: mcp-client } }",
    ]
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
    /// The outbox that a connector declares, or that it has a push queue.
    struct RawOutbox {
        /// Its URI. A scheme of its own, no `?` and no `#`, at most 512 characters. This, `manifest` or `push` is required.
        "resource" => resource: OutboxUri, Optional;
        /// The manifest.json of a bundle, which declares the outbox, in the folder of this file or below. This,
        /// `resource` or `push` is required.
        "manifest" => manifest: Text, Optional;
        /// `true` where the server has no outbox but a push queue: the extension `io.stagewise/push-notifications`. Not
        /// beside `resource` or `manifest`.
        "push" => push: bool, Optional;
        /// The level of what the queue brings, by the type of the event, at most 200. A run of white space in a type is
        /// written `_`. `info` for all others; the `ceiling` caps it. Only beside `push`.
        "levels" => levels: Map<EventName, Level>, Optional;
        /// What it holds, for people, at most 500 characters.
        "description" => description: Text, Optional;
    }
    not yet: []
    elsewhere: {
        "hooks": HOOKS,
        "lifecycle": HOOKS,
    }
    examples: [
        r#"{ resource: "acme://notifications" }"#,
        "{ manifest: registrar/manifest.json, description: Domains and replies }",
        "{ push: true, levels: { process.exited: attention } }",
    ]
}

section! {
    /// How one connector is polled; never faster than the operator's floor nor slower than the operator's ceiling.
    struct RawOwnPoll {
        /// The usual wait between two reads. The operator's when left out, as are the other two.
        "base" => base: Span, Optional;
        /// No wait is shorter. Not below the operator's.
        "floor" => floor: Span, Optional;
        /// No wait is longer. Not above the operator's.
        "ceiling" => ceiling: Span, Optional;
    }
    not yet: []
    elsewhere: {
        "budget_per_minute": "the budget is one for all connectors of a workspace: the operator sets \
                              `poll.budget_per_minute` in switchbell.yaml",
        "max_events": OF_ALL,
        "chained_reads": OF_ALL,
        "max_age": OF_ALL,
    }
    examples: [
        "{ floor: 30s, base: 2m, ceiling: 5m }",
    ]
}
