//! What comes in, and what it owes from that very write on.

use std::sync::atomic::Ordering;

use switchbell::inbox::delivery::State;
use switchbell::inbox::{Intake, Which};
use switchbell::notification::Level;

use super::stage::{
    Gate, Place, Stage, at, entries, entry, intake, large, name, owing, page, queue, rule, seqs, urgent, want,
};

pub async fn an_event_is_accepted_once_and_the_first_write_wins(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    let mut other = entry("e1");
    other.event.title = "another title".to_owned();
    let accepted = stage.try_accept(at(1), vec![entry("e1"), other.clone(), entry("e2")]).await.unwrap();
    assert_eq!(accepted.seqs, [Some(1), None, Some(2)]);
    let again = stage.try_accept(at(2), vec![other, entry("e3")]).await.unwrap();
    assert_eq!(again.seqs, [None, Some(3)], "numbers have no gap where an event was there already");
    let first = stage.inbox().notification(&name("acme"), 1).await.unwrap().unwrap();
    assert_eq!((first.event.title.as_str(), first.received_at), ("title of e1", at(1)));
    assert_eq!(stage.views().await.len(), 3, "a repeated event owes nothing");
}

pub async fn ids_are_compared_within_their_source(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(1), vec![entry("e1")]).await;
    let of_another = Intake { source: name("crm"), ..intake("acme", at(1), vec![entry("e1")]) };
    assert_eq!(stage.inbox().accept(of_another).await.unwrap().seqs, [Some(2)]);
}

pub async fn what_is_accepted_is_read_back_as_it_was(place: Place) {
    let mut stage = Stage::new(place, vec![rule("t")]).await;
    let mut sent = urgent(entry("e1"));
    sent.event.body = Some("two\nlines".to_owned());
    sent.event.link = Some("https://example.com/a".to_owned());
    stage.accept(at(1), vec![sent.clone()]).await;
    stage.reopen(at(2)).await;
    let stored = stage.inbox().notification(&name("acme"), 1).await.unwrap().unwrap();
    assert_eq!(stored.event, sent.event);
    assert_eq!((stored.effective_level, stored.received_at), (Level::Urgent, at(1)));
    assert_eq!(stage.claim_one(at(2)).await.notifications, [stored]);
}

pub async fn a_delivery_is_owed_from_the_same_write_on(place: Place) {
    let mut stage = Stage::new(place, vec![rule("t"), rule("u")]).await;
    stage.accept(at(1), vec![owing(entry("e1"), &["t", "u"])]).await;
    stage.reopen(at(2)).await;
    assert_eq!(stage.states().await, [State::Pending, State::Pending]);
    let view = stage.views().await.remove(1);
    assert_eq!((view.route, view.target.as_str(), view.plugin), (name("news"), "u", name("slack")));
    assert_eq!((view.created_at, view.due_at, view.next_at), (at(1), at(1), Some(at(1))));
    assert_eq!((view.seqs, view.omitted, view.retry_of), (vec![1], 0, None));
}

pub async fn what_is_let_in_is_in_flight_and_comes_as_news(place: Place) {
    let mut stage = Stage::new(place, vec![rule("t")]).await;
    stage.let_in(Gate::with_room_for(1)).await;
    stage.news();
    stage.accept(at(1), entries(1, 2)).await;
    let news = stage.inbox().news().await;
    let claim = &news.claims[0];
    assert_eq!((news.claims.len(), seqs(claim), claim.attempt.get()), (1, vec![1], 1));
    assert_eq!((&claim.queue, claim.due_at, claim.since), (&queue("t"), at(1), at(1)));
    assert!(claim.begun.is_none() && claim.resume.is_none());
    assert_eq!(news.due, [(queue("t"), at(1))], "what was not let in is due");
    assert_eq!(stage.states().await, [State::InFlight, State::Pending]);
    assert_eq!(seqs(&stage.claim_one(at(1)).await), [2], "what is in flight is not handed out again");
    stage.finish(claim, at(2), super::stage::delivered()).await;
    assert_eq!(stage.states().await, [State::Delivered, State::InFlight]);
}

pub async fn what_is_due_comes_as_news_where_nobody_lets_in(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    stage.news();
    stage.accept(at(1), vec![owing(entry("e0"), &[])]).await;
    let news = stage.news();
    assert!(news.claims.is_empty() && news.due.is_empty(), "nothing is owed");
    stage.accept(at(1), entries(1, 1)).await;
    assert_eq!(stage.inbox().news().await.due, [(queue("t"), at(1))]);
    let news = stage.news();
    assert!(news.claims.is_empty() && news.due.is_empty(), "news is told once");
}

pub async fn nothing_that_was_let_in_survives_a_write_that_fails(place: Place) {
    let mut stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(1), vec![owing(entry("e0"), &[])]).await;
    let gate = stage.let_in(Gate { breaks: true, ..Gate::with_room_for(2) }).await;
    stage.news();
    assert!(stage.try_accept(at(2), entries(1, 3)).await.is_err());
    assert_eq!(gate.given_back.load(Ordering::SeqCst), 2, "what was let in is taken back");
    let news = stage.news();
    assert!(news.claims.is_empty() && news.due.is_empty(), "{news:?}");
    assert!(stage.views().await.is_empty());
    assert_eq!(stage.inbox().notifications(page("acme")).await.unwrap().len(), 1);
    gate.free.store(3, Ordering::SeqCst);
    assert_eq!(stage.accept(at(3), entries(1, 3)).await, [2, 3, 4], "and it can be written again");
}

pub async fn a_large_intake_is_written_in_order(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    let sent = Intake { cursor: Some("end".to_owned()), ..intake("acme", at(1), entries(1, 2_500)) };
    let accepted = stage.inbox().accept(sent).await.unwrap();
    assert!(accepted.seqs.into_iter().eq((1..=2_500).map(Some)));
    let reading = stage.inbox().reading(&name("acme"), &name("registrar")).await.unwrap();
    assert_eq!((reading.cursor.as_deref(), reading.moved_at), (Some("end"), Some(at(1))));
    let all = [super::stage::want(queue("t"))].map(|one| switchbell::inbox::Want { most: 5_000, ..one });
    let claims = stage.inbox().claim(at(1), all.to_vec()).await.unwrap().claims;
    assert!(claims.iter().map(seqs).eq((1..=2_500).map(|seq| vec![seq])));
}

pub async fn the_hosts_notices_are_written_with_the_read_and_owe_like_any_other(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    let sent = Intake { notices: vec![entry("notice")], ..intake("acme", at(1), entries(1, 1)) };
    let accepted = stage.inbox().accept(sent).await.unwrap();
    assert_eq!((accepted.seqs, accepted.notice_seqs), (vec![Some(1)], vec![Some(2)]));
    let notice = stage.inbox().notification(&name("acme"), 2).await.unwrap().unwrap();
    assert_eq!(notice.source.as_str(), "switchbell");
    assert_eq!(stage.claims(at(1)).await.len(), 2);
}

pub async fn two_workspaces_do_not_mix(place: Place) {
    let other = |mut rule: switchbell::inbox::book::Rule| {
        rule.queue.workspace = name("other");
        rule
    };
    let stage = Stage::new(place, vec![rule("t"), other(rule("t"))]).await;
    for workspace in ["acme", "other"] {
        let accepted = stage.inbox().accept(intake(workspace, at(1), vec![entry("e1")])).await.unwrap();
        assert_eq!(accepted.seqs, [Some(1)], "each counts for itself");
    }
    let claimed = stage.inbox().claim(at(1), vec![want(queue("t"))]).await.unwrap();
    assert_eq!(claimed.claims.len(), 1);
    let (acme, foreign) = (name("acme"), name("other"));
    assert_eq!(claimed.claims[0].notifications[0].workspace, acme);
    let theirs = stage.inbox().deliveries(page("other"), Which::default()).await.unwrap();
    assert_eq!(theirs.iter().map(|view| view.state).collect::<Vec<_>>(), [State::Pending]);
    // Nobody reaches over by an id.
    let which = Which { ids: vec![theirs[0].id.clone()], ..Which::default() };
    let handled = stage.inbox().cancel(&acme, which.clone(), "mine".to_owned()).await.unwrap();
    assert_eq!((handled.done.len(), handled.missing), (0, which.ids.clone()));
    assert_eq!(stage.inbox().retry(&acme, which.clone(), at(2)).await.unwrap().missing, which.ids);
    let handled = stage.inbox().cancel(&foreign, which, "ours".to_owned()).await.unwrap();
    assert_eq!(handled.done.len(), 1);
}

pub async fn data_comes_back_byte_for_byte_whatever_its_size(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    let sent = large(entry("e1"), 60_000);
    stage.accept(at(1), vec![sent.clone()]).await;
    assert_eq!(stage.claim_one(at(1)).await.notifications[0].event.data, sent.event.data);
}

pub async fn what_came_with_a_first_answer_is_known_by_that(place: Place) {
    let mut stage = Stage::new(place, vec![rule("t")]).await;
    let first = Intake { is_first: true, notices: vec![entry("notice")], ..intake("acme", at(1), entries(1, 1_500)) };
    stage.inbox().accept(first).await.unwrap();
    stage.accept(at(2), vec![entry("later")]).await;
    stage.reopen(at(3)).await;
    for (seq, expected) in [(1, true), (1_500, true), (1_501, false), (1_502, false), (9_999, false)] {
        let found = stage.inbox().is_of_first_read(&name("acme"), seq).await.unwrap();
        assert_eq!(found, expected, "{seq}");
    }
    assert!(!stage.inbox().is_of_first_read(&name("other"), 1).await.unwrap());
}
