use super::*;
use crate::config::{Place, Route};
use crate::notification::{Level, Name};
use crate::route::timing::{After, Except, Timing, Unless};
use crate::route::{Acknowledged, Matcher, Router};

const MINUTE: Duration = Duration::from_secs(60);
const PLACE: Place = Place { line: 1, column: 1 };

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn at(minute: u32) -> Timestamp {
    later(Timestamp::UNIX_EPOCH, minute * MINUTE)
}

/// A route `loud` of what wants attention: `chat` at once, `page` after ten minutes unless somebody acknowledges it.
fn workspace() -> Workspace {
    let chat = Target::plain("chat".to_owned(), name("slack"), serde_json::json!({}));
    let timing = Timing {
        after: Some(After { wait: 10 * MINUTE, except: Except::Nothing }),
        unless: Some(Unless::AcknowledgedByPerson),
        ..Timing::default()
    };
    let page = Target { id: "page".to_owned(), plugin: name("mail"), timing, ..chat.clone() };
    let when = Matcher { level: Some(Level::Attention), ..Matcher::default() };
    let deliver = vec![chat, page];
    let route = Route { name: name("loud"), owner: "a@example.com".to_owned(), when: when.clone(), deliver };
    Workspace {
        consumers: Default::default(),
        kept: Default::default(),
        name: name("acme"),
        file: "acme.yaml".into(),
        members: Default::default(),
        connectors: Default::default(),
        routes: vec![route],
        router: Router::new(vec![when]).unwrap(),
    }
}

fn trial(levels: &[Level], marks: Vec<TrialMark>, expected: Vec<Expected>) -> Trial {
    let event = |(minute, level): (u32, &Level)| TrialEvent {
        at: at(minute),
        source: name("registrar"),
        name: "domain.active".to_owned(),
        level: *level,
        subject: None,
    };
    Trial {
        name: "a test".to_owned(),
        place: PLACE,
        start: at(0),
        events: (0..).zip(levels).map(event).collect(),
        marks,
        until: None,
        routes: None,
        expected,
    }
}

fn expected(target: &str, minute: Option<u32>, events: Option<&[u64]>) -> Expected {
    Expected {
        place: PLACE,
        route: 0,
        target: Some(target.to_owned()),
        plugin: None,
        at: minute.map(at),
        events: events.map(<[u64]>::to_vec),
        omitted: None,
    }
}

#[test]
fn what_is_expected_and_made_is_good_in_whatever_order_it_is_written() {
    let both = vec![expected("page", Some(10), Some(&[1])), expected("chat", None, None)];
    assert!(run(&trial(&[Level::Urgent], vec![], both), &workspace()).is_good());
    assert!(run(&trial(&[Level::Info], vec![], vec![]), &workspace()).is_good());
}

#[test]
fn an_expectation_that_says_little_leaves_those_that_say_more_what_they_need() {
    let lines = vec![
        expected("chat", None, None),
        expected("chat", Some(0), None),
        expected("page", None, None),
        expected("page", None, Some(&[1])),
    ];
    assert!(run(&trial(&[Level::Urgent, Level::Urgent], vec![], lines), &workspace()).is_good());
}

#[test]
fn what_nothing_expects_is_a_failure() {
    let ran = run(&trial(&[Level::Urgent], vec![], vec![expected("chat", None, None)]), &workspace());
    assert_eq!((ran.unmet.len(), ran.unexpected.as_slice()), (0, &[1][..]));
    assert_eq!(ran.made[1].gone.at, at(10));
}

fn check_unmet(trial: &Trial, expected: Unmet) {
    let ran = run(trial, &workspace());
    assert_eq!(ran.unmet.last().map(|(_, why)| why), Some(&expected));
}

#[test]
fn why_an_expectation_is_not_met_is_said_as_far_as_it_is_known() {
    let condition = Condition {
        field: crate::route::Field::Level,
        asked: "attention or above".to_owned(),
        found: "info".to_owned(),
        holds: false,
    };
    let never = trial(&[Level::Info], vec![], vec![expected("chat", None, Some(&[1]))]);
    check_unmet(&never, Unmet::NoMatch(1, condition));
    let mark = TrialMark { at: at(3), event: 1, by: Acknowledged::ByPerson };
    let lines = || vec![expected("chat", None, None), expected("page", None, None)];
    check_unmet(&trial(&[Level::Urgent], vec![mark], lines()), Unmet::Suppressed(at(3)));
    let other_time = vec![expected("chat", None, None), expected("page", Some(9), Some(&[1]))];
    check_unmet(&trial(&[Level::Urgent], vec![], other_time), Unmet::Otherwise(1));
    let twice = vec![expected("page", None, None), expected("chat", None, None), expected("chat", None, None)];
    check_unmet(&trial(&[Level::Urgent], vec![], twice), Unmet::Taken(0));
    let early = Trial { until: Some(at(9)), ..trial(&[Level::Urgent], vec![], lines()) };
    check_unmet(&early, Unmet::Waits);
}

#[test]
fn only_the_routes_that_are_asked_for_are_looked_at() {
    let none = Trial { routes: Some(vec![]), ..trial(&[Level::Urgent], vec![], vec![]) };
    assert!(run(&none, &workspace()).is_good());
}
