//! Deliveries that are in flight from the write on.

use super::*;

/// Lets everything in, and counts what it gets back.
#[derive(Debug, Default)]
struct Open {
    inside: std::sync::atomic::AtomicI64,
}

impl Admission for Open {
    fn admit(&self, _: &QueueKey, _: Option<&str>) -> bool {
        self.inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        true
    }

    fn give_back(&self, _: &QueueKey, _: Option<&str>) {
        self.inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
    }
}

fn book(timing: &Timing) -> Arc<Book> {
    let rule = |target| Rule {
        queue: queue(target),
        plugin: name("slack"),
        timing: timing.clone(),
        blocked: None,
        is_strict: false,
        goes_on: Vec::new(),
        by_subject: false,
        lanes: Vec::new(),
    };
    Arc::new(Book::new((0..3).map(rule)))
}

#[tokio::test]
async fn what_is_let_in_is_in_flight_from_the_write_on_and_given_back_when_that_fails() {
    let place = Place::new();
    let inbox = place.open();
    let open = Arc::new(Open::default());
    inbox.adopt(book(&Timing::default()), Some(open.clone()), at(90)).await.unwrap();
    inbox.accept(intake("acme", vec![entry("e1", 2)], None)).await.unwrap();
    let news = inbox.news().await;
    assert_eq!((news.claims.len(), news.due.len()), (2, 0));
    assert_eq!(states(&inbox).await, [(State::InFlight, 0), (State::InFlight, 0)]);
    assert!(claim(&inbox, 100, 5).await.unwrap().claims.is_empty(), "nobody else gets it");
    let broken = inbox.write(|session: &mut Session| {
        accept::accept(session, &intake("acme", vec![entry("gone", 2)], None), true)?;
        Err::<(), _>(InboxError::Unavailable("broken".to_owned()))
    });
    assert!(broken.await.is_err());
    assert_eq!(open.inside.load(std::sync::atomic::Ordering::SeqCst), 2);
    assert!(inbox.news().now_or_never().is_none());
    for claim in news.claims {
        let done = Next { state: State::Delivered, next_at: None };
        inbox.finish(finished(&claim, Outcome::Delivered, done)).await.unwrap();
    }
    assert_eq!(states(&inbox).await, [(State::Delivered, 1), (State::Delivered, 1)]);
}
