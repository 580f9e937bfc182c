//! One target of a route.

use std::sync::Arc;

use jiff::Timestamp;

use super::{Explainer, Outlook, Question, Target, deliveries};
use crate::config;
use crate::inbox::book::{QueueKey, Rule};
use crate::inbox::delivery::State;
use crate::inbox::{DeliveryId, DeliveryView, InboxError, Owed, TargetState};
use crate::route::forecast::{Followed, Place, Scene, Waiting, forecast};
use crate::route::timing::{Timing, bytes_in_digest};
use crate::send::attempt::in_milliseconds;
use crate::send::preview::{Answers, Previewer, Supposed};
use crate::send::refusals::denied;
use crate::send::settings::{Placed, Said, lacking, said};
use crate::send::spare::About;

/// Why what a target is owed besides does not count.
const NO_STORE: &str = "there is no store yet: what else waits for targets is not known";
const IN_THE_PAST: &str = "the moment is past: what waited for targets then is not known";

impl Explainer<'_> {
    pub(super) async fn target(
        &self,
        asked: Question<'_>,
        (route, target): (&config::Route, &config::Target),
        about: Option<&About>,
    ) -> Result<Target, InboxError> {
        let queue = QueueKey {
            workspace: asked.workspace.name.clone(),
            route: route.name.clone(),
            target: target.id.as_str().into(),
        };
        let rule = self.current.book.get(&queue).map(Arc::clone);
        let timing = rule.as_ref().map_or(&target.timing, |rule| &rule.timing);
        let state = self.state(&queue, timing, asked.now).await?;
        let placed = Placed::new(asked.workspace, route, target);
        let plugin = self.current.catalog.get(&target.plugin);
        let (mut destination, mut settings_mistake) = (None, None);
        if let Some(plugin) = &plugin {
            match said(&placed, plugin).await {
                Said::Takes { destination: taken, .. } => destination = Some(taken.label),
                Said::Refuses(problems) => {
                    let one = |problem: &config::Problem| format!("{}: {}", problem.path, problem.message);
                    settings_mistake = Some(problems.iter().map(one).collect::<Vec<_>>().join("; "));
                }
                Said::NotLoaded => {}
            }
        }
        let lacks = lacking(&placed, &self.current.config, &self.current.catalog);
        let is_ready = plugin.is_some() && settings_mistake.is_none();
        let refused = if is_ready && lacks.is_empty() { self.refused(asked, (route, target)).await } else { None };
        Ok(Target {
            id: target.id.clone(),
            plugin: target.plugin.clone(),
            version: plugin.map(|plugin| (plugin.manifest().version.clone(), plugin.digest().to_owned())),
            destination,
            settings_mistake,
            lacks: lacks.into_iter().map(|problem| problem.message).collect(),
            refused,
            blocked: self.blocked(rule.as_deref(), state.as_ref(), target),
            spared: self.spared(about, route, target),
            outlook: outlook(asked, timing, state.as_ref(), deliveries(asked, &route.name, &target.id)),
            zone: timing.hold.as_ref().map(|hold| hold.zone.clone()),
            lanes: self.queues.lanes(&queue),
            deliveries: deliveries(asked, &route.name, &target.id).cloned().collect(),
        })
    }

    /// When a target would hear of the notification.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn outlook(
        &self,
        asked: Question<'_>,
        (route, target): (&config::Route, &config::Target),
    ) -> Result<Outlook, InboxError> {
        let workspace = asked.workspace.name.clone();
        let queue = QueueKey { workspace, route: route.name.clone(), target: target.id.as_str().into() };
        let rule = self.current.book.get(&queue);
        let timing = rule.map_or(&target.timing, |rule| &rule.timing);
        let state = self.state(&queue, timing, asked.now).await?;
        Ok(outlook(asked, timing, state.as_ref(), deliveries(asked, &route.name, &target.id)))
    }

    async fn state(
        &self,
        queue: &QueueKey,
        timing: &Timing,
        now: Timestamp,
    ) -> Result<Option<TargetState>, InboxError> {
        let Some(inbox) = self.inbox else { return Ok(None) };
        inbox.target_state(queue, timing.at_most.as_ref(), now).await.map(Some)
    }

    /// Why the guard would not let the first request of a delivery out.
    async fn refused(&self, asked: Question<'_>, (route, target): (&config::Route, &config::Target)) -> Option<String> {
        let (config, catalog) = (&*self.current.config, &self.current.catalog);
        let previewer = Previewer { config, catalog, effects: self.effects, keys: self.keys };
        let now = asked.now;
        let supposed = Supposed {
            route,
            target,
            notification: asked.notification.clone(),
            id: DeliveryId { store: Arc::from("00000000"), number: 0 },
            due_at: now,
            now,
            answers: Answers::NONE,
        };
        denied(previewer.preview(supposed).await.steps).map(|fault| fault.message)
    }

    fn blocked(&self, rule: Option<&Rule>, state: Option<&TargetState>, target: &config::Target) -> Option<String> {
        let stuck = state.and_then(|state| state.blocked.as_ref());
        let stuck = stuck.map(|why| format!("a person must mend something first: {why}"));
        let by_rule = rule.and_then(|rule| rule.blocked.clone());
        let more = self.not_loaded.get(&target.plugin).filter(|_| self.current.catalog.get(&target.plugin).is_none());
        let by_rule = by_rule.map(|why| more.map_or(why.clone(), |more| format!("{why}: {more}")));
        stuck.or(by_rule)
    }

    fn spared(&self, about: Option<&About>, route: &config::Route, target: &config::Target) -> Option<String> {
        let (id, plugin) = (target.id.clone(), target.plugin.clone());
        let owed = Owed { route: route.name.clone(), target: id, plugin };
        let catalog = &self.current.catalog;
        let agent = |plugin: &_| catalog.get(plugin).is_none_or(|plugin| plugin.manifest().agent);
        about?.spares(&owed, &self.current.book, agent).map(str::to_owned)
    }
}

/// When the target hears of the notification: by the delivery that waits, or else if it came at the moment that is asked for.
fn outlook<'a>(
    asked: Question<'_>,
    timing: &Timing,
    state: Option<&TargetState>,
    mut owed: impl Iterator<Item = &'a DeliveryView>,
) -> Outlook {
    let now = in_milliseconds(asked.now);
    let at = in_milliseconds(asked.at.unwrap_or(asked.now));
    let state = state.filter(|_| at >= now);
    let blind = match state {
        Some(_) => None,
        None if at < now => Some(IN_THE_PAST),
        None => Some(NO_STORE),
    };
    let none = TargetState::default();
    let known = state.unwrap_or(&none);
    let scene = Scene { timing, reached: &known.reached, going: known.going, waiting: &known.waiting };
    let waits = |one: &&DeliveryView| one.attempts.is_empty() && (one.state.is_open() || one.state == State::Pending);
    if asked.at.is_none()
        && let Some(delivery) = owed.find(waits)
    {
        let followed = Followed::Waiting(delivery.id.number);
        return Outlook { forecast: forecast(scene, followed, now), is_of_delivery: true, blind };
    }
    let new = Followed::New(Box::new(new(asked, at)));
    Outlook { forecast: forecast(scene, new, now.min(at)), is_of_delivery: false, blind }
}

fn new(asked: Question<'_>, at: Timestamp) -> Waiting {
    let notification = asked.notification;
    Waiting {
        number: Waiting::NEW,
        at,
        place: Place::New,
        received_at: at,
        level: notification.effective_level,
        source: notification.source.to_string(),
        name: notification.event.name.clone(),
        subject: notification.event.subject.clone(),
        acknowledged: asked.acknowledged,
        items: 1,
        bytes: bytes_in_digest(&notification.event),
    }
}
