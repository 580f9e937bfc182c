//! Whether the plugins take the settings of their targets, and whether the grants allow what the settings name.

use serde_json::Value;
use url::Url;

use crate::config::{
    Code, Config, HostPattern, HttpGrant, MailRelay, Place, Problem, Route, Secret, SecretPlace, Target, Workspace,
};
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

impl<'a> Placed<'a> {
    /// A target of a route of a workspace.
    pub(super) fn new(workspace: &'a Workspace, route: &'a Route, target: &'a Target) -> Self {
        let index = workspace.routes.iter().position(|other| other.name == route.name).unwrap_or_default();
        let number = route.deliver.iter().position(|other| other.id == target.id).unwrap_or_default();
        Self { workspace, route, target, path: path(index, number) }
    }
}

/// The path of the settings of a route's target in its file.
fn path(route: usize, target: usize) -> String {
    format!("routes[{route}].deliver[{target}].with")
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
    problems(checked(placed(config), catalog).await)
}

/// Has the settings of targets checked by their plugins.
pub(super) async fn checked<'a>(targets: impl Iterator<Item = Placed<'a>>, catalog: &Catalog) -> Vec<Checked<'a>> {
    let mut all = Vec::new();
    for placed in targets {
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

/// What the grants do not allow though a target's settings ask for it, so that each delivery would be refused: hosts of
/// secrets that no grant of the plugin covers, and mail. A plugin that is not loaded says nothing of mail.
pub fn ungranted(config: &Config, catalog: &Catalog) -> Vec<Problem> {
    placed(config).flat_map(|placed| lacking(&placed, config, catalog)).collect()
}

/// The same of one target.
pub(super) fn lacking(placed: &Placed<'_>, config: &Config, catalog: &Catalog) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut secrets = Vec::new();
    secrets_in(&placed.target.settings, String::new(), &mut secrets);
    for (pointer, name) in secrets {
        let Some(secret) = config.secrets.get(name.as_str()) else { continue };
        let plugin = catalog.get(&placed.target.plugin);
        if plugin.is_some_and(|plugin| sends_no_requests(plugin.manifest())) && secret.place != SecretPlace::Sign {
            let message = format!(
                "plugin {} sends no requests, and the place of secret {name} is in one (`in: {}`), so that every delivery \
                 will be refused: write the text itself",
                placed.target.plugin, secret.place
            );
            found.push(problem(Code::MisplacedSecret, placed, &pointer, message));
            continue;
        }
        let message = ungranted_secret(placed, &name, secret, config);
        found.extend(message.map(|message| problem(Code::DeliveryRefused, placed, &pointer, message)));
    }
    let wants_mail = catalog.get(&placed.target.plugin).is_some_and(|plugin| plugin.manifest().wants.mail);
    let message = if wants_mail { ungranted_mail(placed, config) } else { None };
    found.extend(message.map(|message| problem(Code::DeliveryRefused, placed, "", message)));
    found
}

/// Whether a plugin says that it wants something, and no host among it.
fn sends_no_requests(manifest: &Manifest) -> bool {
    let wants = &manifest.wants;
    wants.http.is_empty() && (wants.mail || !wants.tools.is_empty())
}

/// The entries of the plugin's grant that hold for the target's workspace.
fn http_granted<'a>(placed: &Placed<'a>, config: &'a Config) -> impl Iterator<Item = &'a HttpGrant> {
    let workspace = &placed.workspace.name;
    let grant = config.plugins.grants.get(&placed.target.plugin).filter(|grant| grant.allows_in(workspace));
    let entries = grant.map(|grant| grant.http.as_slice()).unwrap_or_default();
    entries.iter().filter(|entry| entry.workspaces.is_empty() || entry.workspaces.contains(workspace))
}

fn ungranted_secret(placed: &Placed<'_>, name: &str, secret: &Secret, config: &Config) -> Option<String> {
    let (plugin, workspace) = (&placed.target.plugin, &placed.workspace.name);
    let remedy = |hosts: &str| {
        let limits = config.plugins.grants.get(plugin).filter(|grant| !grant.allows_in(workspace));
        let limits = if limits.is_some() {
            format!(", and {workspace} under plugins.grants.{plugin}.workspaces")
        } else {
            String::new()
        };
        format!("add {hosts} in switchbell.yaml under plugins.grants.{plugin}.http{limits}")
    };
    if let (SecretPlace::Url, Some(value)) = (&secret.place, secret.fixed()) {
        let url = Url::parse(value).ok()?;
        let is_granted = http_granted(placed, config).any(|grant| grant.covers(&url, workspace));
        return (!is_granted).then(|| {
            format!(
                "plugin {plugin} is not granted the host of secret {name}, so that every delivery will be refused: {}",
                remedy("the host")
            )
        });
    }
    let meets = |grant: &HttpGrant| secret.hosts.iter().any(|pattern| pattern.meets(&grant.host));
    if secret.hosts.is_empty() || http_granted(placed, config).any(meets) {
        return None;
    }
    let hosts = secret.hosts.iter().map(shown).collect::<Vec<_>>().join(", ");
    Some(format!(
        "secret {name} may be sent to {hosts} only, and plugin {plugin} is granted none of these, so that every delivery \
         will be refused: {}",
        remedy("one of them")
    ))
}

/// A pattern as a file writes it.
fn shown(pattern: &HostPattern) -> String {
    match pattern {
        HostPattern::Exact(host) if host.contains(':') => format!("\"[{host}]\""),
        HostPattern::Exact(host) => host.clone(),
        HostPattern::Suffix(suffix) => format!("\"*{suffix}\""),
    }
}

/// That there is no relay for a grant that is there is told where the grant stands.
fn ungranted_mail(placed: &Placed<'_>, config: &Config) -> Option<String> {
    let (plugin, workspace) = (&placed.target.plugin, &placed.workspace.name);
    let grant = config.plugins.grants.get(plugin);
    let mut lacks = Vec::new();
    if !grant.is_some_and(|grant| grant.mail) {
        lacks.push(format!("`plugins: {{ grants: {{ {plugin}: {{ mail: true }} }} }}`"));
        lacks.extend(config.mail.is_none().then(|| format!("`{}` with your relay and addresses", MailRelay::EXAMPLE)));
    }
    if grant.is_some_and(|grant| !grant.allows_in(workspace)) {
        lacks.push(format!("{workspace} to plugins.grants.{plugin}.workspaces"));
    }
    let lacks = lacks.join(", and ");
    let message = || {
        format!(
            "plugin {plugin} sends mail, which it cannot here, so that every delivery will be refused: add to switchbell.yaml {lacks}"
        )
    };
    (!lacks.is_empty()).then(message)
}

/// Every target there is.
pub(super) fn placed(config: &Config) -> impl Iterator<Item = Placed<'_>> {
    config.workspaces.values().flat_map(|workspace| {
        workspace.routes.iter().enumerate().flat_map(move |(index, route)| {
            let targets = route.deliver.iter().enumerate();
            targets.map(move |(number, target)| Placed { workspace, route, target, path: path(index, number) })
        })
    })
}

/// The names in `{"secret": NAME}` of settings.
pub(super) fn secret_names(settings: &Value) -> Vec<String> {
    let mut found = Vec::new();
    secrets_in(settings, String::new(), &mut found);
    found.into_iter().map(|(_, name)| name).collect()
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

pub(super) async fn said(placed: &Placed<'_>, plugin: &Plugin) -> Said {
    match plugin.check(stand_in(&placed.target.settings)).await {
        Ok(destination) => {
            let Manifest { needs_memory, agent, .. } = *plugin.manifest();
            Said::Takes { destination, needs_memory, agent }
        }
        Err(error) => Said::Refuses(refused(placed, error)),
    }
}

/// Why a plugin does not take the settings of a target, with the places in the file.
pub(super) fn refused(placed: &Placed<'_>, error: CheckError) -> Vec<Problem> {
    match error {
        CheckError::Problems(problems) => {
            let with_place = |found: wasm::Problem| problem(Code::BadSettings, placed, &found.path, found.message);
            problems.into_iter().map(with_place).collect()
        }
        CheckError::Fault(fault) => {
            let message = format!("plugin {} could not check these settings: {fault}", placed.target.plugin);
            vec![problem(Code::BadSettings, placed, "", message)]
        }
    }
}

pub(super) fn problem(code: Code, placed: &Placed<'_>, pointer: &str, message: String) -> Problem {
    Problem {
        code,
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

#[cfg(test)]
mod tests;
