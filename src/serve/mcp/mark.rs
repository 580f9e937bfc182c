//! `notifications__acknowledge` and `notifications__mark_read`: what an agent did with notifications. Whatever token it has,
//! a mark that is made here is an agent's: a person's name may stand on it, a person's hand does not.

use rmcp::model::{CallToolResult, ContentBlock};
use serde::Deserialize;
use serde_json::{Value, json};

use super::list::{IDS_MAX, unavailable};
use super::tools::{asked, workspace};
use crate::inbox::{Actor, Deed, Mark, Marked};
use crate::serve::Served;
use crate::serve::auth::{Caller, Right};
use crate::serve::problem::Problem;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    workspace: Option<String>,
    ids: Vec<u64>,
}

/// Marks.
pub(super) async fn mark(
    served: &Served,
    caller: &Caller,
    deed: Deed,
    arguments: Value,
) -> Result<CallToolResult, Problem> {
    let asked: Asked = asked(arguments)?;
    let workspace = workspace(served, caller, asked.workspace.as_deref(), Right::Mark)?;
    if asked.ids.is_empty() || asked.ids.len() > IDS_MAX {
        return Err(Problem::Wrong(format!("ids: name 1 to {IDS_MAX}, not {}", asked.ids.len())));
    }
    let by = Actor { name: caller.actor.name.clone(), is_agent: true };
    let mark = Mark { at: served.clock.now(), by };
    let marked = served.store.mark(&workspace, asked.ids, deed, mark).await.map_err(unavailable)?;
    let Marked { seqs, missing, suppressed } = marked;
    let done = match deed {
        Deed::Read => "marked as read",
        Deed::Acknowledge => "acknowledged",
    };
    let mut text = format!("{} {done}: {}.", seqs.len(), listed(&seqs));
    if !missing.is_empty() {
        text.push_str(&format!(" The inbox of {workspace} does not have: {}.", listed(&missing)));
    }
    if !suppressed.is_empty() {
        text.push_str(&format!(" Deliveries that are not needed any more: {}.", suppressed.len()));
    }
    let by = &caller.actor.name;
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content =
        Some(json!({ "marked": seqs, "missing": missing, "by": by, "suppressed": suppressed.len() }));
    Ok(result)
}

fn listed(seqs: &[u64]) -> String {
    match seqs {
        [] => "none".to_owned(),
        seqs => seqs.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    }
}
