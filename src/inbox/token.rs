//! Tokens: who may read and change what, by a secret that only its hash is kept of.

use jiff::Timestamp;

use crate::notification::Name;

/// Tokens, links and sessions that are kept.
pub const TOKENS_MAX: u32 = 10_000;

/// Those of them that are of one workspace.
pub const WORKSPACE_TOKENS_MAX: u32 = 1_000;

/// Those of them that are kept for the operator, whatever all workspaces have.
pub const OPERATOR_TOKENS_KEPT: u32 = 1_000;

/// Good sessions of one member, or of the operator, that hang on the same token; a further one ends the oldest.
pub const SESSIONS_MAX: u32 = 100;

/// What kind of secret it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Presented with each request.
    Bearer,
    /// Redeemed once, for a session.
    Link,
    /// A browser's, in a cookie.
    Session,
}

impl TokenKind {
    /// The word in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bearer => "bearer",
            Self::Link => "link",
            Self::Session => "session",
        }
    }

    /// The kind of this word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Bearer, Self::Link, Self::Session].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// What a token allows, as it was given out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything, everywhere.
    Operator,
    /// A member of a workspace, as far as the workspace's file still allows it.
    Member {
        /// The workspace.
        workspace: Name,
        /// The member's name in the file.
        member: String,
        /// Whether it may do what an admin may, if the member is one.
        is_admin: bool,
    },
    /// An agent of a workspace.
    Agent {
        /// The workspace.
        workspace: Name,
        /// The consumer it is.
        consumer: Name,
        /// Whether it may read.
        may_read: bool,
        /// Whether it may acknowledge and mark as read.
        may_ack: bool,
    },
}

/// A token as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// From 1, stable; 0 for one that is not kept yet.
    pub id: i64,
    /// What kind.
    pub kind: TokenKind,
    /// The SHA-256 of its text.
    pub hash: [u8; 32],
    /// What it is for, in the words of whoever made it, at most 100 characters.
    pub label: Option<String>,
    /// What it allows.
    pub scope: Scope,
    /// The token, link or session that it was made from: when that is revoked, this is, and it ends with it at the latest.
    pub parent: Option<i64>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked, or redeemed.
    pub revoked_at: Option<Timestamp>,
    /// When it was used last, to the minute.
    pub used_at: Option<Timestamp>,
}

impl Token {
    /// Whether it is good at this moment.
    pub fn is_good(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}
