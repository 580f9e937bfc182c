//! A store in memory that remembers what attempts wrote, and hands out what a test gives it.

use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::inbox::book::{Admission, Book, QueueKey};
use crate::inbox::*;
use crate::notification::{Name, Notification};
use crate::route::timing::AtMost;

#[derive(Debug, Default)]
pub(super) struct Memory {
    state: Mutex<State>,
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    written: Vec<Write>,
    finished: Vec<Finished>,
    recordings: Vec<Recording>,
    news: Vec<Claim>,
    due: Vec<Claim>,
    /// Writes to be refused from now on.
    refused: u32,
    fails_inside: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Write {
    Kept(Kept),
    Paused(Paused),
}

impl Memory {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state());
        self.changes.send_modify(|changes| *changes += 1);
        changed
    }

    /// What attempts wrote before they ended, in order.
    pub(super) fn written(&self) -> Vec<Write> {
        self.state().written.clone()
    }

    /// The ends of attempts, in order.
    pub(super) fn finished(&self) -> Vec<Finished> {
        self.state().finished.clone()
    }

    /// How many recordings it keeps.
    pub(super) fn recordings(&self) -> usize {
        self.state().recordings.len()
    }

    /// Refuses so many writes and claims.
    pub(super) fn refuse(&self, writes: u32) {
        self.change(|state| state.refused = writes);
    }

    /// Panics when an attempt wants its past kept.
    pub(super) fn fail_inside(&self) {
        self.change(|state| state.fails_inside = true);
    }

    /// As if it was claimed while it was written.
    pub(super) fn hand_out(&self, claim: Claim) {
        self.change(|state| state.news.push(claim));
    }

    /// As if it came due.
    pub(super) fn make_due(&self, claim: Claim) {
        self.change(|state| state.due.push(claim));
    }

    /// Returns once that many writes are refused no more, or attempts have ended, or something was written: what is asked.
    pub(super) async fn until(&self, holds: impl Fn(&Self) -> bool) {
        self.changes.subscribe().wait_for(|_| holds(self)).await.unwrap();
    }

    pub(super) fn refused_left(&self) -> u32 {
        self.state().refused
    }

    /// The claim as it is handed out after the store was opened again.
    pub(super) fn reopened(&self, claim: &Claim) -> Claim {
        let new = Begun {
            started_at: super::start(),
            progress: Progress::default(),
            past: Vec::new(),
            waited: false,
            cut_off: true,
            plugin_digest: None,
        };
        let mut begun = claim.begun.clone().map_or(new, |begun| Begun { cut_off: true, ..begun });
        let mut resume = claim.resume.clone();
        let add = |begun: &mut Begun, kept: &Kept| {
            assert_eq!(kept.kept_before, begun.past.len(), "nothing is kept twice or left out");
            begun.past.extend(kept.effects.iter().cloned());
            begun.progress = kept.progress;
            begun.plugin_digest = Some(kept.plugin_digest.clone());
        };
        for written in self.change(|state| std::mem::take(&mut state.written)) {
            match written {
                Write::Kept(kept) => {
                    add(&mut begun, &kept);
                    begun.cut_off = true;
                }
                Write::Paused(paused) => {
                    add(&mut begun, &paused.kept);
                    begun.cut_off = false;
                    if paused.is_wait {
                        begun.past.clear();
                        begun.waited = true;
                    }
                    resume = changed(resume, paused.resume);
                }
            }
        }
        Claim { begun: Some(begun), resume, ..claim.clone() }
    }

    fn refuses(&self) -> Result<(), InboxError> {
        let refused = self.change(|state| {
            let refused = state.refused > 0;
            state.refused = state.refused.saturating_sub(1);
            refused
        });
        if refused { Err(InboxError::Unavailable("the disk is full".to_owned())) } else { Ok(()) }
    }
}

pub(super) fn changed(old: Option<Written>, change: Change) -> Option<Written> {
    match change {
        Change::Keep => old,
        Change::Set(new) => Some(new),
        Change::Forget => None,
    }
}

fn unused<T>() -> BoxFuture<'static, Result<T, InboxError>> {
    async { Err(InboxError::Unavailable("no part of these tests".to_owned())) }.boxed()
}

impl Inbox for Memory {
    fn key(&self) -> [u8; 32] {
        [7; 32]
    }

    fn adopt(
        &self,
        _: Arc<Book>,
        _: Option<Arc<dyn Admission>>,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<Adopted, InboxError>> {
        let due = self.state().due.iter().map(|claim| (claim.queue.clone(), now)).collect();
        async move { Ok(Adopted { due, ..Adopted::default() }) }.boxed()
    }

    fn claim(&self, now: Timestamp, wants: Vec<Want>) -> BoxFuture<'_, Result<Claimed, InboxError>> {
        async move {
            self.refuses()?;
            let mut claimed = Claimed::default();
            for want in wants {
                let is_wanted = |claim: &mut Claim| claim.queue == want.queue;
                let mut due = self.change(|state| state.due.extract_if(.., is_wanted).collect::<Vec<_>>());
                let later = due.split_off(due.len().min(want.most as usize));
                claimed.next_due.push((want.queue, (!later.is_empty()).then_some(now)));
                self.change(|state| state.due.extend(later));
                claimed.claims.extend(due);
            }
            Ok(claimed)
        }
        .boxed()
    }

    fn news(&self) -> BoxFuture<'_, News> {
        async {
            self.until(|store| !store.state().news.is_empty()).await;
            let claims = std::mem::take(&mut self.state().news);
            News { claims, ..News::default() }
        }
        .boxed()
    }

    fn keep(&self, kept: Kept) -> BoxFuture<'_, Result<(), InboxError>> {
        async move {
            self.refuses()?;
            let fails = self.state().fails_inside;
            assert!(!fails, "this panic is part of a test");
            self.change(|state| state.written.push(Write::Kept(kept)));
            Ok(())
        }
        .boxed()
    }

    fn pause(&self, paused: Paused) -> BoxFuture<'_, Result<(), InboxError>> {
        async move {
            self.refuses()?;
            self.change(|state| state.written.push(Write::Paused(paused)));
            Ok(())
        }
        .boxed()
    }

    fn finish(&self, finished: Finished) -> BoxFuture<'_, Result<Vec<Option<u64>>, InboxError>> {
        async move {
            self.refuses()?;
            let seqs = finished.notices.iter().zip(100..).map(|(_, seq)| Some(seq)).collect();
            self.change(|state| state.finished.push(finished));
            Ok(seqs)
        }
        .boxed()
    }

    fn accept(&self, _: Intake) -> BoxFuture<'_, Result<Accepted, InboxError>> {
        unused()
    }

    fn reading<'a>(&'a self, _: &'a Name, _: &'a Name) -> BoxFuture<'a, Result<Reading, InboxError>> {
        unused()
    }

    fn readings<'a>(&'a self, _: &'a Name) -> BoxFuture<'a, Result<Vec<(Name, Reading)>, InboxError>> {
        unused()
    }

    fn plugins_in_use(&self) -> BoxFuture<'_, Result<Vec<(Name, String)>, InboxError>> {
        unused()
    }

    fn retry<'a>(&'a self, _: &'a Name, _: Which, _: Timestamp) -> BoxFuture<'a, Result<Handled, InboxError>> {
        unused()
    }

    fn cancel<'a>(&'a self, _: &'a Name, _: Which, _: String) -> BoxFuture<'a, Result<Handled, InboxError>> {
        unused()
    }

    fn mark<'a>(&'a self, _: &'a Name, _: Vec<u64>, _: Deed, _: Mark) -> BoxFuture<'a, Result<Marked, InboxError>> {
        unused()
    }

    fn marks<'a>(&'a self, _: &'a Name, _: Vec<u64>) -> BoxFuture<'a, Result<Vec<Marks>, InboxError>> {
        unused()
    }

    fn notifications(&self, _: Page) -> BoxFuture<'_, Result<Vec<Notification>, InboxError>> {
        unused()
    }

    fn notification<'a>(&'a self, _: &'a Name, _: u64) -> BoxFuture<'a, Result<Option<Notification>, InboxError>> {
        unused()
    }

    fn known<'a>(&'a self, _: &'a Name, _: u64, _: u32) -> BoxFuture<'a, Result<Vec<Known>, InboxError>> {
        unused()
    }

    fn seq_since<'a>(&'a self, _: &'a Name, _: Timestamp) -> BoxFuture<'a, Result<u64, InboxError>> {
        unused()
    }

    fn record(&self, recording: Recording) -> BoxFuture<'_, Result<(), InboxError>> {
        self.change(|state| state.recordings.push(recording));
        async { Ok(()) }.boxed()
    }

    fn recordings<'a>(&'a self, plugin: &'a Name) -> BoxFuture<'a, Result<Vec<Recording>, InboxError>> {
        let of_plugin = |recording: &&Recording| recording.plugin == *plugin;
        let found = self.state().recordings.iter().rev().filter(of_plugin).cloned().collect();
        async { Ok(found) }.boxed()
    }

    fn is_of_first_read<'a>(&'a self, _: &'a Name, _: u64) -> BoxFuture<'a, Result<bool, InboxError>> {
        unused()
    }

    fn target_state<'a>(
        &'a self,
        _: &'a QueueKey,
        _: Option<&'a AtMost>,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<TargetState, InboxError>> {
        unused()
    }

    fn lanes(&self) -> BoxFuture<'_, Result<Vec<LaneRecord>, InboxError>> {
        unused()
    }

    fn deliveries(&self, _: Page, _: Which) -> BoxFuture<'_, Result<Vec<DeliveryView>, InboxError>> {
        unused()
    }
}
