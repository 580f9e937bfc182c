//! What people do on pages of a workspace. Each answers with a sentence that our script shows; it then asks for the page anew.

use std::sync::Arc;

use axum::extract::{Path, State};

use super::parts::{Asked, count, deliveries};
use super::visitor::{Posted, Refused, Visitor};
use crate::inbox::{Deed, DeliveryId, HANDLED_MAX, Handled, Mark, Which};
use crate::serve::Served;
use crate::serve::auth::Right;
use crate::serve::desk::{Change, MARKED_MAX};
use crate::serve::problem::Problem;
use crate::serve::seat::not_polled;

/// What was done, for the one who did it.
pub(super) type Told = Result<String, Refused>;

/// Marks notifications: `deed` is `read` or `acknowledge`, `seq` their numbers.
pub(super) async fn mark(
    State(served): State<Arc<Served>>,
    Visitor(caller): Visitor,
    Path(workspace): Path<String>,
    Posted(body): Posted,
) -> Told {
    let admitted = served.gate.workspace(&caller, &workspace, Right::Mark)?;
    let asked = Asked::read(&body);
    let deed = match asked.one("deed") {
        Some("read") => Deed::Read,
        Some("acknowledge") => Deed::Acknowledge,
        _ => return Err(wrong("say what to do: read or acknowledge")),
    };
    let seqs: Vec<u64> = asked.all("seq").filter_map(|seq| seq.parse().ok()).collect();
    if seqs.is_empty() {
        return Err(wrong("nothing is selected: select what to mark first"));
    }
    if seqs.len() > MARKED_MAX as usize {
        return Err(wrong(format!("{} are selected: mark {MARKED_MAX} at most at once", seqs.len())));
    }
    let mark = Mark { at: served.clock.now(), by: caller.actor.clone() };
    let marked = served.store.mark(admitted.name(), seqs, deed, mark).await?;
    let done = if deed == Deed::Read { "marked as read" } else { "acknowledged" };
    let mut told = match marked.seqs.as_slice() {
        [] => "nothing was marked".to_owned(),
        [only] => format!("#{only} {done}"),
        more => format!("{} {done}", count(more.len(), "notification")),
    };
    if !marked.suppressed.is_empty() {
        told.push_str(&format!("; {} not needed any more", deliveries(marked.suppressed.len())));
    }
    if !marked.missing.is_empty() {
        told.push_str(&format!("; {} no longer in the inbox", count(marked.missing.len(), "notification")));
    }
    Ok(told)
}

/// Changes deliveries: `do` is `retry` or `cancel`, `id` their ids.
pub(super) async fn change(
    State(served): State<Arc<Served>>,
    Visitor(caller): Visitor,
    Path(workspace): Path<String>,
    Posted(body): Posted,
) -> Told {
    let admitted = served.gate.workspace(&caller, &workspace, Right::ChangeWork)?;
    let asked = Asked::read(&body);
    let ids: Vec<DeliveryId> = asked.all("id").filter_map(|id| id.parse().ok()).collect();
    if ids.is_empty() {
        return Err(wrong("nothing is selected: select deliveries first"));
    }
    if ids.len() > HANDLED_MAX as usize {
        return Err(wrong(format!("{} are selected: change {HANDLED_MAX} at most at once", ids.len())));
    }
    let which = Which { ids, ..Which::default() };
    let (workspace, store) = (admitted.name(), &served.store);
    let (handled, done) = match asked.one("do") {
        Some("retry") => (store.retry(workspace, which, served.clock.now()).await?, "to be tried again"),
        Some("cancel") => {
            let why = format!("cancelled by {} in the web inbox", caller.actor.name);
            (store.cancel(workspace, which, why).await?, "cancelled")
        }
        _ => return Err(wrong(format!("say what to do: {} or {}", Change::Retry.as_str(), Change::Cancel.as_str()))),
    };
    Ok(told(&handled, done))
}

fn told(handled: &Handled, done: &str) -> String {
    let mut parts = Vec::new();
    if !handled.done.is_empty() {
        parts.push(format!("{} {done}", deliveries(handled.done.len())));
    }
    if let [(_, state), others @ ..] = handled.refused.as_slice() {
        let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
        parts.push(format!("not changed: one that is {}{more}", state.as_str().replace('_', " ")));
    }
    if !handled.missing.is_empty() {
        parts.push(format!("{} not there", deliveries(handled.missing.len())));
    }
    if parts.is_empty() { "nothing was changed".to_owned() } else { parts.join("; ") }
}

/// Reads an outbox now.
pub(super) async fn poll(
    State(served): State<Arc<Served>>,
    Visitor(caller): Visitor,
    Path((workspace, name)): Path<(String, String)>,
) -> Told {
    let admitted = served.gate.workspace(&caller, &workspace, Right::ChangeWork)?;
    let seats = served.seats.borrow().clone();
    let seat = seats.iter().find(|seat| seat.workspace == *admitted.name() && seat.connector.name.as_str() == name);
    let Some(seat) = seat else {
        return Err(Problem::Unknown(format!("workspace {workspace} has no connector {name:?}")).into());
    };
    let handle = match &seat.polled {
        Ok(handle) => handle,
        Err(why) => return Err(Problem::Conflict(not_polled(&seat.connector.name, why.as_deref())).into()),
    };
    let Some(polled) = handle.poll().await else {
        return Err(Problem::Unavailable("the server is stopping".to_owned()).into());
    };
    Ok(match polled.failure {
        Some(why) => format!("{name} could not be read: {why}"),
        None => {
            let dropped = if polled.dropped > 0 { format!(", {} dropped", polled.dropped) } else { String::new() };
            format!("{name} was read: {}, {} new{dropped}", count(polled.events, "event"), polled.new)
        }
    })
}

fn wrong(why: impl Into<String>) -> Refused {
    Problem::Wrong(why.into()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbox::delivery::State as Stands;

    #[test]
    fn what_became_of_deliveries_is_told_in_a_sentence() {
        let id: DeliveryId = "5f3a9c01-17".parse().unwrap();
        let handled = Handled {
            done: vec![(id.clone(), None)],
            refused: vec![(id.clone(), Stands::InFlight), (id.clone(), Stands::Delivered)],
            missing: vec![id.clone(), id],
            has_more: false,
        };
        let expected =
            "1 delivery to be tried again; not changed: one that is in flight and 1 more; 2 deliveries not there";
        assert_eq!(told(&handled, "to be tried again"), expected);
        assert_eq!(told(&Handled::default(), "cancelled"), "nothing was changed");
    }
}
