//! What a version at fault failed is made again.

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;

use super::{FailedDelivery, Fault};
use crate::inbox::delivery::State;
use crate::inbox::{DeliveryId, DeliveryView, HANDLED_MAX, Inbox, InboxError, Page, Which};
use crate::notification::Name;

/// Where a delivery stays unless somebody has it made again.
const STUCK: [State; 3] = [State::Dead, State::Unknown, State::Blocked];

/// Has the deliveries made again that a version at fault failed, where that can do no harm: those that do not go on by
/// themselves, and whose last attempt was still made by that version. What was made again already is left alone. Returns
/// how many there were.
///
/// # Errors
/// When the store refuses, with the first error. The other workspaces' deliveries are made again all the same.
pub async fn retry(inbox: &dyn Inbox, fault: &Fault, now: Timestamp) -> Result<usize, InboxError> {
    let mut by_workspace: BTreeMap<&Name, Vec<&FailedDelivery>> = BTreeMap::new();
    for failed in &fault.failed {
        by_workspace.entry(&failed.workspace).or_default().push(failed);
    }
    let (mut count, mut refused) = (0, None);
    for (workspace, failed) in by_workspace {
        match of_workspace(inbox, workspace, (&failed, &fault.digest), now).await {
            Ok(retried) => count += retried,
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    refused.map_or(Ok(count), Err)
}

async fn of_workspace(
    inbox: &dyn Inbox,
    workspace: &Name,
    (failed, digest): (&[&FailedDelivery], &str),
    now: Timestamp,
) -> Result<usize, InboxError> {
    let page = || Page { workspace: workspace.clone(), before: None, limit: HANDLED_MAX };
    let which = |ids| Which { ids, states: STUCK.to_vec(), ..Which::default() };
    let ids = failed.iter().map(|failed| failed.id.clone()).collect();
    let mut views = inbox.deliveries(page(), which(ids)).await?;
    views.retain(|view| view.attempts.last().is_some_and(|last| last.plugin_digest.as_deref() == Some(digest)));
    let of = |id: &DeliveryId| failed.iter().find(|failed| failed.id == *id);
    let may_repeat = |view: &DeliveryView| of(&view.id).is_some_and(|failed| failed.may_repeat);
    // One that goes on has all go on that its target was blocked with.
    let is_bound = |view: &&DeliveryView| view.state == State::Blocked && !may_repeat(view);
    let bound: HashSet<(&Name, &str)> = views.iter().filter(is_bound).map(target).collect();
    let mut ids = Vec::new();
    for view in &views {
        let is_to_go = match view.state {
            State::Blocked => may_repeat(view) && !bound.contains(&target(view)),
            // It is repeated under another id, which no destination recognises.
            State::Unknown => {
                let accepted = of(&view.id).is_none_or(|failed| failed.accepted);
                !accepted && !is_repeated(inbox, page(), view).await?
            }
            _ => may_repeat(view),
        };
        if is_to_go {
            ids.push(view.id.clone());
        }
    }
    if ids.is_empty() {
        return Ok(0);
    }
    Ok(inbox.retry(workspace, which(ids), now).await?.done.len())
}

fn target(view: &DeliveryView) -> (&Name, &str) {
    (&view.route, &view.target)
}

/// Whether there is a delivery that repeats this one.
async fn is_repeated(inbox: &dyn Inbox, page: Page, view: &DeliveryView) -> Result<bool, InboxError> {
    let which = Which { seq: view.seqs.first().copied(), route: Some(view.route.clone()), ..Which::default() };
    Ok(inbox.deliveries(page, which).await?.iter().any(|other| other.retry_of.as_ref() == Some(&view.id)))
}
