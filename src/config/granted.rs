//! What the configuration says of plugins: all that commands about them need to know.

use std::ffi::OsString;
use std::path::Path;

use super::load::{self, Folder};
use super::loaded::PluginFolder;
use super::places::keep;
use super::raw::{RawServer, RawWorkspace};
use super::read::{Placed, Read};
use super::{Plugins, Problems, check, variables};
use crate::notification::Name;

/// The keys of the operator's file that are looked at.
const KEYS: [&str; 2] = ["plugins", "workspaces"];

/// The plugins of a configuration and where they are used.
#[derive(Debug)]
pub struct Granted {
    /// The folder, the grants and the limits.
    pub plugins: Plugins,
    /// The targets of all workspaces, in the order of the files.
    pub used: Vec<Used>,
}

/// A target that a plugin is used by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Used {
    /// The plugin.
    pub plugin: Name,
    /// The workspace.
    pub workspace: Name,
    /// The route.
    pub route: Name,
    /// The target's `id`, where it says one.
    pub target: Option<Name>,
}

/// Reads what the files say of plugins. Nothing else is looked at: the variables and secrets of the rest are there where the
/// server runs. What is wrong with a workspace's file is left to `switchbell check`; what can be read of it counts.
///
/// # Errors
/// What is wrong with the operator's file as such, or with these keys.
pub fn granted(file: &Path, environment: &dyn Fn(&str) -> Option<OsString>) -> Result<Granted, Problems> {
    let mut report = load::read_file(file);
    let folder = Folder::of(file);
    let raw = load::read_tree(&mut report).and_then(|mut root| {
        keep(&mut root, &KEYS);
        variables::expand(&mut root, environment, &mut report);
        RawServer::read(&root, &mut report)
    });
    let Some(raw) = raw.filter(|_| report.mistakes.is_empty()) else {
        return Err(load::problems(vec![report]));
    };
    let plugins =
        check::plugins(raw.plugins, &folder, (PluginFolder::MustBeThere, &mut Vec::new()), &mut report).plugins;
    let at_files = raw.workspaces.and_then(|path| {
        let value = check::path_of(&path.at, &path.value.0, &mut report).map(|path| folder.shown.join(path))?;
        Some(Placed { at: path.at, value })
    });
    let files = load::workspace_files(at_files.as_ref(), &mut report);
    if !report.mistakes.is_empty() {
        return Err(load::problems(vec![report]));
    }
    let used = files.iter().flat_map(|(workspace, file)| used(workspace, file)).collect();
    Ok(Granted { plugins, used })
}

/// The targets of one workspace.
fn used(workspace: &Name, file: &Path) -> Vec<Used> {
    let mut report = load::read_file(file);
    let raw = load::read_tree(&mut report).and_then(|mut root| {
        keep(&mut root, &["routes"]);
        variables::refuse(&mut root, &mut report);
        RawWorkspace::read(&root, &mut report)
    });
    let mut found = Vec::new();
    for route in raw.and_then(|raw| raw.routes).map_or_else(Vec::new, |routes| routes.value) {
        let (Some(name), Some(deliver)) = (&route.value.name, &route.value.deliver) else { continue };
        for target in &deliver.value {
            let Some(plugin) = &target.value.plugin else { continue };
            found.push(Used {
                plugin: plugin.value.clone(),
                workspace: workspace.clone(),
                route: name.value.clone(),
                target: target.value.id.as_ref().map(|id| id.value.clone()),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::GateMode;

    /// A configuration with these two files.
    fn read(operator: &str, workspace: &str) -> Result<Granted, Problems> {
        let folder = tempfile::tempdir().unwrap();
        for name in ["plugins", "workspaces"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        std::fs::write(folder.path().join("workspaces/acme.yaml"), workspace).unwrap();
        let file = folder.path().join("switchbell.yaml");
        std::fs::write(&file, operator).unwrap();
        granted(&file, &|_| None)
    }

    #[test]
    fn only_what_is_said_of_plugins_is_looked_at() {
        let operator = "plugins: { grants: { slack: { http: [slack.com] } }, limits: { memory: 8MiB }, gate: strict }\n\
                        secrets: { a: { env: NOT_SET, in: url } }\nunknown: 1\n";
        let workspace = "members: [no, mapping]\nroutes:\n  - name: news\n    owner: nobody\n    deliver:\n      \
                         - { id: page, plugin: slack, with: { a: 1 } }\n      - { plugin: mail }\n  - name: broken\n";
        let found = read(operator, workspace).unwrap();
        assert_eq!((found.plugins.limits.memory_bytes_max, found.plugins.gate), (8 << 20, GateMode::Strict));
        assert_eq!(found.plugins.grants.keys().map(Name::as_str).collect::<Vec<_>>(), ["slack"]);
        let used = |used: &Used| (used.plugin.to_string(), used.target.as_ref().map(Name::to_string));
        let expected = [("slack".to_owned(), Some("page".to_owned())), ("mail".to_owned(), None)];
        assert_eq!(found.used.iter().map(used).collect::<Vec<_>>(), expected);
        assert!(found.used.iter().all(|used| used.route.as_str() == "news" && used.workspace.as_str() == "acme"));
    }

    #[test]
    fn a_workspace_that_cannot_be_read_uses_nothing() {
        assert_eq!(read("listen: 127.0.0.1:1\n", "routes: [").unwrap().used, []);
    }

    #[test]
    fn what_is_wrong_with_plugins_is_said() {
        for (operator, says) in [
            ("plugins: { directory: nowhere/ }\n", "cannot read the folder"),
            ("plugins: { grants: { slack: { http: [a/b] } } }\n", "a path cannot be granted"),
            ("plugins: { limits: { memory: 1KiB } }\n", "1MiB to 1GiB"),
            ("plugins: { trust: [minisign] }\n", "this is no key"),
            ("- a list\n", "switchbell.yaml"),
        ] {
            let problems = read(operator, "members: {}\n").unwrap_err();
            assert!(problems.to_string().contains(says), "{operator}: {problems}");
        }
    }
}
