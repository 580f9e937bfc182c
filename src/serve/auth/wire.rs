//! Tokens as every surface spells them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::tokens::{Wanted, only_member};
use super::{Gate, Made, Revoked};
use crate::config::{self, Config};
use crate::inbox::{Scope, Token, TokenKind};
use crate::notification::Name;
use crate::serve::problem::Problem;

/// A token that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NewTokenJson {
    /// `operator`, `admin`, `member` or `agent`.
    pub role: String,
    /// The workspace; of all but an operator.
    pub workspace_id: Option<String>,
    /// The member, as its file names it; may be left out where only one fits. Of admins and members.
    pub member: Option<String>,
    /// The consumer; of agents.
    pub consumer: Option<String>,
    /// What an agent may: `read`, `ack`. Both when left out.
    pub scopes: Option<Vec<String>>,
    /// What it is for, at most 100 characters.
    pub label: Option<String>,
    /// How long it is good, such as `90d`; for ever when left out. Never longer than what makes it: see `expiresAt` in the answer.
    pub expires_in: Option<String>,
    /// Whether a link that signs a browser in is wanted instead. It works once, within ten minutes.
    pub link: bool,
}

/// A token that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MadeTokenJson {
    /// The token. Nobody can read it again. Null for a link.
    pub token: Option<String>,
    /// The link; null for a token.
    pub link: Option<String>,
    /// What is kept of it.
    pub made: TokenJson,
}

/// A token that was revoked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevokedTokenJson {
    /// What is kept of it.
    #[serde(flatten)]
    pub token: TokenJson,
    /// How many good ones were made from it and were revoked with it: tokens, links and sessions.
    pub made_from_it: usize,
}

/// A token as it is kept. Moments are RFC 3339.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenJson {
    /// Its number.
    pub id: i64,
    /// `bearer`, `link`, or `session` for a signed-in browser.
    pub kind: String,
    /// `operator`, `admin`, `member` or `agent`.
    pub role: String,
    /// The workspace; null of an operator.
    pub workspace_id: Option<String>,
    /// The member; null of others.
    pub member: Option<String>,
    /// The consumer; null of others.
    pub consumer: Option<String>,
    /// What an agent may; null of others.
    pub scopes: Option<Vec<String>>,
    /// What it is for.
    pub label: Option<String>,
    /// The token or session it was made from, with which it ends; null where a command on the server's machine made it.
    pub parent: Option<i64>,
    /// When it was made.
    pub created_at: String,
    /// When it ends by itself.
    pub expires_at: Option<String>,
    /// When it was revoked; of links also when it was used.
    pub revoked_at: Option<String>,
    /// When it was used last, to the minute, written down within a minute.
    pub used_at: Option<String>,
}

impl From<Token> for TokenJson {
    fn from(of: Token) -> Self {
        let moment = |at: Timestamp| at.to_string();
        let mut json = Self {
            id: of.id,
            kind: of.kind.as_str().to_owned(),
            role: "operator".to_owned(),
            workspace_id: None,
            member: None,
            consumer: None,
            scopes: None,
            label: of.label,
            parent: of.parent,
            created_at: moment(of.created_at),
            expires_at: of.expires_at.map(moment),
            revoked_at: of.revoked_at.map(moment),
            used_at: of.used_at.map(moment),
        };
        match of.scope {
            Scope::Operator => {}
            Scope::Member { workspace, member, is_admin } => {
                json.role = if is_admin { "admin" } else { "member" }.to_owned();
                json.workspace_id = Some(workspace.to_string());
                json.member = Some(member);
            }
            Scope::Agent { workspace, consumer, may_read, may_ack } => {
                let scopes = [(may_read, "read"), (may_ack, "ack")].into_iter().filter(|(may, _)| *may);
                json.role = "agent".to_owned();
                json.workspace_id = Some(workspace.to_string());
                json.consumer = Some(consumer.to_string());
                json.scopes = Some(scopes.map(|(_, scope)| scope.to_owned()).collect());
            }
        }
        json
    }
}

impl From<Revoked> for RevokedTokenJson {
    fn from(of: Revoked) -> Self {
        Self { token: of.token.into(), made_from_it: of.made_from_it }
    }
}

impl MadeTokenJson {
    /// What was made, with its text.
    pub(super) fn new(made: Made, gate: &Gate) -> Self {
        let (token, link) = match made.token.kind {
            TokenKind::Link => (None, gate.sign_in_url(&made.text)),
            _ => (Some(made.text.as_str().to_owned()), None),
        };
        Self { token, link, made: made.token.into() }
    }
}

impl NewTokenJson {
    /// What is wanted, by this configuration.
    ///
    /// # Errors
    /// [`Problem::Refused`], which names what is missing or too much.
    pub fn wanted(self, config: &Config) -> Result<Wanted, Problem> {
        let life = self.expires_in.as_deref().map(config::duration).transpose();
        let life = life.map_err(|why| Problem::Refused(format!("how long it is good: {why}")))?;
        let (label, is_link) = (self.label.clone(), self.link);
        let wanted = Wanted { scope: self.scope(config)?, is_link, label, life };
        match (is_link, &wanted.scope) {
            (true, Scope::Agent { .. }) => {
                Err(Problem::Refused("a link signs a browser in, which agents have none of".to_owned()))
            }
            _ => Ok(wanted),
        }
    }

    fn scope(self, config: &Config) -> Result<Scope, Problem> {
        let role = self.role.as_str();
        let is_person = matches!(role, "admin" | "member");
        let of_others = [
            ("workspace", self.workspace_id.is_some() && role == "operator"),
            ("member", self.member.is_some() && !is_person),
            ("consumer", self.consumer.is_some() && role != "agent"),
            ("scopes", self.scopes.is_some() && role != "agent"),
        ];
        if let Some((what, _)) = of_others.into_iter().find(|(_, is_too_much)| *is_too_much) {
            return Err(Problem::Refused(format!("{what}: the role {role:?} has none: leave it out")));
        }
        let workspace = || match &self.workspace_id {
            Some(text) => name("workspace", text),
            None => Err(Problem::Refused(format!("workspace: the role {role:?} is of a workspace: name it"))),
        };
        match role {
            "operator" => Ok(Scope::Operator),
            "admin" | "member" => {
                let (workspace, is_admin) = (workspace()?, role == "admin");
                let member = match self.member {
                    Some(member) => member,
                    None => only_member(config, &workspace, is_admin)?,
                };
                Ok(Scope::Member { workspace, member, is_admin })
            }
            "agent" => {
                let Some(consumer) = &self.consumer else {
                    return Err(Problem::Refused("consumer: the role \"agent\" needs the consumer's name".to_owned()));
                };
                let (may_read, may_ack) = scopes(self.scopes.as_deref())?;
                Ok(Scope::Agent { workspace: workspace()?, consumer: name("consumer", consumer)?, may_read, may_ack })
            }
            _ => Err(Problem::Refused(format!("role: {role:?} is none: write operator, admin, member or agent"))),
        }
    }
}

fn name(what: &str, text: &str) -> Result<Name, Problem> {
    text.parse().map_err(|error| Problem::Refused(format!("{what}: {text:?}: {error}")))
}

fn scopes(named: Option<&[String]>) -> Result<(bool, bool), Problem> {
    let Some(named) = named else { return Ok((true, true)) };
    if let Some(other) = named.iter().find(|scope| !["read", "ack"].contains(&scope.as_str())) {
        return Err(Problem::Refused(format!("scopes: {other:?} is none: write read, ack or both")));
    }
    if named.is_empty() {
        return Err(Problem::Refused("scopes: name read, ack or both".to_owned()));
    }
    let has = |scope: &str| named.iter().any(|named| named == scope);
    Ok((has("read"), has("ack")))
}
