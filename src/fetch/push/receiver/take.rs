//! What becomes of events, pending or live: judged, decided and written in one go; then acknowledged.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::{End, Receiver, refused, unless_stopped};
use crate::fetch::batch::Dropped;
use crate::fetch::event::id_of;
use crate::fetch::notice::{Notice, REFUSED_MAX, Refused};
use crate::fetch::outbox::ReadError;
use crate::fetch::poller::State;
use crate::fetch::push::{envelope, page};
use crate::fetch::queue::Live;
use crate::inbox::{Ended, Intake, Told};
use crate::route::entry;

/// Ids acknowledged by one request.
const ACK_IDS_MAX: usize = 100;

/// An acknowledgement is sent so often before the whole sequence begins anew.
const ACKS_MAX: u32 = 4;

/// The wait before an acknowledgement is sent again, longer each time.
const ACK_WAIT: Duration = Duration::from_secs(1);

/// Live events accepted together: those that are there already.
const LIVE_MAX: usize = 100;

/// Notices about events that cannot be acknowledged, kept in mind so that each is told once.
const TOLD_MAX: usize = 1_000;

/// What was taken.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// Ids to acknowledge: of all events that are durable now, as notifications or as refused.
    pub(super) ids: Vec<String>,
    /// Notifications that are new in the inbox.
    pub(super) new: usize,
    /// Events that were refused.
    pub(super) dropped: usize,
}

impl Receiver {
    /// Takes live events: this one, and those that came after it by now.
    pub(super) async fn take_live(&mut self, first: String, stop: &CancellationToken) -> Result<(), End> {
        let mut all = vec![first];
        let mut after = None;
        while all.len() < LIVE_MAX {
            match self.queue.next_at_once() {
                Some(Live::Event(params)) => all.push(params),
                Some(Live::Alive) => {}
                Some(other) => {
                    after = Some(other);
                    break;
                }
                None => break,
            }
        }
        self.heard_at = self.ledger.now();
        let events: Vec<&RawValue> = all.iter().filter_map(|params| page::live(params)).collect();
        let is_handed_on = all.iter().any(|params| page::is_handed_on(params));
        let taken = self.take(&events, is_handed_on).await?;
        self.acknowledge(&taken.ids, stop).await?;
        if !taken.ids.is_empty() {
            self.is_of_use();
        }
        match after {
            Some(Live::Overflow) => self.drain(stop).await.map(drop),
            Some(Live::Lost(error)) => Err(self.lost(error)),
            Some(Live::Closed) => Err(self.replaced()),
            _ => Ok(()),
        }
    }

    /// Judges, decides and writes; returns once all of it is durable. What another Switchbell hands on joins no queue here: two
    /// that read each other would hand one event back and forth for ever.
    pub(super) async fn take(&mut self, events: &[&RawValue], is_handed_on: bool) -> Result<Taken, End> {
        let config = self.ledger.config();
        let (workspace, connector) = self.ledger.place(&config).ok_or(End::Stopped)?;
        let no_levels = BTreeMap::new();
        let levels = connector.push.as_ref().map_or(&no_levels, |push| &push.levels);
        let mut taken = Taken::default();
        let (mut entries, mut decisions) = (Vec::new(), Vec::new());
        let (mut refused, mut lost) = (Vec::new(), Vec::new());
        for event in events {
            let id = envelope::acknowledged_by(event);
            match envelope::judge(event, levels) {
                Ok(event) => {
                    let level = event.level.capped(connector.ceiling);
                    let (mut entry, decided) = entry(event, level, (workspace, &connector.name));
                    if is_handed_on {
                        entry.consumers.clear();
                    }
                    entries.push(entry);
                    decisions.push(decided);
                }
                Err(reason) => {
                    let said = |text: &str| self.queue.without_secrets(text);
                    let dropped =
                        Dropped { event_id: id_of(event).map(|id| said(&id)), reason: said(&reason.to_string()) };
                    let of = Refused::new(dropped, event.get());
                    if id.is_some() { refused.push(of) } else { lost.push(of) }
                }
            }
            taken.ids.extend(id.filter(|id| !taken.ids.contains(id)));
        }
        lost.retain(|of| !self.told.contains(&of.digest));
        let news = self.news(&refused, &lost);
        let notices = self.ledger.notices(&news, workspace);
        let intake = Intake {
            is_first: false,
            workspace: workspace.name.clone(),
            source: connector.name.clone(),
            received_at: self.ledger.now(),
            entries,
            notices: notices.entries.clone(),
            cursor: None,
            ended: self.ended(),
        };
        let accepted = self.ledger.shared.inbox.accept(intake.clone()).await?;
        self.remember(&lost);
        self.answered(&intake);
        taken.new = accepted.seqs.iter().flatten().count();
        taken.dropped = refused.len() + lost.len();
        self.ledger.tell_dropped(refused.into_iter().chain(lost).map(|of| of.dropped).collect());
        self.ledger.tell_accepted(&self.ledger.source, intake.entries, decisions, accepted.seqs);
        self.ledger.tell_notices(notices, accepted.notice_seqs);
        Ok(taken)
    }

    /// What the admin hears with this intake: each refused event, before it is acknowledged.
    fn news(&self, refused: &[Refused], lost: &[Refused]) -> Vec<Notice> {
        let recovered = self.ledger.reading.told != Told::Nothing && !self.is_unsteady;
        let recovered = recovered.then_some(Notice::Recovered { failures: self.ledger.reading.failures });
        let told = refused.chunks(REFUSED_MAX).chain(lost.chunks(REFUSED_MAX));
        recovered.into_iter().chain(told.map(|chunk| Notice::Refused { events: chunk.to_vec() })).collect()
    }

    /// While one stream after the other ends, or nothing can be acknowledged, pages that work between are no recovery of what was
    /// told.
    fn ended(&self) -> Ended {
        let reading = &self.ledger.reading;
        match &reading.failure {
            Some((_, reason)) if self.is_unsteady && reading.told != Told::Nothing => {
                Ended::Failed { reason: reason.clone(), failures: reading.failures, told: reading.told }
            }
            _ => Ended::Answered { revision: self.queue.revision(), is_backlog: false },
        }
    }

    /// Keeps in mind what the inbox now keeps.
    fn answered(&mut self, intake: &Intake) {
        let Ended::Answered { revision, .. } = &intake.ended else { return };
        let reading = &mut self.ledger.reading;
        if reading.failures > 0 {
            let (workspace, source) = (&self.ledger.workspace, &self.ledger.source);
            tracing::info!(%workspace, %source, "the push queue can be read again");
        }
        (reading.told, reading.failures, reading.read_at) = (Told::Nothing, 0, Some(intake.received_at));
        reading.revision = revision.clone().or(reading.revision.take());
        self.ledger.show(State::Ok);
    }

    fn remember(&mut self, lost: &[Refused]) {
        if self.told.len() + lost.len() > TOLD_MAX {
            self.told.clear();
        }
        self.told.extend(lost.iter().map(|of| of.digest.clone()));
    }

    /// Acknowledges. What fails is sent again by itself; nothing is accepted again for it.
    pub(super) async fn acknowledge(&mut self, ids: &[String], stop: &CancellationToken) -> Result<(), End> {
        let acknowledged = self.send_acknowledgements(ids, stop).await;
        // What can be got and not acknowledged is no recovery.
        self.is_unsteady |= acknowledged.is_err();
        acknowledged
    }

    async fn send_acknowledgements(&mut self, ids: &[String], stop: &CancellationToken) -> Result<(), End> {
        for ids in ids.chunks(ACK_IDS_MAX) {
            let mut sent = 0;
            loop {
                sent += 1;
                let Err(error) = unless_stopped(stop, self.queue.ack(ids)).await? else { break };
                let may_work_again = match &error {
                    ReadError::Timeout { .. } | ReadError::Refused { .. } => true,
                    ReadError::Http { status, .. } => !matches!(status, 401 | 403 | 404),
                    _ => false,
                };
                if !may_work_again || sent >= ACKS_MAX {
                    return Err(refused(error));
                }
                let wait = (ACK_WAIT * sent).max(error.retry_after().unwrap_or_default());
                if wait > ACK_WAIT * ACKS_MAX {
                    return Err(refused(error));
                }
                unless_stopped(stop, self.ledger.shared.clock.sleep(wait)).await?;
            }
        }
        Ok(())
    }
}
