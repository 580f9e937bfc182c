//! Outboxes that know some forms of their URI and not others, as SDKs match templates in their own ways.

use axum::response::Response;

use super::answers::{HOUR, stage};
use super::stage::Turn;
use crate::support::misbehaving::{Got, Wayward, error};

/// So do outboxes that are written as some SDKs print it.
#[tokio::test]
async fn an_outbox_that_knows_its_whole_template_alone_cannot_be_begun_and_is_told_what_else_to_serve() {
    let (site, mut stage) = stage().await;
    site.misbehave(|got, _| refuse_unless(got, |names| names == ["cursor", "maxEvents", "maxAgeMs"]));
    let says = ["the server does not know the resource", "let it serve the template {?cursor,maxEvents,maxAgeMs} too"];
    let asked = site.asked();
    let turns = stage.turns_of(HOUR).await;
    let count = turns.len();
    for turn in turns {
        turn.failed(&says);
    }
    assert_eq!(site.outbox.calls("resources/read"), 2 * count, "two forms are tried, once for each read");
    assert!(site.asked() - asked <= 3 * count, "and the connection is made anew now and then");
    site.behave();
    assert!(stage.turn().await.worked().bootstrap);
    stage.stop().await;
}

#[tokio::test]
async fn an_outbox_that_does_not_know_its_bare_uri_is_begun_with_the_bounds() {
    let (site, mut stage) = stage().await;
    site.misbehave(|got, _| refuse_unless(got, |names| !names.is_empty()));
    stage.begins().await;
    site.happen("one");
    assert_eq!(stage.turn().await.worked().accepted, ["one"]);
    let asked: Vec<_> =
        site.outbox.requests().iter().filter(|got| got.is_read()).map(|got| names(got).join(",")).collect();
    assert_eq!(asked, ["", "maxEvents,maxAgeMs", "cursor,maxEvents,maxAgeMs"]);
    stage.stop().await;
}

#[tokio::test]
async fn an_outbox_that_knows_its_bare_uri_alone_stays_failing_after_one_gap() {
    let (site, mut stage) = stage().await;
    site.misbehave(|got, _| refuse_unless(got, |names| names.is_empty()));
    stage.begins().await;
    let turns = stage.turns_of(HOUR).await;
    assert_eq!(turns.iter().map(|turn| turn.gaps).sum::<usize>(), 1);
    let names: Vec<_> = turns.iter().flat_map(Turn::notice_names).collect();
    assert_eq!(names, ["connector.gap", "connector.failing"]);
    site.behave();
    assert_eq!(stage.turn().await.worked().notice_names(), ["connector.recovered"]);
    stage.stop().await;
}

/// The names of the parameters of a read, in order.
fn names(got: &Got) -> Vec<&str> {
    got.query().map(|query| query.split('&').map(|pair| pair.split('=').next().unwrap()).collect()).unwrap_or_default()
}

fn refuse_unless(got: &Got, knows: impl Fn(&[&str]) -> bool) -> Option<Response> {
    (got.is_read() && !knows(&names(got))).then(|| error(got, -32602, "Resource acme://notifications not found"))
}
