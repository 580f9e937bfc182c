//! What of an inbox a page shows.

use super::filter::{Filter, Part, ROWS_MAX, Sort};
use crate::inbox::{InboxError, Marks, Order, Query, Reader};
use crate::notification::{Level, Name, Notification};

/// Answers of the store that one page is made of: each looks at a bounded number of notifications.
pub(in super::super) const LOOKS_MAX: usize = 8;

/// Notifications of one look, where those of one level are picked out.
const LOOK_ROWS: u32 = 4 * ROWS_MAX;

/// A page of an inbox.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// What it shows, in its order.
    pub(super) items: Vec<(Notification, Marks)>,
    /// Where it goes on.
    pub(super) older: Option<Part>,
    /// Where it comes from; none on the first page.
    pub(super) newer: Option<Part>,
}

/// Why there is none.
#[derive(Debug)]
pub(super) enum NotFound {
    /// A pattern is wrong.
    Pattern(String),
    /// The store cannot be read.
    Store(InboxError),
}

impl From<InboxError> for NotFound {
    fn from(error: InboxError) -> Self {
        Self::Store(error)
    }
}

/// Finds it.
pub(super) async fn find(
    reader: &dyn Reader,
    workspace: &Name,
    filter: &Filter,
    part: Part,
) -> Result<Found, NotFound> {
    match (filter.sort, part) {
        (Sort::Level, Part::Within(level, before)) => by_level(reader, workspace, filter, (level, before)).await,
        (Sort::Level, _) => by_level(reader, workspace, filter, (Level::Urgent, None)).await,
        (Sort::Newest, Part::After(after)) => newer_than(reader, workspace, filter, after).await,
        (Sort::Newest, part) => newest(reader, workspace, filter, part).await,
    }
}

async fn newest(reader: &dyn Reader, workspace: &Name, filter: &Filter, part: Part) -> Result<Found, NotFound> {
    let before = if let Part::Before(before) = part { Some(before) } else { None };
    let mut query = Query { before, ..query(filter, workspace, None)? };
    let (items, next) = gather(reader, &mut query).await?;
    let first = items.first().map(|(first, _)| first.seq);
    let newer = match (before, first) {
        (None, _) => None,
        (Some(_), Some(first)) => Some(Part::After(first)),
        (Some(before), None) => Some(Part::After(before.saturating_sub(1))),
    };
    Ok(Found { items, older: next.map(Part::Before), newer })
}

/// The page in front of a number. The first page of all is shown whole.
async fn newer_than(reader: &dyn Reader, workspace: &Name, filter: &Filter, after: u64) -> Result<Found, NotFound> {
    let mut query = Query { after: Some(after), order: Order::Oldest, ..query(filter, workspace, None)? };
    let (mut items, next) = gather(reader, &mut query).await?;
    items.reverse();
    match (next, items.first()) {
        (Some(_), Some((first, _))) => {
            let newer = Some(Part::After(first.seq));
            Ok(Found { older: Some(Part::Before(after.saturating_add(1))), newer, items })
        }
        _ => newest(reader, workspace, filter, Part::First).await,
    }
}

/// Up to a page, in as many looks as are allowed.
async fn gather(reader: &dyn Reader, query: &mut Query) -> Result<(Vec<(Notification, Marks)>, Option<u64>), NotFound> {
    let mut items = Vec::new();
    for _ in 0..LOOKS_MAX {
        query.limit = ROWS_MAX.saturating_sub(u32::try_from(items.len()).unwrap_or(ROWS_MAX)).max(1);
        let listed = reader.list(query.clone()).await?;
        items.extend(listed.items);
        let Some(next) = listed.next else { return Ok((items, None)) };
        match query.order {
            Order::Newest => query.before = Some(next),
            Order::Oldest => query.after = Some(next),
        }
        if items.len() >= ROWS_MAX as usize {
            return Ok((items, Some(next)));
        }
    }
    let next = if query.order == Order::Newest { query.before } else { query.after };
    Ok((items, next))
}

/// All of a level, the newest first, before any of the level below.
async fn by_level(
    reader: &dyn Reader,
    workspace: &Name,
    filter: &Filter,
    (from, mut before): (Level, Option<u64>),
) -> Result<Found, NotFound> {
    let is_first = from == Level::Urgent && before.is_none();
    let newer = (!is_first).then_some(Part::First);
    let mut items: Vec<(Notification, Marks)> = Vec::new();
    let mut looks = 0;
    for level in Level::ALL.into_iter().rev().filter(|level| *level <= from) {
        if filter.level.is_some_and(|least| level < least) {
            break;
        }
        let mut query = Query { limit: LOOK_ROWS, ..query(filter, workspace, Some(level))? };
        loop {
            if looks >= LOOKS_MAX || items.len() >= ROWS_MAX as usize {
                return Ok(Found { items, older: Some(Part::Within(level, before)), newer });
            }
            looks += 1;
            query.before = before;
            let listed = reader.list(query.clone()).await?;
            let room = (ROWS_MAX as usize).saturating_sub(items.len());
            let of_level = listed.items.into_iter().filter(|(one, _)| one.effective_level == level);
            let mut fitting: Vec<_> = of_level.collect();
            let is_cut = fitting.len() > room;
            fitting.truncate(room);
            let last = fitting.last().map(|(last, _)| last.seq);
            items.extend(fitting);
            before = if is_cut { last } else { listed.next };
            if before.is_none() {
                break;
            }
        }
    }
    Ok(Found { items, older: None, newer })
}

fn query(filter: &Filter, workspace: &Name, least: Option<Level>) -> Result<Query, NotFound> {
    // What is asked for as the least level of all is no condition.
    let least = least.filter(|level| *level > Level::Info);
    filter.query(workspace, least).map_err(NotFound::Pattern)
}
