//! Whether the plugins take the settings of their targets, and whether the grants allow what the settings name.

use serde_json::Value;
use url::Url;

use crate::config::{Config, Place, Problem, SecretPlace, Target, Workspace};
use crate::send::effect::secret::stand_in;
use crate::wasm::{Catalog, CheckError, Plugin};

/// What the loaded plugins say of the settings of their targets, with the places in the files. A plugin that is not
/// loaded says nothing.
pub async fn settings_mistakes(config: &Config, catalog: &Catalog) -> Vec<Problem> {
    let mut mistakes = Vec::new();
    for (workspace, target, path) in targets(config) {
        if let Some(plugin) = catalog.get(&target.plugin) {
            mistakes.extend(mistakes_of(workspace, target, &path, &plugin).await);
        }
    }
    mistakes
}

/// Webhooks and other URLs kept as secrets that no grant of the target's plugin covers: each delivery would be refused.
pub fn ungranted_urls(config: &Config) -> Vec<Problem> {
    let mut found = Vec::new();
    for (workspace, target, path) in targets(config) {
        let grants = config.plugins.grants.get(&target.plugin).map(|grant| grant.http.as_slice()).unwrap_or_default();
        let mut secrets = Vec::new();
        secrets_in(&target.settings, String::new(), &mut secrets);
        for (pointer, name) in secrets {
            let Some(secret) = config.secrets.get(name.as_str()) else { continue };
            let Ok(url) = Url::parse(&secret.value) else { continue };
            let granted = grants.iter().any(|grant| grant.covers(&url, &workspace.name));
            if secret.place == SecretPlace::Url && !granted {
                let plugin = &target.plugin;
                let message = format!(
                    "plugin {plugin} is not granted the host of secret {name}, so that every delivery will be refused: \
                     add the host in switchbell.yaml under plugins.grants.{plugin}.http"
                );
                found.push(problem(workspace, target, &path, &pointer, message));
            }
        }
    }
    found
}

/// Every target with its workspace and the path of its settings in the file.
fn targets(config: &Config) -> impl Iterator<Item = (&Workspace, &Target, String)> {
    config.workspaces.values().flat_map(|workspace| {
        workspace.routes.iter().enumerate().flat_map(move |(route, with)| {
            let path = move |number| format!("routes[{route}].deliver[{number}].with");
            with.deliver.iter().enumerate().map(move |(number, target)| (workspace, target, path(number)))
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

async fn mistakes_of(workspace: &Workspace, target: &Target, path: &str, plugin: &Plugin) -> Vec<Problem> {
    let mistake = |pointer: &str, message| problem(workspace, target, path, pointer, message);
    match plugin.check(stand_in(&target.settings)).await {
        Ok(_) => Vec::new(),
        Err(CheckError::Problems(problems)) => {
            problems.into_iter().map(|problem| mistake(&problem.path, problem.message)).collect()
        }
        Err(CheckError::Fault(fault)) => {
            vec![mistake("", format!("plugin {} could not check these settings: {fault}", target.plugin))]
        }
    }
}

fn problem(workspace: &Workspace, target: &Target, path: &str, pointer: &str, message: String) -> Problem {
    Problem {
        file: workspace.file.clone(),
        place: place(target, pointer),
        path: format!("{path}{}", pointer.replace('/', ".")),
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
