//! `secrets:` of the operator's file, and who may use them. No message here ever holds a value.

use std::collections::BTreeMap;
use std::path::Path;

use url::Url;

use super::super::load::{Folder, read_bytes};
use super::super::node::At;
use super::super::raw::RawSecret;
use super::super::read::{Map, Named, Placed};
use super::super::source::Report;
use super::super::variables::Lookup;
use super::super::{HostPattern, Secret, SecretPlace, SecretValue, suggest};
use super::server::{mentioned, path_of};
use crate::notification::Name;

/// Shortest value, in bytes, unless the secret says `weak: true`: what is shorter can be guessed, and masking it in
/// texts would mask half of them.
const VALUE_BYTES_MIN: usize = 16;
/// Longest value, in bytes: longer than any header that servers accept.
const VALUE_BYTES_MAX: usize = 8 << 10;

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
struct Value(Option<String>);

impl std::fmt::Debug for Value {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a secret")
    }
}

/// The secrets of a configuration without mistakes.
pub(in crate::config) fn finished(rules: BTreeMap<Name, Rule>) -> BTreeMap<Name, Secret> {
    let finished = |(name, rule): (Name, Rule)| {
        let Rule { place: Some(place), hosts, workspaces: Some(workspaces), is_weak, value: Value(Some(value)) } = rule
        else {
            return None;
        };
        Some((name, Secret { value: SecretValue::Fixed(value), place, hosts, workspaces, is_weak }))
    };
    rules.into_iter().filter_map(finished).collect()
}

/// Checks the section and reads the values.
pub(super) fn check(
    raw: Option<Placed<Map<Name, RawSecret>>>,
    folder: &Folder,
    lookup: &Lookup<'_>,
    mentions: &mut Vec<Placed<Name>>,
    report: &mut Report,
) -> BTreeMap<Name, Rule> {
    let entries = raw.map_or_else(Vec::new, |map| map.value.0);
    let checked = entries.into_iter().map(|Named { name, at: _, value }| {
        let rule = value.map(|raw| rule(raw, folder, lookup, mentions, report));
        (
            name,
            rule.unwrap_or(Rule {
                place: None,
                hosts: Vec::new(),
                workspaces: None,
                is_weak: false,
                value: Value(None),
            }),
        )
    });
    checked.collect()
}

fn rule(
    raw: Placed<RawSecret>,
    folder: &Folder,
    lookup: &Lookup<'_>,
    mentions: &mut Vec<Placed<Name>>,
    report: &mut Report,
) -> Rule {
    let at = raw.at.clone();
    let raw = raw.value;
    let is_weak = raw.weak.is_some_and(|weak| weak.value);
    let place = raw.place.map(|place| place.value.0);
    if !raw.given.has("hosts") {
        hosts_are_missing(&at, place.as_ref(), raw.given.has("workspaces"), report);
    }
    let hosts = raw.hosts.map_or_else(Vec::new, |list| list.value.0);
    let hosts: Vec<HostPattern> = hosts.into_iter().map(|host| host.value.0).collect();
    let source = match (raw.env, raw.file) {
        (Some(env), None) => Some((env.at, from_environment(&env.value.0, lookup))),
        (None, Some(file)) => {
            let value = path_of(&file.at, &file.value.0, report).map(|path| from_file(&folder.shown.join(path)));
            value.map(|value| (file.at, value))
        }
        (None, None) if !raw.given.has("env") && !raw.given.has("file") => {
            report.mistake(
                &at,
                "a secret needs `env` (an environment variable) or `file` (a file) to take its value from",
            );
            None
        }
        (Some(env), Some(_)) => {
            report.mistake(&env.at, "both `env` and `file`: keep one");
            None
        }
        (None, None) => None,
    };
    let value = source.and_then(|(at, value)| {
        let value = value.and_then(|value| fitting(value, is_weak, place.as_ref(), &hosts));
        value.map_err(|message| report.mistake(&at, message)).ok()
    });
    let is_broken = raw.workspaces.is_none() && raw.given.has("workspaces");
    let workspaces = mentioned(raw.workspaces, mentions);
    Rule { place, hosts, workspaces: (!is_broken).then_some(workspaces), is_weak, value: Value(value) }
}

/// Says what follows for a secret without `hosts`. One that no workspace may use goes only where the operator sends it.
fn hosts_are_missing(at: &At, place: Option<&SecretPlace>, is_granted: bool, report: &mut Report) {
    match place {
        Some(SecretPlace::Header { .. }) => {
            report.mistake(at, "`hosts` is missing: a secret in a header needs the hosts it may be sent to, as in `hosts: [api.example.com]`");
        }
        Some(SecretPlace::Connector) if is_granted => {
            report.warning(at, "without `hosts`, a workspace that may use this secret can have it sent to any server: add `hosts: [HOST]`");
        }
        _ => {}
    }
}

fn from_environment(name: &str, lookup: &Lookup<'_>) -> Result<String, String> {
    // People write the value itself where its variable belongs; such a text is not repeated.
    let looks_like_a_name = name.contains('_') && !name.contains(|c: char| c.is_ascii_lowercase());
    let shown = if looks_like_a_name { format!("{name} ") } else { String::new() };
    let value = lookup(name).ok_or_else(|| format!("the environment variable {shown}named here is not set"))?;
    value.into_string().map_err(|_| format!("the environment variable {shown}named here is not Unicode"))
}

fn from_file(path: &Path) -> Result<String, String> {
    let most = u64::try_from(VALUE_BYTES_MAX + 2).unwrap_or(u64::MAX);
    match read_bytes(path, most) {
        Ok(Some(bytes)) => String::from_utf8(bytes).map_err(|_| "the file named here is not UTF-8".to_owned()),
        Ok(None) => Err(too_long()),
        Err(error) => Err(format!("the file named here cannot be read: {error}")),
    }
}

fn too_long() -> String {
    format!("the value is longer than {VALUE_BYTES_MAX} bytes")
}

/// The value without its line end, if it can be used in its place.
fn fitting(value: String, is_weak: bool, place: Option<&SecretPlace>, hosts: &[HostPattern]) -> Result<String, String> {
    let value = value.strip_suffix('\n').map_or(value.as_str(), |value| value.strip_suffix('\r').unwrap_or(value));
    if value.is_empty() {
        return Err("the value is empty".to_owned());
    }
    if value.len() > VALUE_BYTES_MAX {
        return Err(too_long());
    }
    if value.len() < VALUE_BYTES_MIN && !is_weak {
        return Err(format!(
            "the value is shorter than {VALUE_BYTES_MIN} bytes, so it can be guessed: take a longer one, or add `weak: true`"
        ));
    }
    match place {
        Some(SecretPlace::Header { .. } | SecretPlace::Connector)
            if !value.bytes().all(|byte| byte.is_ascii_graphic()) =>
        {
            return Err(
                "the value holds a space, a line end or another character that a header cannot carry".to_owned()
            );
        }
        Some(SecretPlace::Url) => check_url(value, hosts)?,
        _ => {}
    }
    Ok(value.to_owned())
}

fn check_url(value: &str, hosts: &[HostPattern]) -> Result<(), String> {
    let url = Url::parse(value).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    if let Some(url) = &url
        && (!url.username().is_empty() || url.password().is_some())
    {
        return Err(
            "the value is a URL with a user or a password, which no request carries: take a URL without, or put \
                    the credential in a header (`in: header:NAME`)"
                .to_owned(),
        );
    }
    let is_clean = !value.contains(|c: char| c.is_whitespace() || c.is_control());
    let Some(url) = url.filter(|_| is_clean) else {
        return Err("the value is no http or https URL, which `in: url` needs".to_owned());
    };
    let host = host_of(&url);
    if !hosts.is_empty() && !hosts.iter().any(|pattern| pattern.covers(&host)) {
        return Err("the value is a URL whose host is not among `hosts`".to_owned());
    }
    Ok(())
}

/// The host of an http URL as patterns spell it.
pub(super) fn host_of(url: &Url) -> String {
    url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned()
}

/// Who uses a secret.
#[derive(Clone, Copy)]
pub(super) enum Who<'a> {
    /// A workspace, which needs to be granted it.
    Workspace(&'a Name),
    /// The operator, in `catalog`: what workspaces may use by an entry is the entry's to say.
    Operator,
}

/// How a secret is used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// In the settings of a target.
    Settings,
    /// As the credential of a connector.
    Connector,
}

/// The secret with this name, if it may be used so; reported otherwise. A name that is unknown is not
/// repeated, since people write the secret itself where its name belongs.
pub(super) fn granted<'a>(
    rules: &'a BTreeMap<Name, Rule>,
    name: &str,
    at: &At,
    (who, way): (Who<'_>, Use),
    report: &mut Report,
) -> Option<(&'a Name, &'a Rule)> {
    let allowed = |rule: &Rule| match (who, &rule.workspaces) {
        (Who::Workspace(workspace), Some(names)) => names.contains(workspace),
        (Who::Workspace(_), None) | (Who::Operator, _) => true,
    };
    let Some((name, rule)) = rules.get_key_value(name) else {
        let fits = |rule: &Rule| (rule.place == Some(SecretPlace::Connector)) == (way == Use::Connector);
        let usable = rules.iter().filter(|(_, rule)| allowed(rule) && fits(rule)).map(|(name, _)| name.as_str());
        let message = match who {
            Who::Workspace(workspace) => {
                let hint = suggest::hint(name, usable, &format!("{workspace} may use"));
                format!("the operator declares no secret of this name{hint}")
            }
            Who::Operator => {
                let hint = suggest::hint(name, usable, "for connectors");
                format!("there is no secret of this name under `secrets`{hint}")
            }
        };
        report.mistake(at, message);
        return None;
    };
    if let Who::Workspace(workspace) = who
        && !allowed(rule)
    {
        let message = format!(
            "the secret {name} is not granted to {workspace}: the operator adds `workspaces: [{workspace}]` to \
             `secrets.{name}` in switchbell.yaml"
        );
        report.mistake(at, message);
        return None;
    }
    let is_for_connectors = rule.place.as_ref().map(|place| *place == SecretPlace::Connector);
    match (is_for_connectors, way) {
        (Some(true), Use::Settings) => {
            report.mistake(at, format!("the secret {name} is for connectors (`in: connector`), not for settings"));
            None
        }
        (Some(false), Use::Connector) => {
            report.mistake(
                at,
                format!("the secret {name} is not for connectors: it needs `in: connector` in switchbell.yaml"),
            );
            None
        }
        _ => Some((name, rule)),
    }
}
