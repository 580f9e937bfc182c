//! `catalog:` of the operator's file, and how workspaces use its entries.

use std::collections::BTreeMap;

use super::super::code::Code;
use super::super::load::Folder;
use super::super::node::At;
use super::super::raw::{RawAuth, RawEntry, RawEntryOutbox};
use super::super::read::{Map, Named, Placed};
use super::super::source::Report;
use super::super::values::ConnectorUrl;
use super::super::{Transport, suggest};
use super::Server;
use super::auth::{self, Context, FOR_URLS};
use super::endpoint::{is_localhost, is_private_literal};
use super::outbox::{self, Declared};
use super::push::{self, Given};
use super::secret::{Rule, Who};
use super::server::{Command, mentioned};
use crate::notification::Name;

/// Most entries: each manifest is read with the configuration, and misspelt names are compared with all entries.
const ENTRIES_MAX: usize = 200;

/// A server that the operator publishes, as far as it is good.
#[derive(Debug)]
pub(in crate::config) struct Entry {
    /// None when it is unusable and was reported.
    transport: Option<Transport>,
    /// Whether it says how to sign in.
    signs_in: bool,
    /// Whether it says where its outbox is, rightly or not.
    declares: bool,
    declared: Declared,
    /// Who may use it; everybody when none.
    workspaces: Option<Vec<Name>>,
}

impl Entry {
    fn is_granted_to(&self, workspace: &Name) -> bool {
        self.workspaces.as_ref().is_none_or(|names| names.contains(workspace))
    }
}

/// What the section is checked against.
pub(super) struct Known<'a> {
    pub folder: &'a Folder,
    pub commands: &'a BTreeMap<Name, Command>,
    pub secrets: &'a BTreeMap<Name, Rule>,
}

/// Checks the section and reads the manifests.
pub(super) fn check(
    raw: Option<Placed<Map<Name, RawEntry>>>,
    known: &Known<'_>,
    mentions: &mut Vec<Placed<Name>>,
    report: &mut Report,
) -> BTreeMap<Name, Entry> {
    if let Some(map) = &raw
        && map.0.len() > ENTRIES_MAX
    {
        report.mistake(
            &map.at,
            Code::OutOfBounds.says(format!("{} entries: a catalog has at most {ENTRIES_MAX}", map.0.len())),
        );
    }
    let entries = raw.map_or_else(Vec::new, |map| map.value.0).into_iter().take(ENTRIES_MAX);
    let checked = entries.map(|Named { name, at: _, value }| {
        let unusable = || Entry {
            transport: None,
            signs_in: false,
            declares: false,
            declared: Declared::default(),
            workspaces: None,
        };
        (name, value.map_or_else(unusable, |raw| entry(raw, known, mentions, report)))
    });
    checked.collect()
}

fn entry(raw: Placed<RawEntry>, known: &Known<'_>, mentions: &mut Vec<Placed<Name>>, report: &mut Report) -> Entry {
    let Placed { at, value: raw } = raw;
    let signs_in = raw.given.has("auth");
    let declares = raw.given.has("manifest") || raw.given.has("notifications");
    let transport = match (raw.command, raw.url) {
        (Some(command), None) => {
            for (at, message) in [
                (raw.auth.map(|auth| auth.at), FOR_URLS),
                (raw.private.map(|private| private.at), "`private` is for a `url`: remove it"),
            ] {
                if let Some(at) = at {
                    report.mistake(&at, Code::ConflictingKeys.says(message));
                }
            }
            program(&command, known, report)
        }
        (None, Some(url)) => endpoint(&url, raw.auth, raw.private.is_some_and(|private| private.value), known, report),
        (Some(command), Some(_)) => {
            report
                .mistake(&command.at, Code::ConflictingKeys.says("both `command` and `url`: an entry has one of them"));
            None
        }
        (None, None) => {
            if !raw.given.has("command") && !raw.given.has("url") && raw.given.is_clean() {
                report.mistake(
                    &at,
                    Code::MissingKey
                        .says("an entry needs `url` (an endpoint) or `command` (the name of one of `commands`)"),
                );
            }
            None
        }
    };
    let declared = match (raw.manifest, raw.notifications) {
        (Some(_), Some(inline)) => {
            report.mistake(
                &inline.at,
                Code::ConflictingKeys
                    .says("both `manifest` and `notifications`: keep the one that declares the outbox"),
            );
            Declared::default()
        }
        (Some(path), None) => outbox::of_operator_manifest(&path, known.folder, report),
        (None, Some(inline)) => declared_inline(inline, report),
        (None, None) => Declared::default(),
    };
    let is_for_all = !raw.given.has("workspaces");
    let workspaces = mentioned(raw.workspaces, mentions);
    Entry { transport, signs_in, declares, declared, workspaces: (!is_for_all).then_some(workspaces) }
}

fn declared_inline(raw: Placed<RawEntryOutbox>, report: &mut Report) -> Declared {
    let Placed { at, value: raw } = raw;
    outbox::check_description(raw.description.as_ref(), report);
    let given = Given { resource: raw.resource.as_ref().map(|uri| &uri.at), manifest: None };
    if let Some(declared) = push::check((raw.push, raw.levels), given, report) {
        return declared;
    }
    if !["resource", "push", "levels"].into_iter().any(|way| raw.given.has(way)) && raw.given.is_clean() {
        let message = "an outbox needs `resource` (its URI); or write `push: true` for a server with a push queue";
        report.mistake(&at, Code::MissingKey.says(message));
    }
    Declared::inline(raw.resource.map(|uri| uri.value.0))
}

fn program(command: &Placed<Name>, known: &Known<'_>, report: &mut Report) -> Option<Transport> {
    let Some(program) = known.commands.get(&command.value) else {
        let hint = suggest::hint(command.as_str(), known.commands.keys().map(Name::as_str), "commands");
        report.mistake(&command.at, Code::UnknownCommand.says(format!("unknown command {:?}{hint}", command.as_str())));
        return None;
    };
    Some(program.transport())
}

fn endpoint(
    url: &Placed<ConnectorUrl>,
    raw: Option<Placed<RawAuth>>,
    is_private: bool,
    known: &Known<'_>,
    report: &mut Report,
) -> Option<Transport> {
    if is_localhost(&url.0) && !is_private {
        let message = "this name leads to this machine: add `private: true`, or write the literal 127.0.0.1";
        report.mistake(&url.at, Code::UnreachableAddress.says(message));
    }
    let context = Context { url: &url.0, url_at: &url.at, secrets: known.secrets, who: Who::Operator };
    let sign_in = auth::check(raw, context, report)?;
    // An address that the operator writes out is its own permission.
    let private = is_private || is_private_literal(&url.0);
    Some(Transport::Http { url: url.0.clone(), auth: sign_in.auth, headers: sign_in.headers, private })
}

/// What a workspace's connector says beside `catalog`.
pub(super) struct Beside {
    pub auth: Option<Placed<RawAuth>>,
    /// Where `notifications` stands.
    pub notifications: Option<At>,
}

/// The entry that a workspace's connector names, with the workspace's own way to sign in where it has none, and what it
/// declares; none of the latter when it leaves the outbox to the workspace.
pub(super) fn used(
    name: &Placed<Name>,
    beside: Beside,
    (workspace, server): (&Name, &Server),
    report: &mut Report,
) -> Option<(Transport, Option<Declared>)> {
    let entry = granted(name, workspace, &server.catalog, report)?;
    let name = &name.value;
    if let Some(at) = beside.notifications.filter(|_| entry.declares) {
        let message = format!(
            "the catalog entry {name} says where its outbox is, and what it says holds for every workspace: remove \
             `notifications`"
        );
        report.mistake(&at, Code::ConflictingKeys.says(message));
    }
    let declared = entry.declares.then(|| entry.declared.clone());
    let transport = entry.transport.clone()?;
    let Some(auth) = beside.auth else { return Some((transport, declared)) };
    if entry.signs_in {
        report.mistake(
            &auth.at,
            Code::ConflictingKeys.says(format!("the catalog entry {name} says how to sign in: remove `auth`")),
        );
        return Some((transport, declared));
    }
    let at = auth.at.clone();
    match transport {
        Transport::Stdio { .. } => {
            let message = format!("the catalog entry {name} is a program, and `auth` is for a `url`: remove it");
            report.mistake(&at, Code::ConflictingKeys.says(message));
            None
        }
        Transport::Http { url, private, .. } => {
            let who = Who::Workspace(workspace);
            let context = Context { url: &url, url_at: &at, secrets: &server.secrets, who };
            let sign_in = auth::check(Some(auth), context, report)?;
            let transport = Transport::Http { url: url.clone(), auth: sign_in.auth, headers: sign_in.headers, private };
            Some((transport, declared))
        }
    }
}

fn granted<'a>(
    name: &Placed<Name>,
    workspace: &Name,
    catalog: &'a BTreeMap<Name, Entry>,
    report: &mut Report,
) -> Option<&'a Entry> {
    let Some(entry) = catalog.get(&name.value) else {
        let usable = catalog.iter().filter(|(_, entry)| entry.is_granted_to(workspace));
        let hint = suggest::hint(name.as_str(), usable.map(|(name, _)| name.as_str()), &format!("{workspace} may use"));
        report.mistake(
            &name.at,
            Code::UnknownEntry.says(format!("the operator publishes no catalog entry {:?}{hint}", name.as_str())),
        );
        return None;
    };
    if !entry.is_granted_to(workspace) {
        let at = &name.at;
        let name = &name.value;
        let message = format!(
            "the catalog entry {name} is not granted to {workspace}: the operator adds {workspace} to \
             `catalog.{name}.workspaces` in switchbell.yaml"
        );
        report.mistake(at, Code::NotGranted.says(message));
        return None;
    }
    Some(entry)
}
