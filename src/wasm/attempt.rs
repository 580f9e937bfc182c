//! One attempt of a delivery: the plugin is asked step by step, in an instance that no other attempt ever sees.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::OwnedSemaphorePermit;
use tokio::task::coop;

use super::action;
use super::bindings::switchbell::delivery::types::{Action, Answer, Delivery, Effect};
use super::fault::{LimitKind, StepFault};
use super::instance::Instance;
use super::limits::{CpuBudget, thread_cpu_time};
use super::place::{IN_PLACE_TIME_MAX, may_step_here};
use super::plugin::Plugin;
use super::threads::caught;

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
    /// may be asked again. Where [`super::stepping`] prepared the thread that polls this, a plugin that has been quick
    /// holds the thread up for its step; one that turns out slow for at most 11 ms.
    ///
    /// # Errors
    /// How the plugin failed; the attempt is over, or may be asked again in a fresh instance.
    pub async fn step(&mut self) -> Result<Action, StepFault> {
        self.steps = self.steps.saturating_add(1);
        self.complaint = None;
        let stepped = match self.in_place().await {
            Some(stepped) => stepped,
            None => self.on_a_thread().await,
        };
        let stepped = stepped.map_err(|detail| StepFault::Host { detail })?;
        self.complaint = stepped.complaint;
        self.kept = stepped.kept;
        stepped.result
    }

    /// A step in place; none if it must not be made there, or turns out to take too long.
    async fn in_place(&mut self) -> Option<Result<Stepped, String>> {
        if !may_step_here() || !self.plugin.pace().is_quick() {
            return None;
        }
        // An attempt that is made again over what is kept of it takes many steps without waiting for anything else.
        coop::consume_budget().await;
        let plugin = self.plugin.clone();
        let _room = plugin.program().shared.in_place.try_acquire().ok()?;
        let began = Instant::now();
        let step = self.begin();
        let stepped = caught(|| step.run(Some(began)));
        plugin.pace().ended(began);
        let is_too_long = |fault: &StepFault| matches!(fault, StepFault::Limit { which: LimitKind::Cpu, .. });
        match stepped {
            Ok(Stepped { result: Err(fault), .. }) if is_too_long(&fault) => None,
            stepped => Some(stepped),
        }
    }

    async fn on_a_thread(&mut self) -> Result<Stepped, String> {
        let step = self.begin();
        let plugin = self.plugin.clone();
        let measured = move || {
            let before = thread_cpu_time();
            let stepped = step.run(None);
            plugin.pace().used(thread_cpu_time().saturating_sub(before));
            stepped
        };
        self.plugin.program().shared.threads.run(measured).await
    }

    fn begin(&mut self) -> Step {
        Step {
            plugin: self.plugin.clone(),
            delivery: Arc::clone(&self.delivery),
            past: Arc::clone(&self.past),
            kept: self.kept.take(),
        }
    }

    /// Adds an effect to the past. The end of a wait makes the past be forgotten first, as the contract says.
    pub fn answer(&mut self, effect: Effect) {
        let past = Arc::make_mut(&mut self.past);
        if matches!(effect.answer, Answer::Resumed(_)) {
            past.clear();
        }
        past.push(effect);
    }

    /// What is to be delivered.
    pub fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// The effects since the attempt began or its last wait ended, that end included.
    pub fn past(&self) -> &[Effect] {
        &self.past
    }

    /// Gives up the kept instance, if there is one: the next step makes a new one, which is told the whole past. For
    /// an answer that takes longer than [`Plugin::kept_time_max`].
    pub fn rest(&mut self) {
        if let Some(kept) = self.kept.take() {
            if self.plugin.pace().is_quick() && may_step_here() {
                drop(kept);
            } else {
                self.plugin.program().shared.threads.discard(kept);
            }
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
    /// Runs on a thread for steps, or, `in_place` since then, on an async thread.
    fn run(self, in_place: Option<Instant>) -> Stepped {
        let program = self.plugin.program();
        let _running = program.shared.ticker.running();
        let inputs = program.inputs(Some(&self.delivery), self.past.len());
        let cpu = match in_place {
            Some(began) => CpuBudget::in_place(began, IN_PLACE_TIME_MAX),
            None => CpuBudget::new(program.shared.limits.step_cpu_max),
        };
        let (mut instance, permit) = match self.kept {
            Some(Kept { mut instance, permit }) => {
                instance.begin_again(inputs, cpu);
                (instance, Some(permit))
            }
            None => match program.instantiate(inputs, cpu) {
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
