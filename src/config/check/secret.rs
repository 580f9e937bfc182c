//! `secrets:` of the operator's file, and who may use them. No message here ever holds a value.

mod fit;
mod granted;
mod key;
mod program;
mod source;
mod token;

use std::collections::BTreeMap;

use url::Url;

pub use program::end_all as end_programs;

use super::super::code::Code;
use super::super::load::Folder;
use super::super::loaded::Reading;
use super::super::node::At;
use super::super::raw::RawSecret;
use super::super::read::{Map, Named, NonEmpty, Placed};
use super::super::source::Report;
use super::super::values::Host;
use super::super::{HostPattern, Secret, SecretPlace, SecretValue};
use super::server::mentioned;
use crate::notification::Name;

pub(super) use granted::{Use, Who, granted};
use source::{Sources, Written};

/// A secret as far as it is good.
#[derive(Debug)]
pub(in crate::config) struct Rule {
    /// None when it is unusable and was reported.
    pub place: Option<SecretPlace>,
    pub hosts: Vec<HostPattern>,
    /// Who may use it; none when that is unusable and was reported.
    pub workspaces: Option<Vec<Name>>,
    is_weak: bool,
    value: Value,
}

/// A value that shows nothing of itself.
struct Value(Option<SecretValue>);

impl std::fmt::Debug for Value {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a secret")
    }
}

impl Rule {
    fn unusable() -> Self {
        Self { place: None, hosts: Vec::new(), workspaces: None, is_weak: false, value: Value(None) }
    }
}

/// The secrets of a configuration without mistakes.
pub(in crate::config) fn finished(rules: BTreeMap<Name, Rule>) -> BTreeMap<Name, Secret> {
    let finished = |(name, rule): (Name, Rule)| {
        let Rule { place: Some(place), hosts, workspaces: Some(workspaces), is_weak, value: Value(Some(value)) } = rule
        else {
            return None;
        };
        Some((name, Secret { value, place, hosts, workspaces, is_weak }))
    };
    rules.into_iter().filter_map(finished).collect()
}

/// Checks the section and reads the values.
pub(super) fn check(
    raw: Option<Placed<Map<Name, RawSecret>>>,
    folder: &Folder,
    reading: &Reading<'_>,
    mentions: &mut Vec<Placed<Name>>,
    report: &mut Report,
) -> BTreeMap<Name, Rule> {
    let entries = raw.map_or_else(Vec::new, |map| map.value.0);
    let secrets = entries.iter().filter_map(|entry| entry.value.as_ref());
    let sources = Sources::new(secrets, folder, reading, report);
    let checked = entries.into_iter().map(|Named { name, at: _, value }| {
        let rule = value.map(|raw| rule(raw, &sources, mentions, report));
        (name, rule.unwrap_or_else(Rule::unusable))
    });
    checked.collect()
}

fn rule(raw: Placed<RawSecret>, sources: &Sources<'_>, mentions: &mut Vec<Placed<Name>>, report: &mut Report) -> Rule {
    let Placed { at, value: raw } = raw;
    let is_weak = raw.weak.as_ref().is_some_and(|weak| weak.value);
    let given_workspaces = raw.workspaces.as_ref().map(|list| list.at.clone());
    let is_broken = given_workspaces.is_none() && raw.given.has("workspaces");
    if !raw.given.has("hosts") {
        hosts_are_missing(&at, raw.place.as_ref().map(|place| &place.0), raw.given.has("workspaces"), report);
    }
    if let Some(place) = &raw.place {
        refuse_what_has_no_use(&place.0, raw.hosts.as_ref(), given_workspaces.as_ref(), report);
    }
    let hosts = raw.hosts.map_or_else(Vec::new, |list| list.value.0);
    let hosts: Vec<HostPattern> = hosts.into_iter().map(|host| host.value.0).collect();
    let place = raw.place;
    let written = Written { env: raw.env, file: raw.file, command: raw.command };
    let is_alone = has_one_source(&at, &written, raw.oauth.as_ref().map(|oauth| &oauth.at), &raw.given, report);
    let value = match raw.oauth {
        _ if !is_alone => None,
        Some(oauth) => {
            if let Some(weak) = &raw.weak {
                let text = "a token is as long as the authorization server makes it: remove `weak`";
                report.mistake(&weak.at, Code::ConflictingKeys.says(text));
            }
            let fits = place.as_ref().is_none_or(|place| token::fits(place, report));
            let token = token::check(oauth, sources, report).filter(|_| fits);
            token.map(|token| if sources.are_not_read() { SecretValue::NotRead } else { SecretValue::Token(token) })
        }
        None => sources.read(written, report).and_then(|Placed { at, value }| {
            let Some(value) = value else { return Some(SecretValue::NotRead) };
            let value = fit::fitting(value, is_weak, place.as_ref().map(|place| &place.0), &hosts);
            value.map_err(|message| report.mistake(&at, Code::BadSecret.says(message))).ok().map(SecretValue::Fixed)
        }),
    };
    let workspaces = mentioned(raw.workspaces, mentions);
    let place = place.map(|place| place.value.0);
    Rule { place, hosts, workspaces: (!is_broken).then_some(workspaces), is_weak, value: Value(value) }
}

/// Whether exactly one key says what the secret is worth; reported otherwise.
fn has_one_source(
    at: &At,
    written: &Written,
    oauth: Option<&At>,
    given: &super::super::section::Given,
    report: &mut Report,
) -> bool {
    let keys: Vec<&str> = ["env", "file", "command", "oauth"].into_iter().filter(|key| given.has(key)).collect();
    match keys.as_slice() {
        [_] => true,
        [] => {
            report.mistake(
                at,
                Code::MissingKey.says(
                    "a secret needs `env` (an environment variable), `file` (a file), `command` (a program) or `oauth` (a \
                     token that is fetched) to take its value from",
                ),
            );
            false
        }
        [first, second, ..] => {
            let at = written.at().or(oauth).unwrap_or(at);
            report.mistake(at, Code::ConflictingKeys.says(format!("both `{first}` and `{second}`: keep one")));
            false
        }
    }
}

/// Says what follows for a secret without `hosts`. One that no workspace may use goes only where the operator sends it.
fn hosts_are_missing(at: &At, place: Option<&SecretPlace>, is_granted: bool, report: &mut Report) {
    let stands = match place {
        Some(SecretPlace::Header { .. } | SecretPlace::Basic) => "in a header",
        Some(SecretPlace::Query(_)) => "in a query",
        Some(SecretPlace::Path) => "in a path",
        Some(SecretPlace::Body(_)) => "in a body",
        Some(SecretPlace::Connector) if is_granted => {
            let text = "without `hosts`, a workspace that may use this secret can have it sent to any server: add `hosts: [HOST]`";
            report.warning(at, Code::AnyHost.says(text));
            return;
        }
        Some(SecretPlace::Connector | SecretPlace::Url | SecretPlace::Sign | SecretPlace::Mail) | None => return,
    };
    let message = format!(
        "`hosts` is missing: a secret {stands} needs the hosts it may be sent to, as in `hosts: [api.example.com]`"
    );
    report.mistake(at, Code::MissingKey.says(message));
}

/// Refuses what would promise something of a secret that is never sent, or that no workspace uses.
fn refuse_what_has_no_use(
    place: &SecretPlace,
    hosts: Option<&Placed<NonEmpty<Host>>>,
    workspaces: Option<&At>,
    report: &mut Report,
) {
    let why = match place {
        SecretPlace::Sign => "a key for signatures is never sent anywhere",
        SecretPlace::Mail => "the password of the mail relay is sent to the relay alone",
        _ => return,
    };
    if let Some(hosts) = hosts {
        report.mistake(&hosts.at, Code::ConflictingKeys.says(format!("{why}: remove `hosts`")));
    }
    if let Some(at) = workspaces.filter(|_| *place == SecretPlace::Mail) {
        report.mistake(
            at,
            Code::ConflictingKeys.says("the password of the mail relay is for the relay alone: remove `workspaces`"),
        );
    }
}

/// The host of an http URL as patterns spell it.
pub(super) fn host_of(url: &Url) -> String {
    url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned()
}
