//! What readers ask for.

use std::sync::Arc;

use fastrand::Rng;
use switchbell::inbox::{Actor, Deed, Entry, Intake, Listed, Mark, Marks, Order, QUERY_LIMIT_MAX, Query};
use switchbell::notification::{Event, Level, Notification};
use switchbell::route::{Facts, Matcher, PreparedMatcher};

use super::stage::{Place, Stage, about, at, entry, intake, large, name, owing, rule, urgent};

fn query() -> Query {
    Query::all(name("acme"), 100)
}

async fn list(stage: &Stage, query: Query) -> Listed {
    stage.inbox().list(query).await.unwrap()
}

fn seqs(listed: &Listed) -> Vec<u64> {
    listed.items.iter().map(|(one, _)| one.seq).collect()
}

fn plain(number: usize) -> Entry {
    owing(entry(&format!("e{number}")), &[])
}

fn when(matcher: Matcher) -> Option<Arc<PreparedMatcher>> {
    Some(Arc::new(PreparedMatcher::new(matcher).unwrap()))
}

fn strings(patterns: &[&str]) -> Vec<String> {
    patterns.iter().map(|&pattern| pattern.to_owned()).collect()
}

async fn mark(stage: &Stage, seqs: &[u64], deed: Deed) {
    let by = Actor { name: "admin@example.com".to_owned(), is_agent: false };
    stage.inbox().mark(&name("acme"), seqs.to_vec(), deed, Mark { at: at(50), by }).await.unwrap();
}

/// All of it, page by page.
async fn walk(stage: &Stage, mut query: Query) -> Vec<(Notification, Marks)> {
    let mut all = Vec::new();
    loop {
        let listed = list(stage, query.clone()).await;
        assert!(listed.items.len() <= query.limit as usize);
        all.extend(listed.items);
        match (listed.next, query.order) {
            (None, _) => return all,
            (next, Order::Newest) => query.before = next,
            (next, Order::Oldest) => query.after = next,
        }
    }
}

pub async fn a_list_goes_on_behind_its_last_in_both_orders(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(1), (1..=10).map(plain).collect()).await;
    stage.inbox().accept(intake("globex", at(1), vec![plain(1)])).await.unwrap();
    let newest = list(&stage, Query { limit: 4, ..query() }).await;
    assert_eq!((seqs(&newest), newest.next), (vec![10, 9, 8, 7], Some(7)));
    let rest = list(&stage, Query { before: Some(7), ..query() }).await;
    assert_eq!((seqs(&rest), rest.next), (vec![6, 5, 4, 3, 2, 1], None));
    let oldest = list(&stage, Query { limit: 5, order: Order::Oldest, ..query() }).await;
    assert_eq!((seqs(&oldest), oldest.next), (vec![1, 2, 3, 4, 5], Some(5)));
    let last = list(&stage, Query { limit: 5, order: Order::Oldest, after: Some(5), ..query() }).await;
    assert_eq!((seqs(&last), last.next), (vec![6, 7, 8, 9, 10], None), "a page that ends with the last says so");
    assert_eq!(last.items[0].0, stage.inbox().notification(&name("acme"), 6).await.unwrap().unwrap());
    let between = list(&stage, Query { after: Some(2), before: Some(5), ..query() }).await;
    assert_eq!(seqs(&between), [4, 3]);
    for (after, before) in [(Some(10), None), (None, Some(1)), (Some(u64::MAX), None), (Some(5), Some(3))] {
        let none = list(&stage, Query { after, before, ..query() }).await;
        assert!(none.items.is_empty() && none.next.is_none(), "{after:?} {before:?}");
    }
    assert_eq!(list(&stage, Query { before: Some(u64::MAX), limit: u32::MAX, ..query() }).await.items.len(), 10);
    assert!(list(&stage, Query::all(name("nobody"), 5)).await.items.is_empty());
}

pub async fn every_filter_narrows_a_list(place: Place) {
    let stage = Stage::new(place, Vec::new()).await;
    let mut with_body = about(plain(1), Some("b.example"));
    with_body.event.body = Some("Der GRÖSSTE Fehler".to_owned());
    let mut info = about(plain(2), None);
    (info.effective_level, info.event.name) = (Level::Info, "mail.bounced".to_owned());
    stage.accept(at(1), vec![with_body, info]).await;
    let of_another = Intake { source: name("crm"), ..intake("acme", at(20), vec![urgent(plain(3))]) };
    stage.inbox().accept(of_another).await.unwrap();
    stage.accept(at(30), vec![plain(4)]).await;
    mark(&stage, &[1], Deed::Read).await;
    mark(&stage, &[4], Deed::Acknowledge).await;
    let check = async |expected: &[u64], query: Query| assert_eq!(seqs(&list(&stage, query).await), expected);
    check(&[4, 3, 2, 1], query()).await;
    check(&[3, 2], Query { is_unread: true, ..query() }).await;
    check(&[3, 2, 1], Query { is_unacknowledged: true, ..query() }).await;
    check(&[3], Query { seqs: vec![1, 3, 4, 9], is_unread: true, ..query() }).await;
    check(&[4, 3], Query { since: Some(at(20)), ..query() }).await;
    check(&[4, 2], Query { seqs: vec![2, 4, 4], ..query() }).await;
    let of = |matcher| Query { when: when(matcher), ..query() };
    check(&[3], of(Matcher { source: strings(&["cr*"]), ..Matcher::default() })).await;
    check(&[2], of(Matcher { name: strings(&["mail.*"]), ..Matcher::default() })).await;
    check(&[4, 3, 1], of(Matcher { not: strings(&["mail.*"]), ..Matcher::default() })).await;
    check(&[1], of(Matcher { subject: strings(&["b.*"]), ..Matcher::default() })).await;
    check(&[4, 3, 1], of(Matcher { level: Some(Level::Attention), ..Matcher::default() })).await;
    check(&[3], of(Matcher { level: Some(Level::Urgent), ..Matcher::default() })).await;
    let text = |text: &str| Query { text: Some(text.to_owned()), ..query() };
    check(&[1], text("grösste")).await;
    check(&[2], text("MAIL.b")).await;
    check(&[1], text("B.EXAMPLE")).await;
    check(&[3], text("title of e3")).await;
    check(&[], text("1e400")).await;
    check(&[4, 3, 2, 1], text("")).await;
}

fn random_query(random: &mut Rng) -> Query {
    let mut one_in = |many: u32| random.u32(..many) == 0;
    let (is_unread, is_unacknowledged, has_text, has_since) = (one_in(3), one_in(3), one_in(4), one_in(4));
    let (has_seqs, has_after, has_before) = (one_in(6), one_in(3), one_in(3));
    let level = [None, Some(Level::Info), Some(Level::Attention), Some(Level::Urgent)][random.usize(..4)];
    let names = [strings(&[]), strings(&["domain.*"]), strings(&["**.lapsed"])][random.usize(..3)].clone();
    let subject = [strings(&[]), strings(&["a*"])][random.usize(..2)].clone();
    Query {
        seqs: if has_seqs { (0..20).map(|_| random.u64(..220)).collect() } else { Vec::new() },
        after: has_after.then(|| random.u64(..200)),
        before: has_before.then(|| random.u64(..250)),
        since: has_since.then(|| at(random.u64(..200))),
        is_unread,
        is_unacknowledged,
        when: when(Matcher { name: names, level, subject, ..Matcher::default() }),
        text: has_text.then(|| ["E1", "lapsed", "a.exa"][random.usize(..3)].to_owned()),
        order: if random.bool() { Order::Newest } else { Order::Oldest },
        limit: random.u32(1..60),
        ..query()
    }
}

fn is_meant(query: &Query, (one, marks): &(Notification, Marks)) -> bool {
    let Event { name, subject, title, body, .. } = &one.event;
    let facts = Facts { source: &one.source, name, effective_level: one.effective_level, subject: subject.as_deref() };
    let holds =
        |field: &str| query.text.as_ref().is_none_or(|text| field.to_lowercase().contains(&text.to_lowercase()));
    (query.seqs.is_empty() || query.seqs.contains(&one.seq))
        && query.after.is_none_or(|after| one.seq > after)
        && query.before.is_none_or(|before| one.seq < before)
        && query.since.is_none_or(|since| one.received_at >= since)
        && !(query.is_unread && marks.read.is_some())
        && !(query.is_unacknowledged && marks.acknowledged.is_some())
        && query.when.as_ref().is_none_or(|when| when.matches(&facts))
        && [Some(name), subject.as_ref(), Some(title), body.as_ref()].into_iter().flatten().any(|field| holds(field))
}

pub async fn filters_agree_with_a_look_at_everything(place: Place) {
    let mut random = Rng::with_seed(3);
    let stage = Stage::new(place, Vec::new()).await;
    for number in 1..=200 {
        let mut one = about(plain(number), [None, Some("a.example"), Some("b.example")][random.usize(..3)]);
        one.effective_level = Level::ALL[random.usize(..3)];
        if random.bool() {
            one.event.name = "domain.zone.lapsed".to_owned();
        }
        // The clock is set back now and then.
        stage.accept(at((number as u64).saturating_sub(random.u64(..3) * 20)), vec![large(one, 9_000)]).await;
    }
    for _ in 0..60 {
        let deed = if random.bool() { Deed::Read } else { Deed::Acknowledge };
        mark(&stage, &[random.u64(1..=200)], deed).await;
    }
    let all = walk(&stage, Query { limit: QUERY_LIMIT_MAX, order: Order::Oldest, ..query() }).await;
    assert_eq!(all.len(), 200);
    let mut hits = 0;
    for _ in 0..300 {
        let query = random_query(&mut random);
        let mut expected: Vec<_> = all.iter().filter(|one| is_meant(&query, one)).cloned().collect();
        if query.order == Order::Newest {
            expected.reverse();
        }
        hits += usize::from(!expected.is_empty());
        assert_eq!(walk(&stage, query.clone()).await, expected, "{query:?}");
    }
    assert!(hits > 100, "too little was found: {hits}");
}

pub async fn a_walk_from_the_oldest_meets_what_comes_meanwhile(place: Place) {
    let stage = Stage::new(place, Vec::new()).await;
    stage.accept(at(1), (1..=5).map(plain).collect()).await;
    let mut query = Query { order: Order::Oldest, limit: 2, is_unread: true, ..query() };
    let (mut met, mut written) = (Vec::new(), 5);
    loop {
        let listed = list(&stage, query.clone()).await;
        met.extend(seqs(&listed));
        if written < 12 {
            written += 1;
            stage.accept(at(2), vec![plain(written)]).await;
            mark(&stage, &seqs(&listed), Deed::Read).await;
        }
        // Where there was no more, there may be by now.
        if listed.items.is_empty() {
            break;
        }
        query.after = listed.next.or(met.last().copied());
    }
    assert!(met.iter().copied().eq(1..=12), "{met:?}");
}

pub async fn a_list_that_finds_few_says_where_to_go_on(place: Place) {
    const MANY: usize = 30_000;
    let stage = Stage::new(place, Vec::new()).await;
    for from in (1..=MANY).step_by(10_000) {
        stage.accept(at(1), (from..from + 10_000).map(plain).collect()).await;
    }
    let mut query = Query { text: Some("title of e5".to_owned()), limit: 5, order: Order::Oldest, ..query() };
    let first = list(&stage, query.clone()).await;
    assert_eq!((seqs(&first), first.next), (vec![5, 50, 51, 52, 53], Some(53)));
    query.after = Some(5_999);
    let second = list(&stage, query.clone()).await;
    let next = second.next.unwrap();
    assert!(second.items.is_empty() && next > 6_000 && next < MANY as u64, "one call does not look at all: {next}");
    query.after = None;
    let all: Vec<u64> = walk(&stage, query).await.iter().map(|(one, _)| one.seq).collect();
    assert_eq!(all.len(), 1 + 10 + 100 + 1_000);
}

pub async fn unread_ones_are_counted_up_to_a_limit(place: Place) {
    let stage = Stage::new(place, Vec::new()).await;
    let count = async |most| stage.inbox().unread(&name("acme"), most).await.unwrap();
    assert_eq!(count(9).await, 0);
    stage.accept(at(1), (1..=5).map(plain).collect()).await;
    stage.inbox().accept(intake("globex", at(1), vec![plain(1)])).await.unwrap();
    assert_eq!((count(9).await, count(3).await, count(0).await), (5, 3, 0));
    mark(&stage, &[1, 2], Deed::Acknowledge).await;
    assert_eq!(count(9).await, 3);
}

pub async fn numbers_that_are_none_are_left_out(place: Place) {
    let stage = Stage::new(place, Vec::new()).await;
    stage.accept(at(1), vec![plain(1)]).await;
    let seqs_asked = vec![0, 1, 2, 1 << 40, u64::MAX];
    let listed = list(&stage, Query { seqs: seqs_asked.clone(), is_unacknowledged: true, ..query() }).await;
    assert_eq!(seqs(&listed), [1]);
    let listed = list(&stage, Query { seqs: seqs_asked, ..query() }).await;
    assert_eq!(seqs(&listed), [1], "without another filter, too");
}
