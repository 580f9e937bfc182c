//! Routes as they are configured.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::entry::{InWorkspace, ReadWork, Within};
use crate::config::{Route, Target, duration_text, shown_settings};
use crate::inbox::delivery::OnUnknown;
use crate::route::timing::{By, Except, Timing, Unless};
use crate::serve::Served;
use crate::serve::problem::Problem;
use crate::serve::shapes::{ListJson, WhenJson};

pub(super) fn routes() -> OpenApiRouter<Arc<Served>> {
    OpenApiRouter::new().routes(routes!(list))
}

/// A route as it is configured.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ConfiguredRouteJson {
    /// Its name.
    name: String,
    /// The admin it acts for.
    owner: String,
    /// What it asks of a notification.
    when: WhenJson,
    /// What a match is delivered to.
    deliver: Vec<ConfiguredTargetJson>,
}

/// A target as it is configured. Times are written as in the file: `1h30m`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConfiguredTargetJson {
    /// Its identity.
    id: String,
    /// Its plugin.
    plugin: String,
    /// The settings. A secret is `{"secret": "<name>"}`; what is plainly a credential is not shown.
    #[schema(value_type = Object)]
    with: Value,
    /// How long it waits before it goes.
    after: Option<WaitJson>,
    /// Whose acknowledgement makes it needless: `person` or `anyone`.
    unless: Option<&'static str>,
    /// Its quiet hours.
    hold: Option<HoldJson>,
    /// How its digests are made.
    collect: Option<CollectJson>,
    /// Its limit.
    at_most: Option<AtMostJson>,
    /// When attempts that failed are repeated.
    retry: RetryJson,
    /// What becomes of a delivery that may or may not have been made: `retry` or `stop`; null where the plugin decides.
    on_unknown: Option<&'static str>,
    /// `strict` or `best_effort`.
    order: &'static str,
}

/// A wait.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WaitJson {
    /// How long.
    wait: String,
    /// `urgent`: what is urgent does not wait.
    except: Option<&'static str>,
}

/// Quiet hours.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HoldJson {
    /// When they begin, by the clock of the zone.
    from: String,
    /// When they end.
    to: String,
    /// The zone's name.
    zone: String,
    /// `urgent`: what is urgent is not held.
    except: Option<&'static str>,
}

/// Digests.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CollectJson {
    /// What goes into one: what shares its `subject`, `source` or `name`; `none` for everything.
    by: &'static str,
    /// How long one is open.
    wait: String,
    /// Notifications that close it early.
    most: u32,
    /// `urgent`: what is urgent goes alone at once.
    except: Option<&'static str>,
}

/// A limit.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AtMostJson {
    /// So many attempts …
    count: u32,
    /// … in this time.
    per: String,
    /// `urgent`: what is urgent is not limited.
    except: Option<&'static str>,
}

/// How attempts are repeated.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RetryJson {
    /// The first wait.
    first: String,
    /// The longest.
    most: String,
    /// When it is given up.
    give_up: String,
}

/// Lists the routes of a workspace, in the order of its file.
#[utoipa::path(
    get,
    path = "/workspaces/{ws}/routes",
    operation_id = "listRoutes",
    tag = "routes",
    params(InWorkspace),
    responses((status = 200, body = ListJson<ConfiguredRouteJson>, description = "All of them."))
)]
async fn list(
    State(_served): State<Arc<Served>>,
    within: Within<ReadWork>,
) -> Result<Json<ListJson<ConfiguredRouteJson>>, Problem> {
    let name = within.admitted.name();
    let aside = || {
        Problem::Conflict(format!(
            "workspace {name} is set aside: its file has mistakes, which `switchbell check` shows: mend them first"
        ))
    };
    let workspace = within.admitted.workspace().ok_or_else(aside)?;
    Ok(Json(ListJson::whole(workspace.routes.iter().map(ConfiguredRouteJson::from).collect())))
}

impl From<&Route> for ConfiguredRouteJson {
    fn from(of: &Route) -> Self {
        Self {
            name: of.name.to_string(),
            owner: of.owner.clone(),
            when: WhenJson::from(&of.when),
            deliver: of.deliver.iter().map(ConfiguredTargetJson::from).collect(),
        }
    }
}

impl From<&Target> for ConfiguredTargetJson {
    fn from(of: &Target) -> Self {
        let Timing { after, unless, hold, collect, at_most } = &of.timing;
        Self {
            id: of.id.clone(),
            plugin: of.plugin.to_string(),
            with: shown_settings(&of.settings),
            after: after.as_ref().map(|it| WaitJson { wait: duration_text(it.wait), except: except(it.except) }),
            unless: unless.map(|unless| match unless {
                Unless::AcknowledgedByPerson => "person",
                Unless::AcknowledgedByAnyone => "anyone",
            }),
            hold: hold.as_ref().map(|it| HoldJson {
                from: it.from.strftime("%H:%M").to_string(),
                to: it.to.strftime("%H:%M").to_string(),
                zone: it.zone.iana_name().unwrap_or("UTC").to_owned(),
                except: except(it.except),
            }),
            collect: collect.as_ref().map(|it| CollectJson {
                by: by(it.by),
                wait: duration_text(it.wait),
                most: it.most,
                except: except(it.except),
            }),
            at_most: at_most.as_ref().map(|it| AtMostJson {
                count: it.count,
                per: duration_text(it.per),
                except: except(it.except),
            }),
            retry: RetryJson {
                first: duration_text(of.retry.first),
                most: duration_text(of.retry.most),
                give_up: duration_text(of.retry.give_up),
            },
            on_unknown: of.on_unknown.map(|on| match on {
                OnUnknown::Retry => "retry",
                OnUnknown::Stop => "stop",
            }),
            order: if of.is_strict { "strict" } else { "best_effort" },
        }
    }
}

fn except(of: Except) -> Option<&'static str> {
    match of {
        Except::Nothing => None,
        Except::Urgent => Some("urgent"),
    }
}

fn by(of: By) -> &'static str {
    match of {
        By::Subject => "subject",
        By::Source => "source",
        By::Name => "name",
        By::None => "none",
    }
}
