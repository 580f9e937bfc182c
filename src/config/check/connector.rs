//! The connectors of a workspace.

use std::collections::BTreeMap;

use super::super::code::Code;
use super::super::node::At;
use super::super::raw::{RawAuth, RawConnector, RawOwnPoll};
use super::super::read::{Map, Placed};
use super::super::source::Report;
use super::super::values::{ConnectorUrl, Span, show};
use super::super::{Connector, Poll, Transport, suggest};
use super::Server;
use super::auth::{self, Context, FOR_URLS};
use super::catalog::{self, Beside};
use super::endpoint::unreachable;
use super::outbox::{self, Declared};
use super::secret::Who;
use crate::notification::{HOST_SOURCE, Level, Name};

/// Most connectors of a workspace: each is polled on its own, and every source of a route is compared with each.
const CONNECTORS_MAX: usize = 100;

/// The ways in which a connector is reached.
const WAYS: [&str; 3] = ["command", "url", "catalog"];

/// What routes may rely on, even of a connector that cannot be used.
#[derive(Debug)]
pub(super) struct Known {
    /// None when it is unusable and was reported.
    pub connector: Option<Connector>,
    /// None when it is unusable and was reported.
    pub ceiling: Option<Level>,
}

/// Checks the connectors.
pub(super) fn check(
    raw: Option<Placed<Map<Name, RawConnector>>>,
    workspace: &Name,
    server: &Server,
    report: &mut Report,
) -> BTreeMap<Name, Known> {
    let mut connectors = BTreeMap::new();
    if let Some(map) = &raw
        && map.0.len() > CONNECTORS_MAX
    {
        report.mistake(
            &map.at,
            Code::OutOfBounds.says(format!("{} connectors: a workspace has at most {CONNECTORS_MAX}", map.0.len())),
        );
    }
    for entry in raw.map_or_else(Vec::new, |map| map.value.0).into_iter().take(CONNECTORS_MAX) {
        if entry.name.as_str() == HOST_SOURCE {
            let message = "`switchbell` is the source of Switchbell's own notices: give the connector another name";
            report.mistake(&entry.at, Code::BadValue.says(message));
            continue;
        }
        let ceiling = entry.value.as_ref().and_then(|raw| raw.ceiling.as_ref()).map(|ceiling| ceiling.value);
        let connector = entry.value.and_then(|raw| connector(&entry.name, raw, (workspace, server), report));
        connectors.insert(entry.name, Known { connector, ceiling });
    }
    connectors
}

fn connector(
    name: &Name,
    mut raw: Placed<RawConnector>,
    (workspace, server): (&Name, &Server),
    report: &mut Report,
) -> Option<Connector> {
    let paced = raw.value.poll.as_ref().filter(|own| own.value.given.has("floor") || own.value.given.has("base"));
    let poll_at = paced.map(|own| own.at.clone());
    let poll = raw.value.poll.take().map_or(Some(server.poll), |own| own_poll(own, &server.poll, report));
    let notifications = raw.value.notifications.take();
    let ceiling = raw.value.ceiling.take();
    let notifications_at = notifications.as_ref().map(|outbox| outbox.at.clone());
    let own = notifications.map(|raw| outbox::check(raw, report)).unwrap_or_default();
    let is_of_catalog = raw.value.catalog.is_some();
    let (transport, declared) = reached(raw, notifications_at, (workspace, server), report)?;
    let Declared { outbox, push, not_polled } = declared.unwrap_or(own);
    if let Some(at) = poll_at.filter(|_| push.is_some()) {
        let message = "a push queue says by itself when there is something: of `poll` only `ceiling` counts, the longest wait \
                       between two looks at the queue";
        report.warning(&at, Code::NoEffect.says(message));
    }
    let (name, ceiling) = (name.clone(), ceiling?.value);
    Some(Connector { name, transport, is_of_catalog, outbox, push, not_polled, ceiling, poll: poll? })
}

/// How the connector is reached, and the outbox that an entry of the catalog declares for it.
fn reached(
    raw: Placed<RawConnector>,
    notifications: Option<At>,
    (workspace, server): (&Name, &Server),
    report: &mut Report,
) -> Option<(Transport, Option<Declared>)> {
    let Placed { at, value: raw } = raw;
    if !is_reached_in_one_way(&raw, &at, report) {
        return None;
    }
    if let Some(entry) = raw.catalog {
        let beside = Beside { auth: raw.auth, notifications };
        return catalog::used(&entry, beside, (workspace, server), report);
    }
    let transport = if let Some(command) = raw.command {
        if let Some(auth) = &raw.auth {
            report.mistake(&auth.at, Code::ConflictingKeys.says(FOR_URLS));
        }
        stdio(&command, workspace, server, report)
    } else {
        http(&raw.url?, raw.auth, (workspace, server), report)
    };
    Some((transport?, None))
}

/// Whether a connector says in exactly one way how it is reached; reported otherwise.
fn is_reached_in_one_way(raw: &RawConnector, at: &At, report: &mut Report) -> bool {
    let given: Vec<&str> = WAYS.into_iter().filter(|way| raw.given.has(way)).collect();
    let at = [&raw.command, &raw.catalog].into_iter().flatten().map(|way| &way.at).next().unwrap_or(at);
    match given.as_slice() {
        [_] => return true,
        [] => report.mistake(
            at,
            Code::MissingKey.says(
                "a connector needs `command` (a program that the operator declares), `url` (an endpoint) or `catalog` (an \
                 entry that the operator publishes)",
            ),
        ),
        [one, other] => {
            let message = format!("both `{one}` and `{other}`: a connector has one of them");
            report.mistake(at, Code::ConflictingKeys.says(message));
        }
        _ => report.mistake(at, Code::ConflictingKeys.says("`command`, `url` and `catalog`: a connector has one of them")),
    }
    false
}

fn stdio(command: &Placed<Name>, workspace: &Name, server: &Server, report: &mut Report) -> Option<Transport> {
    let Some(known) = server.commands.get(&command.value) else {
        let usable = server.commands.iter().filter(|(_, known)| known.is_granted_to(workspace));
        let hint =
            suggest::hint(command.as_str(), usable.map(|(name, _)| name.as_str()), &format!("{workspace} may use"));
        report.mistake(
            &command.at,
            Code::UnknownCommand.says(format!("the operator declares no command {:?}{hint}", command.as_str())),
        );
        return None;
    };
    if !known.is_granted_to(workspace) {
        let name = &command.value;
        let message = format!(
            "the command {name} is not granted to {workspace}: the operator adds `workspaces: [{workspace}]` to \
             `commands.{name}` in switchbell.yaml"
        );
        report.mistake(&command.at, Code::NotGranted.says(message));
        return None;
    }
    Some(known.transport())
}

fn http(
    url: &Placed<ConnectorUrl>,
    raw: Option<Placed<RawAuth>>,
    (workspace, server): (&Name, &Server),
    report: &mut Report,
) -> Option<Transport> {
    if let Some(message) = unreachable(&url.0, server.listen.ip().is_loopback()) {
        report.mistake(&url.at, Code::UnreachableAddress.says(message));
    }
    let who = Who::Workspace(workspace);
    let context = Context { url: &url.0, url_at: &url.at, secrets: &server.secrets, who };
    let sign_in = auth::check(raw, context, report)?;
    Some(Transport::Http { url: url.0.clone(), auth: sign_in.auth, headers: sign_in.headers, private: false })
}

/// The operator's settings with the connector's own over them.
fn own_poll(own: Placed<RawOwnPoll>, server: &Poll, report: &mut Report) -> Option<Poll> {
    let RawOwnPoll { base, floor, ceiling, given: _ } = own.value;
    let bounds = (server.floor, server.ceiling);
    let given = [("floor", &floor), ("base", &base), ("ceiling", &ceiling)];
    let mut is_good = true;
    for (name, span) in given {
        let Some(Placed { at, value: Span(span) }) = span else { continue };
        if *span < bounds.0 || *span > bounds.1 {
            let (least, most) = (show(bounds.0), show(bounds.1));
            report.mistake(
                at,
                Code::OutOfBounds.says(format!("the operator allows {least} to {most}: write a {name} of that")),
            );
            is_good = false;
        }
    }
    let poll = Poll {
        floor: floor.as_ref().map_or(server.floor, |floor| floor.0),
        ceiling: ceiling.as_ref().map_or(server.ceiling, |ceiling| ceiling.0),
        ..*server
    };
    // A base that is not given follows the connector's own floor and ceiling.
    let followed = server.base.max(poll.floor).min(poll.ceiling);
    let poll = Poll { base: base.as_ref().map_or(followed, |base| base.0), ..poll };
    if is_good && !(poll.floor <= poll.base && poll.base <= poll.ceiling) {
        let at = base.map(|span| span.at).or(ceiling.map(|span| span.at)).unwrap_or(own.at);
        report.mistake(&at, Code::OutOfOrder.says(out_of_order(&poll)));
        is_good = false;
    }
    is_good.then_some(poll)
}

fn out_of_order(poll: &Poll) -> String {
    let (floor, base, ceiling) = (show(poll.floor), show(poll.base), show(poll.ceiling));
    format!("floor {floor}, base {base} and ceiling {ceiling} are out of order: each is at least the one before")
}
