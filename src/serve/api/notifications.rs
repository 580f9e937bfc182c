//! Notifications: read, and marked as read or acknowledged.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::entry::{ASeq, Asked, InWorkspace, Mark, NAMING_BYTES_MAX, ReadInbox, Segments, Within};
use super::query::{length, limit, listed, moment};
use crate::inbox::{Deed, Listed, Marks, Order, QUERY_LIMIT_MAX, QUERY_TEXT_CHARS_MAX, Query};
use crate::notification::{Level, Name, Notification};
use crate::route::timing::bytes_in_digest;
use crate::route::{Matcher, PATTERN_CHARS_MAX, PreparedMatcher};
use crate::serve::Served;
use crate::serve::desk::{MarkJson, MarkedJson};
use crate::serve::problem::Problem;
use crate::serve::shapes::NotificationJson;

/// Unread notifications that are counted.
const UNREAD_MAX: u32 = 1_000;

/// Notifications of one answer, unless it is said.
const LIMIT: u32 = 100;

/// Size of what one answer holds, in bytes as it is stored: what is beyond is left to the next.
const ANSWER_BYTES_MAX: u64 = 8 << 20;

pub(super) fn routes() -> OpenApiRouter<Arc<Served>> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(show)).routes(routes!(acknowledge)).routes(routes!(read))
}

/// Which notifications are meant: those for which everything holds that is asked.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct NotificationsAsked {
    /// Only with a greater number.
    after: Option<u64>,
    /// Only with a smaller number.
    before: Option<u64>,
    /// Received at or after this moment, RFC 3339.
    #[param(format = DateTime)]
    since: Option<String>,
    /// Only those that nobody has read.
    #[serde(default)]
    #[param(required = false)]
    unread: bool,
    /// Only those that nobody has acknowledged.
    #[serde(default)]
    #[param(required = false)]
    unacknowledged: bool,
    /// The least effective level.
    #[param(inline)]
    level: Option<LevelJson>,
    /// A pattern over the source: `*` is any text, `?` one character.
    #[param(min_length = 1, max_length = 200)]
    source: Option<String>,
    /// A pattern over the dotted name: `*` stays within one segment, `**` crosses dots.
    #[param(pattern = "^[A-Za-z0-9._*-]{1,200}$")]
    name: Option<String>,
    /// A pattern over the subject: `*` is any text, `?` one character.
    #[param(min_length = 1, max_length = 200)]
    subject: Option<String>,
    /// A text that stands in the name, the subject, the title or the body, in letters of either case.
    #[param(min_length = 1, max_length = 200)]
    query: Option<String>,
    /// Only these numbers, with commas between them.
    #[serde(default, deserialize_with = "listed")]
    #[param(required = false, style = Form, explode = false, min_items = 1, max_items = 1000)]
    seqs: Vec<u64>,
    /// Which first.
    #[serde(default)]
    #[param(inline, required = false)]
    order: OrderJson,
    /// At most so many; fewer where the answer would be larger than some megabytes.
    #[serde(default = "usual_limit")]
    #[param(required = false, minimum = 1, maximum = 1000, default = 100)]
    limit: u32,
}

fn usual_limit() -> u32 {
    LIMIT
}

/// A level.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum LevelJson {
    /// Worth knowing.
    Info,
    /// Somebody should look.
    Attention,
    /// Somebody should look now.
    Urgent,
}

impl From<LevelJson> for Level {
    fn from(of: LevelJson) -> Self {
        match of {
            LevelJson::Info => Self::Info,
            LevelJson::Attention => Self::Attention,
            LevelJson::Urgent => Self::Urgent,
        }
    }
}

/// Which way a list goes.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum OrderJson {
    /// The newest first.
    #[default]
    Newest,
    /// The oldest first, to walk through a backlog.
    Oldest,
}

/// A part of an inbox.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NotificationsJson {
    /// In the order that was asked for.
    items: Vec<NotificationJson>,
    /// Where to go on: as `before` with the newest first, as `after` with the oldest first. Null when there is no more. There
    /// may be more even where few or no items were found.
    next: Option<u64>,
    /// How many notifications of the whole inbox nobody has read; 1,000 stands for that many or more.
    unread: u32,
}

impl NotificationsAsked {
    fn query(self, workspace: Name) -> Result<Query, Problem> {
        length("query", self.query.as_deref(), QUERY_TEXT_CHARS_MAX)?;
        Ok(Query {
            seqs: self.seqs.clone(),
            after: self.after,
            before: self.before,
            since: moment("since", self.since.as_deref())?,
            is_unread: self.unread,
            is_unacknowledged: self.unacknowledged,
            when: self.matcher()?,
            order: match self.order {
                OrderJson::Newest => Order::Newest,
                OrderJson::Oldest => Order::Oldest,
            },
            text: self.query,
            ..Query::all(workspace, limit(self.limit, QUERY_LIMIT_MAX)?)
        })
    }

    fn matcher(&self) -> Result<Option<Arc<PreparedMatcher>>, Problem> {
        let patterns = [("source", &self.source), ("name", &self.name), ("subject", &self.subject)];
        for (name, pattern) in patterns {
            length(name, pattern.as_deref(), PATTERN_CHARS_MAX)?;
        }
        if self.level.is_none() && patterns.iter().all(|(_, pattern)| pattern.is_none()) {
            return Ok(None);
        }
        let one = |pattern: &Option<String>| pattern.iter().cloned().collect();
        let matcher = Matcher {
            name: one(&self.name),
            not: Vec::new(),
            level: self.level.map(Level::from),
            source: one(&self.source),
            subject: one(&self.subject),
        };
        let asked = patterns.iter().filter_map(|(key, pattern)| Some(format!("{key} {:?}", pattern.as_deref()?)));
        let asked = asked.collect::<Vec<_>>().join(", ");
        let wrong = |error| Problem::Wrong(format!("{asked}: {error}"));
        PreparedMatcher::new(matcher).map(|matcher| Some(Arc::new(matcher))).map_err(wrong)
    }
}

/// Lists notifications.
///
/// Numbers only grow and are never used twice: whoever goes on with `next` misses none that was there and gets none twice,
/// whatever is written meanwhile.
#[utoipa::path(
    get,
    path = "/workspaces/{ws}/notifications",
    operation_id = "listNotifications",
    tag = "notifications",
    params(InWorkspace, NotificationsAsked),
    responses((status = 200, body = NotificationsJson, description = "Those that were found."))
)]
async fn list(
    State(served): State<Arc<Served>>,
    within: Within<ReadInbox, NotificationsAsked>,
) -> Result<Json<NotificationsJson>, Problem> {
    let name = within.admitted.name();
    let listed = served.store.list(within.query.query(name.clone())?).await?;
    let unread = served.store.unread(name, UNREAD_MAX).await?;
    let (items, next) = within_bytes(&listed);
    Ok(Json(NotificationsJson { items: items.iter().map(NotificationJson::from).collect(), next, unread }))
}

/// As many as one answer may hold, one at least, and where to go on.
fn within_bytes(listed: &Listed) -> (&[(Notification, Marks)], Option<u64>) {
    let mut bytes = 0;
    for (at, (one, _)) in listed.items.iter().enumerate() {
        bytes += bytes_in_digest(&one.event);
        if let Some((before, _)) = listed.items.split_at_checked(at).filter(|_| bytes > ANSWER_BYTES_MAX)
            && let Some((last, _)) = before.last()
        {
            return (before, Some(last.seq));
        }
    }
    (&listed.items, listed.next)
}

/// Shows one notification.
#[utoipa::path(
    get,
    path = "/workspaces/{ws}/notifications/{seq}",
    operation_id = "getNotification",
    tag = "notifications",
    params(InWorkspace, ASeq),
    responses((status = 200, body = NotificationJson, description = "The notification."))
)]
async fn show(
    State(served): State<Arc<Served>>,
    within: Within<ReadInbox>,
    Segments(ASeq { seq }): Segments<ASeq>,
) -> Result<Json<NotificationJson>, Problem> {
    let name = within.admitted.name();
    let nothing = || Problem::Nothing(format!("workspace {name} has no notification {seq}"));
    let found = served.store.notification(name, seq).await?.ok_or_else(nothing)?;
    let marks = served.store.marks(name, vec![seq]).await?.pop().unwrap_or_default();
    Ok(Json(NotificationJson::from(&(found, marks))))
}

/// Acknowledges notifications, which is reading them, too.
///
/// Deliveries whose `unless` that meets are suppressed at once. Whoever asks is the one who acknowledged; an agent's
/// acknowledgement is recorded as an agent's, and a person's takes its place.
#[utoipa::path(
    post,
    path = "/workspaces/{ws}/notifications/acknowledge",
    operation_id = "acknowledgeNotifications",
    tag = "notifications",
    params(InWorkspace),
    request_body = MarkJson,
    responses((status = 200, body = MarkedJson, description = "What became of them."))
)]
async fn acknowledge(
    State(served): State<Arc<Served>>,
    within: Within<Mark>,
    Asked(asked): Asked<MarkJson, NAMING_BYTES_MAX>,
) -> Result<Json<MarkedJson>, Problem> {
    Ok(Json(served.desk.mark(within.name(), Deed::Acknowledge, &asked, &within.caller).await?))
}

/// Marks notifications as read.
///
/// The first who read one stays recorded.
#[utoipa::path(
    post,
    path = "/workspaces/{ws}/notifications/read",
    operation_id = "readNotifications",
    tag = "notifications",
    params(InWorkspace),
    request_body = MarkJson,
    responses((status = 200, body = MarkedJson, description = "What became of them."))
)]
async fn read(
    State(served): State<Arc<Served>>,
    within: Within<Mark>,
    Asked(asked): Asked<MarkJson, NAMING_BYTES_MAX>,
) -> Result<Json<MarkedJson>, Problem> {
    Ok(Json(served.desk.mark(within.name(), Deed::Read, &asked, &within.caller).await?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notification::Event;

    fn listed(bytes: &[usize]) -> Listed {
        let one = |(seq, &bytes): (u64, &usize)| {
            let event = Event {
                event_id: seq.to_string(),
                name: "a".to_owned(),
                timestamp: "2026-01-01T00:00:00Z".parse().unwrap(),
                level: Level::Info,
                subject: None,
                title: "a".to_owned(),
                body: None,
                link: None,
                data: " ".repeat(bytes),
                content: None,
            };
            let (workspace, source) = ("acme".parse().unwrap(), "crm".parse().unwrap());
            let received_at = event.timestamp;
            (
                Notification { workspace, seq, source, received_at, effective_level: Level::Info, event },
                Marks::default(),
            )
        };
        Listed { items: (1..).zip(bytes).map(one).collect(), next: Some(99) }
    }

    fn check(bytes: &[usize], seqs: u64, next: u64) {
        let listed = listed(bytes);
        let (items, goes_on) = within_bytes(&listed);
        let found: Vec<u64> = items.iter().map(|(one, _)| one.seq).collect();
        assert_eq!((found, goes_on), ((1..=seqs).collect(), Some(next)), "{bytes:?}");
    }

    #[test]
    fn an_answer_ends_before_it_is_too_large_and_goes_on_behind_what_it_holds() {
        const MIB: usize = 1 << 20;
        check(&[MIB, MIB, MIB], 3, 99);
        check(&[3 * MIB, 3 * MIB, 3 * MIB, 3 * MIB], 2, 2);
        check(&[9 * MIB, MIB], 1, 1);
        check(&[9 * MIB], 1, 99);
        check(&[], 0, 99);
    }
}
