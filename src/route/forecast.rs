//! When something would go, and which stages it passes on the way: pure.
//!
//! Nothing here knows a rule of timing: [`plan`] is asked again and again, at the moments that it names itself, and what it
//! says is carried out in miniature, as the store does for good. The target's other deliveries that wait are moved on in
//! their turn, since digests and limits are shared with them. What is unknown is taken as it would be soonest: nothing new
//! comes, and what goes reaches its destination at once.

mod run;

use jiff::Timestamp;

use super::plan::{Acknowledged, Stage, Standing, Step, Subject, Why, plan};
use super::timing::{Except, Timing};
use crate::notification::Level;
use run::Run;

/// A delivery that was not claimed yet, or is not made yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its number; those that were made first move first. One that is not made yet is [`Waiting::NEW`].
    pub number: i64,
    /// When it is moved next.
    pub at: Timestamp,
    /// Where it waits.
    pub place: Place,
    /// When it was received; of a digest, its first.
    pub received_at: Timestamp,
    /// The effective level; of a digest, the highest.
    pub level: Level,
    /// The connector; of a digest, that of its first.
    pub source: String,
    /// The dotted name; of a digest, that of its first.
    pub name: String,
    /// What it is about; of a digest, what its first is about.
    pub subject: Option<String>,
    /// Who acknowledged it; of a digest, all of it.
    pub acknowledged: Acknowledged,
    /// Notifications that it stands for, without those that it only counts.
    pub items: u32,
    /// Their bytes, as digests count them.
    pub bytes: u64,
}

impl Waiting {
    /// The number of what is not made yet: it moves after all others.
    pub const NEW: i64 = i64::MAX;

    fn facts(&self) -> Subject<'_> {
        Subject {
            received_at: self.received_at,
            level: self.level,
            source: &self.source,
            name: &self.name,
            subject: self.subject.as_deref(),
            acknowledged: self.acknowledged,
        }
    }

    fn stage(&self) -> Stage {
        match self.place {
            Place::New => Stage::Matched,
            Place::Alone => Stage::Waited,
            Place::Digest { .. } | Place::LetGo { .. } | Place::Due => Stage::Closed,
        }
    }

    fn key(&self) -> Option<&str> {
        match &self.place {
            Place::Digest { key } => Some(key),
            Place::LetGo { key } => key.as_deref(),
            Place::New | Place::Alone | Place::Due => None,
        }
    }
}

/// Where a delivery waits that was not claimed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// It matched just now.
    New,
    /// Alone, for its `after`.
    Alone,
    /// In the open digest with this key.
    Digest {
        /// The key, as the plan names it.
        key: String,
    },
    /// It may be claimed.
    LetGo {
        /// The key of the digest while more may join.
        key: Option<String>,
    },
    /// It may be claimed but for the limit, which is asked once more.
    Due,
}

/// A target with everything that the plan may know of it.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// When it wants to hear of things.
    pub timing: &'a Timing,
    /// When attempts reached the destination, oldest first.
    pub reached: &'a [Timestamp],
    /// Deliveries that were let go and have neither reached the destination nor ended.
    pub going: u32,
    /// What waits for it and is not claimed, in any order.
    pub waiting: &'a [Waiting],
}

/// Who is looked at.
#[derive(Clone, Debug)]
pub enum Followed {
    /// One more, which matches at its own moment, or now.
    New(Box<Waiting>),
    /// The one of those that wait with this number.
    Waiting(i64),
}

/// What is foreseen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forecast {
    /// What the plan says, each time that it is asked, in order.
    pub moves: Vec<Move>,
    /// How it ends.
    pub end: End,
}

/// How a forecast ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It may be claimed from then on, at the earliest.
    Goes {
        /// When.
        at: Timestamp,
    },
    /// It is acknowledged, and needless.
    Suppressed {
        /// When that is found.
        at: Timestamp,
    },
    /// It is not foreseen: nothing with that number waits, or the plan named more moments than are looked at.
    Open,
}

/// One time that the plan is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// When.
    pub at: Timestamp,
    /// Why it is asked.
    pub stage: Stage,
    /// What each part of the timing says by itself, in their order, up to the one that decides.
    pub said: Vec<Said>,
    /// What the plan says.
    pub step: Step,
    /// The digest that is open already and that it joins, where it does.
    pub joins: Option<Joined>,
}

/// A digest that something joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The digest's number.
    pub number: i64,
    /// When it closes.
    pub closes_at: Timestamp,
    /// Whether it is only counted, because there is no room.
    pub is_counted: bool,
}

/// A part of a target's timing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// `unless`
    Unless,
    /// `after`
    After,
    /// `hold`
    Hold,
    /// `collect`
    Collect,
    /// `at_most`
    AtMost,
}

impl Part {
    /// In the order in which they are applied.
    pub const ALL: [Self; 5] = [Self::Unless, Self::After, Self::Hold, Self::Collect, Self::AtMost];

    /// The key in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unless => "unless",
            Self::After => "after",
            Self::Hold => "hold",
            Self::Collect => "collect",
            Self::AtMost => "at_most",
        }
    }

    /// The timing with this part only; none where the target does not have it.
    fn only(self, timing: &Timing) -> Option<Timing> {
        let mut one = Timing::default();
        match self {
            Self::Unless => one.unless = timing.unless,
            Self::After => one.after.clone_from(&timing.after),
            Self::Hold => one.hold.clone_from(&timing.hold),
            Self::Collect => one.collect.clone_from(&timing.collect),
            Self::AtMost => one.at_most.clone_from(&timing.at_most),
        }
        (!one.is_plain()).then_some(one)
    }
}

/// What a part of the timing says by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    /// Which.
    pub part: Part,
    /// What.
    pub word: Word,
}

/// What a part of the timing says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// It lets it pass.
    Passes,
    /// It lets it pass only because it is urgent.
    Excepts,
    /// It keeps it until then.
    Keeps {
        /// Until then.
        until: Timestamp,
    },
    /// It makes it needless.
    Suppresses,
}

/// What becomes of a delivery at a target that stands so at `now`, by asking the plan at every moment that it names.
pub fn forecast(scene: Scene<'_>, followed: Followed, now: Timestamp) -> Forecast {
    Run::new(scene, followed, now).foresee()
}

/// What the parts of a timing say, each asked alone, up to the one that decides.
fn said(timing: &Timing, stage: Stage, what: &Subject<'_>, target: &Standing<'_>, now: Timestamp) -> Vec<Said> {
    let mut all = Vec::new();
    for part in Part::ALL {
        let Some(only) = part.only(timing) else { continue };
        let word = match plan(&only, stage, what, target, now) {
            Step::Wait { until } | Step::Gather { until, .. } => Word::Keeps { until },
            Step::Suppress => Word::Suppresses,
            Step::Go if is_excepted(&only, stage, what, target, now) => Word::Excepts,
            Step::Go => Word::Passes,
        };
        all.push(Said { part, word });
        if matches!(word, Word::Keeps { .. } | Word::Suppresses) {
            break;
        }
    }
    all
}

/// Whether a part that lets something urgent pass would keep it if nothing were excepted.
fn is_excepted(only: &Timing, stage: Stage, what: &Subject<'_>, target: &Standing<'_>, now: Timestamp) -> bool {
    let mut strict = only.clone();
    let excepts = [
        strict.after.as_mut().map(|after| &mut after.except),
        strict.hold.as_mut().map(|hold| &mut hold.except),
        strict.collect.as_mut().map(|collect| &mut collect.except),
        strict.at_most.as_mut().map(|at_most| &mut at_most.except),
    ];
    excepts.into_iter().flatten().for_each(|except| *except = Except::Nothing);
    strict != *only && plan(&strict, stage, what, target, now) != Step::Go
}

#[cfg(test)]
mod tests;
