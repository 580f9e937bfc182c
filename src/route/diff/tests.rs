use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::config::{Connector, Poll, Target, Transport};
use crate::route::timing::{After, Except, Timing};
use crate::route::{Matcher, Router};

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// A route over a pattern, with targets of the plugin `mail`, each of its id and with these settings.
fn route(route: &str, pattern: &str, targets: &[(&str, Value)]) -> Route {
    let target = |(id, settings): &(&str, Value)| Target::plain((*id).to_owned(), name("mail"), settings.clone());
    Route {
        name: name(route),
        owner: "a@example.com".to_owned(),
        when: Matcher { name: vec![pattern.to_owned()], ..Matcher::default() },
        deliver: targets.iter().map(target).collect(),
    }
}

fn workspace(ceiling: Level, routes: Vec<Route>) -> Workspace {
    let connector = Connector {
        is_of_catalog: false,
        name: name("registrar"),
        transport: Transport::Stdio { run: vec!["true".to_owned()], env: BTreeMap::new(), directory: "/".into() },
        outbox: None,
        push: None,
        not_polled: None,
        ceiling,
        poll: Poll::default(),
    };
    Workspace {
        consumers: Default::default(),
        kept: Default::default(),
        name: name("acme"),
        file: "acme.yaml".into(),
        members: BTreeMap::new(),
        connectors: BTreeMap::from([(connector.name.clone(), connector)]),
        router: Router::new(routes.iter().map(|route| route.when.clone()).collect()).unwrap(),
        routes,
    }
}

fn known(seq: u64, event: &str) -> Known {
    Known {
        seq,
        received_at: jiff::Timestamp::UNIX_EPOCH,
        source: name("registrar"),
        name: event.to_owned(),
        subject: None,
        level: Level::Urgent,
        effective_level: Level::Info,
        bytes: 500,
        is_first: false,
        acknowledged: None,
    }
}

/// Each difference as `fate old-route/target -> new-route/target: count`.
fn differences(old: &Workspace, new: &Workspace, events: &[&str]) -> Vec<String> {
    let mut diff = Diff::new(old, new, 2);
    for (seq, event) in (1..).zip(events) {
        diff.add(&known(seq, event));
    }
    let show = |workspace: &Workspace, at: Option<TargetIndex>| {
        at.map_or("none".to_owned(), |at| {
            let route = &workspace.routes[at.route];
            format!("{}/{}", route.name, route.deliver[at.target].id)
        })
    };
    let mut found = Vec::new();
    for (place, pair) in diff.pairs().iter().enumerate() {
        for fate in Fate::DIFFERENT {
            if let Some(count) = diff.count(place, fate) {
                let (old, new) = (show(old, pair.old), show(new, pair.new));
                found.push(format!("{} {old} -> {new}: {}", fate.as_str(), count.notifications));
            }
        }
    }
    found
}

fn check(old: Vec<Route>, new: Vec<Route>, events: &[&str], expected: &[&str]) {
    let (old, new) = (workspace(Level::Urgent, old), workspace(Level::Urgent, new));
    assert_eq!(differences(&old, &new, events), expected);
}

#[test]
fn what_only_one_delivers_is_new_or_gone() {
    let one = |pattern| vec![route("news", pattern, &[("page", json!({}))])];
    check(one("domain.*"), one("domain.*"), &["domain.a", "mail.a"], &[]);
    check(one("domain.*"), one("domain.a"), &["domain.a", "domain.b"], &["gone news/page -> news/page: 1"]);
    check(one("domain.a"), one("domain.*"), &["domain.a", "domain.b"], &["new news/page -> news/page: 1"]);
    check(vec![], one("**"), &["domain.a", "domain.b"], &["new none -> news/page: 2"]);
}

#[test]
fn a_target_that_keeps_its_identity_is_changed() {
    let old = vec![route("news", "**", &[("page", json!({"a": 1}))])];
    check(old, vec![route("news", "**", &[("page", json!({"a": 2}))])], &["a"], &["changed news/page -> news/page: 1"]);
    let mut timed = vec![route("news", "**", &[("page", json!({"a": 1}))])];
    let after = After { wait: std::time::Duration::from_secs(60), except: Except::Nothing };
    timed[0].deliver[0].timing = Timing { after: Some(after), ..Timing::default() };
    let (old, new) = (
        workspace(Level::Info, timed),
        workspace(Level::Info, vec![route("news", "**", &[("page", json!({"a": 1}))])]),
    );
    assert_eq!(Diff::new(&old, &new, 0).pairs()[0].aspects, [Aspect::Timing]);
}

#[test]
fn a_renamed_route_is_recognised_by_its_targets_and_makes_no_difference() {
    let old =
        vec![route("news", "**", &[("a", json!({})), ("b", json!({}))]), route("other", "x", &[("c", json!({}))])];
    let new =
        vec![route("other", "x", &[("c", json!({}))]), route("headlines", "**", &[("a", json!({})), ("b", json!({}))])];
    let (old, new) = (workspace(Level::Info, old), workspace(Level::Info, new));
    assert_eq!(differences(&old, &new, &["a", "x"]), [""; 0]);
    assert_eq!(Diff::new(&old, &new, 0).pairs()[0].aspects, [Aspect::Route]);
}

#[test]
fn what_another_route_delivers_to_the_same_target_is_neither_new_nor_gone() {
    let old = vec![route("all", "domain.*", &[("page", json!({}))])];
    let new = vec![route("all", "domain.a", &[("page", json!({}))]), route("rest", "domain.b", &[("page", json!({}))])];
    check(old, new, &["domain.a", "domain.b", "domain.c"], &["gone all/page -> all/page: 1"]);
}

#[test]
fn each_side_decides_by_its_own_ceiling() {
    let mut urgent = route("wake", "**", &[("page", json!({}))]);
    urgent.when.level = Some(Level::Urgent);
    let mut calm = route("log", "**", &[("log", json!({}))]);
    calm.when.name.clear();
    let routes = || vec![route_of(&urgent), route_of(&calm)];
    let (old, new) = (workspace(Level::Urgent, routes()), workspace(Level::Attention, routes()));
    assert_eq!(differences(&old, &new, &["a"]), ["gone wake/page -> wake/page: 1", "level log/log -> log/log: 1"]);
    let mut diff = Diff::new(&old, &new, 2);
    diff.add(&known(7, "a"));
    assert_eq!(diff.totals().levels[&name("registrar")], (1, Level::Urgent, Level::Attention));
    assert_eq!(diff.totals().different, 1);
}

fn route_of(of: &Route) -> Route {
    Route { name: of.name.clone(), owner: of.owner.clone(), when: of.when.clone(), deliver: of.deliver.clone() }
}

#[test]
fn what_a_configuration_has_no_connector_for_would_not_come() {
    let routes = || vec![route("all", "**", &[("page", json!({}))])];
    let old = workspace(Level::Info, routes());
    let mut new = workspace(Level::Info, routes());
    new.connectors.clear();
    assert_eq!(differences(&old, &new, &["a"]), ["gone all/page -> all/page: 1"]);
    let mut diff = Diff::new(&old, &new, 2);
    diff.add(&known(1, "a"));
    diff.add(&Known { source: name(HOST_SOURCE), ..known(2, "a") });
    diff.add(&Known { is_first: true, ..known(3, "a") });
    assert_eq!(diff.totals().unknown[&name("registrar")], Missing { old: 0, new: 1 });
    assert_eq!((diff.totals().notifications, diff.totals().first), (2, 1));
}

#[test]
fn the_newest_examples_are_kept() {
    let old = workspace(Level::Info, vec![]);
    let new = workspace(Level::Info, vec![route("all", "**", &[("page", json!({}))])]);
    let mut diff = Diff::new(&old, &new, 2);
    (1..=5).for_each(|seq| drop(diff.add(&known(seq, "a"))));
    assert_eq!(diff.count(0, Fate::New).unwrap().newest, [4, 5]);
}
