//! A line for each notification.

use maud::{Markup, html};

use super::super::parts::{brief_moment, level_chip, plain, said};
use crate::inbox::Marks;
use crate::notification::{Level, Notification};

/// What a list has besides its lines.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Besides {
    /// A box before each line, to select it.
    pub(in super::super) boxes: bool,
    /// A heading before each level.
    pub(in super::super) headings: bool,
}

/// The list. Its links go below a path, and say what is asked for, so that the way back leads here.
pub(in super::super) fn rows(items: &[(Notification, Marks)], (path, asked): (&str, &str), besides: Besides) -> Markup {
    let mut level: Option<Level> = None;
    html! {
        ul.rows.boxed[besides.boxes] {
            @for (one, marks) in items {
                @if besides.headings && level.replace(one.effective_level) != Some(one.effective_level) {
                    li.heading id={ "level-" (one.effective_level) } { h2 { (one.effective_level) } }
                }
                (row(one, marks, (path, asked), besides.boxes))
            }
        }
    }
}

fn row(one: &Notification, marks: &Marks, (path, asked): (&str, &str), has_box: bool) -> Markup {
    let event = &one.event;
    let is_unread = marks.read.is_none();
    html! {
        li.row.unread[is_unread].loud[one.effective_level == Level::Urgent] id={ "n-" (one.seq) } data-seq=(one.seq) {
            @if has_box {
                label.pick.needs-script {
                    input type="checkbox" name="seq" value=(one.seq) autocomplete="off" aria-label={ "Select: " (plain(&event.title)) };
                }
            }
            span.dot { @if is_unread { span.vh { "Unread" } } }
            span.level { (level_chip(one.effective_level)) }
            a.title href={ (path) "/" (one.seq) (asked) } { (said(&event.title)) }
            span.about {
                @if let Some(subject) = &event.subject { span.subject { (said(subject)) } }
                span.origin { (one.source) span aria-hidden="true" { " · " } (said(&event.name)) }
            }
            span.done { @if let Some(mark) = &marks.acknowledged {
                span title={ "Acknowledged by " (plain(&mark.by.name)) } { "✓" span.vh { " Acknowledged" } }
            } }
            (brief_moment(one.received_at))
        }
    }
}
