//! What would be sent: made by the code of every attempt, behind a door that only writes down.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use serde_json::value::RawValue;

use super::explained::ConditionJson;
use super::of::{Found, OfJson};
use super::previewed::{AdHocJson, PreviewAskedJson, PreviewJson, PreviewedJson, UnmatchedJson};
use super::{Inquiry, NoAnswer, known_workspace, moment, route};
use crate::config::{Config, Role, Route, Target, Workspace, hint};
use crate::inbox::{DeliveryId, DeliveryView, Recording};
use crate::notification::{HOST_SOURCE, Name};
use crate::route::{Condition, Facts, Matcher, Step, Why};
use crate::send::Current;
use crate::send::explain::{Explainer, Outlook, Question};
use crate::send::preview::{Answers, Previewer, Supposed};
use crate::send::record::{Recorded, answer_from_json};
use crate::serve::shapes::NotificationJson;
use crate::wasm::Answer;

/// The name of the route of a plugin with settings that are in no file, as the plugin is told it.
const AD_HOC: &str = "preview";

/// What the effects are answered.
struct Given {
    answers: Answers,
    /// Whose answers they are, where they are recorded.
    plugin: Option<Name>,
}

/// What all targets of a preview share.
struct Basis<'a> {
    explainer: Explainer<'a>,
    question: Question<'a>,
    found: &'a Found,
    given: &'a Given,
    /// When the attempts are made.
    at: Timestamp,
}

impl Inquiry {
    /// Shows what would be sent.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn preview(&self, workspace: &str, asked: &PreviewAskedJson) -> Result<PreviewedJson, NoAnswer> {
        let current = self.current();
        let workspace = known_workspace(&current.config, workspace)?;
        let (now, moment) = (self.clock.now(), moment(asked.at.as_deref())?);
        let at = moment.unwrap_or(now);
        let only = route(workspace, asked.route.as_deref())?;
        let of = sample_unless_said(&asked.of, asked.ad_hoc.as_ref(), workspace, at)?;
        let found = self.find(workspace, &of, at).await?;
        let given = self.given(asked, &current, workspace).await?;
        let not_loaded = self.not_loaded().await;
        let (notification, stored) = (&found.notification, found.stored.as_ref());
        let acknowledged = found.marks.acknowledged_by();
        let question =
            Question { workspace, notification, acknowledged, stored, now, at: moment, only: None, all: false };
        let explainer = self.explainer(&current, &not_loaded);
        let consumers = if asked.ad_hoc.is_some() { Vec::new() } else { question.consumers() };
        let basis = Basis { explainer, question, found: &found, given: &given, at };
        let (targets, unmatched) = match &asked.ad_hoc {
            Some(ad_hoc) => {
                let route = ad_hoc_route(ad_hoc, &current.config, workspace)?;
                let target = route.deliver.first().ok_or_else(|| NoAnswer::Wrong("there is no target".to_owned()))?;
                let mut shown = PreviewJson::of(None, target);
                basis.make(&mut shown, (&route, target)).await;
                (vec![shown], Vec::new())
            }
            None => basis.of_routes(only.as_ref()).await?,
        };
        let notification = NotificationJson::from(&(found.notification.clone(), found.marks.clone()));
        let consumers = consumers.iter().map(Name::to_string).collect();
        Ok(PreviewedJson { notification, at: at.to_string(), consumers, targets, unmatched })
    }

    async fn given(
        &self,
        asked: &PreviewAskedJson,
        current: &Current,
        workspace: &Workspace,
    ) -> Result<Given, NoAnswer> {
        match (&asked.answers, &asked.recorded) {
            (None, None) => Ok(Given { answers: Answers::Success, plugin: None }),
            (Some(list), None) => {
                let answer = |(number, answer): (usize, &RawValue)| {
                    let wrong = |error| NoAnswer::Wrong(format!("answer {number}: {error}"));
                    answer_from_json(answer.get()).map_err(wrong)
                };
                let answers = (1..).zip(list.iter().map(AsRef::as_ref)).map(answer).collect::<Result<_, _>>()?;
                Ok(Given { answers: Answers::These(answers), plugin: None })
            }
            (None, Some(id)) => self.recorded(id, current, workspace).await,
            (Some(_), Some(_)) => Err(NoAnswer::Wrong("name `answers` or `recorded`, not both".to_owned())),
        }
    }

    /// What the effects of a recorded attempt were answered, the last attempt of that delivery that is recorded.
    async fn recorded(&self, id: &str, current: &Current, workspace: &Workspace) -> Result<Given, NoAnswer> {
        let wrong = |why: &dyn std::fmt::Display| NoAnswer::Wrong(format!("{id:?}: {why}"));
        let id: DeliveryId = id.parse().map_err(|error| wrong(&error))?;
        let mut found: Vec<Recording> = Vec::new();
        if let Some(inbox) = &self.inbox {
            for plugin in current.catalog.names() {
                let all = inbox.recordings(plugin).await?.into_iter().rev();
                found.extend(all.filter(|one| one.delivery == id && one.workspace == workspace.name));
            }
        }
        let Some(last) = found.iter().max_by_key(|one| one.attempt).cloned() else {
            let why = "no attempt of it is recorded: few of each plugin are, the newest and those of each outcome";
            return Err(NoAnswer::Nothing(format!("delivery {id}: {why}")));
        };
        let mut answers = Vec::new();
        for leg in found.iter().filter(|one| one.attempt == last.attempt) {
            let recorded = Recorded::from_json(&leg.content).map_err(|error| wrong(&error))?;
            let effects = recorded.effects.into_iter();
            let effects = effects.filter(|effect| !matches!(effect.answer, Answer::Resumed(_)));
            answers.extend(effects.map(|effect| effect.answer));
        }
        Ok(Given { answers: Answers::These(answers), plugin: Some(last.plugin) })
    }
}

impl Basis<'_> {
    /// Each target of the routes that match, and the routes that do not.
    async fn of_routes(&self, only: Option<&Name>) -> Result<(Vec<PreviewJson>, Vec<UnmatchedJson>), NoAnswer> {
        let workspace = self.question.workspace;
        let facts = facts(self.found);
        let decisions = workspace.router.select(&facts);
        let (mut targets, mut unmatched) = (Vec::new(), Vec::new());
        for (index, (route, decision)) in workspace.routes.iter().zip(decisions).enumerate() {
            if only.is_some_and(|only| *only != route.name) {
                continue;
            }
            if !decision.matches() {
                let unmet = workspace.router.explain(index, &facts).into_iter().find(|condition| !condition.holds);
                if only.is_some() {
                    return Err(does_not_match(route, unmet.as_ref()));
                }
                let unmet = unmet.as_ref().map(ConditionJson::from);
                unmatched.push(UnmatchedJson { route: route.name.to_string(), unmet });
                continue;
            }
            for target in &route.deliver {
                let mut shown = PreviewJson::of(Some(route), target);
                let outlook = self.explainer.outlook(self.question, (route, target)).await?;
                let zone = target.timing.hold.as_ref().map(|hold| &hold.zone);
                shown.when = Some(when(&outlook, target));
                shown.forecast = Some(super::ForecastJson::new(&outlook, zone));
                self.make(&mut shown, (route, target)).await;
                targets.push(shown);
            }
        }
        Ok((targets, unmatched))
    }

    /// Makes the attempt, or says why not.
    async fn make(&self, shown: &mut PreviewJson, (route, target): (&Route, &Target)) {
        let Explainer { current, effects, keys, not_loaded, .. } = self.explainer;
        let previewer = Previewer { config: &current.config, catalog: &current.catalog, effects, keys };
        let name = &target.plugin;
        let Some(plugin) = current.catalog.get(name) else {
            let why = not_loaded.get(name).cloned();
            let why = why.unwrap_or_else(|| format!("there is no {name}.wasm in plugins.directory"));
            shown.not_made = Some(format!("plugin {name} is not loaded: {why}"));
            return;
        };
        shown.plugin_version = Some(plugin.manifest().version.clone());
        shown.plugin_digest = Some(plugin.digest().to_owned());
        if let Some(why) = previewer.settings_refused(target).await {
            shown.not_made = Some(format!("plugin {name} refuses its settings: {why}"));
            return;
        }
        if let Some(other) = self.given.plugin.as_ref().filter(|other| *other != name) {
            shown.not_made = Some(format!("the recorded answers are those of plugin {other}"));
            return;
        }
        let owed = self.owed(route, target);
        let (id, due_at) = owed.map_or_else(|| (no_id(), self.at), |owed| (owed.id.clone(), owed.due_at));
        let (notification, answers, now) = (self.found.notification.clone(), self.given.answers.clone(), self.at);
        shown.show(previewer.preview(Supposed { route, target, notification, id, due_at, now, answers }).await);
    }

    /// The delivery that the target was owed by the match; others are repeats.
    fn owed(&self, route: &Route, target: &Target) -> Option<&DeliveryView> {
        let stored = self.found.stored.as_ref()?;
        stored.deliveries.iter().find(|owed| owed.route == route.name && owed.target == target.id)
    }
}

fn facts(found: &Found) -> Facts<'_> {
    let notification = &found.notification;
    Facts {
        source: &notification.source,
        name: &notification.event.name,
        effective_level: notification.effective_level,
        subject: notification.event.subject.as_deref(),
    }
}

/// Why nothing can be shown of the one route that is asked for.
fn does_not_match(route: &Route, unmet: Option<&Condition>) -> NoAnswer {
    let why =
        unmet.map_or_else(String::new, |unmet| format!(": it asks for {}, and this has {}", unmet.asked, unmet.found));
    NoAnswer::Nothing(format!("route {} does not match{why}", route.name))
}

/// The id of a delivery that there is none of.
fn no_id() -> DeliveryId {
    DeliveryId { store: Arc::from("00000000"), number: 0 }
}

/// When the target would hear of it, in words.
fn when(outlook: &Outlook, target: &Target) -> String {
    let forecast = &outlook.forecast;
    let Some(at) = outlook.goes_at() else {
        let is_needless = forecast.moves.last().is_some_and(|last| last.step == Step::Suppress);
        return if is_needless { "never: it is acknowledged".to_owned() } else { "not foreseen".to_owned() };
    };
    let kept = forecast.moves.iter().rev().find(|one| !matches!(one.step, Step::Go));
    let how = match kept.map(|one| &one.step) {
        None => return "at once".to_owned(),
        Some(Step::Gather { why: Why::Hold, .. }) => ", when its quiet hours end",
        Some(Step::Gather { .. }) => ", with what comes until then in one message",
        Some(_) => "",
    };
    let unless = if target.timing.unless.is_some() { ", unless it is acknowledged before" } else { "" };
    format!("at {at}{how}{unless}")
}

/// An ordinary event, where a plugin with settings is asked about and no event is said.
fn sample_unless_said(
    of: &OfJson,
    ad_hoc: Option<&AdHocJson>,
    workspace: &Workspace,
    at: Timestamp,
) -> Result<OfJson, NoAnswer> {
    if ad_hoc.is_none() || of.seq.is_some() || of.event.is_some() || of.source.is_some() {
        return Ok(of.clone());
    }
    let event = serde_json::json!({
        "eventId": "preview",
        "name": "preview.example",
        "timestamp": at.to_string(),
        "data": {},
        "_meta": { "ai.nimblebrain/notification": {
            "title": "A notification made up to see what would be sent",
            "subject": "example",
            "level": "attention",
        } },
    });
    let event = RawValue::from_string(event.to_string()).map_err(|error| NoAnswer::Wrong(error.to_string()))?;
    let source = workspace.connectors.keys().next().map_or(HOST_SOURCE, Name::as_str);
    Ok(OfJson { seq: None, event: Some(event), source: Some(source.to_owned()) })
}

/// A route that delivers by a plugin with these settings and is in no file.
fn ad_hoc_route(ad_hoc: &AdHocJson, config: &Config, workspace: &Workspace) -> Result<Route, NoAnswer> {
    let plugin: Name = ad_hoc.plugin.parse().map_err(|error| NoAnswer::Wrong(format!("--plugin: {error}")))?;
    if !ad_hoc.settings.is_object() {
        return Err(NoAnswer::Wrong("--with: settings are a JSON object, as under `with` of a target".to_owned()));
    }
    secrets_are_granted(&ad_hoc.settings, config, workspace)?;
    let is_admin = |(_, role): &(&String, &Role)| **role == Role::Admin;
    let owner = workspace.members.iter().find(is_admin).map_or_else(|| AD_HOC.to_owned(), |(name, _)| name.clone());
    let name = AD_HOC.parse().map_err(|_| NoAnswer::Wrong(AD_HOC.to_owned()))?;
    let target = Target::plain(AD_HOC.to_owned(), plugin, ad_hoc.settings.clone());
    Ok(Route { name, owner, when: Matcher::default(), deliver: vec![target] })
}

/// Whether the workspace may use every secret that the settings name.
fn secrets_are_granted(settings: &Value, config: &Config, workspace: &Workspace) -> Result<(), NoAnswer> {
    match settings {
        Value::Object(members) => match members.get("secret") {
            Some(Value::String(name)) if members.len() == 1 => {
                let all = config.secrets.iter().filter(|(_, secret)| secret.workspaces.contains(&workspace.name));
                let granted: Vec<&str> = all.map(|(name, _)| name.as_str()).collect();
                if granted.contains(&name.as_str()) {
                    return Ok(());
                }
                let known = hint(name, granted, "there are");
                let workspace = &workspace.name;
                Err(NoAnswer::Unknown(format!("--with: {workspace} has no secret {name:?}{known}")))
            }
            _ => members.values().try_for_each(|member| secrets_are_granted(member, config, workspace)),
        },
        Value::Array(items) => items.iter().try_for_each(|item| secrets_are_granted(item, config, workspace)),
        _ => Ok(()),
    }
}
