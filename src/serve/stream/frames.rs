//! Changes as server-sent events (WHATWG HTML, "Server-sent events"), rendered once for all who read them.

use std::collections::HashMap;

use axum::body::Bytes;
use serde::Serialize;

use super::shapes::{DeliveryChangeJson, DeliveryJoinedJson, GapJson, MarkChangeJson, PlaceJson};
use crate::inbox::change::Change;
use crate::inbox::{Changed, InboxError, Marks, Order, Query, Reader};
use crate::notification::{Name, Notification};
use crate::serve::shapes::NotificationJson;

/// A batch takes no more frames once it has so many bytes: its memory is free again when the last of them is sent.
const BATCH_BYTES: usize = 64 * 1024;

/// Frames of successive changes, in one piece of memory.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    /// The number of the first change.
    first: u64,
    ends: Vec<End>,
    bytes: Bytes,
}

/// Where the frame of a change ends. A change that nothing is told of ends where it begins.
#[derive(Clone, Copy, Debug)]
struct End {
    at: usize,
    /// Whether it is about deliveries, which not everybody may see.
    is_work: bool,
}

impl Batch {
    /// The number of the last change.
    pub(super) fn last(&self) -> u64 {
        self.first.saturating_add(self.ends.len() as u64).saturating_sub(1)
    }

    /// The number before the first change.
    pub(super) fn before(&self) -> u64 {
        self.first.saturating_sub(1)
    }

    /// Bytes that it holds.
    pub(super) fn size(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<End>()
    }

    /// Frames that follow this number, and the number of the last change that is told or left out with them.
    pub(super) fn after(&self, position: u64, shows_work: bool) -> (Bytes, u64) {
        let told = usize::try_from(position.saturating_sub(self.before())).unwrap_or(usize::MAX);
        let is_left_out = |end: &&End| end.is_work && !shows_work;
        let rest = self.ends.get(told..).unwrap_or_default();
        let skipped = told.saturating_add(rest.iter().take_while(is_left_out).count());
        let run = self.ends.get(skipped..).unwrap_or_default().iter().take_while(|end| !is_left_out(end)).count();
        let end = skipped.saturating_add(run);
        let bytes = self.bytes.slice(self.start(skipped)..self.start(end));
        (bytes, self.before().saturating_add(end as u64).max(position))
    }

    /// Where the frame at this place begins.
    fn start(&self, place: usize) -> usize {
        let before = place.checked_sub(1).and_then(|before| self.ends.get(before));
        before.map_or(if place == 0 { 0 } else { self.bytes.len() }, |end| end.at)
    }
}

/// What follows a number.
#[derive(Debug)]
pub(super) struct Part {
    /// The frames, in order.
    pub(super) batches: Vec<Batch>,
    /// The number of the last change that there is.
    pub(super) last: u64,
    /// Whether changes that were asked for are forgotten.
    pub(super) is_cut: bool,
}

/// Reads and renders the changes behind a number: at most `limit`, and no more once there are `bytes`.
pub(super) async fn read(
    inbox: &dyn Reader,
    workspace: &Name,
    after: u64,
    limit: u32,
    bytes: usize,
) -> Result<Part, InboxError> {
    let found = inbox.changes(workspace, after, limit).await?;
    if found.is_cut {
        return Ok(Part { batches: Vec::new(), last: found.last, is_cut: true });
    }
    let told = notifications(inbox, workspace, &found.changes).await?;
    let mut batches = Vec::new();
    let mut open = Open::default();
    for change in &found.changes {
        open.push(change, frame(workspace, change, &told));
        if open.bytes.len() >= BATCH_BYTES {
            batches.extend(std::mem::take(&mut open).close());
        }
        if batches.iter().map(Batch::size).sum::<usize>() >= bytes {
            break;
        }
    }
    batches.extend(open.close());
    Ok(Part { batches, last: found.last, is_cut: false })
}

/// A batch that is being made.
#[derive(Debug, Default)]
struct Open {
    first: Option<u64>,
    ends: Vec<End>,
    bytes: Vec<u8>,
}

impl Open {
    fn push(&mut self, change: &Change, frame: Option<String>) {
        self.first.get_or_insert(change.number);
        self.bytes.extend(frame.unwrap_or_default().into_bytes());
        let is_work = matches!(change.what, Changed::Delivery { .. } | Changed::Joined { .. });
        self.ends.push(End { at: self.bytes.len(), is_work });
    }

    fn close(mut self) -> Option<Batch> {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.first.map(|first| Batch { first, ends: self.ends, bytes: self.bytes.into() })
    }
}

/// The notifications that changes are about.
async fn notifications(
    inbox: &dyn Reader,
    workspace: &Name,
    changes: &[Change],
) -> Result<HashMap<u64, (Notification, Marks)>, InboxError> {
    let mut seqs: Vec<u64> = changes
        .iter()
        .filter_map(|change| match change.what {
            Changed::Created { seq } | Changed::Gap { seq, .. } => Some(seq),
            Changed::Marked { .. } | Changed::Delivery { .. } | Changed::Joined { .. } => None,
        })
        .collect();
    seqs.sort_unstable();
    seqs.dedup();
    let mut told = HashMap::with_capacity(seqs.len());
    if seqs.is_empty() {
        return Ok(told);
    }
    let limit = u32::try_from(seqs.len()).unwrap_or(u32::MAX);
    let mut query = Query { seqs, order: Order::Oldest, ..Query::all(workspace.clone(), limit) };
    loop {
        let listed = inbox.list(query.clone()).await?;
        told.extend(listed.items.into_iter().map(|one| (one.0.seq, one)));
        match listed.next {
            Some(next) => query.after = Some(next),
            None => return Ok(told),
        }
    }
}

/// The frame of a change; none of a notification that is no longer in the inbox.
fn frame(workspace: &Name, change: &Change, told: &HashMap<u64, (Notification, Marks)>) -> Option<String> {
    let at = change.at.to_string();
    let workspace_id = workspace.to_string();
    match &change.what {
        Changed::Created { seq } => {
            let one = told.get(seq)?;
            Some(event(change.number, "notification.created", &NotificationJson::from(one)))
        }
        Changed::Marked { seq, is_acknowledged, mark } => {
            let name = if *is_acknowledged { "notification.acknowledged" } else { "notification.read" };
            let (at, by, is_agent) = (mark.at.to_string(), mark.by.name.clone(), mark.by.is_agent);
            Some(event(change.number, name, &MarkChangeJson { seq: *seq, workspace_id, at, by, is_agent }))
        }
        Changed::Delivery { id, route, target, plugin, state, seq } => {
            let told = DeliveryChangeJson {
                id: id.to_string(),
                workspace_id,
                route: route.to_string(),
                target: target.clone(),
                plugin: plugin.to_string(),
                state: state.to_string(),
                notifications: vec![*seq],
                at,
            };
            Some(event(change.number, "delivery.changed", &told))
        }
        Changed::Joined { id, into, seq } => {
            let (id, into) = (id.to_string(), into.to_string());
            let told = DeliveryJoinedJson { id, workspace_id, into, notifications: vec![*seq], at };
            Some(event(change.number, "delivery.joined", &told))
        }
        Changed::Gap { seq, source } => {
            let title = told.get(seq).map(|(notice, _)| notice.event.title.clone());
            let told = GapJson { seq: *seq, workspace_id, source: source.clone(), at, title };
            Some(event(change.number, "gap", &told))
        }
    }
}

/// Tells a reader where it stands: `ready` or `reset`.
pub(super) fn place(name: &str, number: u64) -> Bytes {
    event(number, name, &PlaceJson { number }).into()
}

/// One event. Lines of the JSON stay lines: a payload is told as it came, and may hold line breaks between its parts.
fn event(number: u64, name: &str, data: &impl Serialize) -> String {
    // Plain values and JSON that was parsed before can always be written.
    let data = serde_json::to_string(data).unwrap_or_default();
    let mut text = format!("id: {number}\nevent: {name}\n");
    text.reserve(data.len() + 16);
    for line in data.replace("\r\n", "\n").split(['\n', '\r']) {
        text.push_str("data: ");
        text.push_str(line);
        text.push('\n');
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Batch {
        /// Frames with these texts, and whether they are about deliveries.
        pub(in crate::serve::stream) fn of(first: u64, frames: &[(&str, bool)]) -> Self {
            let mut bytes = Vec::new();
            let ends = frames
                .iter()
                .map(|(text, is_work)| {
                    bytes.extend(text.bytes());
                    End { at: bytes.len(), is_work: *is_work }
                })
                .collect();
            Self { first, ends, bytes: bytes.into() }
        }
    }

    #[test]
    fn what_follows_a_number_is_one_piece() {
        let batch = Batch::of(5, &[("a", false), ("bb", true), ("", false), ("c", false)]);
        assert_eq!((batch.before(), batch.last()), (4, 8));
        for (position, bytes) in [(4, "abbc"), (5, "bbc"), (6, "c"), (7, "c"), (8, "")] {
            assert_eq!(batch.after(position, true), (Bytes::from(bytes), 8), "after {position}");
        }
    }

    #[test]
    fn who_may_not_see_deliveries_is_told_the_rest_in_order() {
        let batch = Batch::of(5, &[("w", true), ("a", false), ("b", false), ("ww", true), ("c", false), ("w", true)]);
        assert_eq!(batch.after(4, false), (Bytes::from("ab"), 7));
        assert_eq!(batch.after(7, false), (Bytes::from("c"), 9));
        assert_eq!(batch.after(9, false), (Bytes::new(), 10));
        assert_eq!(batch.after(10, false), (Bytes::new(), 10));
    }

    #[test]
    fn line_breaks_of_a_payload_stay_inside_the_event() {
        let raw = serde_json::value::RawValue::from_string("{\"a\":\r\n 1,\n\"b\":\r2}".to_owned()).unwrap();
        assert_eq!(
            event(7, "notification.created", &raw),
            "id: 7\nevent: notification.created\ndata: {\"a\":\ndata:  1,\ndata: \"b\":\ndata: 2}\n\n"
        );
    }
}
