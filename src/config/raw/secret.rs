//! Credentials: where each comes from, and the one place it may be put.

use super::super::read::{Map, NonEmpty, Placed, Text};
use super::super::section::Need::{Optional, Required};
use super::super::section::section;
use super::super::values::{Claim, ClientId, CommandEntry, GrantKind, Host, PlaceEntry, Scope, TokenUrl, VariableName};
use crate::notification::Name;

section! {
    /// A credential: where its value comes from and the one place it may be put.
    struct RawSecret {
        /// The environment variable that holds the value.
        "env" => env: VariableName, Optional;
        /// The file that holds the value.
        "file" => file: Text, Optional;
        /// The program that writes the value.
        "command" => command: CommandEntry, Optional;
        /// How an access token is fetched, which is the value then.
        "oauth" => oauth: RawToken, Optional;
        /// The one place it may be put.
        "in" => place: PlaceEntry, Required;
        /// The hosts it may be sent to.
        "hosts" => hosts: NonEmpty<Host>, Optional;
        /// The workspaces that may use it; none when left out.
        "workspaces" => workspaces: Vec<Placed<Name>>, Optional;
        /// Whether a value shorter than 16 bytes is accepted.
        "weak" => weak: bool, Optional;
    }
    not yet: []
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
}

section! {
    /// A program that writes a value.
    struct RawSourceCommand {
        /// The program and its arguments, as a list.
        "run" => run: Vec<Placed<Text>>, Required;
        /// Environment variables it is started with.
        "env" => env: Map<VariableName, Text>, Optional;
    }
    not yet: []
}

section! {
    /// How an access token is fetched (RFC 6749, RFC 7523).
    struct RawToken {
        /// The token endpoint.
        "token_url" => token_url: TokenUrl, Required;
        /// Whether the name in the `token_url` may resolve to a private address.
        "private" => private: bool, Optional;
        /// By what right: `client_credentials`, `refresh_token` or `jwt_bearer`.
        "grant" => grant: GrantKind, Required;
        /// The client's id at the authorization server.
        "client_id" => client_id: ClientId, Optional;
        /// Where the client's secret comes from.
        "client_secret" => client_secret: RawSource, Optional;
        /// Where the first refresh token comes from.
        "refresh_token" => refresh_token: RawSource, Optional;
        /// Where the private key comes from that signs assertions.
        "key" => key: RawSource, Optional;
        /// The key's id at the authorization server.
        "key_id" => key_id: Claim, Optional;
        /// Who signs.
        "issuer" => issuer: Claim, Optional;
        /// For whom the token is.
        "subject" => subject: Claim, Optional;
        /// The audience of the token.
        "audience" => audience: Claim, Optional;
        /// What access is asked for.
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
}
