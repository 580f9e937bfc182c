//! Whether the guard would refuse what targets ask for, found out by a preview of a made-up notification: what only a plugin
//! can tell, such as where it puts a secret.

use std::sync::Arc;

use jiff::Timestamp;

use super::dry::preview::{Answers, Asked, Previewer, Step, Supposed};
use super::effect::secret::{MISPLACED, NOT_READ};
use super::settings::{Placed, placed, problem};
use crate::config::{Code, Config, Problem};
use crate::inbox::DeliveryId;
use crate::notification::{Event, HOST_SOURCE, Level, Name, Notification};
use crate::wasm::{Fault, Reach};

/// What the guard would refuse of each target's first attempt, at the place of its settings. Nothing is sent. A target whose
/// settings its plugin does not take says nothing here, nor does one that needs the value of a secret that was not read.
pub async fn refusals(previewer: &Previewer<'_>, now: Timestamp) -> Vec<Problem> {
    let mut found = Vec::new();
    for placed in placed(previewer.config) {
        if previewer.catalog.get(&placed.target.plugin).is_none() {
            continue;
        }
        if previewer.settings_refused(placed.target).await.is_none()
            && let Some(refused) = refused(previewer, &placed, now).await
        {
            let code = if refused.code == MISPLACED { Code::MisplacedSecret } else { Code::DeliveryRefused };
            let message = format!("every delivery will be refused: {}", refused.message);
            found.push(problem(code, &placed, "", message));
        }
    }
    found
}

async fn refused(previewer: &Previewer<'_>, placed: &Placed<'_>, now: Timestamp) -> Option<Fault> {
    let supposed = Supposed {
        route: placed.route,
        target: placed.target,
        notification: made_up(previewer.config, &placed.workspace.name, now)?,
        id: DeliveryId { store: Arc::from("00000000"), number: 0 },
        due_at: now,
        now,
        answers: Answers::NONE,
    };
    denied(previewer.preview(supposed).await.steps)
}

/// The first of these steps that the guard does not let out, as long as the configuration stays as it is.
pub(super) fn denied(steps: Vec<Step>) -> Option<Fault> {
    let faults = steps.into_iter().filter_map(|step| match step {
        Step::Effect(asked) => asked.refused.clone().or_else(|| to_nobody(&asked)),
        Step::Wait(_) => None,
    });
    faults.into_iter().find(|fault| fault.reach == Reach::Denied && fault.code != NOT_READ)
}

/// Why a mail would go to nobody, where each of its recipients would be left out.
fn to_nobody(asked: &Asked) -> Option<Fault> {
    let action: serde_json::Value = serde_json::from_str(&asked.action).ok()?;
    let recipients = action.pointer("/mail/to")?.as_array()?.len();
    let (_, first) = asked.left_out.first().filter(|_| asked.left_out.len() == recipients)?;
    Some(first.clone())
}

/// An ordinary notification, of the first connector that there is.
fn made_up(config: &Config, workspace: &Name, now: Timestamp) -> Option<Notification> {
    let connectors = config.workspaces.get(workspace).map(|workspace| workspace.connectors.keys());
    let source = connectors.and_then(|mut names| names.next().cloned());
    let event = Event {
        event_id: "check".to_owned(),
        name: "check.preview".to_owned(),
        timestamp: now,
        level: Level::Urgent,
        subject: Some("example".to_owned()),
        title: "A notification made up to see what would be sent".to_owned(),
        body: None,
        link: None,
        data: "{}".to_owned(),
        content: None,
    };
    Some(Notification {
        workspace: workspace.clone(),
        seq: 1,
        source: match source {
            Some(source) => source,
            None => HOST_SOURCE.parse().ok()?,
        },
        received_at: now,
        effective_level: Level::Urgent,
        event,
    })
}
