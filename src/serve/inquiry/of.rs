//! What a question is about: a notification of the inbox, or an event that is made up.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{Inquiry, NoAnswer};
use crate::config::{Workspace, hint};
use crate::fetch::event::{Judged, judge};
use crate::inbox::{Marks, Page, Which};
use crate::notification::{Name, Notification};
use crate::send::explain::{Stored, ceiling};
use crate::serve::shapes::number;

/// Deliveries of one notification that are looked at: a workspace has 200 routes with 5 targets at most.
const DELIVERIES_MAX: u32 = 1_000;

/// What a question is about: a number, or an event and its source.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct OfJson {
    /// The number of a notification that is in the inbox.
    #[serde(deserialize_with = "number::one")]
    pub seq: Option<u64>,
    /// An event as an outbox holds it.
    #[schema(value_type = Option<Object>)]
    pub event: Option<Box<RawValue>>,
    /// The connector that the event is from.
    pub source: Option<String>,
}

/// What was found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) notification: Notification,
    pub(super) marks: Marks,
    /// None where it is made up.
    pub(super) stored: Option<Stored>,
}

impl Inquiry {
    /// Finds it; an event comes at `at`.
    pub(super) async fn find(&self, workspace: &Workspace, of: &OfJson, at: Timestamp) -> Result<Found, NoAnswer> {
        match (of.seq, &of.event, &of.source) {
            (Some(seq), None, None) => self.stored(workspace, seq).await,
            (None, Some(event), Some(source)) => made_up(workspace, event, source, at),
            _ => Err(NoAnswer::Wrong("name a `seq`, or an `event` and its `source`".to_owned())),
        }
    }

    async fn stored(&self, workspace: &Workspace, seq: u64) -> Result<Found, NoAnswer> {
        let name = &workspace.name;
        let Some(inbox) = &self.inbox else {
            let why = "there is no store yet: start `switchbell serve`, which makes it, or ask about an event";
            return Err(NoAnswer::Unknown(why.to_owned()));
        };
        let Some(notification) = inbox.notification(name, seq).await? else {
            return Err(NoAnswer::Nothing(format!("workspace {name} has no notification {seq}")));
        };
        let page = Page { workspace: name.clone(), before: None, limit: DELIVERIES_MAX };
        let mut deliveries = inbox.deliveries(page, Which { seq: Some(seq), ..Which::default() }).await?;
        deliveries.sort_by_key(|delivery| delivery.id.number);
        let is_of_first_read = inbox.is_of_first_read(name, seq).await?;
        let marks = inbox.marks(name, vec![seq]).await?.pop().unwrap_or_default();
        Ok(Found { notification, marks, stored: Some(Stored { deliveries, is_of_first_read }) })
    }
}

fn made_up(workspace: &Workspace, event: &RawValue, source: &str, at: Timestamp) -> Result<Found, NoAnswer> {
    let unknown = || {
        let names = workspace.connectors.keys().map(Name::as_str);
        NoAnswer::Unknown(format!("--source: unknown connector {source}{}", hint(source, names, "there are")))
    };
    let source: Name = source.parse().map_err(|_| unknown())?;
    let ceiling = ceiling(workspace, &source).ok_or_else(unknown)?;
    let Judged { event, .. } =
        judge(event).map_err(|reason| NoAnswer::Dropped(format!("the event would be dropped: {reason}")))?;
    let effective_level = event.level.capped(ceiling);
    let notification =
        Notification { workspace: workspace.name.clone(), seq: 0, source, received_at: at, effective_level, event };
    Ok(Found { notification, marks: Marks::default(), stored: None })
}
