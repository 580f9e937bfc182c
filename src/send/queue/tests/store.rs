//! Queues over a real store: what one says the other must understand, or something waits for ever.

use super::*;
use crate::inbox::sqlite::SqliteInbox;
use crate::inbox::{Attempt, Change, Ended, Entry, Finished, Inbox, Intake, News, Owed, Which};

struct Both {
    world: World,
    store: SqliteInbox,
    _folder: tempfile::TempDir,
}

impl Both {
    async fn new(rule: Rule) -> Self {
        let world = World::new(vec![rule.clone()]);
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteInbox::open(&folder.path().join("test.db"), world.now()).unwrap();
        let adopted = store.adopt(Arc::new(Book::new([rule])), Some(world.queues.clone()), world.now()).await.unwrap();
        world.queues.restore(&adopted);
        Self { world, store, _folder: folder }
    }

    async fn accept(&self, events: &[(&str, &str)]) {
        let entry = |(id, subject): &(&str, &str)| Entry {
            event: Event { event_id: (*id).into(), ..notification(&name("acme"), Some(subject)).event },
            effective_level: Level::Info,
            owed: vec![Owed { route: name("a"), target: "t".into(), plugin: name("slack") }],
            consumers: Vec::new(),
        };
        let intake = Intake {
            is_first: false,
            workspace: name("acme"),
            source: name("registrar"),
            received_at: self.world.now(),
            entries: events.iter().map(entry).collect(),
            notices: Vec::new(),
            cursor: None,
            ended: Ended::Answered { revision: None, is_backlog: false },
        };
        self.store.accept(intake).await.unwrap();
    }

    /// Passes on what is new and claims what can start, as the dispatcher does.
    async fn turn(&self) -> Vec<Claim> {
        let News { mut claims, due, .. } = futures_util::FutureExt::now_or_never(self.store.news()).unwrap_or_default();
        due.iter().for_each(|(queue, at)| self.world.queues.due(queue, *at));
        for want in self.world.queues.pick().wants {
            let claimed = self.store.claim(self.world.now(), vec![want.clone()]).await.unwrap();
            self.world.queues.claimed(&want, &claimed.claims, claimed.next_due[0].1);
            claims.extend(claimed.claims);
        }
        claims
    }

    async fn end(&self, claim: &Claim, outcome: Outcome, next: Next) {
        let now = self.world.now();
        let attempt = Attempt {
            number: claim.attempt,
            started_at: now,
            ended_at: now,
            outcome,
            reason: None,
            steps: 1,
            plugin_version: None,
            plugin_digest: None,
        };
        let finished = Finished {
            id: claim.id.clone(),
            fence: claim.fence,
            queue: claim.queue.clone(),
            attempt,
            next,
            reached: true,
            resume: Change::Keep,
            remember: (Change::Keep, 0),
            lanes: Vec::new(),
            notices: Vec::new(),
        };
        self.store.finish(finished).await.unwrap();
        self.world.queues.ended(claim, &next, Some(outcome));
    }
}

fn seqs(claims: &[Claim]) -> Vec<u64> {
    claims.iter().flat_map(|claim| &claim.notifications).map(|one| one.seq).collect()
}

#[tokio::test]
async fn what_waits_for_another_of_its_subject_goes_when_that_ends() {
    let both = Both::new(Rule { by_subject: true, ..rule("a", &[]) }).await;
    both.accept(&[("e1", "one"), ("e2", "one"), ("e3", "two")]).await;
    let claims = both.turn().await;
    assert_eq!(seqs(&claims), [1, 3]);
    assert!(both.turn().await.is_empty() && both.turn().await.is_empty());
    both.end(&claims[0], Outcome::Delivered, DONE).await;
    let claims = [claims[1].clone(), both.turn().await.remove(0)];
    assert_eq!(seqs(&claims), [3, 2]);
    for claim in &claims {
        both.end(claim, Outcome::Delivered, DONE).await;
    }
    assert!(both.turn().await.is_empty());
    both.world.assert_empty();
}

#[tokio::test]
async fn a_strict_queue_goes_on_as_soon_as_the_one_it_waits_for_is_cancelled() {
    let both = Both::new(Rule { is_strict: true, ..rule("a", &[]) }).await;
    both.accept(&[("e1", "one"), ("e2", "two")]).await;
    let first = both.turn().await.remove(0);
    both.end(&first, Outcome::Retry, retrying(both.world.at(3_600))).await;
    both.world.clock.advance(seconds(60));
    assert!(both.turn().await.is_empty(), "it keeps its order");
    let which = Which { ids: vec![first.id], ..Which::default() };
    both.store.cancel(&name("acme"), which, "not any more".into()).await.unwrap();
    assert_eq!(seqs(&both.turn().await), [2]);
}
