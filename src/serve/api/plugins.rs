//! Plugins: what a workspace may use, and, for the operator, every version.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequest, Request, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::entry::{AName, Asked, InWorkspace, NAMING_BYTES_MAX, Operating, ReadWork, Segments, Within, body};
use crate::config::{Config, Workspace};
use crate::notification::Name;
use crate::send::upgrade::{Done, PluginView, Refused};
use crate::send::wants::host_text;
use crate::serve::Served;
use crate::serve::body::UPLOAD_TIME_MAX;
use crate::serve::problem::{DetailedJson, Problem};
use crate::serve::shapes::{
    ChangedJson, FROM_HEADER, ListJson, PluginJson, SIGNATURE_HEADER, VersionDoneJson, VersionRefusedJson,
    WhichVersionJson,
};
use crate::wasm::PLUGIN_BYTES_MAX;

/// The media types of a component.
const COMPONENT: [&str; 2] = ["application/wasm", "application/octet-stream"];

pub(super) fn routes() -> OpenApiRouter<Arc<Served>> {
    OpenApiRouter::new()
        .routes(routes!(usable))
        .routes(routes!(list, load))
        .routes(routes!(roll_back))
        .routes(routes!(approve))
}

/// A plugin that a workspace may deliver by.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsableJson {
    /// Its name.
    name: String,
    /// The version that runs; null while none does.
    version: Option<String>,
    /// The SHA-256 of its file, in hex.
    digest: Option<String>,
    /// What it may reach in deliveries of this workspace.
    grants: GrantsJson,
    /// The workspace's routes that deliver by it.
    routes: Vec<String>,
}

/// What a plugin may reach.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct GrantsJson {
    /// Hosts, as the operator's file writes them.
    http: Vec<String>,
    /// Whether it may send mail.
    mail: bool,
    /// Tools of the workspace's connectors, `connector/tool`.
    tools: Vec<String>,
}

impl GrantsJson {
    fn new(config: &Config, plugin: &Name, workspace: &Name) -> Self {
        let Some(grant) = config.plugins.grants.get(plugin).filter(|grant| grant.allows_in(workspace)) else {
            return Self::default();
        };
        let is_ours = |names: &[Name]| names.is_empty() || names.contains(workspace);
        let tools = grant.tools.iter().filter(|tool| tool.workspace == *workspace);
        Self {
            http: grant.http.iter().filter(|host| is_ours(&host.workspaces)).map(host_text).collect(),
            mail: grant.mail,
            tools: tools.map(|tool| format!("{}/{}", tool.connector, tool.tool)).collect(),
        }
    }
}

impl UsableJson {
    fn new(of: PluginView, config: &Config, workspace: &Name, used: Vec<String>) -> Self {
        Self {
            grants: GrantsJson::new(config, &of.name, workspace),
            name: of.name.to_string(),
            version: of.active.as_ref().map(|active| active.version.clone()),
            digest: of.active.map(|active| active.digest),
            routes: used,
        }
    }
}

/// The routes that deliver by a plugin, each once.
fn used_by(workspace: Option<&Workspace>, plugin: &Name) -> Vec<String> {
    let routes = workspace.into_iter().flat_map(|workspace| &workspace.routes);
    let by_it = routes.filter(|route| route.deliver.iter().any(|target| target.plugin == *plugin));
    by_it.map(|route| route.name.to_string()).collect()
}

/// Lists the plugins that a workspace may deliver by, with what they may reach for it.
///
/// A plugin that is granted to other workspaces alone is listed only where a route names it.
#[utoipa::path(
    get,
    path = "/workspaces/{ws}/plugins",
    operation_id = "listWorkspacePlugins",
    tag = "plugins",
    params(InWorkspace),
    responses((status = 200, body = ListJson<UsableJson>, description = "All of them."))
)]
async fn usable(
    State(served): State<Arc<Served>>,
    within: Within<ReadWork>,
) -> Result<Json<ListJson<UsableJson>>, Problem> {
    let (config, name) = (within.admitted.config(), within.admitted.name());
    let views = served.plugins.list().await.ok_or_else(stopping)?;
    let usable = views.into_iter().filter_map(|view| {
        let used = used_by(within.admitted.workspace(), &view.name);
        let is_granted = config.plugins.grants.get(&view.name).is_none_or(|grant| grant.allows_in(name));
        let is_usable = !used.is_empty() || is_granted && view.active.is_some();
        is_usable.then(|| UsableJson::new(view, config, name, used))
    });
    Ok(Json(ListJson::whole(usable.collect())))
}

/// Lists every plugin with its versions.
#[utoipa::path(
    get,
    path = "/plugins",
    operation_id = "listPlugins",
    tag = "plugins",
    responses((status = 200, body = ListJson<PluginJson>, description = "All of them."))
)]
async fn list(State(served): State<Arc<Served>>, _operating: Operating) -> Result<Json<ListJson<PluginJson>>, Problem> {
    let views = served.plugins.list().await.ok_or_else(stopping)?;
    Ok(Json(ListJson::whole(views.into_iter().map(PluginJson::from).collect())))
}

/// Loads a version of a plugin: a WebAssembly component.
///
/// It is compiled, compared with the version that runs, kept, and only then swapped in; deliveries go on meanwhile.
#[utoipa::path(
    post,
    path = "/plugins",
    operation_id = "loadPlugin",
    tag = "plugins",
    params(
        ("x-switchbell-from" = Option<String>, Header,
            pattern = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$",
            description = "What a person calls the file, in base64."),
        ("x-switchbell-signature" = Option<String>, Header,
            pattern = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$",
            description = "The text of its minisign signature, in base64.")
    ),
    request_body(
        content((String = "application/wasm"), (String = "application/octet-stream")),
        description = "The component."
    ),
    responses(
        (status = 200, body = VersionDoneJson, description = "It runs, ran already, or is held."),
        (status = 422, body = DetailedJson<VersionRefusedJson>, content_type = "application/problem+json",
            description = "Nothing was changed.")
    )
)]
async fn load(
    State(served): State<Arc<Served>>,
    _operating: Operating,
    headers: HeaderMap,
    Component(bytes): Component,
) -> Result<Response, Problem> {
    let from = header(&headers, FROM_HEADER)?.unwrap_or_default();
    let signature = header(&headers, SIGNATURE_HEADER)?;
    Ok(changed(served.plugins.load(PathBuf::from(from), bytes, signature).await))
}

/// Goes back to an earlier version of a plugin.
#[utoipa::path(
    post,
    path = "/plugins/{name}/rollback",
    operation_id = "rollBackPlugin",
    tag = "plugins",
    params(AName),
    request_body = WhichVersionJson,
    responses(
        (status = 200, body = VersionDoneJson, description = "The earlier version runs."),
        (status = 422, body = DetailedJson<VersionRefusedJson>, content_type = "application/problem+json",
            description = "Nothing was changed.")
    )
)]
async fn roll_back(
    State(served): State<Arc<Served>>,
    _operating: Operating,
    Segments(AName { name }): Segments<AName>,
    Asked(asked): Asked<WhichVersionJson, NAMING_BYTES_MAX>,
) -> Result<Response, Problem> {
    Ok(changed(served.plugins.roll_back(parsed(&name)?, asked.version).await))
}

/// Lets in a version of a plugin that is held.
#[utoipa::path(
    post,
    path = "/plugins/{name}/approve",
    operation_id = "approvePlugin",
    tag = "plugins",
    params(AName),
    request_body = WhichVersionJson,
    responses(
        (status = 200, body = VersionDoneJson, description = "The version runs."),
        (status = 422, body = DetailedJson<VersionRefusedJson>, content_type = "application/problem+json",
            description = "Nothing was changed.")
    )
)]
async fn approve(
    State(served): State<Arc<Served>>,
    _operating: Operating,
    Segments(AName { name }): Segments<AName>,
    Asked(asked): Asked<WhichVersionJson, NAMING_BYTES_MAX>,
) -> Result<Response, Problem> {
    Ok(changed(served.plugins.approve(parsed(&name)?, asked.version).await))
}

/// The bytes of a component. They are read after it is known that the sender may load one.
struct Component(Vec<u8>);

impl FromRequest<Arc<Served>> for Component {
    type Rejection = Problem;

    async fn from_request(request: Request, served: &Arc<Served>) -> Result<Self, Problem> {
        body(request, served, &COMPONENT, PLUGIN_BYTES_MAX, UPLOAD_TIME_MAX).await.map(Self)
    }
}

fn stopping() -> Problem {
    Problem::Unavailable("the server is stopping".to_owned())
}

fn parsed(name: &str) -> Result<Name, Problem> {
    name.parse().map_err(|why| Problem::Unknown(format!("{name:?}: {why}")))
}

/// A text in base64.
fn header(headers: &HeaderMap, name: &str) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let bytes = STANDARD.decode(value).map_err(|error| Problem::Wrong(format!("{name}: {error}")))?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

fn changed(came: Result<Done, Refused>) -> Response {
    match ChangedJson::from(came) {
        ChangedJson { refused: Some(refused), .. } => {
            DetailedJson { problem: Problem::Refused(refused.why.clone()).json(), refused }.into_response()
        }
        ChangedJson { done, .. } => Json(done).into_response(),
    }
}
