use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::config::{Role, Route, Target};
use crate::route::{Matcher, Router};

fn workspace(members: &[&str]) -> Workspace {
    let deliver = vec![Target::plain("ops".to_owned(), "slack".parse().unwrap(), Value::Null)];
    let (name, owner) = ("domain-news".parse().unwrap(), "admin@example.com".to_owned());
    Workspace {
        consumers: Default::default(),
        kept: Default::default(),
        name: "acme".parse().unwrap(),
        file: "acme.yaml".into(),
        members: members.iter().map(|member| ((*member).to_owned(), Role::Admin)).collect(),
        connectors: BTreeMap::new(),
        routes: vec![Route { name, owner, when: Matcher::default(), deliver }],
        router: Router::new(Vec::new()).unwrap(),
    }
}

fn asked(json: Value) -> WhichJson {
    serde_json::from_value(json).unwrap()
}

#[test]
fn a_filter_without_states_means_those_that_the_change_is_for() {
    let states = |change, json| which(change, &asked(json)).unwrap().states;
    assert_eq!(states(Change::Retry, json!({"route": "domain-news"})), [State::Dead, State::Blocked]);
    assert_eq!(states(Change::Retry, json!({"all": true})), [State::Dead, State::Blocked]);
    assert_eq!(states(Change::Retry, json!({"states": ["unknown"]})), [State::Unknown]);
    assert_eq!(states(Change::Retry, json!({"ids": ["5f3a9c01-1"]})), []);
    let cancelled = states(Change::Cancel, json!({"since": "2026-09-01T00:00:00Z"}));
    assert!(cancelled.contains(&State::Scheduled) && cancelled.contains(&State::Blocked), "{cancelled:?}");
    assert!(cancelled.iter().all(|state| !state.is_final()), "{cancelled:?}");
}

fn check_refused(json: Value, says: &str) {
    let refused = which(Change::Retry, &asked(json.clone())).unwrap_err().to_string();
    assert!(refused.contains(says), "{json}: {refused}");
}

#[test]
fn what_makes_no_sense_is_refused_with_its_remedy() {
    check_refused(json!({}), "name the deliveries to retry: ids, a filter such as --route NAME, or --all");
    check_refused(json!({"ids": ["17"]}), "\"17\": a delivery's id is eight hexadecimal digits");
    check_refused(json!({"states": ["deed"]}), "unknown state \"deed\": did you mean \"dead\"?");
    check_refused(json!({"route": "A b"}), "a name is 1 to 63");
    check_refused(json!({"since": "yesterday"}), "\"yesterday\" is no moment of RFC 3339");
    let ids: Vec<String> = (1..=HANDLED_MAX + 1).map(|number| format!("5f3a9c01-{number}")).collect();
    check_refused(json!({"ids": ids}), "1001 ids: name at most 1000");
    assert_eq!(which(Change::Retry, &asked(json!({"ids": ids[1..]}))).unwrap().ids.len(), HANDLED_MAX as usize);
}

#[test]
fn whoever_marks_is_a_member() {
    let check =
        |members: &[&str], named, expected: Result<&str, &str>| match (member(&workspace(members), named), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(refusal), Err(says)) => assert!(refusal.to_string().contains(says), "{refusal}"),
            (found, _) => panic!("{members:?} {named:?}: {found:?}"),
        };
    let two = ["admin@example.com", "other@example.com"];
    check(&two[..1], None, Ok("admin@example.com"));
    check(&two, Some("other@example.com"), Ok("other@example.com"));
    check(&two, None, Err("--by NAME is needed: who of acme is it? (members: admin@example.com, other@example.com)"));
    check(&two, Some("othr@example.com"), Err("did you mean \"other@example.com\"?"));
    check(&[], None, Err("acme has no members: write them under `members` in acme.yaml"));
}

#[test]
fn a_filter_for_what_is_not_there_says_what_there_is() {
    let check = |route: Option<&str>, plugin: Option<&str>, expected: Option<&str>| {
        let name = |text: &str| text.parse().unwrap();
        let said = unknown_filter(&workspace(&[]), route.map(name).as_ref(), plugin.map(name).as_ref());
        assert_eq!(said.as_deref(), expected);
    };
    check(Some("domain-news"), Some("slack"), None);
    check(
        Some("domain-new"),
        None,
        Some("unknown route \"domain-new\" in acme: did you mean \"domain-news\"? (its routes: domain-news)"),
    );
    check(None, Some("mail"), Some("no route of acme delivers by \"mail\" (its plugins: slack)"));
}
