//! Standard Webhooks 1.0: a type, a timestamp, and data.

use alloc::string::String;

use switchbell_kit::json::{Object, list};
use switchbell_kit::level;
use switchbell_kit::types::{Delivery, Notification};

use crate::request::{Fitting, fitting};

/// The type of a digest.
const DIGEST: &str = "switchbell.digest";

/// The body: of one notification by its name, of a digest by a type of its own.
pub(crate) fn body(delivery: &Delivery) -> String {
    if let [only] = delivery.notifications.as_slice()
        && delivery.omitted == 0
    {
        return event(&only.name, &only.timestamp, &notification(only, &delivery.workspace));
    }
    let all = delivery.notifications.iter().map(|one| notification(one, &delivery.workspace));
    let Fitting { items, omitted } = fitting(all, delivery.omitted);
    let data = Object::new()
        .raw("notifications", &list(items))
        .number("omitted", omitted)
        .optional("inboxUrl", delivery.inbox_url.as_deref())
        .end();
    event(DIGEST, &delivery.due_at, &data)
}

fn event(kind: &str, timestamp: &str, data: &str) -> String {
    Object::new().text("type", kind).text("timestamp", timestamp).raw("data", data).end()
}

/// A notification by the names that it has everywhere. The connector's own level is not known here, only the effective one.
fn notification(notification: &Notification, workspace: &str) -> String {
    let link = notification.link.as_deref().map(|link| Object::new().text("resource", link).end());
    Object::new()
        .number("seq", notification.seq)
        .text("workspaceId", workspace)
        .text("source", &notification.source)
        .text("eventId", &notification.event_id)
        .text("name", &notification.name)
        .text("timestamp", &notification.timestamp)
        .text("receivedAt", &notification.received_at)
        .text("effectiveLevel", level::name(notification.level))
        .optional("subject", notification.subject.as_deref())
        .text("title", &notification.title)
        .optional("body", notification.body.as_deref())
        .raw("link", link.as_deref().unwrap_or("null"))
        .raw("data", notification.data.as_deref().unwrap_or("null"))
        .end()
}
