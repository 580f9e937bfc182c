//! Who asks.

use jiff::Timestamp;

use crate::inbox::{Actor, TokenKind};
use crate::notification::Name;

/// What a caller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Of the whole server.
    Operator,
    /// An admin member of a workspace.
    Admin,
    /// A member of a workspace.
    Member,
    /// A consumer of a workspace, as far as its scopes go.
    Agent {
        /// May read.
        may_read: bool,
        /// May acknowledge and mark as read.
        may_ack: bool,
    },
}

/// What may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Read notifications, and follow them.
    ReadInbox,
    /// Mark notifications as read or acknowledged.
    Mark,
    /// Read deliveries, routes, connectors, hooks, the workspace's plugins; explain.
    ReadWork,
    /// Retry and cancel deliveries, read an outbox now, preview, rotate hooks.
    ChangeWork,
    /// Load plugins and roll them back, read all versions; read and reload the configuration.
    Operate,
}

/// Who asks: known by a token, a browser's session, or the control socket of this machine.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The token; none by the control socket.
    pub token: Option<i64>,
    /// What it is.
    pub role: Role,
    /// The workspace it is of; none for the operator, who is of all.
    pub workspace: Option<Name>,
    /// The name its marks are made under: a member, a consumer, or `operator`.
    pub actor: Actor,
    /// The consumer that the token was made for; none where it was made for somebody else.
    pub consumer: Option<Name>,
    /// What it was known by; none by the control socket.
    pub proof: Option<Proof>,
}

/// What a caller was known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The hash of the token or session.
    pub hash: [u8; 32],
    /// Which of them.
    pub kind: TokenKind,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
}

impl Caller {
    /// The operator of this machine, by the control socket.
    pub fn local() -> Self {
        let actor = Actor { name: "operator".to_owned(), is_agent: false };
        Self { token: None, role: Role::Operator, workspace: None, actor, consumer: None, proof: None }
    }

    /// Whether it is a command on this machine, which may name the member it asks for.
    pub fn is_local(&self) -> bool {
        self.token.is_none()
    }

    /// Whether the role allows it, in the caller's own workspace.
    pub fn may(&self, right: Right) -> bool {
        match (self.role, right) {
            (Role::Operator, _) => true,
            (_, Right::Operate) => false,
            (Role::Admin, _) => true,
            (Role::Member, right) => right != Right::ChangeWork,
            (Role::Agent { may_read, .. }, Right::ReadInbox) => may_read,
            (Role::Agent { may_ack, .. }, Right::Mark) => may_ack,
            (Role::Agent { .. }, _) => false,
        }
    }
}
