//! Whether the plugins take the settings of their targets, and whether the grants allow what the settings name.

use serde_json::Value;
use url::Url;

use crate::config::{Config, Place, Problem, Route, SecretPlace, Target, Workspace};
use crate::send::effect::secret::stand_in;
use crate::wasm::{self, Catalog, CheckError, Destination, Manifest, Plugin};

/// A target where it stands in the configuration.
pub(super) struct Placed<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) route: &'a Route,
    pub(super) target: &'a Target,
    /// The path of its settings in the file.
    path: String,
}

/// A target and what its plugin says of its settings.
pub(super) struct Checked<'a> {
    pub(super) placed: Placed<'a>,
    pub(super) said: Said,
}

pub(super) enum Said {
    NotLoaded,
    Refuses(Vec<Problem>),
    /// With what the manifest says of memory and agents.
    Takes {
        destination: Destination,
        needs_memory: bool,
        agent: bool,
    },
}

/// What the loaded plugins say of the settings of their targets, with the places in the files. A plugin that is not
/// loaded says nothing.
pub async fn settings_mistakes(config: &Config, catalog: &Catalog) -> Vec<Problem> {
    problems(checked(config, catalog).await)
}

/// Has every target's settings checked by its plugin.
pub(super) async fn checked<'a>(config: &'a Config, catalog: &Catalog) -> Vec<Checked<'a>> {
    let mut all = Vec::new();
    for placed in placed(config) {
        let said = match catalog.get(&placed.target.plugin) {
            Some(plugin) => said(&placed, &plugin).await,
            None => Said::NotLoaded,
        };
        all.push(Checked { placed, said });
    }
    all
}

pub(super) fn problems(checked: Vec<Checked<'_>>) -> Vec<Problem> {
    let of_one = |checked: Checked<'_>| if let Said::Refuses(problems) = checked.said { problems } else { Vec::new() };
    checked.into_iter().flat_map(of_one).collect()
}

/// Webhooks and other URLs kept as secrets that no grant of the target's plugin covers: each delivery would be refused.
pub fn ungranted_urls(config: &Config) -> Vec<Problem> {
    let mut found = Vec::new();
    for placed in placed(config) {
        let Placed { workspace, target, .. } = placed;
        let grants = config.plugins.grants.get(&target.plugin).map(|grant| grant.http.as_slice()).unwrap_or_default();
        let mut secrets = Vec::new();
        secrets_in(&target.settings, String::new(), &mut secrets);
        for (pointer, name) in secrets {
            let Some(secret) = config.secrets.get(name.as_str()) else { continue };
            let Ok(url) = Url::parse(secret.fixed().unwrap_or_default()) else { continue };
            let granted = grants.iter().any(|grant| grant.covers(&url, &workspace.name));
            if secret.place == SecretPlace::Url && !granted {
                let plugin = &target.plugin;
                let message = format!(
                    "plugin {plugin} is not granted the host of secret {name}, so that every delivery will be refused: \
                     add the host in switchbell.yaml under plugins.grants.{plugin}.http"
                );
                found.push(problem(&placed, &pointer, message));
            }
        }
    }
    found
}

/// Every target there is.
pub(super) fn placed(config: &Config) -> impl Iterator<Item = Placed<'_>> {
    config.workspaces.values().flat_map(|workspace| {
        workspace.routes.iter().enumerate().flat_map(move |(index, route)| {
            let path = move |number| format!("routes[{index}].deliver[{number}].with");
            let targets = route.deliver.iter().enumerate();
            targets.map(move |(number, target)| Placed { workspace, route, target, path: path(number) })
        })
    })
}

/// The names in `{"secret": NAME}` with their pointers.
fn secrets_in(value: &Value, pointer: String, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => match members.get("secret") {
            Some(Value::String(name)) if members.len() == 1 => found.push((pointer, name.clone())),
            _ => members.iter().for_each(|(key, member)| secrets_in(member, format!("{pointer}/{key}"), found)),
        },
        Value::Array(items) => {
            let numbered = items.iter().enumerate();
            numbered.for_each(|(number, item)| secrets_in(item, format!("{pointer}/{number}"), found));
        }
        _ => {}
    }
}

async fn said(placed: &Placed<'_>, plugin: &Plugin) -> Said {
    match plugin.check(stand_in(&placed.target.settings)).await {
        Ok(destination) => {
            let Manifest { needs_memory, agent, .. } = *plugin.manifest();
            Said::Takes { destination, needs_memory, agent }
        }
        Err(CheckError::Problems(problems)) => {
            let with_place = |found: wasm::Problem| problem(placed, &found.path, found.message);
            Said::Refuses(problems.into_iter().map(with_place).collect())
        }
        Err(CheckError::Fault(fault)) => {
            let message = format!("plugin {} could not check these settings: {fault}", placed.target.plugin);
            Said::Refuses(vec![problem(placed, "", message)])
        }
    }
}

fn problem(placed: &Placed<'_>, pointer: &str, message: String) -> Problem {
    Problem {
        file: placed.workspace.file.clone(),
        place: place(placed.target, pointer),
        path: format!("{}{}", placed.path, pointer.replace('/', ".")),
        message,
        source_line: None,
    }
}

/// Where a value of the settings stands, or the nearest one around it that does.
fn place(target: &Target, pointer: &str) -> Option<Place> {
    let mut pointer = pointer;
    loop {
        if let Some(place) = target.places.get(pointer) {
            return Some(*place);
        }
        pointer = pointer.rsplit_once('/')?.0;
    }
}
