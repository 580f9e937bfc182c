//! Calls of connectors' tools: pure code decides on a call and the grants; who calls is handed in.

use std::time::Duration;

use serde_json::{Map, Value};

use super::secret::MISPLACED;
use super::{Permission, denied};
use crate::notification::Name;
use crate::tools::{Call, Said, Stage, Tools, Trouble};
use crate::wasm::{Fault, Reach, ToolAnswer, ToolCall};

/// Longest name of a tool, bytes: twice what the protocol advises.
pub const TOOL_BYTES_MAX: usize = 256;
/// Largest arguments, bytes of JSON: as large as a digest may be.
pub const ARGUMENTS_BYTES_MAX: usize = 256 * 1024;
/// Largest answer that is handed on, bytes of JSON: as much as of an HTTP answer.
pub const CONTENT_BYTES_MAX: usize = 256 * 1024;
/// The longest a tool is waited for, once its server is connected. What takes longer is better started, and asked for
/// after a `wait`.
pub const TIME_MAX: Duration = Duration::from_secs(60);

/// What may be called.
#[derive(Clone, Debug, PartialEq)]
pub struct AllowedCall {
    /// A connector of the delivery's workspace.
    pub connector: Name,
    /// The tool.
    pub tool: String,
    /// What it is given.
    pub arguments: Map<String, Value>,
    /// How long to wait.
    pub time_max: Duration,
}

/// Judges a call. `has` says whether the delivery's workspace has a connector.
///
/// # Errors
/// Why it is refused, and what the operator, the admin or the plugin's author should change.
pub fn judge(
    call: &ToolCall,
    permission: &Permission<'_>,
    has: impl FnOnce(&Name) -> bool,
) -> Result<AllowedCall, Fault> {
    let texts = [("connector", &call.connector), ("tool", &call.tool), ("arguments", &call.arguments)];
    for (place, text) in texts.into_iter().chain([("extras", &call.extras)]) {
        placeless(place, text, permission)?;
    }
    let connector = connector(&call.connector, permission, has)?;
    if call.tool.is_empty() || call.tool.len() > TOOL_BYTES_MAX {
        let found = call.tool.len();
        return Err(denied("tool", format!("tool.tool has {found} bytes; a tool's name has 1 to {TOOL_BYTES_MAX}")));
    }
    granted(&connector, &call.tool, permission)?;
    let arguments = arguments(&call.arguments, permission)?;
    let asked = call.timeout_ms.map(|milliseconds| Duration::from_millis(milliseconds.into()));
    let time_max = asked.map_or(TIME_MAX, |asked| asked.min(TIME_MAX));
    Ok(AllowedCall { connector, tool: call.tool.clone(), arguments, time_max })
}

fn connector(text: &str, permission: &Permission<'_>, has: impl FnOnce(&Name) -> bool) -> Result<Name, Fault> {
    let workspace = permission.workspace;
    let name: Name = text.parse().map_err(|error| denied("connector", format!("tool.connector: {error}")))?;
    if has(&name) {
        return Ok(name);
    }
    let message = format!(
        "workspace {workspace} has no connector {name}: name one of those under `connectors` in its file, or add it there"
    );
    Err(denied("no-connector", message))
}

fn granted(connector: &Name, tool: &str, permission: &Permission<'_>) -> Result<(), Fault> {
    let Permission { plugin, workspace, grant, .. } = permission;
    let is_listed = grant
        .tools
        .iter()
        .any(|entry| entry.workspace == **workspace && entry.connector == *connector && entry.tool == tool);
    let message = if !is_listed {
        // Quoted as YAML reads it: a name of a tool may hold anything.
        let entry = Value::from(format!("{workspace}:{connector}/{tool}"));
        format!(
            "plugin {plugin} is not granted this tool: the operator may add {entry} in switchbell.yaml to \
             plugins.grants.{plugin}.tools"
        )
    } else if !grant.allows_in(workspace) {
        format!(
            "plugin {plugin} is not granted tools in workspace {workspace}: the operator may add {workspace} in \
             switchbell.yaml to plugins.grants.{plugin}.workspaces"
        )
    } else {
        return Ok(());
    };
    Err(denied("not-granted", message))
}

fn arguments(text: &str, permission: &Permission<'_>) -> Result<Map<String, Value>, Fault> {
    if text.len() > ARGUMENTS_BYTES_MAX {
        let found = text.len();
        let message = format!("tool.arguments has {found} bytes; at most {ARGUMENTS_BYTES_MAX}");
        return Err(denied("arguments-too-large", message));
    }
    let wrong = |error| denied("arguments", format!("tool.arguments is no JSON object ({error}); write {{}} for none"));
    let arguments: Map<String, Value> = serde_json::from_str(text).map_err(wrong)?;
    // JSON can spell a placeholder in other ways than it is sent in.
    let sent = serde_json::to_string(&arguments).unwrap_or_default();
    placeless("arguments", &sent, permission)?;
    Ok(arguments)
}

/// A tool is called with the connector's own credential: no rule of a secret lets it stand in a call.
fn placeless(place: &str, text: &str, permission: &Permission<'_>) -> Result<(), Fault> {
    match permission.seals.found_in(text.as_bytes()) {
        Some(name) => {
            let message = format!(
                "secret {name} may not stand in the call of a tool, but does in tool.{place}: the connector signs in by \
                 itself"
            );
            Err(denied(MISPLACED, message))
        }
        None => Ok(()),
    }
}

/// Judges a call and makes it.
///
/// # Errors
/// Why it is refused, or how far it got without an answer.
pub(super) async fn perform(
    tools: &dyn Tools,
    call: &ToolCall,
    permission: &Permission<'_>,
) -> Result<ToolAnswer, Fault> {
    let allowed = judge(call, permission, |connector| tools.has(permission.workspace, connector))?;
    let call = Call {
        workspace: permission.workspace,
        connector: &allowed.connector,
        tool: &allowed.tool,
        arguments: allowed.arguments,
        on_behalf_of: permission.on_behalf_of,
        delivery: permission.delivery,
        time_max: allowed.time_max,
    };
    tools.call(call).await.map(answer).map_err(fault)
}

fn answer(said: Said) -> ToolAnswer {
    let content = Value::Object(said.content).to_string();
    let truncated = content.len() > CONTENT_BYTES_MAX;
    ToolAnswer { is_error: said.is_error, content: if truncated { "{}".to_owned() } else { content }, truncated }
}

fn fault(trouble: Trouble) -> Fault {
    let Trouble { stage, code, message, status, retry_after } = trouble;
    let reach = match stage {
        Stage::Unsent => Reach::Unsent,
        Stage::Refused => Reach::Refused,
        Stage::Unanswered => Reach::Unanswered,
    };
    let seconds = |wait: Duration| u32::try_from(wait.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX);
    Fault { reach, code, message, status, after_seconds: retry_after.map(seconds) }
}

#[cfg(test)]
mod tests;
