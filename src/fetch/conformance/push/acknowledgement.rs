//! What becomes of events that are acknowledged, and of ids that are none.

use serde_json::{Value, json};

use super::client::{Answer, Missed, Request, said};
use super::retrieval::{self, PAGE_EVENTS, Page};
use super::rules as is;
use super::{Check, UNKNOWN};

/// An id that no event has, twice.
pub(super) async fn unknown(check: &mut Check<'_>) {
    let ask = Request::ack(&json!([UNKNOWN]));
    let first = check.client.call(&ask).await;
    judge(check, &is::ACK_UNKNOWN, "ack of an unknown id", &first);
    let second = check.client.call(&ask).await;
    same(check, "an unknown id", &first, &second);
}

/// What is no list of ids.
pub(super) async fn arguments(check: &mut Check<'_>) {
    for (ids, what) in [(json!([]), "ack of no id"), (json!(UNKNOWN), "ack of a text"), (json!([7]), "ack of a number")]
    {
        let answer = check.client.call(&Request::ack(&ids)).await;
        check.refused(&is::ACK_ARGUMENTS, what, answer, &[-32_602]);
    }
}

/// Acknowledges a page, and sees that it is gone and stays so.
pub(super) async fn known(check: &mut Check<'_>, page: &Page) {
    let ids: Vec<&str> = page.ids().collect();
    if ids.is_empty() {
        return;
    }
    let ask = Request::ack(&json!(ids));
    let first = check.client.call(&ask).await;
    judge(check, &is::ACK_EXCLUDES, "ack of a page", &first);
    if !matches!(first, Ok(Answer::Result(_))) {
        return;
    }
    if gone(check, page, "after its acknowledgement").await.is_some_and(|is_gone| is_gone) {
        check.ledger.pass(&is::ACK_EXCLUDES, format!("none of {} comes again", ids.len()));
    }
    let second = check.client.call(&ask).await;
    same(check, "a page", &first, &second);
    gone(check, page, "after its second acknowledgement").await;
}

/// Whether retrieval brings nothing of `page`. That it does is told.
async fn gone(check: &mut Check<'_>, page: &Page, when: &str) -> Option<bool> {
    let now = retrieval::page(check, json!({ "limit": PAGE_EVENTS }), "get after ack").await?;
    let left = now.events.iter().find(|event| page.has(event));
    if let Some(left) = left {
        let id = said(super::envelope::id_of(left).unwrap_or("an event"));
        check.ledger.fail(&is::ACK_EXCLUDES, format!("{id} is retrieved {when}"));
    }
    Some(left.is_none())
}

/// Judges an acknowledgement that is to succeed.
fn judge(check: &mut Check<'_>, rule: &'static super::Rule, what: &str, came: &Result<Answer, Missed>) {
    match came {
        Ok(Answer::Result(result)) => {
            if rule.id == is::ACK_UNKNOWN.id {
                check.ledger.pass(rule, "it succeeds");
            }
            match result.iter().find(|(key, _)| !["resultType", "_meta"].contains(&key.as_str())) {
                None => check.ledger.pass(&is::ACK_EMPTY, "every one"),
                Some((key, value)) => check.ledger.fail(
                    &is::ACK_EMPTY,
                    format!("{what} is answered with {:?}: {}", said(key), said(&value.to_string())),
                ),
            }
        }
        Ok(Answer::Error { code, message }) => {
            check.ledger.fail(rule, format!("{what} is refused with {code}: {message}"));
        }
        Err(missed) => check.tell(rule, what, missed),
    }
}

/// Judges whether a repeated acknowledgement is answered as the first.
fn same(check: &mut Check<'_>, what: &str, first: &Result<Answer, Missed>, second: &Result<Answer, Missed>) {
    let shown = |came: &Result<Answer, Missed>| match came {
        Ok(Answer::Result(result)) => {
            let rest = result.iter().filter(|(key, _)| *key != "_meta");
            said(&Value::Object(rest.map(|(key, value)| (key.clone(), value.clone())).collect()).to_string())
        }
        Ok(Answer::Error { code, message }) => format!("the error {code}: {message}"),
        Err(missed) => missed.to_string(),
    };
    match (first, second) {
        (Err(_), _) | (_, Err(Missed::Cut)) => {}
        _ if shown(first) == shown(second) => {
            check.ledger.pass(&is::ACK_IDEMPOTENT, "the second is answered as the first")
        }
        _ => {
            let seen = format!("{what}: first {}, then {}", shown(first), shown(second));
            check.ledger.fail(&is::ACK_IDEMPOTENT, seen);
        }
    }
}
