//! What the operator declares and nobody uses.

use std::collections::BTreeSet;

use super::code::Code;
use super::node::{At, Entry, Kind, Node};
use super::source::Report;

/// What the operator's file declares, with the place of each name, and what is used so far.
#[derive(Debug, Default)]
pub(super) struct Declared {
    names: Vec<(What, String, At)>,
    used: BTreeSet<(What, String)>,
}

/// A kind of thing that is declared once and used by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Secret,
    Command,
    Entry,
    Grant,
}

impl What {
    /// What is asked for under a key, wherever it stands.
    fn asked_by(key: &str) -> Option<Self> {
        match key {
            "secret" => Some(Self::Secret),
            "command" => Some(Self::Command),
            "catalog" => Some(Self::Entry),
            "plugin" => Some(Self::Grant),
            _ => None,
        }
    }

    fn says(self, name: &str) -> (Code, String) {
        match self {
            Self::Secret => (
                Code::UnusedSecret,
                format!(
                    "no target, connector or catalog entry uses the secret {name}: remove it, or ask for it by `{{ secret: {name} }}`"
                ),
            ),
            Self::Command => (
                Code::UnusedCommand,
                format!("no connector starts the command {name}: remove it, or write `command: {name}` in a connector"),
            ),
            Self::Entry => (
                Code::UnusedEntry,
                format!(
                    "no connector uses the catalog entry {name}: remove it, or write `catalog: {name}` in a connector"
                ),
            ),
            Self::Grant => (
                Code::UnusedGrant,
                format!(
                    "no route delivers by the plugin {name}: remove the grant, or write `plugin: {name}` in a target"
                ),
            ),
        }
    }
}

impl Declared {
    /// What the operator's file declares, and what it uses itself.
    pub(super) fn of(root: &Node) -> Self {
        let mut declared = Self::default();
        for entry in entries(root) {
            let what = match entry.key.as_str() {
                "secrets" => What::Secret,
                "commands" => What::Command,
                "catalog" => What::Entry,
                "plugins" => {
                    let grants = entries(&entry.value).iter().find(|entry| entry.key == "grants");
                    declared.declare(What::Grant, grants.map(|grants| &grants.value));
                    continue;
                }
                "mail" => {
                    declared.uses(&entry.value);
                    continue;
                }
                _ => continue,
            };
            declared.declare(what, Some(&entry.value));
            if what == What::Entry {
                declared.uses(&entry.value);
            }
        }
        declared
    }

    fn declare(&mut self, what: What, node: Option<&Node>) {
        let names = node.map_or(&[][..], entries).iter();
        self.names.extend(names.map(|entry| (what, entry.key.clone(), entry.key_at.clone())));
    }

    /// Notes whatever is asked for by its name, wherever it stands: what is taken for a use and is none costs a warning.
    pub(super) fn uses(&mut self, node: &Node) {
        match &node.kind {
            Kind::List(items) => items.iter().for_each(|item| self.uses(item)),
            Kind::Mapping(entries) => {
                for Entry { key, value, .. } in entries {
                    if let (Some(what), Kind::Scalar(scalar)) = (What::asked_by(key), &value.kind) {
                        self.used.insert((what, scalar.text.clone()));
                    }
                    self.uses(value);
                }
            }
            Kind::Scalar(_) | Kind::Reported => {}
        }
    }

    /// Warns of what nobody uses. A grant for a plugin that is not there was told already.
    pub(super) fn warn(&self, is_plugin_there: impl Fn(&str) -> bool, report: &mut Report) {
        for (what, name, at) in &self.names {
            let is_told = *what == What::Grant && !is_plugin_there(name);
            if !is_told && !self.used.contains(&(*what, name.clone())) {
                let (code, text) = what.says(name);
                report.warning(at, code.says(text));
            }
        }
    }
}

fn entries(node: &Node) -> &[Entry] {
    match &node.kind {
        Kind::Mapping(entries) => entries,
        Kind::Scalar(_) | Kind::List(_) | Kind::Reported => &[],
    }
}
