//! Pages of an inbox over a store that is made up.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::*;
use crate::inbox::{Actor, Changes, InboxError, Listed, Mark, Marks, Order, Query, Reader};
use crate::notification::{Event, Notification};
use crate::route::Facts;

/// An inbox of so many notifications, of which it looks at a few in one answer.
#[derive(Debug)]
struct Made {
    all: Vec<(Notification, Marks)>,
    looks_at: usize,
}

impl Made {
    /// Every seventh is urgent, every third needs attention, every second is read.
    fn new(count: u64, looks_at: usize) -> Self {
        let all = (1..=count).map(|seq| {
            let level = match seq {
                _ if seq % 7 == 0 => Level::Urgent,
                _ if seq % 3 == 0 => Level::Attention,
                _ => Level::Info,
            };
            let at = "2026-09-01T18:42:10Z".parse().unwrap();
            let by = Actor { name: "admin@example.com".to_owned(), is_agent: false };
            let read = (seq % 2 == 0).then_some(Mark { at, by });
            (notification(seq, level), Marks { read, acknowledged: None })
        });
        Self { all: all.collect(), looks_at }
    }
}

fn notification(seq: u64, level: Level) -> Notification {
    let at = "2026-09-01T18:42:10Z".parse().unwrap();
    let event = Event {
        event_id: format!("event-{seq}"),
        name: "domain.active".to_owned(),
        timestamp: at,
        level,
        subject: Some("acme.example".to_owned()),
        title: format!("title <{seq}>"),
        body: None,
        link: None,
        data: "{\"payload\":\"never shown\"}".to_owned(),
        content: None,
    };
    let (workspace, source) = ("acme".parse().unwrap(), "registrar".parse().unwrap());
    Notification { workspace, seq, source, received_at: at, effective_level: level, event }
}

impl Reader for Made {
    fn list(&self, query: Query) -> BoxFuture<'_, Result<Listed, InboxError>> {
        let mut all: Vec<_> = self.all.clone();
        if query.order == Order::Newest {
            all.reverse();
        }
        all.retain(|(one, _)| {
            query.after.is_none_or(|after| one.seq > after) && query.before.is_none_or(|before| one.seq < before)
        });
        let mut listed = Listed::default();
        for (looked, (one, marks)) in all.iter().enumerate() {
            if looked == self.looks_at || listed.items.len() == query.limit as usize {
                listed.next = looked.checked_sub(1).and_then(|last| all.get(last)).map(|(last, _)| last.seq);
                break;
            }
            let facts = Facts {
                source: &one.source,
                name: &one.event.name,
                effective_level: one.effective_level,
                subject: one.event.subject.as_deref(),
            };
            let fits = query.when.as_ref().is_none_or(|when| when.matches(&facts));
            if fits && !(query.is_unread && marks.read.is_some()) {
                listed.items.push((one.clone(), marks.clone()));
            }
        }
        async { Ok(listed) }.boxed()
    }

    fn unread<'a>(&'a self, _: &'a Name, _: u32) -> BoxFuture<'a, Result<u32, InboxError>> {
        async { Ok(0) }.boxed()
    }

    fn last_seq<'a>(&'a self, _: &'a Name) -> BoxFuture<'a, Result<u64, InboxError>> {
        async { Ok(self.all.last().map_or(0, |(one, _)| one.seq)) }.boxed()
    }

    fn changes<'a>(&'a self, _: &'a Name, _: u64, _: u32) -> BoxFuture<'a, Result<Changes, InboxError>> {
        async { Ok(Changes::default()) }.boxed()
    }

    fn follow<'a>(&'a self, _: &'a Name) -> BoxFuture<'a, Result<watch::Receiver<u64>, InboxError>> {
        async { Ok(watch::channel(0).1) }.boxed()
    }
}

async fn page_of(made: &Made, query: &str) -> Found {
    let (filter, part) = Filter::read(&Asked::read(query.as_bytes()));
    find(made, &"acme".parse().unwrap(), &filter, part).await.unwrap()
}

fn seqs(found: &Found) -> Vec<u64> {
    found.items.iter().map(|(one, _)| one.seq).collect()
}

/// The numbers of all pages, one after the other, by the links of each.
async fn walk(made: &Made, query: &str) -> Vec<u64> {
    let (filter, _) = Filter::read(&Asked::read(query.as_bytes()));
    let mut address = query.to_owned();
    let mut all = Vec::new();
    for _ in 0..1_000 {
        let found = page_of(made, &address).await;
        all.extend(seqs(&found));
        let Some(older) = found.older else { return all };
        address = filter.address(older).split_once('?').unwrap().1.to_owned();
    }
    panic!("the pages have no end: {all:?}");
}

#[tokio::test]
async fn pages_miss_nothing_and_repeat_nothing_however_little_one_answer_looks_at() {
    for (count, looks_at) in [(0, 10), (1, 10), (50, 500), (51, 500), (230, 500), (230, 17), (230, 1)] {
        let made = Made::new(count, looks_at);
        assert_eq!(walk(&made, "").await, (1..=count).rev().collect::<Vec<_>>(), "{count} {looks_at}");
        let unread: Vec<u64> = (1..=count).rev().filter(|seq| seq % 2 == 1).collect();
        assert_eq!(walk(&made, "unread=1").await, unread, "{count} {looks_at}");
        let loud: Vec<u64> = (1..=count).rev().filter(|seq| seq % 7 == 0 || seq % 3 == 0).collect();
        assert_eq!(walk(&made, "level=attention").await, loud, "{count} {looks_at}");
    }
}

#[tokio::test]
async fn by_level_every_louder_one_comes_before_every_quieter_one() {
    for (count, looks_at) in [(0, 10), (3, 10), (400, 1_000), (400, 33), (100, 1)] {
        let made = Made::new(count, looks_at);
        let of = |level: Level| {
            let all = made.all.iter().rev().filter(move |(one, _)| one.effective_level == level);
            all.map(|(one, _)| one.seq).collect::<Vec<_>>()
        };
        let expected = [of(Level::Urgent), of(Level::Attention), of(Level::Info)].concat();
        assert_eq!(walk(&made, "sort=level").await, expected, "{count} {looks_at}");
        let least = [of(Level::Urgent), of(Level::Attention)].concat();
        assert_eq!(walk(&made, "sort=level&level=attention").await, least, "{count} {looks_at}");
    }
}

#[tokio::test]
async fn newer_leads_back_over_the_same_pages() {
    let made = Made::new(230, 500);
    let second = page_of(&made, "before=181").await;
    assert_eq!(seqs(&second), (131..=180).rev().collect::<Vec<_>>());
    assert_eq!(second.newer, Some(Part::After(180)));
    let first = page_of(&made, "after=180").await;
    assert_eq!(seqs(&first), (181..=230).rev().collect::<Vec<_>>());
    assert_eq!(first.newer, None, "nothing is newer than the front");
    let middle = page_of(&made, "after=100").await;
    assert_eq!((seqs(&middle).first(), seqs(&middle).last()), (Some(&150), Some(&101)));
    assert_eq!((middle.newer, middle.older), (Some(Part::After(150)), Some(Part::Before(101))));
}

#[test]
fn a_line_shows_text_and_never_the_payload() {
    let made = Made::new(7, 10);
    let shown = rows(&made.all, ("/w/acme/inbox", ""), Besides::default()).into_string();
    let narrow = rows(&made.all, ("/w/acme/inbox", "?q=a&unread=1"), Besides::default()).into_string();
    assert!(narrow.contains("href=\"/w/acme/inbox/7?q=a&amp;unread=1\""), "{narrow}");
    assert!(shown.contains("title &lt;7&gt;") && !shown.contains("title <7>"), "{shown}");
    assert!(!shown.contains("payload") && !shown.contains("never shown"), "{shown}");
    assert_eq!(shown.matches("class=\"row unread").count(), 4, "{shown}");
    assert_eq!(shown.matches("<span class=\"vh\">Unread</span>").count(), 4, "{shown}");
}
