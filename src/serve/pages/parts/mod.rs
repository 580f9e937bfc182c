//! Parts that pages share.

mod asked;
mod chips;
mod link;
mod moment;
mod said;
mod words;

pub(super) use asked::Asked;
pub(super) use chips::{level_chip, outcome_chip, state_chip, state_kind, state_words};
pub(super) use link::link;
pub(super) use moment::{brief_moment, moment, moment_of, took};
pub(super) use said::{plain, said, said_lines};
pub(super) use words::{conditions, count, deliveries, joined, retry_words, timing_words};

use maud::{Markup, html};

/// A name with its value.
pub(super) fn field(name: &str, value: &Markup) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

/// What is shown where there is nothing.
pub(super) fn empty(heading: &str, advice: &Markup) -> Markup {
    html! { section.empty { h2 { (heading) } p.muted { (advice) } } }
}
