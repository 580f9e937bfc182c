//! Deliveries: read, had made again, cancelled.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::entry::{AnId, Asked, ChangeWork, InWorkspace, NAMING_BYTES_MAX, ReadWork, Segments, Within};
use super::query::{limit, listed, moment};
use crate::inbox::delivery::State as Standing;
use crate::inbox::{DeliveryView, Inbox, InboxError, Page, Which};
use crate::notification::Name;
use crate::serve::Served;
use crate::serve::desk::{Change, DoneJson, HandledJson, WhichJson, unknown_filter};
use crate::serve::problem::Problem;
use crate::serve::shapes::{DeliveryJson, ListJson};

/// Deliveries of one answer.
const LIMIT_MAX: u32 = 1_000;

/// Deliveries of one answer, unless it is said.
const LIMIT: u32 = 100;

pub(super) fn routes() -> OpenApiRouter<Arc<Served>> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(show))
        .routes(routes!(retry))
        .routes(routes!(cancel))
        .routes(routes!(retry_one))
        .routes(routes!(cancel_one))
}

/// Which deliveries are meant: those for which everything holds that is asked.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct DeliveriesAsked {
    /// In one of these states, with commas between them.
    #[serde(default, deserialize_with = "listed")]
    #[param(inline, required = false, style = Form, explode = false, value_type = Vec<StateJson>, min_items = 1, max_items = 1000)]
    state: Vec<StateName>,
    /// Of this route.
    #[param(pattern = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
    route: Option<String>,
    /// By this plugin.
    #[param(pattern = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
    plugin: Option<String>,
    /// Made at or after this moment, RFC 3339.
    #[param(format = DateTime)]
    since: Option<String>,
    /// Of the notification with this number.
    seq: Option<u64>,
    /// Only those whose first notification has a smaller number.
    before: Option<u64>,
    /// At most so many, and as many more as belong to the last notification.
    #[serde(default = "usual_limit")]
    #[param(required = false, minimum = 1, maximum = 1000, default = 100)]
    limit: u32,
}

fn usual_limit() -> u32 {
    LIMIT
}

/// A state of a delivery.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "it only describes the words of `StateName`")]
pub(super) enum StateJson {
    Scheduled,
    Held,
    Collecting,
    Pending,
    InFlight,
    Waiting,
    Retrying,
    Blocked,
    Delivered,
    Dead,
    Unknown,
    Suppressed,
    Cancelled,
}

/// A state by its word.
#[derive(Clone, Copy, Debug)]
struct StateName(Standing);

impl std::str::FromStr for StateName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Standing::ALL.map(Standing::as_str).join(", ");
        Standing::parse(text).map(Self).ok_or_else(|| format!("there is no such state (there are: {})", known()))
    }
}

impl DeliveriesAsked {
    fn which(&self) -> Result<Which, Problem> {
        let name = |key: &str, text: &Option<String>| {
            let parse = |text: &String| text.parse().map_err(|why| Problem::Wrong(format!("{key}: {text:?}: {why}")));
            text.as_ref().map(parse).transpose()
        };
        Ok(Which {
            ids: Vec::new(),
            states: self.state.iter().map(|state| state.0).collect(),
            route: name("route", &self.route)?,
            plugin: name("plugin", &self.plugin)?,
            since: moment("since", self.since.as_deref())?,
            seq: self.seq,
        })
    }
}

/// Lists deliveries with their attempts, by their first notification, newest first.
///
/// All deliveries of one notification are in one answer.
#[utoipa::path(
    get,
    path = "/workspaces/{ws}/deliveries",
    operation_id = "listDeliveries",
    tag = "deliveries",
    params(InWorkspace, DeliveriesAsked),
    responses((status = 200, body = ListJson<DeliveryJson>, description = "Those that were found."))
)]
async fn list(
    State(served): State<Arc<Served>>,
    within: Within<ReadWork, DeliveriesAsked>,
) -> Result<Json<ListJson<DeliveryJson>>, Problem> {
    let (asked, which) = (&within.query, within.query.which()?);
    let limit = limit(asked.limit, LIMIT_MAX)?;
    let page = Page { workspace: within.admitted.name().clone(), before: asked.before, limit };
    let found = served.store.deliveries(page, which.clone()).await?;
    if found.is_empty()
        && let Some(workspace) = within.admitted.workspace()
        && let Some(why) = unknown_filter(workspace, which.route.as_ref(), which.plugin.as_ref())
    {
        return Err(Problem::Unknown(why));
    }
    let is_full = found.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    let last = found.last().and_then(|last| last.seqs.first().copied()).filter(|_| is_full);
    let next = match last {
        Some(last) => behind(&*served.store, within.admitted.name(), last, which).await?.then_some(last),
        None => None,
    };
    Ok(Json(ListJson { items: found.iter().map(DeliveryJson::from).collect(), next }))
}

/// Whether there are more.
async fn behind<I: Inbox + ?Sized>(store: &I, workspace: &Name, last: u64, which: Which) -> Result<bool, InboxError> {
    let page = Page { workspace: workspace.clone(), before: Some(last), limit: 1 };
    store.deliveries(page, which).await.map(|more| !more.is_empty())
}

/// Shows one delivery with its attempts.
#[utoipa::path(
    get,
    path = "/workspaces/{ws}/deliveries/{id}",
    operation_id = "getDelivery",
    tag = "deliveries",
    params(InWorkspace, AnId),
    responses((status = 200, body = DeliveryJson, description = "The delivery."))
)]
async fn show(
    State(served): State<Arc<Served>>,
    within: Within<ReadWork>,
    Segments(id): Segments<AnId>,
) -> Result<Json<DeliveryJson>, Problem> {
    let (id, workspace) = (id.parse()?, within.admitted.name());
    let page = Page { workspace: workspace.clone(), before: None, limit: 1 };
    let which = Which { ids: vec![id.clone()], ..Which::default() };
    let found = served.store.deliveries(page, which).await?;
    let is_it = |view: &&DeliveryView| view.id == id;
    let nothing = || Problem::Nothing(format!("workspace {workspace} has no delivery {id}"));
    Ok(Json(found.iter().find(is_it).map(DeliveryJson::from).ok_or_else(nothing)?))
}

/// Has deliveries made again, at once.
///
/// Dead, blocked and retrying ones go on; of those that are over otherwise, a new delivery is made that names the old one.
/// Something must be named: ids, filters, or `all`.
#[utoipa::path(
    post,
    path = "/workspaces/{ws}/deliveries/retry",
    operation_id = "retryDeliveries",
    tag = "deliveries",
    params(InWorkspace),
    request_body = WhichJson,
    responses((status = 200, body = HandledJson, description = "What became of them."))
)]
async fn retry(
    State(served): State<Arc<Served>>,
    within: Within<ChangeWork>,
    Asked(asked): Asked<WhichJson, NAMING_BYTES_MAX>,
) -> Result<Json<HandledJson>, Problem> {
    Ok(Json(served.desk.change(within.name(), Change::Retry, &asked, &within.caller).await?))
}

/// Cancels deliveries that are neither in flight nor over.
///
/// Something must be named: ids, filters, or `all`.
#[utoipa::path(
    post,
    path = "/workspaces/{ws}/deliveries/cancel",
    operation_id = "cancelDeliveries",
    tag = "deliveries",
    params(InWorkspace),
    request_body = WhichJson,
    responses((status = 200, body = HandledJson, description = "What became of them."))
)]
async fn cancel(
    State(served): State<Arc<Served>>,
    within: Within<ChangeWork>,
    Asked(asked): Asked<WhichJson, NAMING_BYTES_MAX>,
) -> Result<Json<HandledJson>, Problem> {
    Ok(Json(served.desk.change(within.name(), Change::Cancel, &asked, &within.caller).await?))
}

/// Has one delivery made again, at once.
#[utoipa::path(
    post,
    path = "/workspaces/{ws}/deliveries/{id}/retry",
    operation_id = "retryDelivery",
    tag = "deliveries",
    params(InWorkspace, AnId),
    responses(
        (status = 200, body = DoneJson, description = "What became of it."),
        (status = 409, description = "Its state does not allow it.")
    )
)]
async fn retry_one(
    State(served): State<Arc<Served>>,
    within: Within<ChangeWork>,
    Segments(id): Segments<AnId>,
) -> Result<Json<DoneJson>, Problem> {
    Ok(Json(served.desk.change_one(within.name(), Change::Retry, &id.parse()?, &within.caller).await?))
}

/// Cancels one delivery.
#[utoipa::path(
    post,
    path = "/workspaces/{ws}/deliveries/{id}/cancel",
    operation_id = "cancelDelivery",
    tag = "deliveries",
    params(InWorkspace, AnId),
    responses(
        (status = 200, body = DoneJson, description = "What became of it."),
        (status = 409, description = "Its state does not allow it.")
    )
)]
async fn cancel_one(
    State(served): State<Arc<Served>>,
    within: Within<ChangeWork>,
    Segments(id): Segments<AnId>,
) -> Result<Json<DoneJson>, Problem> {
    Ok(Json(served.desk.change_one(within.name(), Change::Cancel, &id.parse()?, &within.caller).await?))
}

#[cfg(test)]
mod tests {
    use utoipa::PartialSchema;

    use super::*;

    #[test]
    fn the_document_names_every_state() {
        let schema = serde_json::to_value(StateJson::schema()).unwrap();
        assert_eq!(schema["enum"], serde_json::json!(Standing::ALL.map(Standing::as_str)));
    }
}
