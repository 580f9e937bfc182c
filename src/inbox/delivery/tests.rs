use super::*;

fn ended(outcome: Outcome, destination_delay: Option<Duration>, attempt: u32) -> Input {
    let (since, policy) = (Timestamp::UNIX_EPOCH, Policy::default());
    Input::Ended(End { outcome, destination_delay, attempt, since, jitter: 0.5, policy })
}

fn check(state: State, input: Input, now_seconds: i64, expected: Result<(State, Option<i64>), State>) {
    let now = Timestamp::from_second(now_seconds).unwrap();
    let seen = transition(state, input, now)
        .map(|next| (next.state, next.next_at.map(Timestamp::as_second)))
        .map_err(|not_allowed| not_allowed.state);
    assert_eq!(seen, expected, "{state} {input:?}");
}

#[test]
fn a_delivery_is_claimed_from_the_states_that_the_dispatcher_moves_only() {
    for state in State::ALL {
        let expected = match state {
            State::Pending | State::Retrying | State::Waiting => Ok((State::InFlight, None)),
            _ => Err(state),
        };
        check(state, Input::Claimed, 0, expected);
    }
}

#[test]
fn only_a_delivery_in_flight_can_end_or_pause() {
    for state in State::ALL.into_iter().filter(|&state| state != State::InFlight) {
        for outcome in Outcome::ALL {
            check(state, ended(outcome, None, 1), 0, Err(state));
        }
        check(state, Input::Paused { until: Timestamp::UNIX_EPOCH }, 0, Err(state));
        check(state, Input::CutOff, 0, Err(state));
    }
}

#[test]
fn each_outcome_has_its_state() {
    check(State::InFlight, ended(Outcome::Delivered, None, 1), 10, Ok((State::Delivered, None)));
    check(State::InFlight, ended(Outcome::Reject, None, 1), 10, Ok((State::Dead, None)));
    check(State::InFlight, ended(Outcome::Reconnect, None, 1), 10, Ok((State::Blocked, None)));
    check(State::InFlight, ended(Outcome::Interrupted, None, 1), 10, Ok((State::Pending, Some(10))));
    check(State::InFlight, ended(Outcome::Interrupted, None, 2), 10, Ok((State::Retrying, Some(10))));
    check(State::InFlight, ended(Outcome::Retry, None, 1), 10, Ok((State::Retrying, Some(11))));
    check(State::InFlight, ended(Outcome::Unknown, None, 3), 10, Ok((State::Retrying, Some(14))));
}

#[test]
fn an_unknown_outcome_stays_where_a_repeat_does_harm() {
    let policy = Policy { on_unknown: OnUnknown::Stop, ..Policy::default() };
    let end = End {
        outcome: Outcome::Unknown,
        destination_delay: None,
        attempt: 1,
        since: Timestamp::UNIX_EPOCH,
        jitter: 0.5,
        policy,
    };
    check(State::InFlight, Input::Ended(end), 10, Ok((State::Unknown, None)));
}

#[test]
fn the_destinations_delay_is_honoured_within_reason() {
    let asked = |seconds| ended(Outcome::Retry, Some(Duration::from_secs(seconds)), 1);
    check(State::InFlight, asked(30), 0, Ok((State::Retrying, Some(30))));
    check(State::InFlight, asked(0), 0, Ok((State::Retrying, Some(1))));
    check(State::InFlight, asked(u64::MAX), 0, Ok((State::Retrying, Some(6 * 3600))));
}

#[test]
fn what_never_succeeds_is_given_up_after_a_day() {
    check(State::InFlight, ended(Outcome::Retry, None, 30), 86_400 - 3601, Ok((State::Retrying, Some(86_399))));
    check(State::InFlight, ended(Outcome::Retry, None, 30), 86_400 - 3599, Ok((State::Dead, None)));
}

#[test]
fn a_final_state_is_left_only_by_a_person_who_retries_what_is_dead() {
    let moment = Timestamp::UNIX_EPOCH;
    let inputs = [
        Input::Gathered { state: State::Held, until: moment },
        Input::Released,
        Input::Suppressed,
        Input::Claimed,
        Input::Blocked,
        Input::Retried,
        Input::Cancelled,
    ];
    for state in State::ALL.into_iter().filter(|state| state.is_final()) {
        for input in inputs {
            let allowed = transition(state, input, moment).is_ok();
            let by_a_person = state == State::Dead && matches!(input, Input::Retried | Input::Cancelled);
            assert_eq!(allowed, by_a_person, "{state} {input:?}");
        }
    }
}

#[test]
fn what_waits_for_time_is_let_go_suppressed_or_gathered_again() {
    let until = Timestamp::from_second(60).unwrap();
    for state in [State::Scheduled, State::Held, State::Collecting] {
        check(state, Input::Released, 5, Ok((State::Pending, Some(5))));
        check(state, Input::Suppressed, 5, Ok((State::Suppressed, None)));
        check(state, Input::Gathered { state: State::Held, until }, 5, Ok((State::Held, Some(60))));
        check(state, Input::Gathered { state: State::Pending, until }, 5, Err(state));
        check(state, Input::Claimed, 5, Err(state));
    }
}

#[test]
fn every_spelling_is_read_back() {
    assert!(State::ALL.into_iter().all(|state| State::parse(state.as_str()) == Some(state)));
    assert!(Outcome::ALL.into_iter().all(|outcome| Outcome::parse(outcome.as_str()) == Some(outcome)));
    assert!(Cause::ALL.into_iter().all(|cause| Cause::parse(cause.as_str()) == Some(cause)));
}

#[test]
fn waits_double_up_to_the_most_and_are_spread() {
    let schedule = Schedule::default();
    let seconds = |failures, jitter| schedule.delay_after(failures, jitter).as_secs_f64();
    assert_eq!([1, 2, 3, 4].map(|failures| seconds(failures, 0.5)), [1.0, 2.0, 4.0, 8.0]);
    assert_eq!(seconds(u32::MAX, 0.5), 3600.0);
    assert_eq!((seconds(1, 0.0), seconds(1, 1.0)), (0.75, 1.25));
    assert_eq!(seconds(0, 0.5), 1.0);
}
