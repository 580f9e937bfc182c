//! Credentials: where each comes from, and the one place it may be put.

use super::super::read::{Map, NonEmpty, Placed, Text};
use super::super::section::Need::{Optional, Required};
use super::super::section::section;
use super::super::values::{Claim, ClientId, CommandEntry, GrantKind, Host, PlaceEntry, Scope, TokenUrl, VariableName};
use crate::notification::Name;

section! {
    /// A credential: where its value comes from and the one place it may be put.
    struct RawSecret {
        /// The environment variable that holds the value. This, `file`, `command` or `oauth` is required; the value
        /// is 16 bytes to 8 KiB, one line end at the end ignored.
        "env" => env: VariableName, Optional;
        /// The file that holds the value.
        "file" => file: Text, Optional;
        /// The program that writes the value. It is run without a shell when the configuration is loaded, for at most
        /// 10 s.
        "command" => command: CommandEntry, Optional;
        /// How an access token is fetched, which is the value then.
        "oauth" => oauth: RawToken, Optional;
        /// The one place it may be put.
        "in" => place: PlaceEntry, Required;
        /// The hosts it may be sent to. `name` or `*.name`, without a port; required where it is sent to a host, but
        /// for `in: url`.
        "hosts" => hosts: NonEmpty<Host>, Optional;
        /// The workspaces that may use it; none when left out.
        "workspaces" => workspaces: Vec<Placed<Name>>, Optional;
        /// Whether a value shorter than 16 bytes is accepted, which is then never masked in answers: masking would
        /// tell what it is. `false` when left out.
        "weak" => weak: bool, Optional;
    }
    not yet: []
    elsewhere: {
        "value": "a value is never written out: write where it comes from, as in `env: NAME`, `file: PATH` or `command: [PROGRAM]`",
        "host": "hosts are a list: write `hosts: [api.example.com]`",
        "workspace": "workspaces are a list: write `workspaces: [acme]`",
        "place": "the one place it may be put is written `in: url`, `in: \"header:NAME\"` and so on",
    }
    examples: [
        "{ env: SLACK_OPS_WEBHOOK, in: url, workspaces: [acme] }",
        r#"{ file: secrets/slack, in: "header:Authorization:Bearer", hosts: [slack.com], workspaces: [acme] }"#,
        "{ command: [pass, show, chat-bot], in: path, hosts: [api.chat.example], workspaces: [acme], weak: true }",
        r#"{ oauth: { token_url: "https://login.crm.example/oauth/token", grant: client_credentials, client_id: switchbell, client_secret: { env: CRM_SECRET } }, in: "header:Authorization:Bearer", hosts: [api.crm.example], workspaces: [acme] }"#,
    ]
}

section! {
    /// Where a value comes from.
    struct RawSource {
        /// The environment variable that holds the value.
        "env" => env: VariableName, Optional;
        /// The file that holds the value.
        "file" => file: Text, Optional;
        /// The program that writes the value.
        "command" => command: CommandEntry, Optional;
    }
    not yet: []
    elsewhere: {
        "secret": "this is no secret of its own: write where the value comes from, as in `{ env: NAME }`",
    }
    examples: [
        "{ env: CRM_SECRET }",
        "{ file: secrets/documents.pem }",
        "{ command: [pass, show, NAME] }",
    ]
}

section! {
    /// A program that writes a value.
    struct RawSourceCommand {
        /// The program and its arguments, as a list. With a `/` the program is a path, else it is looked for in PATH.
        "run" => run: Vec<Placed<Text>>, Required;
        /// Environment variables it is started with, besides PATH, HOME, LANG and TMPDIR.
        "env" => env: Map<VariableName, Text>, Optional;
    }
    not yet: []
    examples: [
        "{ run: [pass, show, pager], env: { PASSWORD_STORE_DIR: /srv/passwords } }",
    ]
}

section! {
    /// How an access token is fetched (RFC 6749, RFC 7523).
    struct RawToken {
        /// The token endpoint. https, or http to a loopback address that is written out.
        "token_url" => token_url: TokenUrl, Required;
        /// Whether the name in the `token_url` may resolve to a private address. `false` when left out.
        "private" => private: bool, Optional;
        /// By what right the token is had.
        "grant" => grant: GrantKind, Required;
        /// The client's id at the authorization server. Required, but not allowed with `jwt_bearer`.
        "client_id" => client_id: ClientId, Optional;
        /// Where the client's secret comes from. Required with `client_credentials`, allowed with `refresh_token`.
        "client_secret" => client_secret: RawSource, Optional;
        /// Where the first refresh token comes from. Required with `refresh_token`, and with nothing else.
        "refresh_token" => refresh_token: RawSource, Optional;
        /// Where the private key comes from that signs assertions. RSA (2048 to 4096 bits), P-256 or Ed25519, in PEM
        /// (PKCS#8); required with `jwt_bearer`, and with nothing else.
        "key" => key: RawSource, Optional;
        /// The key's id at the authorization server. Only with `jwt_bearer`.
        "key_id" => key_id: Claim, Optional;
        /// Who signs. Required with `jwt_bearer`, and with nothing else.
        "issuer" => issuer: Claim, Optional;
        /// For whom the token is. Only with `jwt_bearer`; the issuer when left out.
        "subject" => subject: Claim, Optional;
        /// The audience of the token. The parameter of this name, which some servers want; with `jwt_bearer` the
        /// `aud` of the assertion, the `token_url` when left out.
        "audience" => audience: Claim, Optional;
        /// What access is asked for, at most 50; the server's choice when left out.
        "scopes" => scopes: Vec<Placed<Scope>>, Optional;
    }
    not yet: []
    elsewhere: {
        "url": "the token endpoint is written `token_url`",
        "scope": "scopes are a list: write `scopes: [SCOPE]`",
        "hosts": "`hosts` stands beside `oauth`: it says where the token may be sent",
        "in": "`in` stands beside `oauth`: it says where the token may be put",
        "private_key": "the private key is written `key: { file: PATH }`",
    }
    examples: [
        r#"{ token_url: "https://login.crm.example/oauth/token", grant: client_credentials, client_id: switchbell, client_secret: { env: CRM_SECRET }, audience: "https://api.crm.example/", scopes: [contacts.read] }"#,
        r#"{ token_url: "https://login.calendar.internal/token", private: true, grant: refresh_token, client_id: switchbell, refresh_token: { file: secrets/calendar } }"#,
        r#"{ token_url: "https://login.documents.example/token", grant: jwt_bearer, issuer: bell@documents.example, subject: admin@example.com, key: { file: secrets/documents.pem }, key_id: "2026-1" }"#,
    ]
}
