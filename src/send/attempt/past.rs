//! The effects of an attempt: those that an earlier process kept, and those made since.

use std::collections::VecDeque;

use jiff::Timestamp;

use crate::inbox::{Begun, KeptEffect};
use crate::send::record;
use crate::wasm::{Action, Answer, Effect};

/// The effects of one attempt since it began or its last wait ended.
#[derive(Debug)]
pub(super) struct Past {
    /// What an earlier process kept and the plugin has not asked for again, oldest first.
    earlier: VecDeque<KeptEffect>,
    /// How many the store has.
    kept: usize,
    /// What it has not; what they came to is in the attempt.
    fresh: Vec<Fresh>,
}

/// An effect that the store does not have. Most never come there: an attempt of one effect ends with it.
#[derive(Debug)]
struct Fresh {
    at: Timestamp,
    asked: Asked,
}

/// What the plugin asked for, to be compared when it asks again.
#[derive(Debug)]
pub(super) enum Asked {
    /// The end of a wait answers no action of this leg.
    Nothing,
    /// Its digest is not needed yet.
    Action(Box<Action>),
    /// Its digest.
    Digest(String),
}

impl Asked {
    /// Keeps the digest alone: an action can be large.
    pub(super) fn shrink(&mut self) {
        if let Self::Action(action) = self {
            *self = Self::Digest(record::digest(action));
        }
    }

    fn digest(&self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Action(action) => record::digest(action),
            Self::Digest(digest) => digest.clone(),
        }
    }
}

/// Why the steps of an attempt cannot be made again over what is kept of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Astray {
    /// The plugin asks for something else than it did.
    Otherwise,
    /// What is kept cannot be read.
    Unreadable(record::NotARecord),
}

impl std::fmt::Display for Astray {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Otherwise => out.write_str(
                "the plugin asked for something else when the attempt was resumed: the same input must give the same action",
            ),
            Self::Unreadable(why) => write!(out, "what was kept of the attempt cannot be read: {why}"),
        }
    }
}

impl Past {
    /// What a claim brings of an attempt that goes on; and the end of the wait that its plugin is told first, if it waited.
    pub(super) fn new(begun: Option<&Begun>, resume: Option<String>, now: Timestamp) -> (Self, Option<Effect>) {
        let Some(begun) = begun else {
            return (Self { earlier: VecDeque::new(), kept: 0, fresh: Vec::new() }, None);
        };
        let mut past =
            Self { earlier: begun.past.iter().cloned().collect(), kept: begun.past.len(), fresh: Vec::new() };
        let resumed = Answer::Resumed(resume);
        // It is kept with the first effect after it, so that the moment it was told stays the same.
        if let Some(told) = past.earlier.pop_front_if(|first| is_resumed(first)) {
            return (past, Some(Effect { at: told.at.to_string(), answer: resumed }));
        }
        if !begun.waited {
            return (past, None);
        }
        past.fresh.push(Fresh { at: now, asked: Asked::Nothing });
        (past, Some(Effect { at: now.to_string(), answer: resumed }))
    }

    /// Whether every effect that was kept has been asked for again.
    pub(super) fn is_caught_up(&self) -> bool {
        self.earlier.is_empty()
    }

    /// What an effect came to that an earlier process made; the plugin must ask for the same one.
    pub(super) fn again(&mut self, action: &Action) -> Result<Option<Effect>, Astray> {
        let Some(kept) = self.earlier.pop_front() else { return Ok(None) };
        if kept.action_digest != record::digest(action) {
            return Err(Astray::Otherwise);
        }
        let answer = record::answer_from_json(&kept.answer).map_err(Astray::Unreadable)?;
        Ok(Some(Effect { at: kept.at.to_string(), answer }))
    }

    /// Adds an effect that came to something then.
    pub(super) fn add(&mut self, at: Timestamp, asked: Asked) {
        self.fresh.push(Fresh { at, asked });
    }

    /// Whether there are effects that the store has not.
    pub(super) fn is_to_keep(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// How many effects the store has, and those that it has not: the last of all `effects` that the plugin was told.
    pub(super) fn to_keep(&self, effects: &[Effect]) -> (usize, Vec<KeptEffect>) {
        let known = effects.len().saturating_sub(self.fresh.len());
        let kept = |(fresh, effect): (&Fresh, &Effect)| KeptEffect {
            at: fresh.at,
            action_digest: fresh.asked.digest(),
            answer: record::answer_to_json(&effect.answer),
        };
        (self.kept, self.fresh.iter().zip(effects.iter().skip(known)).map(kept).collect())
    }

    /// The store has all of them now.
    pub(super) fn all_kept(&mut self) {
        self.kept += self.fresh.len();
        self.fresh.clear();
    }
}

/// Whether it is no effect but the end of a wait.
pub(super) fn is_resumed(effect: &KeptEffect) -> bool {
    // See `Asked::Nothing`.
    effect.action_digest.is_empty()
}
