//! Plugins that take what they are not given: each is cut off, says which limit it passed, and harms nobody.

use std::time::{Duration, Instant};

use super::*;
use crate::wasm::LimitKind;
use crate::wasm::guests::puppet_describing;

async fn check(behaviour: &str, expected: &str) -> StepFault {
    let fault = first_step(behaviour).await.unwrap_err();
    assert_eq!(fault.to_string(), expected, "{behaviour}");
    fault
}

#[tokio::test]
async fn an_endless_loop_is_cut_off_soon_after_its_cpu_time() {
    let start = Instant::now();
    let fault = check("loop", "the plugin passed its CPU time limit of 100 ms a step").await;
    assert!(matches!(fault, StepFault::Limit { which: LimitKind::Cpu, .. }));
    // Wall time is no less than CPU time, and on a loaded machine much more.
    assert!(start.elapsed() >= Duration::from_millis(100));
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn loops_do_not_harm_other_plugins() {
    let looping = sandbox().load(puppet_describing(r#"{"name":"looping","version":"1.0.0"}"#)).await.unwrap();
    let loops: Vec<_> = (0..4)
        .map(|_| {
            let mut attempt = looping.attempt(delivery("loop"));
            tokio::spawn(async move { attempt.step().await })
        })
        .collect();
    assert!(matches!(first_step("deliver").await, Ok(Action::Http(_))));
    for step in loops {
        assert!(matches!(step.await.unwrap(), Err(StepFault::Limit { which: LimitKind::Cpu, .. })));
    }
}

#[tokio::test]
async fn a_kept_instance_has_its_cpu_time_anew() {
    let limits = Limits { step_cpu_max: Duration::from_millis(60), ..Limits::default() };
    let sandbox = Sandbox::new(Settings { limits, ..settings() }).unwrap();
    let plugin = sandbox.load(guest("puppet")).await.unwrap();
    let mut attempt = plugin.attempt(delivery("work"));
    for _ in 0..5 {
        assert!(matches!(attempt.step().await, Ok(Action::Http(_))));
        assert!(attempt.is_kept());
        attempt.answer(http(200, ""));
    }
}

#[tokio::test]
async fn endless_allocation_names_the_memory_limit() {
    let expected = "the plugin passed its memory limit of 32 MiB: memory allocation of 1048576 bytes failed";
    let fault = check("allocate", expected).await;
    assert!(matches!(fault, StepFault::Limit { which: LimitKind::Memory, .. }));
}

#[tokio::test]
async fn a_refused_allocation_that_the_plugin_copes_with_is_no_fault() {
    assert_eq!(note("allocate-politely").await, "true");
}

#[tokio::test]
async fn a_component_that_begins_with_more_memory_than_its_limit_is_refused_with_the_limit() {
    let limits = Limits { memory_bytes_max: 64 << 10, ..Limits::default() };
    let sandbox = Sandbox::new(Settings { limits, ..settings() }).unwrap();
    let error = sandbox.load(guest("puppet")).await.unwrap_err();
    assert_eq!(error.to_string(), "describe failed: the plugin passed its memory limit of 64 KiB");
}

#[tokio::test]
async fn endless_recursion_names_the_stack() {
    check("recurse", "the plugin passed its stack limit of 512 KiB").await;
}

#[tokio::test]
async fn an_answer_too_large_is_not_taken_over() {
    check("heavy-action", "the plugin passed its answer size limit of 2 MiB").await;
}

#[tokio::test]
async fn what_no_plugin_may_answer_is_named() {
    for (behaviour, expected) in [
        ("heavy-body", "http.body has 1048577 bytes; at most 1 MiB"),
        ("many-headers", "http.headers has 65 entries; at most 64"),
        ("long-url", "http.url has 8193 bytes; at most 8 KiB"),
        ("bad-extras", "http.extras is no JSON: expected ident at line 1 column 2"),
        ("bad-resume", "failed.resume is no JSON: EOF while parsing an object at line 1 column 1"),
    ] {
        let fault = check(behaviour, &format!("the plugin gave a wrong answer: {expected}")).await;
        assert!(matches!(fault, StepFault::Invalid { .. }));
    }
}

#[tokio::test]
async fn a_long_reason_is_cut_and_cleaned_not_refused() {
    let Ok(Action::Failed(failure)) = first_step("long-reason").await else { panic!("no failure") };
    assert_eq!(failure.reason.chars().count(), 2_000);
    assert!(failure.reason.starts_with(" [2Jlong\n [2Jlong\n") && failure.reason.ends_with('…'));
}

#[tokio::test]
async fn a_panic_shows_its_message() {
    let mut attempt = attempt("panic").await;
    let fault = attempt.step().await.unwrap_err();
    let text = fault.to_string();
    assert!(text.starts_with("the plugin stopped itself (it panicked or aborted): first [31mred [0m thread"), "{text}");
    assert!(text.ends_with("the channel is on fire"), "{text}");
    assert!(attempt.complaint().unwrap().contains("the channel is on fire"));
}

#[tokio::test]
async fn an_exit_is_a_fault() {
    let fault = first_step("exit").await.unwrap_err();
    let StepFault::Trap { detail, said: None } = fault else { panic!("{fault:?}") };
    assert!(detail.starts_with("failed (exited with"), "{detail}");
}

#[tokio::test]
async fn a_flood_of_output_is_cut_to_its_end() {
    let mut attempt = attempt("flood").await;
    assert_eq!(noted(attempt.step().await), "flooded");
    let complaint = attempt.complaint().unwrap();
    assert!(complaint.len() <= 4100, "{}", complaint.len());
    assert!(complaint.starts_with("… xxx") && complaint.ends_with("the last words"), "{complaint}");
}

#[tokio::test]
async fn a_hoard_of_handles_is_a_fault() {
    let fault = check("hoard", "the plugin passed its handles limit of 1000").await;
    assert!(matches!(fault, StepFault::Limit { which: LimitKind::Handles, .. }));
}

#[tokio::test]
async fn randomness_comes_in_measured_amounts() {
    assert_eq!(note("much-random").await, "65536");
    let expected = "the plugin failed (asked for 65537 random bytes at once; at most 65536 are given)";
    check("too-much-random", expected).await;
}
