//! One workspace's file.

use std::collections::{BTreeMap, BTreeSet};

use super::super::code::Code;
use super::super::raw::{RawRoute, RawWorkspace};
use super::super::read::{Map, Placed};
use super::super::source::Report;
use super::super::values::Member;
use super::super::{Role, Route, Workspace};
use super::{Server, connector, consumer, overlap, reach, retention, route};
use crate::notification::Name;
use crate::route::{PatternError, Router};

/// Most routes of a workspace.
const ROUTES_MAX: usize = 200;

/// Checks a workspace against itself and the operator's file. None when it cannot be used.
pub(in crate::config) fn workspace(
    name: &Name,
    raw: RawWorkspace,
    server: &Server,
    report: &mut Report,
) -> Option<Workspace> {
    let members = members(raw.members);
    let kept = retention::workspace(raw.retention, server.retention.kept, report);
    let connectors = connector::check(raw.connectors, name, server, report);
    let mut raw_routes = raw.routes;
    if let Some(routes) = &mut raw_routes
        && routes.len() > ROUTES_MAX
    {
        report.mistake(
            &routes.at,
            Code::OutOfBounds.says(format!("{} routes: a workspace has at most {ROUTES_MAX}", routes.len())),
        );
        routes.value.truncate(ROUTES_MAX);
    }
    let raw_routes = raw_routes.map_or_else(Vec::new, |routes| routes.value);
    let consumers = consumer::raw(raw.consumers, report);
    let whens = raw_routes.iter().filter_map(|route| route.when.as_ref()).chain(consumer::whens(&consumers));
    reach::check(whens, &connectors, report);
    let routes = routes(&raw_routes, &route::Context { workspace: name, members: &members, server }, report);
    let router = Router::new(routes.iter().map(|route| route.when.clone()).collect());
    let router = router.map_err(|error| too_many_patterns(&error, &raw_routes, report));
    let consumers = consumer::check(consumers, report);
    if report.mistakes.is_empty() {
        overlap::check(&raw_routes, &routes, report);
    }
    let connectors = connectors.into_iter().filter_map(|(name, known)| Some((name, known.connector?)));
    Some(Workspace {
        name: name.clone(),
        file: report.file().to_owned(),
        members,
        connectors: connectors.collect(),
        routes,
        router: router.ok()?,
        consumers: consumers?,
        kept,
    })
}

/// Reports at the route that has most of them that the patterns cannot be matched all at once.
fn too_many_patterns(error: &PatternError, routes: &[Placed<RawRoute>], report: &mut Report) {
    let size = |route: &Placed<RawRoute>| {
        let when = route.when.as_ref().map(|when| &when.value);
        let names = when.into_iter().flat_map(|when| [&when.name, &when.not]).flatten();
        let texts = when.into_iter().flat_map(|when| [&when.source, &when.subject]).flatten();
        let names = names.flat_map(|list| &list.0).map(|pattern| pattern.0.len());
        names.chain(texts.flat_map(|list| &list.0).map(|pattern| pattern.0.len())).sum::<usize>()
    };
    let Some(largest) = routes.iter().max_by_key(|route| size(route)) else { return };
    let at = largest.when.as_ref().map_or(&largest.at, |when| &when.at);
    let text = format!(
        "the patterns of all routes together cannot be matched at once ({error}): this route has the most, {} of {} \
         characters; write fewer, or with fewer `*`",
        size(largest),
        routes.iter().map(size).sum::<usize>()
    );
    report.mistake(at, Code::PatternSetTooLarge.says(text));
}

fn members(raw: Option<Placed<Map<Member, Role>>>) -> BTreeMap<String, Role> {
    let entries = raw.map_or_else(Vec::new, |map| map.value.0);
    // A member whose role is unusable is kept as an admin, so that their routes are not reported too.
    entries.into_iter().map(|entry| (entry.name.0, entry.value.map_or(Role::Admin, |role| role.value))).collect()
}

fn routes(raw: &[Placed<RawRoute>], context: &route::Context<'_>, report: &mut Report) -> Vec<Route> {
    let mut names = BTreeSet::new();
    let mut ids = BTreeSet::new();
    let mut routes = Vec::new();
    for raw in raw {
        if let Some(name) = &raw.name
            && !names.insert(name.value.clone())
        {
            report.mistake(
                &name.at,
                Code::Duplicate.says(format!("two routes are named {:?}: rename one", name.as_str())),
            );
        }
        routes.extend(route::check(raw, context, &mut ids, report));
    }
    routes
}
