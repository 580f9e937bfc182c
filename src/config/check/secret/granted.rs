//! Who may use a secret, and for what.

use std::collections::BTreeMap;

use super::super::super::code::Code;
use super::super::super::node::At;
use super::super::super::source::Report;
use super::super::super::{SecretPlace, suggest};
use super::Rule;
use crate::notification::Name;

/// Who uses a secret.
#[derive(Clone, Copy)]
pub(in super::super) enum Who<'a> {
    /// A workspace, which needs to be granted it.
    Workspace(&'a Name),
    /// The operator, in `catalog`: what workspaces may use by an entry is the entry's to say.
    Operator,
}

/// How a secret is used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Use {
    /// In the settings of a target.
    Settings,
    /// As the credential of a connector.
    Connector,
    /// As the password of the mail relay.
    Mail,
}

impl Use {
    /// The use that a place is for.
    fn of(place: &SecretPlace) -> Self {
        match place {
            SecretPlace::Connector => Self::Connector,
            SecretPlace::Mail => Self::Mail,
            SecretPlace::Url
            | SecretPlace::Header { .. }
            | SecretPlace::Basic
            | SecretPlace::Query(_)
            | SecretPlace::Path
            | SecretPlace::Body(_)
            | SecretPlace::Sign => Self::Settings,
        }
    }

    /// What it is, in words.
    fn words(self) -> &'static str {
        match self {
            Self::Settings => "the settings of a target",
            Self::Connector => "connectors",
            Self::Mail => "the mail relay",
        }
    }
}

/// The secret with this name, if it may be used so; reported otherwise. A name that is unknown is not
/// repeated, since people write the secret itself where its name belongs.
pub(in super::super) fn granted<'a>(
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
        let fits = |rule: &Rule| rule.place.as_ref().is_none_or(|place| Use::of(place) == way);
        let usable = rules.iter().filter(|(_, rule)| allowed(rule) && fits(rule)).map(|(name, _)| name.as_str());
        let message = match who {
            Who::Workspace(workspace) => {
                let hint = suggest::hint(name, usable, &format!("{workspace} may use"));
                format!("the operator declares no secret of this name{hint}")
            }
            Who::Operator => {
                let hint = suggest::hint(name, usable, &format!("for {}", way.words()));
                format!("there is no secret of this name under `secrets`{hint}")
            }
        };
        report.mistake(at, Code::UnknownSecret.says(message));
        return None;
    };
    // The password of the relay can be granted to nobody.
    if let Who::Workspace(workspace) = who
        && !allowed(rule)
        && rule.place != Some(SecretPlace::Mail)
    {
        let message = format!(
            "the secret {name} is not granted to {workspace}: the operator adds `workspaces: [{workspace}]` to \
             `secrets.{name}` in switchbell.yaml"
        );
        report.mistake(at, Code::NotGranted.says(message));
        return None;
    }
    match &rule.place {
        Some(place) if Use::of(place) != way => {
            report.mistake(at, Code::MisplacedSecret.says(unfit(name, place, way)));
            None
        }
        _ => Some((name, rule)),
    }
}

fn unfit(name: &Name, place: &SecretPlace, way: Use) -> String {
    let remedy = match way {
        Use::Settings => "name one for a place in a request, such as `in: url`",
        Use::Connector => "name one with `in: connector`",
        Use::Mail => "name one with `in: mail`",
    };
    format!("the secret {name} is for {} (`in: {place}`), not for {}: {remedy}", Use::of(place).words(), way.words())
}
