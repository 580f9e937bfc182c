//! What a token allows by the configuration as it is now.

use super::caller::Proof;
use super::{Caller, Role};
use crate::config::{self, Config};
use crate::inbox::{Actor, Scope, Token};
use crate::serve::problem::Problem;

/// The name that the operator's marks are made under.
const OPERATOR: &str = "operator";

/// Who presents this token, by this configuration.
///
/// # Errors
/// [`Problem::Unauthenticated`] when its member or workspace is gone, [`Problem::Unavailable`] while nobody knows the members.
pub(super) fn caller(token: &Token, config: &Config) -> Result<Caller, Problem> {
    let (role, workspace, actor) = match &token.scope {
        Scope::Operator => (Role::Operator, None, person(OPERATOR)),
        Scope::Member { workspace, member, is_admin } => {
            let Some(now) = config.workspaces.get(workspace) else {
                return Err(match config.aside.contains(workspace) {
                    true => Problem::Unavailable(format!(
                        "the file of workspace {workspace} has mistakes, so nobody knows its members: its admin or the \
                         operator must mend it (`switchbell check` shows how)"
                    )),
                    false => gone(&format!("workspace {workspace}")),
                });
            };
            let role = match now.members.get(member) {
                Some(config::Role::Admin) if *is_admin => Role::Admin,
                Some(_) => Role::Member,
                None => return Err(gone(&format!("member {member} of workspace {workspace}"))),
            };
            (role, Some(workspace), person(member))
        }
        Scope::Agent { workspace, consumer, may_read, may_ack } => {
            if !config.workspaces.contains_key(workspace) && !config.aside.contains(workspace) {
                return Err(gone(&format!("workspace {workspace}")));
            }
            let actor = Actor { name: consumer.to_string(), is_agent: true };
            (Role::Agent { may_read: *may_read, may_ack: *may_ack }, Some(workspace), actor)
        }
    };
    let proof = Proof { hash: token.hash, kind: token.kind, expires_at: token.expires_at };
    let consumer = match &token.scope {
        Scope::Agent { consumer, .. } => Some(consumer.clone()),
        Scope::Operator | Scope::Member { .. } => None,
    };
    Ok(Caller { token: Some(token.id), role, workspace: workspace.cloned(), actor, consumer, proof: Some(proof) })
}

fn person(name: &str) -> Actor {
    Actor { name: name.to_owned(), is_agent: false }
}

fn gone(what: &str) -> Problem {
    Problem::Unauthenticated(format!("this token was made for {what}, which is gone: have another one made"))
}
