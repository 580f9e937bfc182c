//! Where the `Authorization` of each request comes from.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::fetch::outbox::ReadError;

/// Tokens that are asked for, request by request: fetched, kept and renewed by whoever holds them.
pub(super) trait Tokens: fmt::Debug + Send + Sync {
    /// The access token for a request that is about to be made. An error is what the read fails with.
    fn token(&self) -> BoxFuture<'_, Result<String, ReadError>>;

    /// The server refused `token` with 401, and `challenge` is its `WWW-Authenticate`, if it sent one. Ok when
    /// [`Tokens::token`] may now have another: the request is made once more with it. An error is what the read fails
    /// with. Several requests may tell it at once, one of them after `token` was already renewed.
    fn refused<'a>(&'a self, token: &'a str, challenge: Option<&'a str>) -> BoxFuture<'a, Result<(), ReadError>>;

    /// What the read fails with when the other token was refused, too.
    fn refused_again(&self) -> ReadError {
        ReadError::Http { status: 401, retry_after: None }
    }
}

/// How requests are signed.
#[derive(Clone)]
pub(super) enum Credential {
    /// Not at all.
    None,
    /// With this token, always.
    Bearer(Arc<str>),
    /// With tokens that are asked for.
    Tokens(Arc<dyn Tokens>),
}

impl fmt::Debug for Credential {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::None => "None",
            Self::Bearer(_) => "Bearer",
            Self::Tokens(_) => "Tokens",
        })
    }
}

impl Credential {
    /// The token for the next request, where there is one.
    pub(super) async fn token(&self) -> Result<Option<String>, ReadError> {
        match self {
            Self::None => Ok(None),
            Self::Bearer(token) => Ok(Some(token.to_string())),
            Self::Tokens(tokens) => tokens.token().await.map(Some),
        }
    }

    /// What the read fails with when the token of [`Credential::after_refusal`] was refused, too.
    pub(super) fn refused_again(&self) -> Option<ReadError> {
        match self {
            Self::None | Self::Bearer(_) => None,
            Self::Tokens(tokens) => Some(tokens.refused_again()),
        }
    }

    /// The token for the same request once more, after `token` was refused; none when there is no other.
    pub(super) async fn after_refusal(
        &self,
        token: &str,
        challenge: Option<&str>,
    ) -> Result<Option<String>, ReadError> {
        match self {
            Self::None | Self::Bearer(_) => Ok(None),
            Self::Tokens(tokens) => {
                tokens.refused(token, challenge).await?;
                tokens.token().await.map(Some)
            }
        }
    }
}
