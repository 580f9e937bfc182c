//! Levels, states and outcomes in a word, each told by its text and its form, and by its colour besides.

use maud::{Markup, html};

use crate::inbox::delivery::{Outcome, State};
use crate::notification::Level;

/// A level.
pub(in super::super) fn level_chip(level: Level) -> Markup {
    html! { span class={ "chip level-" (level) } { (level) } }
}

/// Where a delivery stands.
pub(in super::super) fn state_chip(state: State) -> Markup {
    html! { span class={ "chip is-" (state_kind(state)) } title=(state_words(state)) { (shown(state)) } }
}

/// How an attempt ended.
pub(in super::super) fn outcome_chip(outcome: Outcome) -> Markup {
    let kind = match outcome {
        Outcome::Delivered => "good",
        Outcome::Retry | Outcome::Interrupted => "moving",
        Outcome::Reject | Outcome::Reconnect | Outcome::Unknown => "stuck",
    };
    html! { span class={ "chip is-" (kind) } { (outcome) } }
}

fn shown(state: State) -> String {
    state.as_str().replace('_', " ")
}

/// What kind of state it is: made, on its way, waiting for a person, or over without having been made.
pub(in super::super) fn state_kind(state: State) -> &'static str {
    match state {
        State::Delivered => "good",
        State::Scheduled
        | State::Held
        | State::Collecting
        | State::Pending
        | State::InFlight
        | State::Waiting
        | State::Retrying => "moving",
        State::Blocked | State::Dead | State::Unknown => "stuck",
        State::Suppressed | State::Cancelled => "over",
    }
}

/// What a state means, and who or what moves the delivery on.
pub(in super::super) fn state_words(state: State) -> &'static str {
    match state {
        State::Scheduled => "Its “after” has not passed. Time moves it on, or an acknowledgement makes it needless.",
        State::Held => "It waits for the end of quiet hours.",
        State::Collecting => "A digest that is still open. Time closes it, or its being full.",
        State::Pending => "Due. It goes as soon as its lanes are free.",
        State::InFlight => "An attempt runs. Its outcome moves it on.",
        State::Waiting => "Its plugin waits. The same attempt goes on when the time has come.",
        State::Retrying => "An attempt failed. The next one is made when its time has come.",
        State::Blocked => "A person must mend what it says here. “Retry” then lets it go on.",
        State::Delivered => "Nothing moves it any more.",
        State::Dead => "Given up. “Retry” has it tried again.",
        State::Unknown => "It may or may not have been made, and a repeat may do harm. “Retry” makes a new one.",
        State::Suppressed => "It is not needed any more. Nothing moves it.",
        State::Cancelled => "Nothing moves it any more. “Retry” makes a new one.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_says_what_it_means() {
        for state in State::ALL {
            assert!(state_words(state).ends_with('.'), "{state}");
            assert!(state_chip(state).into_string().contains(&shown(state)), "{state}");
        }
        assert!(state_chip(State::InFlight).into_string().contains(">in flight<"));
    }
}
