//! Sessions of browsers: begun with a token or a link, and ended.

use std::net::IpAddr;

use super::gate::unavailable;
use super::{Gate, SESSION, TokenText, scope, text};
use crate::clock::later;
use crate::inbox::{Scope, Token, TokenKind};
use crate::serve::problem::Problem;

/// What a browser signs in with.
#[derive(Clone, Copy)]
pub(super) enum Presented<'a> {
    /// A token, which stays good.
    Token(&'a str),
    /// A link, which is spent.
    Link(&'a str),
}

impl Gate {
    /// Begins a session. `client` is who asks.
    ///
    /// # Errors
    /// As [`Gate::caller`]; [`Problem::Forbidden`] for an agent's token.
    pub(super) async fn sign_in(&self, with: Presented<'_>, client: Option<IpAddr>) -> Result<TokenText, Problem> {
        let (kind, presented) = match with {
            Presented::Token(text) => (TokenKind::Bearer, text),
            Presented::Link(text) => (TokenKind::Link, text),
        };
        let token = self.token(kind, presented.trim(), client).await?;
        if matches!(token.scope, Scope::Agent { .. }) {
            let why =
                "this is an agent's token, which signs no browser in: use one of a member, an admin or the operator";
            return Err(Problem::Forbidden(why.to_owned()));
        }
        let caller = scope::caller(&token, &self.config.borrow())?;
        let text = TokenText::draw(TokenKind::Session)?;
        let session = self.session(&token, text.hash());
        let id = match kind {
            TokenKind::Link => {
                let spent = self.tokens.redeem(token.hash, session, self.clock.now()).await.map_err(unavailable)?;
                spent.ok_or_else(|| Problem::Unauthenticated(super::gate::USED_LINK.to_owned()))?.id
            }
            _ => {
                self.note_use(&token);
                self.tokens.add_token(session).await.map_err(unavailable)?
            }
        };
        // An older session may have ended for it.
        self.tell_revoked();
        let client = client.map_or_else(String::new, |client| client.to_string());
        tracing::info!(target: "audit", session = id, with = kind.as_str(), by = %caller.actor.name, %client, "signed in");
        Ok(text)
    }

    /// The session of a token: it ends with it, and allows the same. That of a link ends with what the link was made from.
    fn session(&self, token: &Token, hash: [u8; 32]) -> Token {
        let now = self.clock.now();
        let own = later(now, SESSION);
        let (parent, expires_at) = match token.kind {
            TokenKind::Link => (token.parent, own),
            _ => (Some(token.id), token.expires_at.map_or(own, |end| end.min(own))),
        };
        Token {
            id: 0,
            kind: TokenKind::Session,
            hash,
            label: token.label.clone(),
            scope: token.scope.clone(),
            parent,
            created_at: now,
            expires_at: Some(expires_at),
            revoked_at: None,
            used_at: None,
        }
    }

    /// Ends the session of this cookie, if it is one.
    pub(super) async fn sign_out(&self, cookie: &str) -> Result<(), Problem> {
        let Some(hash) = text::hash(TokenKind::Session, cookie) else { return Ok(()) };
        let found = self.tokens.token(hash).await.map_err(unavailable)?;
        let Some(session) = found.filter(|token| token.kind == TokenKind::Session) else { return Ok(()) };
        if self.tokens.revoke_token(session.id, self.clock.now()).await.map_err(unavailable)? {
            self.tell_revoked();
            tracing::info!(target: "audit", session = session.id, "signed out");
        }
        Ok(())
    }
}
