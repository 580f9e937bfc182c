//! The inbox of a workspace.

mod filter;
mod found;
mod rows;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};

use super::frame::{Frame, Section, page as framed};
use super::parts::{Asked, empty};
use super::visitor::{Place, Refused, Visitor};
use crate::notification::{HOST_SOURCE, Level, Name};
use crate::serve::Served;
use crate::serve::auth::Right;
pub(super) use filter::Filter;
use filter::{Part, Sort};
pub(super) use found::LOOKS_MAX;
use found::{Found, NotFound, find};
pub(super) use rows::{Besides, rows};

/// The page.
pub(super) async fn page(
    State(served): State<Arc<Served>>,
    visitor: Visitor,
    Path(workspace): Path<String>,
    asked: Asked,
) -> Result<Response, Refused> {
    let place = Place::enter(served, visitor, &workspace, Right::ReadInbox).await?;
    let (filter, part) = Filter::read(&asked);
    let found = match find(&*place.served.store, place.name(), &filter, part).await {
        Ok(found) => Ok(found),
        Err(NotFound::Pattern(why)) => Err(why),
        Err(NotFound::Store(error)) => return Err(error.into()),
    };
    let connectors = place.admitted.workspace().map(|workspace| workspace.connectors.keys().cloned());
    let sources: Vec<Name> = connectors.into_iter().flatten().collect();
    let body = html! {
        h1.vh { "Inbox" }
        (filters(&filter, &sources))
        @match &found {
            Ok(found) => { (list(found, (&filter, part), &place)) }
            Err(why) => { (empty("This filter cannot be used", &html! { (why) })) }
        }
    };
    let frame = Frame::of(&place, "Inbox", Section::Inbox).following("notification. gap reset");
    Ok(framed(&frame, &body))
}

fn filters(of: &Filter, sources: &[Name]) -> Markup {
    let asked = |value: &Option<String>| value.clone().unwrap_or_default();
    let mut sources: Vec<String> = sources.iter().map(ToString::to_string).collect();
    sources.push(HOST_SOURCE.to_owned());
    sources.extend(of.source.clone().filter(|source| !sources.contains(source)));
    let more = [&of.source, &of.name, &of.subject].into_iter().flatten().count();
    html! {
        form.filters role="search" method="get" action="inbox" {
            div.first {
                label.vh for="q" { "Search name, subject, title and body" }
                input #q type="search" name="q" value=(asked(&of.text)) placeholder="Search" maxlength="200";
                label.vh for="level" { "Least level" }
                select #level name="level" {
                    @for (level, words) in [(Level::Info, "Any level"), (Level::Attention, "Attention, urgent"), (Level::Urgent, "Urgent only")] {
                        option value=(level) selected[of.level.unwrap_or(Level::Info) == level] { (words) }
                    }
                }
                label.vh for="sort" { "Order" }
                select #sort name="sort" {
                    option value="newest" selected[of.sort == Sort::Newest] { "Newest first" }
                    option value="level" selected[of.sort == Sort::Level] { "Loudest first" }
                }
                label.tick { input type="checkbox" name="unread" value="1" checked[of.is_unread]; " Unread" }
                button type="submit" { "Show" }
            }
            details open[more > 0] {
                summary { "More filters" @if more > 0 { span.count { (more) span.vh { " in use" } } } }
                div.more {
                    label { span { "Source" } select name="source" {
                        option value="" { "Any" }
                        @for source in &sources {
                            option value=(source) selected[of.source.as_ref() == Some(source)] { (source) }
                        }
                    } }
                    label { span { "Name" } input name="name" value=(asked(&of.name)) placeholder="domain.**" maxlength="200" autocapitalize="none" spellcheck="false"; }
                    label { span { "Subject" } input name="subject" value=(asked(&of.subject)) placeholder="*.example" maxlength="200" autocapitalize="none" spellcheck="false"; }
                    p.muted.small { "Patterns as in routes: " code { "*" } " stands for anything, in a name within one part; " code { "**" } " crosses dots." }
                }
            }
        }
    }
}

fn list(found: &Found, (filter, part): (&Filter, Part), place: &Place) -> Markup {
    let Found { items, older, newer } = found;
    let may_mark = place.caller.may(Right::Mark);
    let besides = Besides { boxes: may_mark, headings: filter.sort == Sort::Level };
    html! {
        form #list method="post" action="inbox/mark" data-act data-live data-rows {
            @if items.is_empty() { (nothing(found, filter)) } @else {
                div.over-list {
                    @if may_mark {
                        label.tick.needs-script { input type="checkbox" data-all autocomplete="off"; " All" span.vh { " on this page" } }
                        span.needs-script {
                            button type="submit" name="deed" value="read" { "Mark read" }
                            button type="submit" name="deed" value="acknowledge" { "Acknowledge" }
                        }
                    }
                    button #new.primary type="button" hidden { }
                    (pages(filter, *newer, *older, "Pages of the list"))
                }
                (rows(items, (&place.path("inbox"), &filter.asked(part)), besides))
                div.under-list { (pages(filter, *newer, *older, "Pages of the list, again")) }
            }
        }
    }
}

fn pages(filter: &Filter, newer: Option<Part>, older: Option<Part>, label: &str) -> Markup {
    let back = if filter.sort == Sort::Level { "First page" } else { "Newer" };
    let link = |part: Option<Part>, word: &str, rel: &str| {
        html! {
            @if let Some(part) = part { a href=(filter.address(part)) rel=(rel) { (word) } }
            @else { span aria-hidden="true" { (word) } }
        }
    };
    html! {
        nav.turn aria-label=(label) { (link(newer, back, "prev")) (link(older, "Older", "next")) }
    }
}

/// Why there is nothing to see.
fn nothing(found: &Found, filter: &Filter) -> Markup {
    let all = html! { a href="inbox" { "Show everything" } "." };
    if let Some(older) = found.older {
        return empty(
            "Nothing so far",
            &html! {
                "Nothing that fits was found among the newest. " a href=(filter.address(older)) rel="next" { "Look further back" } ", or " (all)
            },
        );
    }
    if filter.is_unread && (Filter { is_unread: false, ..filter.clone() } == Filter::default()) {
        return empty("All read", &html! { "Nothing is unread. " (all) });
    }
    if filter.is_narrow() || found.newer.is_some() {
        return empty("Nothing fits", &html! { "No notification fits this filter. " (all) });
    }
    empty(
        "Nothing has come yet",
        &html! {
            "What the connectors of this workspace have to tell appears here, at once and by itself. "
            a href="connectors" { "How the connectors do" } "."
        },
    )
}
