//! Whether the plugins take the settings of their targets.

use crate::config::{Config, Place, Problem, Target, Workspace};
use crate::send::effect::secret::stand_in;
use crate::wasm::{Catalog, CheckError, Plugin};

/// What the loaded plugins say of the settings of their targets, with the places in the files. A plugin that is not
/// loaded says nothing.
pub async fn settings_mistakes(config: &Config, catalog: &Catalog) -> Vec<Problem> {
    let mut mistakes = Vec::new();
    for workspace in config.workspaces.values() {
        for (route, targets) in workspace.routes.iter().map(|route| &route.deliver).enumerate() {
            for (number, target) in targets.iter().enumerate() {
                if let Some(plugin) = catalog.get(&target.plugin) {
                    let path = format!("routes[{route}].deliver[{number}].with");
                    mistakes.extend(mistakes_of(workspace, target, &path, &plugin).await);
                }
            }
        }
    }
    mistakes
}

async fn mistakes_of(workspace: &Workspace, target: &Target, path: &str, plugin: &Plugin) -> Vec<Problem> {
    let mistake = |pointer: &str, message: String| Problem {
        file: workspace.file.clone(),
        place: place(target, pointer),
        path: format!("{path}{}", pointer.replace('/', ".")),
        message,
        source_line: None,
    };
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
