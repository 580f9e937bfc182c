//! Attempts that go well, and what they keep and forget.

use super::*;
use crate::wasm::place::{SLOW_STEPS, TRIAL_STEPS};
use crate::wasm::{CheckError, Destination, FailureKind, KEPT_INSTANCES_MAX, LimitKind, stepping};

#[tokio::test]
async fn a_good_plugin_asks_for_a_request_and_is_done_with_its_answer() {
    let mut attempt = attempt("deliver").await;
    let Ok(Action::Http(request)) = attempt.step().await else { panic!("no request") };
    assert_eq!((request.method.as_str(), request.body.as_slice()), ("POST", "a.example is active".as_bytes()));
    attempt.answer(http(200, "ok"));
    assert_eq!(noted(attempt.step().await), "ok");
    assert_eq!((attempt.steps(), attempt.complaint()), (2, None));
}

#[tokio::test]
async fn a_bad_answer_is_a_failure_the_plugin_decides() {
    let mut attempt = attempt("deliver").await;
    assert!(matches!(attempt.step().await, Ok(Action::Http(_))));
    attempt.answer(http(404, ""));
    let Ok(Action::Failed(failure)) = attempt.step().await else { panic!("no failure") };
    assert_eq!((failure.kind, failure.reason.as_str()), (FailureKind::Reject, "HTTP 404"));
}

#[tokio::test]
async fn no_state_passes_from_one_attempt_to_the_next() {
    for _ in 0..3 {
        let mut attempt = attempt("count").await;
        assert!(matches!(attempt.step().await, Ok(Action::Http(_))));
        attempt.answer(http(200, ""));
        attempt.rest();
        assert_eq!(noted(attempt.step().await), "1");
    }
}

#[tokio::test]
async fn an_instance_is_kept_for_the_next_step_of_its_own_attempt() {
    let mut attempt = attempt("count").await;
    assert!(attempt.step().await.is_ok());
    attempt.answer(http(200, ""));
    assert!(attempt.is_kept());
    assert_eq!(noted(attempt.step().await), "2");
    assert!(!attempt.is_kept());
}

#[tokio::test]
async fn a_kept_instance_and_a_fresh_one_give_the_same_answer() {
    for behaviour in ["deliver", "random"] {
        let mut kept = attempt(behaviour).await;
        let mut fresh = attempt(behaviour).await;
        assert_eq!(kept.step().await, fresh.step().await);
        for attempt in [&mut kept, &mut fresh] {
            attempt.answer(http(200, "ok"));
        }
        fresh.rest();
        assert!(kept.is_kept() && !fresh.is_kept());
        assert_eq!(kept.step().await, fresh.step().await, "{behaviour}");
    }
}

#[tokio::test]
async fn a_wait_keeps_no_instance_and_forgets_the_past() {
    let mut attempt = attempt("wait").await;
    assert!(matches!(attempt.step().await, Ok(Action::Wait(_))));
    assert!(!attempt.is_kept());
    attempt.answer(http(200, ""));
    attempt.answer(Effect { at: "2026-01-02T03:05:06Z".into(), answer: Answer::Resumed(None) });
    assert_eq!(noted(attempt.step().await), "1 1");
}

#[tokio::test]
async fn at_most_so_many_instances_are_kept() {
    let sandbox = Sandbox::new(Settings { kept_instances_max: 2, ..settings() }).unwrap();
    let plugin = sandbox.load(guest("puppet")).await.unwrap();
    let mut attempts: Vec<_> = (0..4).map(|_| plugin.attempt(delivery("count"))).collect();
    for attempt in &mut attempts {
        assert!(attempt.step().await.is_ok());
    }
    assert_eq!(attempts.iter().map(Attempt::is_kept).collect::<Vec<_>>(), [true, true, false, false]);
    assert_eq!(sandbox.kept_instances(), 2);
    for (attempt, expected) in attempts.iter_mut().zip(["2", "2", "1", "1"]) {
        attempt.answer(http(200, ""));
        assert_eq!(noted(attempt.step().await), expected);
    }
}

#[tokio::test]
async fn the_pool_has_room_for_all_that_are_kept_and_all_that_run() {
    let sandbox = Sandbox::new(settings()).unwrap();
    let plugin = sandbox.load(guest("puppet")).await.unwrap();
    let mut attempts: Vec<_> = (0..KEPT_INSTANCES_MAX).map(|_| plugin.attempt(delivery("count"))).collect();
    for attempt in &mut attempts {
        assert!(attempt.step().await.is_ok() && attempt.is_kept());
    }
    let further = (0..8).map(|_| {
        let mut attempt = plugin.attempt(delivery("work"));
        tokio::spawn(async move { attempt.step().await.map(|_| attempt.is_kept()) })
    });
    for attempt in further.collect::<Vec<_>>() {
        assert_eq!(attempt.await.unwrap(), Ok(false));
    }
}

#[tokio::test]
async fn a_permit_comes_back_when_an_attempt_rests_or_is_dropped() {
    let settings = Settings { kept_instances_max: 1, threads: NonZeroUsize::new(1), ..settings() };
    let plugin = Sandbox::new(settings).unwrap().load(guest("puppet")).await.unwrap();
    for round in 0..4 {
        let mut attempt = plugin.attempt(delivery("count"));
        assert!(attempt.step().await.is_ok());
        assert!(attempt.is_kept(), "{round}");
        if round % 2 == 0 {
            attempt.rest();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_attempts_run_at_once() {
    let plugin = puppet().await;
    let attempts = (0..200).map(|number| {
        let plugin = plugin.clone();
        tokio::spawn(async move {
            let mut attempt = plugin.attempt(Delivery { id: format!("0badcafe-{number}"), ..delivery("deliver") });
            assert!(matches!(attempt.step().await, Ok(Action::Http(_))));
            if number % 3 == 0 {
                attempt.rest();
            }
            attempt.answer(http(200, &number.to_string()));
            assert_eq!(noted(attempt.step().await), number.to_string());
        })
    });
    for attempt in attempts.collect::<Vec<_>>() {
        attempt.await.unwrap();
    }
}

#[tokio::test]
async fn a_step_dropped_on_the_way_costs_nothing_but_its_answer() {
    let plugin = puppet().await;
    for behaviour in ["loop", "count", "deliver"] {
        let mut attempt = plugin.attempt(delivery(behaviour));
        {
            let step = attempt.step();
            tokio::pin!(step);
            let polled = std::future::poll_fn(|context| std::task::Poll::Ready(step.as_mut().poll(context))).await;
            assert!(polled.is_pending(), "{behaviour}");
        }
        drop(attempt);
    }
    let mut attempt = plugin.attempt(delivery("deliver"));
    for _ in 0..2 {
        let step = attempt.step();
        tokio::pin!(step);
        let _ = std::future::poll_fn(|context| std::task::Poll::Ready(step.as_mut().poll(context))).await;
    }
    assert!(matches!(attempt.step().await, Ok(Action::Http(_))));
    assert_eq!(attempt.steps(), 3);
}

/// Runs on an async thread that was prepared for steps.
fn prepared<F: Future<Output: Send> + Send + 'static>(work: F) -> F::Output {
    let runtime = stepping(&mut tokio::runtime::Builder::new_multi_thread()).worker_threads(1).build().unwrap();
    runtime.block_on(async { tokio::spawn(work).await.unwrap() })
}

async fn load_quick() -> Plugin {
    let plugin = Sandbox::new(settings()).unwrap().load(guest("puppet")).await.unwrap();
    for _ in 0..SLOW_STEPS {
        let mut attempt = plugin.attempt(delivery("count"));
        assert!(attempt.step().await.is_ok());
        if plugin.pace().is_quick() {
            return plugin;
        }
    }
    panic!("never quick");
}

/// Whether a step is over when its future is polled for the first time, and what it came to if so.
async fn at_once(attempt: &mut Attempt) -> Option<Result<Action, StepFault>> {
    let mut step = std::pin::pin!(attempt.step());
    std::future::poll_fn(|context| match step.as_mut().poll(context) {
        std::task::Poll::Ready(stepped) => std::task::Poll::Ready(Some(stepped)),
        std::task::Poll::Pending => std::task::Poll::Ready(None),
    })
    .await
}

/// Whether steps are made elsewhere and waited for. One may be over before it is looked for; in place all are.
async fn is_waited_for(plugin: &Plugin) -> bool {
    for _ in 0..TRIAL_STEPS / 2 {
        let mut attempt = plugin.attempt(delivery("count"));
        if at_once(&mut attempt).await.is_none() {
            return true;
        }
    }
    false
}

#[test]
fn steps_of_a_quick_plugin_are_made_in_place_and_of_a_new_one_are_not() {
    prepared(async {
        let plugin = load_quick().await;
        for round in 0..100 {
            let mut attempt = plugin.attempt(delivery("count"));
            // A busy machine may have made a quick step seem slow.
            if at_once(&mut attempt).await.is_some() {
                assert!(attempt.is_kept());
                attempt.answer(http(200, ""));
                assert_eq!(noted(attempt.step().await), "2");
                let new = Sandbox::new(settings()).unwrap().load(guest("puppet")).await.unwrap();
                assert!(is_waited_for(&new).await);
                return;
            }
            assert!(round < 99, "never in place");
            let mut next = plugin.attempt(delivery("count"));
            assert!(next.step().await.is_ok());
        }
    });
}

#[test]
fn no_step_is_made_in_place_on_a_thread_that_was_not_prepared() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    runtime.block_on(async {
        assert!(is_waited_for(&load_quick().await).await);
    });
}

#[test]
fn a_quick_plugin_that_loops_holds_its_thread_up_once_and_fails_on_the_threads() {
    prepared(async {
        let plugin = load_quick().await;
        let mut looping = plugin.attempt(delivery("loop"));
        // The step is interrupted in place, and then waits for a thread of its own.
        assert!(at_once(&mut looping).await.is_none());
        let fault = looping.step().await.unwrap_err();
        assert!(matches!(fault, StepFault::Limit { which: LimitKind::Cpu, .. }), "{fault}");
        assert_eq!(fault.to_string(), "the plugin passed its CPU time limit of 100 ms a step");
        for _ in 0..TRIAL_STEPS * 2 {
            assert!(!plugin.pace().is_quick());
            assert!(at_once(&mut plugin.attempt(delivery("loop"))).await.is_none());
            assert!(plugin.attempt(delivery("count")).step().await.is_ok());
        }
    });
}

#[test]
fn what_a_plugin_does_wrong_in_place_is_what_it_is_on_the_threads() {
    prepared(async {
        for behaviour in ["panic", "recurse", "allocate", "heavy-action", "hoard", "exit"] {
            let quick = load_quick().await;
            let new = Sandbox::new(settings()).unwrap().load(guest("puppet")).await.unwrap();
            let in_place = quick.attempt(delivery(behaviour)).step().await;
            assert_eq!(in_place, new.attempt(delivery(behaviour)).step().await);
            assert!(in_place.is_err(), "{behaviour}");
            let mut next = quick.attempt(delivery("count"));
            assert!(next.step().await.is_ok());
        }
    });
}

#[tokio::test]
async fn settings_pass_or_every_problem_is_named() {
    let plugin = puppet().await;
    let Ok(Destination { label, lanes, .. }) = plugin.check("\"deliver\"".into()).await else { panic!("refused") };
    assert_eq!((label.as_str(), lanes.len()), ("deliver", 1));
    let Err(CheckError::Problems(problems)) = plugin.check("\"\"".into()).await else { panic!("passed") };
    let found: Vec<_> = problems.iter().map(|problem| (problem.path.as_str(), problem.message.as_str())).collect();
    assert_eq!(found, [("", "name a behaviour"), ("/line", "one line")]);
    assert_eq!(CheckError::Problems(problems).to_string(), "settings: name a behaviour; /line: one line");
}

#[tokio::test]
async fn a_plugin_that_cannot_check_is_a_fault() {
    let plugin = puppet().await;
    for (behaviour, expected) in [
        ("many-lanes", "the plugin gave a wrong answer: destination.lanes has 1000 entries; at most 8"),
        ("loop", "the plugin passed its CPU time limit of 100 ms a step"),
    ] {
        let error = plugin.check(format!("{behaviour:?}")).await.unwrap_err();
        assert!(matches!(error, CheckError::Fault(_)));
        assert_eq!(error.to_string(), expected);
    }
}
