//! Who asks, and what that one may see.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MeJson {
    /// The name that marks are made under: a member, a consumer, or `operator`.
    pub name: String,
    /// `operator`, `admin`, `member` or `agent`.
    pub role: String,
    /// What may be done where no workspace is named: `operate`, or nothing.
    pub rights: Vec<String>,
    /// The workspaces that may be seen.
    pub workspaces: Vec<WorkspaceJson>,
}

/// A workspace that may be seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceJson {
    /// Its name.
    pub workspace_id: String,
    /// Whether it is set aside because its file has mistakes: what it is owed waits for a better one.
    pub is_aside: bool,
    /// What may be done in it: `read_inbox`, `mark`, `read_work`, `change_work`.
    pub rights: Vec<String>,
}
