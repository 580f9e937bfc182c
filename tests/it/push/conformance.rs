//! The conformance suite of the extension: what its seed asks of a server, run against ours and against another's.

use std::collections::BTreeSet;

use futures_util::stream::{self, StreamExt as _};

use super::conformance_cases::CASES;
use super::conformance_stage::{Side, Which};

/// Cases that there are to be, at the least.
const CASES_MIN: usize = 40;

/// Servers that run at once.
const AT_ONCE: usize = 4;

/// Runs every case against a server of its own, and says which failed.
async fn all(which: Which) {
    let run = |(name, case): &'static (&'static str, super::conformance_cases::Case)| async move {
        let ran = tokio::spawn(async move {
            let mut side = Side::start(which).await;
            case(&mut side).await;
        });
        (*name, ran.await.is_ok())
    };
    let ran: Vec<_> = stream::iter(CASES).map(run).buffer_unordered(AT_ONCE).collect().await;
    let failed: Vec<_> = ran.iter().filter(|(_, is_good)| !is_good).map(|(name, _)| name).collect();
    assert!(failed.is_empty(), "{which:?} breaks {failed:#?}");
    assert!(ran.len() >= CASES_MIN, "only {} cases ran", ran.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn our_server_keeps_every_case() {
    all(Which::Ours).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fixture_keeps_every_case() {
    all(Which::Fixture).await;
}

#[test]
fn there_are_enough_cases_and_each_has_its_name() {
    let names: BTreeSet<_> = CASES.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), CASES.len());
    assert!(names.len() >= CASES_MIN, "{}", names.len());
}
