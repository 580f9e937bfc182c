//! Every limit of the sandbox, just obeyed and just passed: what passes one reads which.

use super::component::{Module, component};
use super::*;
use crate::wasm::limits::{
    CORE_INSTANCES_MAX, DESCRIPTION_BYTES_MAX, MEMORIES_MAX, PLUGIN_BYTES_MAX, TABLE_ELEMENTS_MAX, TABLES_MAX,
};
use crate::wasm::manifest::Manifest;
use crate::wasm::{LimitKind, LoadError};

/// Pages of WebAssembly in the memory that an instance may have.
const PAGES_MAX: u32 = (32 << 20) / (64 << 10);

/// What is said of a component of these modules: when it obeys the limits, that its functions have the wrong types.
async fn said(modules: &[Module]) -> LoadError {
    sandbox().load(component(modules)).await.unwrap_err()
}

async fn obeys(modules: &[Module]) {
    let error = said(modules).await;
    assert!(matches!(&error, LoadError::WrongWorld { found, .. } if found.contains("with other types")), "{error}");
}

async fn demands_too_much(modules: &[Module], says: &str) {
    let error = said(modules).await;
    let LoadError::TooDemanding(detail) = &error else { panic!("{error}") };
    assert!(detail.contains(says), "{detail}");
}

async fn passes(modules: &[Module], limit: LimitKind, says: &str) {
    let error = said(modules).await;
    assert!(matches!(error, LoadError::Describe(StepFault::Limit { which, .. }) if which == limit), "{error}");
    assert_eq!(error.to_string(), format!("describe failed: the plugin passed its {says}"));
}

fn memory(pages: u32) -> Module {
    Module { pages: Some(pages), ..Module::default() }
}

fn table(elements: u32) -> Module {
    Module { elements: Some(elements), ..Module::default() }
}

fn many(module: Module, count: u32) -> Vec<Module> {
    vec![module; count as usize]
}

#[tokio::test]
async fn all_memories_of_an_instance_count_together() {
    obeys(&[memory(PAGES_MAX)]).await;
    obeys(&[memory(PAGES_MAX / 2), memory(PAGES_MAX / 2)]).await;
    obeys(&many(memory(PAGES_MAX / 4), 4)).await;
    passes(&[memory(PAGES_MAX + 1)], LimitKind::Memory, "memory limit of 32 MiB").await;
    passes(&[memory(PAGES_MAX / 2), memory(PAGES_MAX / 2 + 1)], LimitKind::Memory, "memory limit of 32 MiB").await;
    demands_too_much(&[memory(2 * PAGES_MAX + 1)], "memory").await;
}

#[tokio::test]
async fn memories_tables_and_instances_are_counted_before_anything_runs() {
    obeys(&many(memory(1), MEMORIES_MAX)).await;
    demands_too_much(&many(memory(1), MEMORIES_MAX + 1), "contains 5 ").await;
    obeys(&many(table(1), TABLES_MAX)).await;
    demands_too_much(&many(table(1), TABLES_MAX + 1), "contains 21 ").await;
    obeys(&many(Module::default(), CORE_INSTANCES_MAX)).await;
    demands_too_much(&many(Module::default(), CORE_INSTANCES_MAX + 1), "contains 65 ").await;
}

#[tokio::test]
async fn a_table_has_so_many_elements_from_the_start_and_later() {
    let elements = TABLE_ELEMENTS_MAX as u32;
    let growing = |by| Module { grows_by: Some(by), ..table(1) };
    obeys(&[table(elements)]).await;
    demands_too_much(&[table(elements + 1)], "table").await;
    obeys(&[growing(elements - 1)]).await;
    passes(&[growing(elements)], LimitKind::Table, "table limit of 20000 elements").await;
}

#[tokio::test]
async fn a_file_has_so_many_bytes() {
    let error = sandbox().load(vec![0; PLUGIN_BYTES_MAX]).await.unwrap_err();
    assert!(matches!(error, LoadError::NotWasm { .. }), "{error}");
    let error = sandbox().load(vec![0; PLUGIN_BYTES_MAX + 1]).await.unwrap_err();
    assert_eq!(error, LoadError::TooLarge);
}

#[test]
fn a_description_has_so_many_bytes() {
    let text = r#"{"name":"a","version":"1.0.0"}"#;
    let padded = |bytes: usize| text.to_owned() + &" ".repeat(bytes - text.len());
    assert!(Manifest::parse(&padded(DESCRIPTION_BYTES_MAX)).is_ok());
    let mistakes = Manifest::parse(&padded(DESCRIPTION_BYTES_MAX + 1)).unwrap_err();
    assert_eq!(mistakes, ["it is 262145 bytes long; at most 256 KiB"]);
}

/// The plugin that does harm in the way its settings name.
async fn hostile() -> Plugin {
    static HOSTILE: OnceCell<Plugin> = OnceCell::const_new();
    HOSTILE.get_or_init(async || sandbox().load(guest("hostile")).await.unwrap()).await.clone()
}

fn settings_of(does: &str) -> String {
    format!(r#"{{"does":"{does}","at":"https://hooks.example.com/"}}"#)
}

async fn first_step(does: &str) -> Result<Action, StepFault> {
    hostile().await.attempt(Delivery { settings: settings_of(does), ..delivery("") }).step().await
}

#[tokio::test]
async fn what_stays_within_the_limits_of_a_step_is_done() {
    for (does, expected) in [("recurse-a-little", "1000"), ("hold-some", "900"), ("write-much", "65536 bytes")] {
        assert_eq!(noted(first_step(does).await), expected, "{does}");
    }
}

#[tokio::test]
async fn what_passes_a_limit_of_a_step_says_which() {
    for (does, expected) in [
        ("loop", "the plugin passed its CPU time limit of 100 ms a step"),
        ("recurse", "the plugin passed its stack limit of 512 KiB"),
        ("hoard", "the plugin passed its handles limit of 1000"),
        ("huge-answer", "the plugin passed its answer size limit of 2 MiB"),
        ("write-too-much", "the plugin failed (wrote 65537 bytes at once; a stream takes at most 65536)"),
        ("huge-remember", "the plugin gave a wrong answer: done.remember has 1048578 bytes; at most 64 KiB"),
        ("huge-resume", "the plugin gave a wrong answer: wait.resume has 1048578 bytes; at most 64 KiB"),
        (
            "deep-extras",
            "the plugin gave a wrong answer: http.extras is no JSON: recursion limit exceeded at line 1 column 128",
        ),
    ] {
        assert_eq!(first_step(does).await.unwrap_err().to_string(), expected, "{does}");
    }
}

#[tokio::test]
async fn what_passes_a_limit_of_a_check_says_which() {
    for (does, expected) in [
        ("check-loop", "the plugin passed its CPU time limit of 100 ms a step"),
        ("check-trap", "the plugin stopped itself (it panicked or aborted)"),
        ("check-many-lanes", "the plugin gave a wrong answer: destination.lanes has 10000 entries; at most 8"),
        ("check-long-lane", "the plugin gave a wrong answer: the key of a lane has 1048577 bytes; at most 200 bytes"),
        ("check-no-problem", "the plugin gave a wrong answer: check refused the settings without naming a problem"),
    ] {
        assert_eq!(hostile().await.check(settings_of(does)).await.unwrap_err().to_string(), expected, "{does}");
    }
    let label = hostile().await.check(settings_of("check-huge-label")).await.unwrap().label;
    assert_eq!(label.chars().count(), 200);
}

#[tokio::test]
async fn a_text_that_is_none_is_a_fault() {
    let fault = first_step("bad-text").await.unwrap_err();
    assert!(matches!(&fault, StepFault::Trap { detail, .. } if detail.contains("utf-8")), "{fault}");
}

#[tokio::test]
async fn whatever_a_plugin_does_no_instance_stays() {
    let sandbox = Sandbox::new(settings()).unwrap();
    let plugin = sandbox.load(guest("hostile")).await.unwrap();
    let permits = || sandbox.0.keep.available_permits();
    let all = permits();
    for does in ["loop", "allocate", "recurse", "trap", "hoard", "huge-answer", "bad-extras", "wait-for-ever", "count"]
    {
        let mut attempt = plugin.attempt(Delivery { settings: settings_of(does), ..delivery("") });
        let _ = attempt.step().await;
        assert_eq!(attempt.is_kept(), does == "count", "{does}");
        drop(attempt);
        // What is given back is given back by a thread for steps: one that answers has done what came before.
        while permits() != all {
            assert!(plugin.check(settings_of("")).await.is_ok());
        }
    }
}
