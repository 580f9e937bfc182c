//! Tokens made, listed and revoked, by whoever may.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;

use super::gate::unavailable;
use super::{Caller, Gate, MadeTokenJson, NewTokenJson, Right, Role, TokenText};
use crate::clock::later;
use crate::config::{self, Config};
use crate::inbox::{Scope, Token, TokenKind};
use crate::notification::Name;
use crate::serve::problem::Problem;

/// How long a link that signs in may be redeemed.
pub const LINK: Duration = Duration::from_secs(600);
/// Characters of a label.
pub const LABEL_CHARS_MAX: usize = 100;
/// Shortest life of a token.
const LIFE_MIN: Duration = Duration::from_secs(60);
/// Longest life of a token that has an end: ten years.
const LIFE_MAX: Duration = Duration::from_secs(3_650 * 86_400);

/// A token that somebody wants.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// What it allows.
    pub scope: Scope,
    /// Whether it is a link that signs a browser in, once, instead of a token.
    pub is_link: bool,
    /// What it is for.
    pub label: Option<String>,
    /// How long it is good; as long as what makes it when left out, and never longer. Of links always [`LINK`].
    pub life: Option<Duration>,
}

/// A token that was made, with its text, which nobody can read again.
#[derive(Clone, Debug)]
pub struct Made {
    /// What is kept of it.
    pub token: Token,
    /// Its text.
    pub text: TokenText,
}

/// A token that was revoked.
#[derive(Clone, Debug)]
pub struct Revoked {
    /// What is kept of it.
    pub token: Token,
    /// How many good ones were made from it, which were revoked with it: tokens, links and sessions.
    pub made_from_it: usize,
}

impl Gate {
    /// Makes a token, or a link, as it is asked for on every surface.
    ///
    /// # Errors
    /// As [`Gate::make`]; [`Problem::Refused`] names what is missing or too much.
    pub async fn make_asked(&self, by: &Caller, asked: NewTokenJson) -> Result<MadeTokenJson, Problem> {
        // Who may not see a workspace learns nothing of its members.
        if let Some(workspace) = &asked.workspace_id {
            self.workspace(by, workspace, Right::ChangeWork)?;
        }
        self.operate(by, Right::ChangeWork)?;
        if asked.link && self.base().is_none() {
            let why = "nobody knows how the server is reached, so there is no link: say `public_url`, or ask while the server runs";
            return Err(Problem::Conflict(why.to_owned()));
        }
        let config = self.config.borrow().clone();
        let made = self.make(by, asked.wanted(&config)?).await?;
        Ok(MadeTokenJson::new(made, self))
    }

    /// Makes a token. What a token or a session makes is revoked with it and never outlives it.
    ///
    /// # Errors
    /// [`Problem::Forbidden`] for what the caller has no right to, [`Problem::Refused`], [`Problem::Unavailable`] when there are
    /// too many.
    pub async fn make(&self, by: &Caller, wanted: Wanted) -> Result<Made, Problem> {
        self.may_make(by, &wanted.scope)?;
        check_words(&wanted)?;
        let now = self.clock.now();
        let kind = if wanted.is_link { TokenKind::Link } else { TokenKind::Bearer };
        let text = TokenText::draw(kind)?;
        let life = if wanted.is_link { Some(LINK) } else { wanted.life };
        let end = by.proof.as_ref().and_then(|proof| proof.expires_at);
        let mut token = Token {
            id: 0,
            kind,
            hash: text.hash(),
            label: wanted.label,
            scope: wanted.scope,
            parent: by.token,
            created_at: now,
            expires_at: life.map(|life| later(now, life)).into_iter().chain(end).min(),
            revoked_at: None,
            used_at: None,
        };
        token.id = self.tokens.add_token(token.clone()).await.map_err(unavailable)?;
        tracing::info!(target: "audit", token = token.id, kind = kind.as_str(), by = %by.actor.name, "token made");
        Ok(Made { token, text })
    }

    /// The operator makes any; an admin those of the own workspace that allow less than its own, and its own again.
    fn may_make(&self, by: &Caller, scope: &Scope) -> Result<(), Problem> {
        let (workspace, is_above) = match scope {
            Scope::Operator => return self.operate(by, Right::Operate),
            Scope::Member { workspace, member, is_admin } => {
                (workspace, *is_admin && by.role != Role::Operator && *member != by.actor.name)
            }
            Scope::Agent { workspace, .. } => (workspace, false),
        };
        let admitted = self.workspace(by, workspace.as_str(), Right::ChangeWork)?;
        if is_above {
            let why = "an admin makes tokens of members and agents, and of no other admin: ask the operator";
            return Err(Problem::Forbidden(why.to_owned()));
        }
        fits(scope, admitted.config())
    }

    /// The tokens that a caller may see: the operator all, an admin those of the own workspace. Oldest first.
    ///
    /// # Errors
    /// [`Problem::Forbidden`].
    pub async fn list(&self, by: &Caller) -> Result<Vec<Token>, Problem> {
        self.operate(by, Right::ChangeWork)?;
        let mut tokens = self.tokens.tokens(self.clock.now()).await.map_err(unavailable)?;
        tokens.retain(|token| may_see(by, token));
        Ok(tokens)
    }

    /// Revokes a token with all that were made from it, at once, and says how many of those were good. One that was revoked before
    /// stays so.
    ///
    /// # Errors
    /// [`Problem::Unknown`] for one that there is not or that the caller may not see.
    pub async fn revoke(&self, by: &Caller, id: i64) -> Result<Revoked, Problem> {
        let unknown = || {
            Problem::Unknown(format!(
                "there is no token {id} that this caller may see: `switchbell token list` shows them"
            ))
        };
        self.operate(by, Right::ChangeWork)?;
        let now = self.clock.now();
        let all = self.tokens.tokens(now).await.map_err(unavailable)?;
        let token = all.iter().find(|token| token.id == id && may_see(by, token)).cloned().ok_or_else(unknown)?;
        let made_from_it = good_made_from(&all, id, now);
        if self.tokens.revoke_token(id, now).await.map_err(unavailable)? {
            self.tell_revoked();
            let kind = token.kind.as_str();
            tracing::info!(target: "audit", token = id, kind, made_from_it, by = %by.actor.name, "token revoked");
        }
        Ok(Revoked { token: Token { revoked_at: token.revoked_at.or(Some(now)), ..token }, made_from_it })
    }

    /// A link that signs the operator in, where nobody could sign in so far: there is no token and no session.
    ///
    /// # Errors
    /// As [`Gate::make`].
    pub async fn first_link(&self) -> Result<Option<String>, Problem> {
        let tokens = self.tokens.tokens(self.clock.now()).await.map_err(unavailable)?;
        if tokens.iter().any(|token| token.kind != TokenKind::Link) {
            return Ok(None);
        }
        self.operator_link().await
    }

    /// A link that signs the operator in; none where nobody knows how the server is reached.
    ///
    /// # Errors
    /// As [`Gate::make`].
    pub async fn operator_link(&self) -> Result<Option<String>, Problem> {
        let wanted = Wanted { scope: Scope::Operator, is_link: true, label: None, life: None };
        let made = self.make(&Caller::local(), wanted).await?;
        Ok(self.sign_in_url(&made.text))
    }

    /// Where a browser redeems a link. It stands in the fragment, which browsers send to nobody.
    pub fn sign_in_url(&self, link: &TokenText) -> Option<String> {
        let base = self.base()?;
        Some(format!("{base}sign-in#link={}", link.as_str()))
    }
}

/// How many good ones were made from a token, by itself or by what was made from it. All of them are there, oldest first.
fn good_made_from(all: &[Token], id: i64, now: Timestamp) -> usize {
    let mut above = HashSet::from([id]);
    let is_below = |token: &&Token| {
        let is_below = token.parent.is_some_and(|parent| above.contains(&parent));
        is_below && above.insert(token.id)
    };
    all.iter().filter(is_below).filter(|token| token.is_good(now)).count()
}

fn may_see(by: &Caller, token: &Token) -> bool {
    match (&by.workspace, &token.scope) {
        (None, _) => true,
        (Some(_), Scope::Operator) => false,
        (Some(own), Scope::Member { workspace, .. } | Scope::Agent { workspace, .. }) => own == workspace,
    }
}

/// Whether a scope can be of use by this configuration.
fn fits(scope: &Scope, config: &Config) -> Result<(), Problem> {
    let Scope::Member { workspace, member, is_admin } = scope else { return Ok(()) };
    match config.workspaces.get(workspace).map(|workspace| workspace.members.get(member)) {
        Some(Some(role)) if !is_admin || *role == config::Role::Admin => Ok(()),
        Some(Some(_)) => Err(Problem::Refused(format!(
            "{member} is no admin of workspace {workspace}: make it one under `members`, or leave `admin` out"
        ))),
        Some(None) => Err(Problem::Refused(format!(
            "{member} is no member of workspace {workspace}: add it under `members` first"
        ))),
        None => Err(unknown_members(workspace)),
    }
}

fn unknown_members(workspace: &Name) -> Problem {
    Problem::Conflict(format!(
        "the file of workspace {workspace} has mistakes, so nobody knows its members: mend it first"
    ))
}

/// The only member of a workspace with at least this role.
///
/// # Errors
/// When there is none, or more than one.
pub(super) fn only_member(config: &Config, workspace: &Name, is_admin: bool) -> Result<String, Problem> {
    let Some(found) = config.workspaces.get(workspace) else {
        return Err(match config.aside.contains(workspace) {
            true => unknown_members(workspace),
            false => {
                Problem::Unknown(format!("there is no workspace {:?} that this token may see", workspace.as_str()))
            }
        });
    };
    let fitting = found.members.iter().filter(|(_, role)| !is_admin || **role == config::Role::Admin);
    let names: Vec<&String> = fitting.map(|(name, _)| name).collect();
    match names.as_slice() {
        [only] => Ok((*only).clone()),
        [] => Err(Problem::Refused(format!(
            "workspace {workspace} has no member with this role: add one under `members`"
        ))),
        [..] => {
            Err(Problem::Refused(format!("workspace {workspace} has {} members with this role: name one", names.len())))
        }
    }
}

fn check_words(wanted: &Wanted) -> Result<(), Problem> {
    let is_wrong = |label: &String| label.chars().count() > LABEL_CHARS_MAX || label.chars().any(char::is_control);
    if wanted.label.as_ref().is_some_and(is_wrong) {
        return Err(Problem::Refused(format!("a label is one line of at most {LABEL_CHARS_MAX} characters")));
    }
    if wanted.is_link && wanted.life.is_some() {
        return Err(Problem::Refused("a link ends by itself after ten minutes: leave the time out".to_owned()));
    }
    if wanted.life.is_some_and(|life| !(LIFE_MIN..=LIFE_MAX).contains(&life)) {
        return Err(Problem::Refused("a token lasts from 1m to 3650d, or for ever when no time is said".to_owned()));
    }
    Ok(())
}
