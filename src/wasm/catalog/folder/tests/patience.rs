//! Files that are not whole, or were refused: how long they are waited for.

use super::super::{INCOMPLETE_PATIENCE, REFUSED_PATIENCE};
use super::*;
use crate::wasm::catalog::trust::SIGNATURE_BYTES_MAX;

#[test]
fn a_truncated_file_is_waited_for_and_then_taken_as_it_is() {
    let mut stage = Stage::new();
    for bytes in [component("one")[..50].to_vec(), b"\0as".to_vec(), vec![]] {
        stage.write("slack.wasm", &bytes);
        assert_eq!(stage.looks(Stage::looks_in(INCOMPLETE_PATIENCE)), [""; 0]);
        assert_eq!(stage.looks(2), [format!("slack: {} bytes", bytes.len())]);
        assert_eq!(stage.looks(50), [""; 0]);
    }
}

#[test]
fn a_truncated_file_is_waited_for_at_the_start_too() {
    let mut stage = Stage::unseen();
    stage.write("slack.wasm", &component("one")[..50]);
    assert_eq!(stage.look(), [""; 0]);
    stage.write("slack.wasm", &component("one"));
    assert_eq!(stage.looks(2), ["slack: one"]);
}

#[test]
fn a_file_that_was_refused_is_told_of_once_more_when_it_has_rested() {
    let mut stage = Stage::new();
    let bytes = component("one");
    stage.put("slack.wasm", "one");
    assert_eq!(stage.looks(2), ["slack: one"]);
    assert_eq!(stage.refused("slack", &bytes), Patience::Wait);
    // It was first seen one look before it was settled.
    assert_eq!(stage.looks(Stage::looks_in(REFUSED_PATIENCE) - 2), [""; 0]);
    assert_eq!(stage.look(), ["slack: one"]);
    assert_eq!(stage.refused("slack", &bytes), Patience::Report);
    assert_eq!(stage.looks(50), [""; 0]);
}

#[test]
fn a_file_that_is_refused_late_is_reported_at_once() {
    let mut stage = Stage::new();
    stage.put("slack.wasm", "one");
    // The compiler may take so long.
    assert_eq!(stage.looks(10), ["slack: one"]);
    assert_eq!(stage.refused("slack", &component("one")), Patience::Report);
    assert_eq!(stage.looks(50), [""; 0]);
}

#[test]
fn a_file_that_is_refused_at_the_start_is_reported_at_once() {
    let mut stage = Stage::unseen();
    stage.put("slack.wasm", "one");
    assert_eq!(stage.look(), ["slack: one"]);
    assert_eq!(stage.refused("slack", &component("one")), Patience::Report);
    assert_eq!(stage.looks(50), [""; 0]);
}

/// Its first sections arrive, then a pause, then the rest.
#[test]
fn a_file_that_was_cut_where_a_section_ends_is_settled_again_when_it_is_whole() {
    let mut stage = Stage::new();
    stage.write("slack.wasm", HEADER);
    assert_eq!(stage.looks(3), ["slack: 8 bytes"]);
    assert_eq!(stage.refused("slack", HEADER), Patience::Wait);
    stage.write("slack.wasm", &component("one"));
    assert_eq!(stage.looks(20), ["slack: one"]);
}

#[test]
fn a_refusal_of_what_was_replaced_meanwhile_is_not_worth_telling() {
    let mut stage = Stage::new();
    stage.put("slack.wasm", "one");
    assert_eq!(stage.looks(10), ["slack: one"]);
    stage.put("slack.wasm", "two");
    assert_eq!(stage.look(), [""; 0]);
    assert_eq!(stage.refused("slack", &component("one")), Patience::Wait, "it is just changing");
    assert_eq!(stage.look(), ["slack: two"]);
    assert_eq!(stage.refused("slack", &component("one")), Patience::Wait, "it was another");
    assert_eq!(stage.refused("mail", &component("one")), Patience::Wait, "there is none");
    assert_eq!(stage.looks(20), [""; 0]);
}

#[test]
fn a_file_that_is_touched_while_it_is_waited_for_is_waited_for_anew() {
    let mut stage = Stage::new();
    stage.put("slack.wasm", "one");
    assert_eq!(stage.looks(4), ["slack: one"]);
    assert_eq!(stage.refused("slack", &component("one")), Patience::Wait);
    stage.put("slack.wasm", "one");
    assert_eq!(stage.looks(Stage::looks_in(REFUSED_PATIENCE)), [""; 0]);
    assert_eq!(stage.look(), ["slack: one"]);
    assert_eq!(stage.refused("slack", &component("one")), Patience::Report);
}

#[test]
fn a_signature_comes_with_the_file_it_is_of() {
    let mut stage = Stage::new();
    stage.write("slack.wasm.minisig", b"by me");
    stage.put("slack.wasm", "one");
    stage.put("mail.wasm", "two");
    assert_eq!(stage.looks(2), ["mail: two", "slack: one signed by me"]);
}

#[test]
fn a_signature_alone_is_news_for_a_file_that_was_refused() {
    let mut stage = Stage::new();
    stage.put("slack.wasm", "one");
    stage.put("mail.wasm", "two");
    assert_eq!(stage.looks(10), ["mail: two", "slack: one"]);
    assert_eq!(stage.refused("slack", &component("one")), Patience::Report);
    stage.write("slack.wasm.minisig", b"by me");
    stage.write("mail.wasm.minisig", b"by me");
    assert_eq!(stage.looks(5), ["slack: one signed by me"]);
    stage.write("slack.wasm.minisig", b"by you");
    assert_eq!(stage.looks(5), [""; 0], "it was not refused again");
    assert_eq!(stage.refused("slack", &component("one")), Patience::Wait);
}

#[test]
fn a_signature_that_follows_within_the_patience_is_seen_before_anything_is_told() {
    let mut stage = Stage::new();
    stage.put("slack.wasm", "one");
    assert_eq!(stage.looks(2), ["slack: one"]);
    assert_eq!(stage.refused("slack", &component("one")), Patience::Wait);
    stage.write("slack.wasm.minisig", b"by me");
    assert_eq!(stage.looks(20), ["slack: one signed by me"]);
}

#[test]
fn a_long_signature_is_read_as_far_as_one_may_go() {
    let mut stage = Stage::new();
    stage.put("slack.wasm", "one");
    stage.write("slack.wasm.minisig", &[b'x'; 30_000]);
    let seen: Vec<Seen> = stage.see().into_iter().chain(stage.see()).collect();
    let [Seen::Settled { signature: Some(signature), .. }] = seen.as_slice() else { panic!("{seen:?}") };
    assert_eq!(signature.len(), SIGNATURE_BYTES_MAX + 1);
}
