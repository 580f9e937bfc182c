//! What an attempt was, for those who look at it when it has ended.

use jiff::Timestamp;

use super::Came;
use super::past::Astray;
use crate::config::Target;
use crate::inbox::Claim;
use crate::send::dry::sampling::{Samples, Taken};
use crate::send::effect::secret::Seals;
use crate::send::upgrade::probation::{Probation, Suspect};
use crate::wasm::{self, Plugin, StepFault};

/// An attempt that ended or rests.
#[derive(Debug)]
pub(in crate::send) struct Made {
    /// How it came off.
    pub(in crate::send) came: Came,
    /// Why it came to that.
    pub(in crate::send) manner: Manner,
    /// What the plugin was handed and told.
    pub(in crate::send) attempt: wasm::Attempt,
    /// Whether an effect of it was accepted, or may have been.
    pub(in crate::send) accepted: bool,
}

/// Why an attempt came to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::send) enum Manner {
    /// The plugin said so.
    Said,
    /// A step trapped, passed a limit or brought a wrong answer.
    Failed {
        /// Whether it was a limit.
        is_limit: bool,
    },
    /// The plugin went beyond what a whole attempt may take.
    Beyond,
    /// The plugin asked for something else than before when the attempt was resumed.
    Otherwise,
    /// Nothing that the plugin did.
    #[default]
    Host,
}

impl Manner {
    pub(super) fn of(fault: &StepFault) -> Self {
        match fault {
            StepFault::Trap { .. } | StepFault::Invalid { .. } => Self::Failed { is_limit: false },
            StepFault::Limit { .. } => Self::Failed { is_limit: true },
            StepFault::Host { .. } => Self::Host,
        }
    }

    pub(super) fn of_resuming(astray: &Astray) -> Self {
        match astray {
            Astray::Otherwise => Self::Otherwise,
            Astray::Unreadable(_) => Self::Host,
        }
    }
}

/// Who looks at the ends of attempts.
#[derive(Clone, Copy, Debug)]
pub(in crate::send) struct Watch<'a> {
    pub(in crate::send) samples: &'a Samples,
    pub(in crate::send) probation: &'a Probation,
}

/// What they keep of one, until its end is durable.
#[derive(Debug, Default)]
pub(in crate::send) struct Seen {
    /// To be recorded.
    pub(in crate::send) sampled: Option<Box<Taken>>,
    /// To be judged.
    pub(in crate::send) suspect: Option<Box<Suspect>>,
}

impl Watch<'_> {
    pub(super) fn look(
        self,
        made: &Made,
        claim: &Claim,
        (plugin, target, seals): (&Plugin, &Target, &Seals<'_>),
        now: Timestamp,
    ) -> Seen {
        let taken = || Box::new(Taken::new(&made.attempt, plugin, &target.settings, seals));
        let is_sampled = made.manner == Manner::Said && self.samples.take(&target.plugin, &made.came, now);
        let suspect = match &made.came {
            Came::Ended(ended) if self.probation.hear(claim, plugin, ended.outcome, made.manner, now) => {
                Some(Box::new(Suspect::new(*taken(), made, ended)))
            }
            _ => None,
        };
        Seen { sampled: is_sampled.then(taken), suspect }
    }
}
