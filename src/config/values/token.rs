//! The parts of `oauth:` of a secret.

use url::Url;

use super::super::read::FromText;
use super::super::schema::{Form, Words, word};
use super::address::HTTP_URL;

/// The endpoint that access tokens come from (RFC 6749 §3.2).
#[derive(Debug, Clone)]
pub(in crate::config) struct TokenUrl(pub Url);

impl FromText for TokenUrl {
    const WANTED: &'static str = "a URL such as `https://login.example.com/oauth/token`";

    /// Never quotes the text: a URL may hold a credential.
    fn from_text(text: &str, _: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|error| {
            format!("this is no URL ({error}): write one such as `https://login.example.com/oauth/token`")
        })?;
        let objection = if !matches!(url.scheme(), "http" | "https") {
            "a token endpoint's URL begins with https://"
        } else if !url.username().is_empty() || url.password().is_some() {
            "a token endpoint's URL holds no user and no password: write `client_id` and `client_secret`"
        } else if url.fragment().is_some() {
            "a token endpoint's URL has no fragment: remove the `#` and what follows"
        } else if text.contains(char::is_whitespace) {
            "a URL has no white space"
        } else {
            return Ok(Self(url));
        };
        Err(objection.to_owned())
    }

    fn form() -> Form {
        Form::pattern(HTTP_URL, &["https://login.example.com/oauth/token"])
    }
}

/// By what right an access token is had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) enum GrantKind {
    /// RFC 6749 §4.4.
    ClientCredentials,
    /// RFC 6749 §6.
    RefreshToken,
    /// RFC 7523 §2.1.
    JwtBearer,
}

impl GrantKind {
    /// As it is written.
    pub(in crate::config) fn as_str(self) -> &'static str {
        match self {
            Self::ClientCredentials => "client_credentials",
            Self::RefreshToken => "refresh_token",
            Self::JwtBearer => "jwt_bearer",
        }
    }
}

impl FromText for GrantKind {
    const WANTED: &'static str = "a grant (client_credentials, refresh_token or jwt_bearer)";

    fn from_text(text: &str, _: &str) -> Result<Self, String> {
        word(text).ok_or_else(|| {
            let remedy = match text {
                "authorization_code" => "a person who signed in leaves a refresh token: write refresh_token",
                "urn:ietf:params:oauth:grant-type:jwt-bearer" | "jwt" | "service_account" => "write jwt_bearer",
                _ => {
                    "write client_credentials (the client's own id and secret), refresh_token (a person agreed once) or \
                     jwt_bearer (an assertion signed with a private key)"
                }
            };
            format!("unknown grant: {remedy}")
        })
    }

    fn form() -> Form {
        Form::words::<Self>()
    }
}

impl Words for GrantKind {
    fn words() -> Vec<(&'static str, Self, &'static str)> {
        let about = |kind: Self| match kind {
            Self::ClientCredentials => "By the client's own id and secret.",
            Self::RefreshToken => "By the refresh token that a person who signed in left.",
            Self::JwtBearer => "By an assertion that is signed with a private key.",
        };
        [Self::ClientCredentials, Self::RefreshToken, Self::JwtBearer]
            .map(|kind| (kind.as_str(), kind, about(kind)))
            .into()
    }
}

/// What stands in an assertion or a parameter as it is.
#[derive(Debug, Clone)]
pub(in crate::config) struct Claim(pub String);

/// Longest such text, in bytes: it may be a URL, and goes into a form.
const CLAIM_BYTES_MAX: usize = 512;

impl FromText for Claim {
    const WANTED: &'static str = "a text that the authorization server knows";

    fn from_text(text: &str, _: &str) -> Result<Self, String> {
        let is_clean = text.trim() == text && !text.contains(char::is_control);
        if !is_clean || !(1..=CLAIM_BYTES_MAX).contains(&text.len()) {
            return Err(format!(
                "write 1 to {CLAIM_BYTES_MAX} bytes as the authorization server knows them, without control characters"
            ));
        }
        Ok(Self(text.to_owned()))
    }

    fn form() -> Form {
        Form::pattern(
            format!(
                r"(?=[\s\S]{{1,{CLAIM_BYTES_MAX}}}$)(?=\S)[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f]"
            ),
            &["bell@example.com"],
        )
    }
}
