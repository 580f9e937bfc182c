//! The connectors of a workspace.

use std::collections::BTreeMap;
use std::net::IpAddr;

use url::{Host, Url};

use super::super::raw::{RawAuth, RawConnector, RawOutbox, RawOwnPoll};
use super::super::read::{Map, Placed};
use super::super::source::Report;
use super::super::values::{ConnectorUrl, Span, show};
use super::super::{Auth, Connector, Poll, Transport, suggest};
use super::Server;
use super::secret::{self, Use};
use crate::address::is_public;
use crate::notification::{HOST_SOURCE, Level, Name};

/// Most connectors of a workspace: each is polled on its own, and every source of a route is compared with each.
const CONNECTORS_MAX: usize = 100;

/// Longest description of an outbox, in characters: it is a remark for people.
const DESCRIPTION_CHARS_MAX: usize = 500;

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
        report.mistake(&map.at, format!("{} connectors: a workspace has at most {CONNECTORS_MAX}", map.0.len()));
    }
    for entry in raw.map_or_else(Vec::new, |map| map.value.0).into_iter().take(CONNECTORS_MAX) {
        if entry.name.as_str() == HOST_SOURCE {
            let message = "`switchbell` is the source of Switchbell's own notices: give the connector another name";
            report.mistake(&entry.at, message);
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
    raw: Placed<RawConnector>,
    (workspace, server): (&Name, &Server),
    report: &mut Report,
) -> Option<Connector> {
    let at = raw.at.clone();
    let raw = raw.value;
    let poll = raw.poll.map_or(Some(server.poll), |own| own_poll(own, &server.poll, report));
    let transport = match (raw.command, raw.url) {
        (Some(command), None) => {
            if let Some(auth) = &raw.auth {
                let message = "`auth` is for a `url`: a program gets its credentials from `commands.NAME.env` in \
                               switchbell.yaml";
                report.mistake(&auth.at, message);
            }
            stdio(&command, workspace, server, report)
        }
        (None, Some(url)) => http(&url, raw.auth, (workspace, server), report),
        (Some(command), Some(_)) => {
            report.mistake(&command.at, "both `command` and `url`: a connector has one of them");
            None
        }
        (None, None) if !raw.given.has("command") && !raw.given.has("url") => {
            report.mistake(
                &at,
                "a connector needs `command` (a program that the operator declares) or `url` (an endpoint)",
            );
            None
        }
        (None, None) => None,
    };
    let outbox = raw.notifications.and_then(|outbox| outbox_uri(outbox.value, report));
    Some(Connector {
        name: name.clone(),
        transport: transport?,
        outbox,
        not_polled: None,
        ceiling: raw.ceiling?.value,
        poll: poll?,
    })
}

fn outbox_uri(raw: RawOutbox, report: &mut Report) -> Option<String> {
    if let Some(description) = &raw.description
        && description.0.chars().nth(DESCRIPTION_CHARS_MAX).is_some()
    {
        report.mistake(&description.at, format!("a description has at most {DESCRIPTION_CHARS_MAX} characters"));
    }
    raw.resource.map(|resource| resource.value.0)
}

fn stdio(command: &Placed<Name>, workspace: &Name, server: &Server, report: &mut Report) -> Option<Transport> {
    let Some(known) = server.commands.get(&command.value) else {
        let usable = server.commands.iter().filter(|(_, known)| known.is_granted_to(workspace));
        let hint =
            suggest::hint(command.as_str(), usable.map(|(name, _)| name.as_str()), &format!("{workspace} may use"));
        report.mistake(&command.at, format!("the operator declares no command {:?}{hint}", command.as_str()));
        return None;
    };
    if !known.is_granted_to(workspace) {
        let name = &command.value;
        let message = format!(
            "the command {name} is not granted to {workspace}: the operator adds `workspaces: [{workspace}]` to \
             `commands.{name}` in switchbell.yaml"
        );
        report.mistake(&command.at, message);
        return None;
    }
    Some(Transport::Stdio { run: known.run.clone(), env: known.env.clone(), directory: known.directory.clone() })
}

fn http(
    url: &Placed<ConnectorUrl>,
    auth: Option<Placed<RawAuth>>,
    (workspace, server): (&Name, &Server),
    report: &mut Report,
) -> Option<Transport> {
    let is_local = is_loopback(&url.0);
    if let Some(message) = unreachable(&url.0, server.listen.ip().is_loopback()) {
        report.mistake(&url.at, message);
    }
    let name = auth.and_then(|auth| auth.value.bearer).and_then(|bearer| bearer.value.secret);
    let Some(name) = name else {
        return Some(Transport::Http {
            url: url.0.clone(),
            auth: Auth::None,
            headers: BTreeMap::new(),
            private: false,
        });
    };
    let (secret, rule) = secret::granted(&server.secrets, &name.0, &name.at, (workspace, Use::Connector), report)?;
    let host = secret::host_of(&url.0);
    if !rule.hosts.is_empty() && !rule.hosts.iter().any(|pattern| pattern.covers(&host)) {
        report.mistake(
            &name.at,
            format!("the secret {secret} may not be sent to {host}: the operator decides by its `hosts`"),
        );
    }
    if url.0.scheme() == "http" && !is_local {
        report.warning(&url.at, format!("the secret {secret} travels unencrypted: use https"));
    }
    let auth = Auth::Bearer(secret.clone());
    Some(Transport::Http { url: url.0.clone(), auth, headers: BTreeMap::new(), private: false })
}

fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.to_canonical()),
        Host::Domain(_) => None,
    }
}

fn is_loopback(url: &Url) -> bool {
    literal(url).is_some_and(|address| address.is_loopback())
}

/// Why a connector may not be reached at this URL, as far as that can be told from its text.
fn unreachable(url: &Url, listens_on_loopback: bool) -> Option<&'static str> {
    if let Some(Host::Domain(name)) = url.host()
        && (name == "localhost" || name.ends_with(".localhost"))
    {
        return Some(
            "a connector's URL reaches public addresses only: for a server on this machine write the literal 127.0.0.1, which is allowed while `listen` is a loopback address",
        );
    }
    let address = literal(url)?;
    match (address.is_loopback(), listens_on_loopback) {
        (true, true) => None,
        (true, false) => Some(
            "a loopback address may be reached only while `listen` is one too; a connector's URL reaches public addresses only",
        ),
        (false, _) if is_public(address) => None,
        (false, _) => Some("this address is not public; a connector's URL reaches public addresses only"),
    }
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
            report.mistake(at, format!("the operator allows {least} to {most}: write a {name} of that"));
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
        report.mistake(&at, out_of_order(&poll));
        is_good = false;
    }
    is_good.then_some(poll)
}

fn out_of_order(poll: &Poll) -> String {
    let (floor, base, ceiling) = (show(poll.floor), show(poll.base), show(poll.ceiling));
    format!("floor {floor}, base {base} and ceiling {ceiling} are out of order: each is at least the one before")
}
