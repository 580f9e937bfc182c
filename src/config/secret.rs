//! Secrets as the rest of the program knows them: where each comes from, and the one place it may be put.

use std::fmt;

use url::Url;

use super::HostPattern;
use crate::notification::Name;

/// A secret: what it is worth, and the one place it may be put.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// Its value, or how one is had; never printed.
    pub value: SecretValue,
    /// Where it may stand.
    pub place: SecretPlace,
    /// The hosts it may be sent to; for `url` and `connector` secrets empty means that the URL decides, for `sign` and
    /// `mail` secrets there are none, since neither is ever sent.
    pub hosts: Vec<HostPattern>,
    /// The workspaces that may use it; none when empty.
    pub workspaces: Vec<Name>,
    /// Whether it may be shorter than what can be guessed. It is then never masked in answers: what is masked would tell
    /// what it is.
    pub is_weak: bool,
}

/// What a secret is worth.
#[derive(Clone, PartialEq, Eq)]
pub enum SecretValue {
    /// A text from the environment, a file or a command.
    Fixed(String),
    /// An access token that is fetched when it is needed, kept, and renewed.
    Token(Box<TokenSource>),
    /// Nobody looked: the configuration was loaded to be judged, without the values of secrets.
    NotRead,
}

impl Secret {
    /// A secret with a fixed value that no workspace was granted.
    pub fn new(value: String, place: SecretPlace) -> Self {
        let value = SecretValue::Fixed(value);
        Self { value, place, hosts: Vec::new(), workspaces: Vec::new(), is_weak: false }
    }

    /// The value, unless it is a token that is fetched, or was not read.
    pub fn fixed(&self) -> Option<&str> {
        match &self.value {
            SecretValue::Fixed(value) => Some(value),
            SecretValue::Token(_) | SecretValue::NotRead => None,
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Secret").field("place", &self.place).finish_non_exhaustive()
    }
}

/// `in:` of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretPlace {
    /// The whole URL of a request: the value replaces it unchanged, and is then parsed and guarded like any other.
    Url,
    /// The value of this header (lower case), after the prefix and a space where there is one.
    Header {
        /// The header's name in lower case.
        name: String,
        /// Such as `Bearer`.
        prefix: Option<String>,
    },
    /// The password of HTTP Basic (RFC 7617), which the host composes. A value that holds a colon is `user:password`; the
    /// placeholder stands as the whole value of the header `authorization`.
    Basic,
    /// The whole value of this parameter of the query, percent-encoded.
    Query(String),
    /// In one segment of the path, whole or a part of it, percent-encoded.
    Path,
    /// The string at this JSON Pointer (RFC 6901) in a JSON body, whole.
    Body(String),
    /// The key of signatures; never sent.
    Sign,
    /// The password of the mail relay.
    Mail,
    /// The credential of a connector.
    Connector,
}

impl fmt::Display for SecretPlace {
    /// As `in:` is written.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url => out.write_str("url"),
            Self::Header { name, prefix: None } => write!(out, "header:{name}"),
            Self::Header { name, prefix: Some(prefix) } => write!(out, "header:{name}:{prefix}"),
            Self::Basic => out.write_str("basic"),
            Self::Query(key) => write!(out, "query:{key}"),
            Self::Path => out.write_str("path"),
            Self::Body(pointer) => write!(out, "body:{pointer}"),
            Self::Sign => out.write_str("sign"),
            Self::Mail => out.write_str("mail"),
            Self::Connector => out.write_str("connector"),
        }
    }
}

/// `oauth:` of a secret (RFC 6749): how an access token is had.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenSource {
    /// The token endpoint.
    pub token_url: Url,
    /// Whether its name may resolve to a private address.
    pub private: bool,
    /// By what right.
    pub grant: TokenGrant,
    /// The scopes asked for; none asks for what the server gives.
    pub scopes: Vec<String>,
    /// The `audience` parameter, which some servers want.
    pub audience: Option<String>,
}

/// By what right an access token is had.
#[derive(Clone, PartialEq, Eq)]
pub enum TokenGrant {
    /// The client's own id and secret (RFC 6749 §4.4).
    ClientCredentials {
        /// The client's id.
        client_id: String,
        /// Its secret.
        client_secret: String,
    },
    /// A refresh token (RFC 6749 §6). A server may answer with a new one, which is kept beside the store.
    RefreshToken {
        /// The client's id.
        client_id: String,
        /// Its secret, where it has one.
        client_secret: Option<String>,
        /// The first refresh token.
        refresh_token: String,
    },
    /// An assertion that the host signs (RFC 7523 §2.1).
    JwtBearer {
        /// `iss`.
        issuer: String,
        /// `sub`; the issuer when left out.
        subject: Option<String>,
        /// The private key, PKCS#8 in PEM: RSA signs with RS256, P-256 with ES256, Ed25519 with EdDSA.
        key: String,
        /// `kid` of the header.
        key_id: Option<String>,
    },
}
