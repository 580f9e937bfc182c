//! Plugins: where they are, what they may reach and use.

use super::super::GateMode;
use super::super::read::{Map, NonEmpty, Placed, Text, Whole};
use super::super::section::Need::{Default, Optional, Required};
use super::super::section::section;
use super::super::values::{Bytes, HttpEntry, KeyEntry, Origin, Pin, Span, ToolEntry};
use crate::notification::Name;

section! {
    /// Where plugins are, what they may reach and use.
    struct RawPlugins {
        /// The folder with one `NAME.wasm` for each plugin. It must be there.
        "directory" => directory: Text, Default("plugins/");
        /// What each plugin may reach; nothing when left out.
        "grants" => grants: Map<Name, RawGrant>, Optional;
        /// What one attempt may use.
        "limits" => limits: RawLimits, Optional;
        /// What becomes of a new version that does something else than the running one.
        "gate" => gate: GateMode, Default("report");
        /// The public keys of minisign that plugins must be signed with, by one of them. Without any, no signature is
        /// asked for.
        "trust" => trust: NonEmpty<KeyEntry>, Optional;
        /// The digest of the only file that a plugin may have, whoever signed it.
        "pins" => pins: Map<Name, Pin>, Optional;
    }
    not yet: []
    examples: [
        "{ directory: plugins/, grants: { slack: { http: [hooks.slack.com] } } }",
        r#"{ gate: strict, limits: { memory: 64MiB }, trust: ["minisign:RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"], pins: { slack: "sha256:0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0" } }"#,
    ]
}

section! {
    /// What one plugin may reach.
    struct RawGrant {
        /// The hosts it may send HTTP requests to. A redirect is never followed.
        "http" => http: Vec<Placed<HttpEntry>>, Optional;
        /// Whether it may send mail through the relay. `false` when left out.
        "mail" => mail: bool, Optional;
        /// The tools of connectors it may call, each by its whole name, as the server spells it.
        "tools" => tools: Vec<Placed<ToolEntry>>, Optional;
        /// The workspaces it is limited to; all when left out.
        "workspaces" => workspaces: NonEmpty<Name>, Optional;
    }
    not yet: []
    elsewhere: {
        "private": "`private` stands in an entry of `http`: write `http: [{ host: HOST, private: true }]`",
        "secrets": "a plugin is granted no secrets: a workspace is, by `workspaces` of the secret",
    }
    examples: [
        "{ http: [hooks.slack.com] }",
        "{ mail: true, workspaces: [acme] }",
        r#"{ tools: ["acme:registrar/restart_domain"] }"#,
    ]
}

section! {
    /// A host that a plugin may send HTTP requests to.
    struct RawHttpGrant {
        /// `host`, `host:port` or `*.suffix`; https unless it begins with `http://`. There are no paths.
        "host" => host: Origin, Required;
        /// Whether the name may resolve to a private address. `false` when left out; an address that is written out
        /// needs no such word.
        "private" => private: bool, Optional;
        /// The workspaces it is limited to, of those of the whole grant; all of them when left out.
        "workspaces" => workspaces: NonEmpty<Name>, Optional;
    }
    not yet: []
    examples: [
        r#"{ host: "agents.internal:8443", private: true, workspaces: [acme] }"#,
    ]
}

section! {
    /// What one attempt of a plugin may use.
    struct RawLimits {
        /// Linear memory of one instance. `1MiB` to `1GiB`.
        "memory" => memory: Bytes, Default("32MiB");
        /// CPU time of one step. `1ms` to `10s`.
        "step_cpu" => step_cpu: Span, Default("100ms");
        /// Steps in one attempt.
        "steps" => steps: Whole<2, 1000>, Default("64");
        /// Wall time of one attempt, waiting included. `1s` to `30d`.
        "attempt_time" => attempt_time: Span, Default("24h");
    }
    not yet: []
    examples: [
        "{ memory: 32MiB, step_cpu: 100ms, steps: 64, attempt_time: 24h }",
    ]
}
