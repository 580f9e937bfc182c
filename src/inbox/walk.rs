//! Goes through an inbox, one short read after the other.

use jiff::Timestamp;

use super::{Inbox, InboxError, KNOWN_MAX, Known, Page};
use crate::notification::Name;

/// Hands over what routes may know of all that a workspace received from one moment to another, oldest first. What comes
/// while it goes on is not among it. While some are looked at the next are read.
///
/// # Errors
/// When the store cannot be read.
pub async fn walk(
    inbox: &dyn Inbox,
    workspace: &Name,
    (since, until): (Timestamp, Timestamp),
    mut each: impl FnMut(&Known),
) -> Result<(), InboxError> {
    let newest = inbox.notifications(Page { workspace: workspace.clone(), before: None, limit: 1 }).await?;
    let Some(last) = newest.first().map(|newest| newest.seq) else { return Ok(()) };
    let is_asked = |known: &&Known| known.seq <= last && (since..=until).contains(&known.received_at);
    let from = inbox.seq_since(workspace, since).await?;
    let mut page = inbox.known(workspace, from, KNOWN_MAX).await?;
    while let Some(next) = page.last().map(|last| last.seq + 1) {
        if next > last {
            page.iter().filter(is_asked).for_each(&mut each);
            break;
        }
        let (following, ()) = tokio::join!(inbox.known(workspace, next, KNOWN_MAX), async {
            page.iter().filter(is_asked).for_each(&mut each);
        });
        page = following?;
    }
    Ok(())
}
