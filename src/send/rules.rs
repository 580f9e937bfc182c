//! The book: what the store and the dispatcher know of every target, from the configuration and what the plugins say.

use std::collections::HashMap;
use std::time::Duration;

use super::effect::secret::lane_key;
use super::keys::Keys;
use super::live::Current;
use super::settings::{Checked, Placed, Said, checked, placed, problems, secret_names};
use crate::config::{Config, Problem, Secret, Target, Workspace};
use crate::inbox::book::{Book, LaneKey, LaneRule, QueueKey, Rule};
use crate::notification::Name;
use crate::route::timing::{AtMost, Except, Timing};
use crate::wasm::{Catalog, Destination, Lane, Plugin};

/// Deliveries in [`AGENT_PER`] to a target whose plugin starts agents, unless the target says otherwise. What an agent
/// writes back may match the route that started it: without a limit, that chain would never end.
pub const AGENT_COUNT_MAX: u32 = 12;

/// The time that [`AGENT_COUNT_MAX`] is for.
pub const AGENT_PER: Duration = Duration::from_secs(3_600);

/// Every target there is, and the mistakes that plugins find in settings. Each plugin is asked once about each of its
/// targets.
pub async fn book(config: &Config, catalog: &Catalog, keys: &Keys) -> (Book, Vec<Problem>) {
    let checked = checked(placed(config), catalog).await;
    let rules: Vec<Rule> = checked.iter().map(|checked| rule(checked, config, catalog, keys)).collect();
    (Book::new(rules).of_workspaces(config.workspaces.keys()), problems(checked))
}

/// A book whose targets of one plugin are asked about anew, because it is another than before; the others stay as they
/// are. None for the book where nothing changes.
pub(super) async fn rebook(
    current: &Current,
    catalog: &Catalog,
    plugin: &Name,
    keys: &Keys,
) -> (Option<Book>, Vec<Problem>) {
    let Current { config, book, .. } = current;
    let of_plugin = placed(config).filter(|placed| placed.target.plugin == *plugin);
    let checked = checked(of_plugin, catalog).await;
    let anew: Vec<Rule> = checked.iter().map(|checked| rule(checked, config, catalog, keys)).collect();
    let is_same = |rule: &Rule| book.get(&rule.queue).is_some_and(|known| **known == *rule);
    let problems = problems(checked);
    if anew.iter().all(is_same) {
        return (None, problems);
    }
    let others = book.rules().filter(|rule| rule.plugin != *plugin).map(|rule| Rule::clone(rule));
    (Some(Book::new(others.chain(anew)).of_workspaces(config.workspaces.keys())), problems)
}

/// The book of another configuration. Only targets of which something is another than before are asked about: their
/// settings, the secrets in these, or the version of their plugin.
pub(super) async fn renew(before: &Current, config: &Config, catalog: &Catalog, keys: &Keys) -> (Book, Vec<Problem>) {
    let known: HashMap<QueueKey, &Target> =
        placed(&before.config).map(|placed| (queue_of(&placed), placed.target)).collect();
    let runs_on = |catalog: &Catalog, plugin: &Name| catalog.get(plugin).map(|plugin| plugin.digest().to_owned());
    let (mut rules, mut anew) = (Vec::new(), Vec::new());
    for placed in placed(config) {
        let (queue, plugin) = (queue_of(&placed), &placed.target.plugin);
        let is_same = known.get(&queue).is_some_and(|target| target.is_same(placed.target))
            && runs_on(&before.catalog, plugin) == runs_on(catalog, plugin)
            && has_same_secrets(placed.target, &before.config, config);
        // What refused its settings is told again.
        match before.book.get(&queue).filter(|rule| is_same && rule.blocked.is_none()) {
            Some(rule) => rules.push(Rule::clone(rule)),
            None => anew.push(placed),
        }
    }
    let checked = checked(anew.into_iter(), catalog).await;
    rules.extend(checked.iter().map(|checked| rule(checked, config, catalog, keys)));
    (Book::new(rules).of_workspaces(config.workspaces.keys()), problems(checked))
}

fn queue_of(placed: &Placed<'_>) -> QueueKey {
    let (workspace, route) = (placed.workspace.name.clone(), placed.route.name.clone());
    QueueKey { workspace, route, target: placed.target.id.as_str().into() }
}

/// Whether the secrets that a target's settings name are worth the same: lanes are kept apart by them.
fn has_same_secrets(target: &Target, before: &Config, after: &Config) -> bool {
    secret_names(&target.settings).iter().all(|name| before.secrets.get(&**name) == after.secrets.get(&**name))
}

/// Every target with its timing only, for commands that work on a store without a server: no lanes, and nothing is
/// blocked.
pub fn book_without_plugins(config: &Config) -> Book {
    let rules = placed(config).map(|placed| plain(placed.workspace, &placed.route.name, placed.target));
    Book::new(rules).of_workspaces(config.workspaces.keys())
}

fn plain(workspace: &Workspace, route: &Name, target: &Target) -> Rule {
    let (workspace, route) = (workspace.name.clone(), route.clone());
    Rule {
        queue: QueueKey { workspace, route, target: target.id.as_str().into() },
        plugin: target.plugin.clone(),
        timing: target.timing.clone(),
        blocked: None,
        is_strict: target.is_strict,
        goes_on: Vec::new(),
        by_subject: false,
        lanes: Vec::new(),
    }
}

fn rule(checked: &Checked<'_>, config: &Config, catalog: &Catalog, keys: &Keys) -> Rule {
    let placed = &checked.placed;
    let plain = plain(placed.workspace, &placed.route.name, placed.target);
    let plugin = &placed.target.plugin;
    let goes_on = || {
        let earlier = catalog.earlier().filter(|earlier| earlier.manifest().name == *plugin).map(Plugin::digest);
        earlier.filter(|digest| !catalog.is_quarantined(plugin, digest)).map(str::to_owned).collect()
    };
    match &checked.said {
        Said::NotLoaded => {
            Rule { blocked: Some(format!("plugin {plugin} is not loaded")), goes_on: goes_on(), ..plain }
        }
        Said::Refuses(problems) => {
            let first = problems.first().map_or("it does not say why", |problem| problem.message.as_str());
            let blocked = Some(format!("plugin {plugin} refuses its settings: {first}"));
            Rule { blocked, goes_on: goes_on(), ..plain }
        }
        Said::Takes { destination, needs_memory, agent } => {
            let lane = |lane: &Lane| lane_rule(lane, &plain.queue.workspace, plugin, &config.secrets, keys);
            let mut lanes: Vec<LaneRule> = destination.lanes.iter().map(lane).collect();
            lanes.sort_by(|one, other| one.lane.cmp(&other.lane));
            // A key that is named twice is one lane; the first says what it allows.
            lanes.dedup_by(|later, first| later.lane == first.lane);
            let timing = if *agent { for_agents(&plain.timing) } else { plain.timing.clone() };
            Rule { timing, by_subject: *needs_memory && remembers(destination), lanes, ..plain }
        }
    }
}

/// Whether the target may remember something: a plugin that needs memory for some targets says `memory: false` of others,
/// so that what they are owed about one subject need not be made one after the other.
fn remembers(destination: &Destination) -> bool {
    let extras: serde_json::Value = serde_json::from_str(&destination.extras).unwrap_or_default();
    extras.get("memory").and_then(serde_json::Value::as_bool).unwrap_or(true)
}

fn for_agents(timing: &Timing) -> Timing {
    let default = AtMost { count: AGENT_COUNT_MAX, per: AGENT_PER, except: Except::Nothing };
    Timing { at_most: timing.at_most.clone().or(Some(default)), ..timing.clone() }
}

fn lane_rule(
    lane: &Lane,
    workspace: &Name,
    plugin: &Name,
    secrets: &std::collections::BTreeMap<Name, Secret>,
    keys: &Keys,
) -> LaneRule {
    let key = lane_key(&lane.key, secrets, keys).into();
    LaneRule {
        lane: LaneKey { workspace: workspace.clone(), plugin: plugin.clone(), key },
        count: lane.count,
        per_seconds: lane.per_seconds,
        in_flight: lane.in_flight,
        is_ordered: lane.ordered,
    }
}

#[cfg(test)]
mod tests {
    use super::{Destination, remembers};

    #[test]
    fn a_target_remembers_unless_its_plugin_says_that_it_does_not() {
        let cases = [
            ("{}", true),
            (r#"{"memory":false}"#, false),
            (r#"{"memory":true}"#, true),
            (r#"{"memory":"no"}"#, true),
            (r#"{"later":1}"#, true),
            ("", true),
        ];
        for (extras, expected) in cases {
            let destination = Destination { label: String::new(), lanes: Vec::new(), extras: extras.to_owned() };
            assert_eq!(remembers(&destination), expected, "{extras}");
        }
    }
}
