//! What stands around every page.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::assets::{icon, script, style};
use super::parts::{plain, said};
use super::visitor::{Place, UNREAD_MAX, workspaces_of};
use crate::config::Config;
use crate::notification::Name;
use crate::serve::auth::{Caller, Right, Role};

/// Which page it is, for the list of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Inbox,
    Deliveries,
    Routes,
    Connectors,
    Consumers,
    Plugins,
    Gaps,
    Versions,
    Configuration,
}

/// What the frame shows.
pub(super) struct Frame<'a> {
    title: String,
    section: Option<Section>,
    caller: Option<&'a Caller>,
    workspaces: Vec<Name>,
    workspace: Option<&'a Name>,
    unread: u32,
    live: Live,
}

/// How a page follows what changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Live {
    /// The stream.
    stream: Option<String>,
    /// The number of the last change that the page knows.
    after: u64,
    /// Beginnings of the events that it follows, separated by spaces.
    events: &'static str,
    /// How often it is loaded anew besides, in seconds; never when 0.
    every_seconds: u32,
}

impl<'a> Frame<'a> {
    /// A page without a visitor.
    pub(super) fn plain(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            section: None,
            caller: None,
            workspaces: Vec::new(),
            workspace: None,
            unread: 0,
            live: Live::default(),
        }
    }

    /// A page of a workspace.
    pub(super) fn of(place: &'a Place, title: &str, section: Section) -> Self {
        let workspaces = workspaces_of(place.admitted.config(), &place.caller);
        let live = Live {
            stream: Some(format!("/v1/workspaces/{}/stream", place.name())),
            after: place.change,
            ..Live::default()
        };
        Self {
            section: Some(section),
            caller: Some(&place.caller),
            workspaces,
            workspace: Some(place.name()),
            unread: place.unread,
            live,
            ..Self::plain(title)
        }
    }

    /// A page of the operator.
    pub(super) fn of_operator(config: &Config, caller: &'a Caller, title: &str, section: Section) -> Self {
        let workspaces = workspaces_of(config, caller);
        Self { section: Some(section), caller: Some(caller), workspaces, ..Self::plain(title) }
    }

    /// Follows events whose names begin so.
    pub(super) fn following(mut self, events: &'static str) -> Self {
        self.live.events = events;
        self
    }

    /// Is loaded anew so often besides.
    pub(super) fn every(mut self, seconds: u32) -> Self {
        self.live.every_seconds = seconds;
        self
    }

    fn title(&self) -> String {
        let mut title = String::new();
        if self.unread > 0 {
            title.push_str(&format!("({}) ", shown(self.unread)));
        }
        title.push_str(&plain(&self.title));
        if let Some(workspace) = self.workspace {
            title.push_str(&format!(" · {workspace}"));
        }
        title + " · Switchbell"
    }
}

/// A number of unread notifications.
fn shown(unread: u32) -> String {
    if unread > UNREAD_MAX { format!("{UNREAD_MAX}+") } else { unread.to_string() }
}

/// A whole page.
pub(super) fn page(frame: &Frame<'_>, body: &Markup) -> Response {
    let Live { stream, after, events, every_seconds } = &frame.live;
    let main = html! {
        main #main tabindex="-1" data-stream=[stream.as_ref()] data-after=(after) data-events=(events)
            data-every=[(*every_seconds > 0).then_some(every_seconds)] {
            (body)
        }
    };
    document(
        &frame.title(),
        &html! {
            a.skip href="#main" { "Skip to the content" }
            (top(frame))
            div.columns {
                (navigation(frame))
                (main)
            }
            div #connection.banner role="status" hidden { }
            div #notice.notice hidden { p role="status" { } button type="button" { "Close" } }
            p #announcement.vh role="status" { }
            (help())
        },
    )
}

/// A page that says one thing.
pub(super) fn bare(frame: &Frame<'_>, body: &Markup) -> Response {
    document(
        &frame.title(),
        &html! {
            a.skip href="#main" { "Skip to the content" }
            (top(frame))
            main #main.alone tabindex="-1" { (body) }
        },
    )
}

fn document(title: &str, body: &Markup) -> Response {
    let text = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="stylesheet" href=(style().path);
                link rel="icon" type="image/svg+xml" href=(icon().path);
                script src=(script().path) defer { }
            }
            body { (body) }
        }
    };
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], text.into_string()).into_response()
}

fn top(frame: &Frame<'_>) -> Markup {
    html! {
        header.top {
            a.brand href="/" { (bell()) span { "Switchbell" } }
            @if let Some(workspace) = frame.workspace { (switch(workspace, &frame.workspaces)) }
            @if let Some(caller) = frame.caller { (who(caller)) }
        }
    }
}

fn switch(workspace: &Name, workspaces: &[Name]) -> Markup {
    html! {
        @if workspaces.len() <= 1 { span.here { (workspace) } } @else {
            details.switch {
                summary { span.vh { "Workspace: " } (workspace) }
                nav aria-label="Workspaces" { ul {
                    @for name in workspaces {
                        li { a href={ "/w/" (name) "/inbox" } aria-current=[(name == workspace).then_some("true")] { (name) } }
                    }
                } }
            }
        }
    }
}

fn who(caller: &Caller) -> Markup {
    let role = match caller.role {
        Role::Operator => "operator",
        Role::Admin => "admin",
        Role::Member => "member",
        Role::Agent { .. } => "agent",
    };
    html! {
        div.who {
            @if caller.actor.name != role { span.name { (said(&caller.actor.name)) } }
            span.role { (role) }
            form.needs-script method="post" action="/sign-out" data-act="leave" { button.quiet type="submit" { "Sign out" } }
        }
    }
}

fn navigation(frame: &Frame<'_>) -> Markup {
    let may = |right| frame.caller.is_some_and(|caller| caller.may(right));
    let entry = |section: Section, href: String, name: &str| {
        let current = (frame.section == Some(section)).then_some("page");
        html! { li { a href=(href) aria-current=[current] { (name) } } }
    };
    html! {
        nav.pages aria-label="Pages" {
            @if let Some(workspace) = frame.workspace {
                ul {
                    @let path = |rest: &str| format!("/w/{workspace}/{rest}");
                    li { a href=(path("inbox")) aria-current=[(frame.section == Some(Section::Inbox)).then_some("page")] {
                        "Inbox" span #unread data-live { @if frame.unread > 0 {
                            span.count { (shown(frame.unread)) span.vh { " unread" } }
                        } }
                    } }
                    @if may(Right::ReadWork) {
                        (entry(Section::Deliveries, path("deliveries"), "Deliveries"))
                        (entry(Section::Routes, path("routes"), "Routes"))
                        (entry(Section::Connectors, path("connectors"), "Connectors"))
                        (entry(Section::Consumers, path("consumers"), "Consumers"))
                        (entry(Section::Plugins, path("plugins"), "Plugins"))
                    }
                    (entry(Section::Gaps, path("gaps"), "Gaps"))
                }
            } @else if !frame.workspaces.is_empty() {
                ul { @for name in &frame.workspaces { li { a href={ "/w/" (name) "/inbox" } { "Inbox of " (name) } } } }
            }
            @if may(Right::Operate) {
                ul.operator {
                    (entry(Section::Versions, "/plugins".to_owned(), "All plugins"))
                    (entry(Section::Configuration, "/configuration".to_owned(), "Configuration"))
                }
            }
            p.hint.needs-script { button.quiet type="button" data-help { "Keys: " kbd { "?" } } }
        }
    }
}

fn help() -> Markup {
    let keys = [
        ("j", "next in the list"),
        ("k", "previous in the list"),
        ("Enter", "open"),
        ("x", "select, or select no more"),
        ("e", "mark as read"),
        ("a", "acknowledge"),
        ("u", "back to the list"),
        ("/", "search"),
        ("?", "this help"),
    ];
    html! {
        dialog #help aria-labelledby="help-title" {
            h2 #help-title { "Keys" }
            dl.keys { @for (key, does) in keys { div { dt { kbd { (key) } } dd { (does) } } } }
            p.muted.small { "They do nothing while you write in a field." }
            label.tick { input type="checkbox" autocomplete="off"; " Use these keys" }
            form method="dialog" { button { "Close" } }
        }
    }
}

fn bell() -> Markup {
    // A drawing of ours, without text from outside.
    PreEscaped(include_str!("assets/bell.svg").trim().to_owned())
}
