//! `notifications__list`: what is in the inbox of a workspace.

use std::sync::Arc;

use jiff::Timestamp;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::frame::{NoChance, Shown, framed};
use super::tools::{asked, workspace};
use super::verbatim::Fillings;
use crate::inbox::{InboxError, Listed, Order, QUERY_TEXT_CHARS_MAX, Query};
use crate::notification::Level;
use crate::route::{Matcher, PreparedMatcher};
use crate::serve::Served;
use crate::serve::auth::{Caller, Right};
use crate::serve::problem::Problem;
use crate::serve::shapes::NotificationJson;

/// Notifications of one answer.
pub(super) const LIMIT_MAX: u32 = 100;

/// Notifications of an answer when nothing is said.
pub(super) const LIMIT_USUAL: u32 = 20;

/// Numbers that may be named.
pub(super) const IDS_MAX: usize = 100;

/// Size of the notifications in one answer, in bytes of JSON: a share of what a model can read. One alone may be larger by its
/// own size, which is bounded.
const CONTENT_BYTES_MAX: usize = 96 << 10;

/// What stands around a payload in an answer, in levels of JSON, and some more.
const LEVELS_AROUND: usize = 16;

/// Unread notifications are counted so far.
pub(super) const UNREAD_MAX: u32 = 10_000;

/// What a tool is asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Asked {
    workspace: Option<String>,
    unread_only: Option<bool>,
    level: Option<String>,
    source: Option<String>,
    name: Option<String>,
    after: Option<u64>,
    before: Option<u64>,
    ids: Option<Vec<u64>>,
    since: Option<String>,
    query: Option<String>,
    order: Option<String>,
    limit: Option<u32>,
}

/// Lists.
pub(super) async fn list(
    served: &Served,
    caller: &Caller,
    arguments: Value,
    fillings: &Fillings,
) -> Result<CallToolResult, Problem> {
    let asked: Asked = asked(arguments)?;
    let workspace = workspace(served, caller, asked.workspace.as_deref(), Right::ReadInbox)?;
    let order = order(asked.order.as_deref())?;
    let query = query(asked, Query { order, ..Query::all(workspace.clone(), LIMIT_USUAL) })?;
    let listed = served.store.list(query).await.map_err(unavailable)?;
    let unread = served.store.unread(&workspace, UNREAD_MAX).await.map_err(unavailable)?;
    let (items, next, is_cut) = fitting(&listed);
    let texts = items.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>().map_err(unspeakable)?;
    let in_words = if unread < UNREAD_MAX { unread.to_string() } else { format!("{unread} or more") };
    let shown = Shown { workspace: &workspace, items: &texts, order, unread: in_words, next, is_cut };
    let text = framed(&shown).map_err(by_chance)?;
    let items = items.into_iter().map(|item| structured(item, fillings)).collect::<Result<Vec<_>, _>>()?;
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(json!({ "items": items, "next": next, "unread": unread }));
    Ok(result)
}

/// As many as fit into one answer, one at least, where to go on, and whether there would be more but for the size.
fn fitting(listed: &Listed) -> (Vec<NotificationJson>, Option<u64>, bool) {
    let (mut items, mut bytes) = (Vec::<NotificationJson>::new(), 0);
    for one in &listed.items {
        let item = NotificationJson::from(one);
        bytes += serde_json::to_string(&item).map_or(0, |text| text.len());
        if bytes > CONTENT_BYTES_MAX
            && let Some(last) = items.last()
        {
            let next = Some(last.seq);
            return (items, next, true);
        }
        items.push(item);
    }
    (items, listed.next, false)
}

/// The item with its payload to be filled in. A payload that usual readers of JSON cannot take is left out, since it would cost
/// them the whole answer; the text has it.
fn structured(mut item: NotificationJson, fillings: &Fillings) -> Result<Value, Problem> {
    let standing = |payload: Option<Box<RawValue>>| -> Result<Option<Box<RawValue>>, Problem> {
        let Some(payload) = payload.filter(|payload| is_readable(payload.get())) else { return Ok(None) };
        let standing = fillings.put(payload.get().to_owned()).map_err(by_chance)?;
        RawValue::from_string(format!("\"{standing}\"")).map(Some).map_err(unspeakable)
    };
    item.data = standing(item.data)?;
    item.content = standing(item.content)?;
    serde_json::to_value(item).map_err(unspeakable)
}

/// Whether numbers and depth are such that a usual reader takes it where it stands, some levels deep.
pub(super) fn is_readable(data: &str) -> bool {
    let (before, after) = ("[".repeat(LEVELS_AROUND), "]".repeat(LEVELS_AROUND));
    serde_json::from_str::<Value>(&format!("{before}{data}{after}")).is_ok()
}

fn query(asked: Asked, all: Query) -> Result<Query, Problem> {
    let wrong = Problem::Wrong;
    let limit = asked.limit.unwrap_or(LIMIT_USUAL);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(wrong(format!("limit: {limit} is not between 1 and {LIMIT_MAX}")));
    }
    let seqs = asked.ids.clone().unwrap_or_default();
    if seqs.len() > IDS_MAX {
        return Err(wrong(format!("ids: name at most {IDS_MAX}, not {}", seqs.len())));
    }
    if asked.ids.is_some_and(|ids| ids.is_empty()) {
        return Err(wrong("ids: name at least one, or leave it out for all".to_owned()));
    }
    let text = asked.query.filter(|text| !text.is_empty());
    if text.as_ref().is_some_and(|text| text.chars().nth(QUERY_TEXT_CHARS_MAX).is_some()) {
        return Err(wrong(format!("query: give at most {QUERY_TEXT_CHARS_MAX} characters")));
    }
    let moment = |text: String| {
        let wrong = |_| wrong(format!("since: {text:?} is no moment of RFC 3339, such as 2026-09-01T18:42:10Z"));
        text.parse::<Timestamp>().map_err(wrong)
    };
    Ok(Query {
        seqs,
        after: asked.after,
        before: asked.before,
        since: asked.since.map(moment).transpose()?,
        is_unread: asked.unread_only.unwrap_or(false),
        when: when(asked.level.as_deref(), asked.source, asked.name)?,
        text,
        limit,
        ..all
    })
}

fn when(
    level: Option<&str>,
    source: Option<String>,
    name: Option<String>,
) -> Result<Option<Arc<PreparedMatcher>>, Problem> {
    let parsed = |text: &str| {
        let known = Level::ALL.map(Level::as_str).join(", ");
        Level::parse(text).ok_or_else(|| Problem::Wrong(format!("level: {text:?} is none of {known}")))
    };
    let matcher = Matcher {
        level: level.map(parsed).transpose()?,
        source: source.into_iter().collect(),
        name: name.into_iter().collect(),
        ..Matcher::default()
    };
    if matcher == Matcher::default() {
        return Ok(None);
    }
    let prepared = PreparedMatcher::new(matcher);
    prepared.map(|prepared| Some(Arc::new(prepared))).map_err(|why| Problem::Wrong(format!("a pattern: {why}")))
}

fn order(text: Option<&str>) -> Result<Order, Problem> {
    match text {
        None | Some("newest") => Ok(Order::Newest),
        Some("oldest") => Ok(Order::Oldest),
        Some(other) => Err(Problem::Wrong(format!("order: {other:?} is neither newest nor oldest"))),
    }
}

pub(super) fn unavailable(error: InboxError) -> Problem {
    Problem::Unavailable(format!("the inbox cannot be read right now: {error}; try again later"))
}

fn unspeakable(error: serde_json::Error) -> Problem {
    Problem::Unavailable(format!("the answer cannot be written: {error}"))
}

fn by_chance(error: NoChance) -> Problem {
    Problem::Unavailable(error.to_string())
}
