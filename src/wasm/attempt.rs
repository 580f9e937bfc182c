//! One attempt of a delivery: the plugin is asked step by step, in an instance that no other attempt ever sees.

use std::fmt;
use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

use super::action;
use super::bindings::switchbell::delivery::types::{Action, Answer, Delivery, Effect};
use super::fault::StepFault;
use super::instance::Instance;
use super::plugin::Plugin;

/// One attempt. It owns the delivery, the effects so far and, between two steps, perhaps the instance.
pub struct Attempt {
    plugin: Plugin,
    delivery: Arc<Delivery>,
    past: Arc<Vec<Effect>>,
    kept: Option<Kept>,
    steps: u32,
    complaint: Option<String>,
}

/// An instance between two steps. The permit bounds how many there are; it is given back after the memory.
struct Kept {
    instance: Instance,
    permit: OwnedSemaphorePermit,
}

/// What one step needs and leaves.
struct Step {
    plugin: Plugin,
    delivery: Arc<Delivery>,
    past: Arc<Vec<Effect>>,
    kept: Option<Kept>,
}

struct Stepped {
    result: Result<Action, StepFault>,
    complaint: Option<String>,
    kept: Option<Kept>,
}

impl fmt::Debug for Attempt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Attempt")
            .field("plugin", &self.plugin)
            .field("delivery", &self.delivery.id)
            .field("steps", &self.steps)
            .field("kept", &self.kept.is_some())
            .finish_non_exhaustive()
    }
}

impl Attempt {
    pub(super) fn new(plugin: Plugin, delivery: Delivery) -> Self {
        let past = Arc::default();
        Self { plugin, delivery: Arc::new(delivery), past, kept: None, steps: 0, complaint: None }
    }

    /// Asks the plugin what to do next, given the effects so far. If the future is dropped, the step ends unheard and
    /// may be asked again.
    ///
    /// # Errors
    /// How the plugin failed; the attempt is over, or may be asked again in a fresh instance.
    pub async fn step(&mut self) -> Result<Action, StepFault> {
        self.steps = self.steps.saturating_add(1);
        self.complaint = None;
        let step = Step {
            plugin: self.plugin.clone(),
            delivery: Arc::clone(&self.delivery),
            past: Arc::clone(&self.past),
            kept: self.kept.take(),
        };
        let shared = &self.plugin.program().shared;
        let stepped = shared.threads.run(move || step.run()).await.map_err(|detail| StepFault::Host { detail })?;
        self.complaint = stepped.complaint;
        self.kept = stepped.kept;
        stepped.result
    }

    /// Adds an effect to the past. The end of a wait makes the past be forgotten first, as the contract says.
    pub fn answer(&mut self, effect: Effect) {
        let past = Arc::make_mut(&mut self.past);
        if matches!(effect.answer, Answer::Resumed(_)) {
            past.clear();
        }
        past.push(effect);
    }

    /// Gives up the kept instance, if there is one: the next step makes a new one, which is told the whole past. For
    /// an answer that takes longer than [`Plugin::kept_time_max`].
    pub fn rest(&mut self) {
        if let Some(kept) = self.kept.take() {
            self.plugin.program().shared.threads.discard(kept);
        }
    }

    /// How often the plugin was asked.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// What the plugin wrote to standard error in the last step, on one line fit to show, cut to its end.
    pub fn complaint(&self) -> Option<&str> {
        self.complaint.as_deref()
    }

    /// Whether an instance is kept for the next step.
    pub fn is_kept(&self) -> bool {
        self.kept.is_some()
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.rest();
    }
}

impl Step {
    /// Runs on a thread for steps.
    fn run(self) -> Stepped {
        let program = self.plugin.program();
        let _running = program.shared.ticker.running();
        let inputs = program.inputs(Some(&self.delivery), self.past.len());
        let (mut instance, permit) = match self.kept {
            Some(Kept { mut instance, permit }) => {
                instance.begin_again(inputs, &program.shared);
                (instance, Some(permit))
            }
            None => match program.instantiate(inputs) {
                Ok(instance) => (instance, None),
                Err(fault) => return Stepped { result: Err(fault), complaint: None, kept: None },
            },
        };
        let result = program.step(&mut instance, self.delivery, self.past);
        let result = result.and_then(|action| action::checked(action).map_err(|detail| StepFault::Invalid { detail }));
        let complaint = instance.complaint();
        let permit = if result.as_ref().is_ok_and(goes_on) {
            permit.or_else(|| Arc::clone(&program.shared.keep).try_acquire_owned().ok())
        } else {
            None
        };
        let kept = permit.map(|permit| Kept { instance, permit });
        Stepped { result, complaint, kept }
    }
}

/// Whether an answer to this action may come soon.
fn goes_on(action: &Action) -> bool {
    match action {
        Action::Http(_) | Action::Mail(_) | Action::Tool(_) | Action::Other(_) => true,
        Action::Wait(_) | Action::Done(_) | Action::Failed(_) => false,
    }
}
