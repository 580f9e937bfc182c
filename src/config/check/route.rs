//! Routes and their targets.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::super::code::{Code, Said};
use super::super::raw::{RawRoute, RawTarget, RawWhen};
use super::super::read::{OneOrMore, Placed};
use super::super::scalar::quote_unless_secret;
use super::super::source::Report;
use super::super::values::{NamePattern, Order, TextPattern};
use super::super::{Role, Route, Target, suggest};
use super::Server;
use super::secret::{self, Use, Who};
use super::timing;
use crate::notification::{Level, Name};
use crate::route::Matcher;

/// Most targets of a route.
const TARGETS_MAX: usize = 5;

/// What routes are checked against.
pub(super) struct Context<'a> {
    pub workspace: &'a Name,
    pub members: &'a BTreeMap<String, Role>,
    pub server: &'a Server,
}

/// Checks one route. `ids` are the targets' ids that the workspace's routes have given so far.
pub(super) fn check(
    raw: &Placed<RawRoute>,
    context: &Context<'_>,
    ids: &mut BTreeSet<Name>,
    report: &mut Report,
) -> Option<Route> {
    if let Some(owner) = &raw.owner
        && let Some(message) = objection_to_owner(&owner.0, context.members)
    {
        report.mistake(&owner.at, message);
    }
    let deliver = raw.deliver.as_ref().and_then(|list| {
        if !(1..=TARGETS_MAX).contains(&list.len()) {
            report.mistake(
                &list.at,
                Code::OutOfBounds.says(format!("{} targets: a route has 1 to {TARGETS_MAX}", list.len())),
            );
            return None;
        }
        let least = raw.when.as_ref().and_then(|when| when.level.as_ref()).map_or(Level::Info, |level| level.value);
        Some(targets((list, least), context, ids, report))
    });
    Some(Route {
        name: raw.name.as_ref()?.value.clone(),
        owner: raw.owner.as_ref()?.0.clone(),
        when: raw.when.as_ref().map_or_else(Matcher::default, |when| matcher(when)),
        deliver: deliver?,
    })
}

fn objection_to_owner(owner: &str, members: &BTreeMap<String, Role>) -> Option<Said> {
    match members.get(owner) {
        Some(Role::Admin) => None,
        Some(Role::Member) => Some(Code::NotAnAdmin.says(format!(
            "{} is a member but no admin: a route acts for an admin; make them one under `members`, or name another",
            quote_unless_secret(owner)
        ))),
        None => {
            let admins = members.iter().filter(|(_, role)| **role == Role::Admin).map(|(name, _)| name.as_str());
            let hint = suggest::hint(owner, admins, "admins");
            Some(Code::UnknownMember.says(format!("{} is no member{hint}", quote_unless_secret(owner))))
        }
    }
}

/// What is matched.
pub(super) fn matcher(raw: &RawWhen) -> Matcher {
    let names = |list: &Option<Placed<OneOrMore<NamePattern>>>| {
        list.iter().flat_map(|list| &list.0).map(|pattern| pattern.0.clone()).collect()
    };
    let texts = |list: &Option<Placed<OneOrMore<TextPattern>>>| {
        list.iter().flat_map(|list| &list.0).map(|pattern| pattern.0.clone()).collect()
    };
    Matcher {
        name: names(&raw.name),
        not: names(&raw.not),
        level: raw.level.as_ref().map(|level| level.value),
        source: texts(&raw.source),
        subject: texts(&raw.subject),
    }
}

/// The targets of a route that matches this level and more.
fn targets(
    (raw, least): (&[Placed<RawTarget>], Level),
    context: &Context<'_>,
    ids: &mut BTreeSet<Name>,
    report: &mut Report,
) -> Vec<Target> {
    let mut targets: Vec<Target> = Vec::new();
    for raw in raw {
        if let Some(id) = &raw.id
            && !ids.insert(id.value.clone())
        {
            report.mistake(
                &id.at,
                Code::Duplicate.says(format!("two targets have the id {:?}: rename one", id.as_str())),
            );
            continue;
        }
        let Some(target) = target(raw, least, context, report) else { continue };
        if let Some((index, other)) = targets.iter().enumerate().find(|(_, other)| other.id == target.id) {
            let how = if is_timed_alike(other, &target) { "" } else { ", but for its timing" };
            let message = format!(
                "this target is the same as deliver[{index}] of this route{how}: remove one, or give each an `id`"
            );
            report.mistake(&raw.at, Code::Duplicate.says(message));
            continue;
        }
        targets.push(target);
    }
    targets
}

fn is_timed_alike(one: &Target, other: &Target) -> bool {
    let timed = |target: &Target| (target.timing.clone(), target.retry, target.on_unknown, target.is_strict);
    timed(one) == timed(other)
}

fn target(raw: &Placed<RawTarget>, least: Level, context: &Context<'_>, report: &mut Report) -> Option<Target> {
    if let Some(plugin) = &raw.plugin
        && let Some((folder, there)) = &context.server.plugins_there
        && !there.contains(&plugin.value)
    {
        if context.server.plugins_kept.contains(&plugin.value) {
            let waits = format!(
                "{plugin}.wasm is not in {folder}: without it, what this target is owed waits",
                plugin = plugin.value
            );
            report.warning(&plugin.at, Code::NoEffect.says(waits));
        } else {
            let hint = suggest::hint(plugin.as_str(), there.iter().map(Name::as_str), &format!("in {folder}"));
            report.mistake(&plugin.at, Code::UnknownPlugin.says(format!("unknown plugin {:?}{hint}", plugin.as_str())));
        }
    }
    let settings = raw.with.as_ref();
    for (name, at) in settings.map_or(&[][..], |settings| &settings.secrets) {
        secret::granted(&context.server.secrets, name, at, (Who::Workspace(context.workspace), Use::Settings), report);
    }
    let timing = timing::check(raw, least, report);
    let retry = timing::schedule(raw.retry.as_ref(), report);
    let plugin = raw.plugin.as_ref()?.value.clone();
    let empty = Value::Object(serde_json::Map::new());
    let value = settings.map_or(empty, |settings| settings.value.value.clone());
    let places = match settings {
        Some(settings) => settings.places.clone(),
        None => BTreeMap::from([(String::new(), raw.at.place)]),
    };
    if settings.is_some_and(|settings| !settings.is_whole) {
        return None;
    }
    let id = raw.id.as_ref().map_or_else(|| identity(&plugin, &value), |id| id.to_string());
    let on_unknown = raw.on_unknown.as_ref().map(|on_unknown| on_unknown.value);
    let is_strict = raw.order.as_ref().is_some_and(|order| order.value == Order::Strict);
    Some(Target { id, plugin, settings: value, places, timing, retry, on_unknown, is_strict })
}

/// The identity of a target without an `id`: 12 hexadecimal digits of the SHA-256 over its plugin and its settings,
/// whose keys are sorted.
pub(super) fn identity(plugin: &Name, settings: &Value) -> String {
    let mut text = format!("{plugin}\n");
    write_canonical(settings, &mut text);
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(6).fold(String::new(), |mut id, byte| {
        let _infallible = write!(id, "{byte:02x}");
        id
    })
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(object) => {
            let sorted: BTreeMap<_, _> = object.iter().collect();
            out.push('{');
            for (index, (key, value)) in sorted.into_iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                out.push_str(&Value::String(key.clone()).to_string());
                out.push(':');
                write_canonical(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                write_canonical(item, out);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_keeps_its_identity_whatever_the_order_of_its_settings() {
        let plugin: Name = "slack".parse().unwrap();
        let id = |text: &str| identity(&plugin, &serde_json::from_str(text).unwrap());
        assert_eq!(id(r#"{"a":1,"b":[{"c":2,"d":3}]}"#), id(r#"{"b":[{"d":3,"c":2}],"a":1}"#));
        assert_ne!(id(r#"{"a":1}"#), id(r#"{"a":2}"#));
        assert_ne!(id("{}"), identity(&"mail".parse().unwrap(), &serde_json::from_str("{}").unwrap()));
        // Pinned: waiting deliveries name their target by it.
        assert_eq!(id("{}"), "543432b69fe5");
    }
}
