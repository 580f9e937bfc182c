//! Every case of `tests/cases/events`: an event, and what must become of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::*;

/// The cases may grow, never shrink unnoticed.
const CASES_MIN: usize = 60;

/// One file. The event and the payload stand there byte for byte; `${KEY}` in either is filled with a text repeated,
/// so that a limit can be met without a page of letters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    event: Box<RawValue>,
    #[serde(default)]
    fill: BTreeMap<String, (String, usize)>,
    accepted: Option<Box<RawValue>>,
    dropped: Option<String>,
}

/// The fields of an accepted event; those left out are absent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Accepted {
    event_id: String,
    name: String,
    timestamp: String,
    level: String,
    subject: Option<String>,
    title: String,
    body: Option<String>,
    link: Option<String>,
    data: Box<RawValue>,
    cursor: Option<String>,
}

impl Case {
    fn filled(&self, text: &str) -> String {
        let fill = |text: String, (key, (piece, times)): (&String, &(String, usize))| {
            text.replace(&format!("${{{key}}}"), &piece.repeat(*times))
        };
        self.fill.iter().fold(text.to_owned(), fill)
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/events")
}

fn check(name: &str, text: &str) {
    let case: Case = serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let event = RawValue::from_string(case.filled(case.event.get())).unwrap();
    match (judge(&event), &case.accepted, &case.dropped) {
        (Ok(judged), Some(expected), None) => check_accepted(name, judged, &case.filled(expected.get())),
        (Err(reason), None, Some(expected)) => assert_eq!(reason.to_string(), case.filled(expected), "{name}"),
        (outcome, Some(_), None) | (outcome, None, Some(_)) => panic!("{name}: {outcome:?}"),
        (_, None, None) | (_, Some(_), Some(_)) => panic!("{name}: say either `accepted` or `dropped`"),
    }
}

fn check_accepted(name: &str, Judged { event, cursor }: Judged, expected: &str) {
    let expected: Accepted = serde_json::from_str(expected).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(event.data, expected.data.get(), "{name}: data byte for byte");
    assert_eq!(event.event_id, expected.event_id, "{name}");
    assert_eq!(event.name, expected.name, "{name}");
    assert_eq!(event.timestamp.to_string(), expected.timestamp, "{name}");
    assert_eq!(event.level.as_str(), expected.level, "{name}");
    assert_eq!(event.subject, expected.subject, "{name}");
    assert_eq!(event.title, expected.title, "{name}");
    assert_eq!(event.body, expected.body, "{name}");
    assert_eq!(event.link, expected.link, "{name}");
    assert_eq!(cursor, expected.cursor, "{name}");
}

#[test]
fn every_case_comes_out_as_it_says() {
    let mut count = 0;
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(path.extension().and_then(|extension| extension.to_str()), Some("json"), "{}", path.display());
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        check(&name, &fs::read_to_string(&path).unwrap());
        count += 1;
    }
    assert!(count >= CASES_MIN, "{count} cases are fewer than {CASES_MIN}");
}

#[test]
fn an_event_that_is_dropped_can_be_named() {
    let id = |text: &str| id_of(&RawValue::from_string(text.to_owned()).unwrap());
    assert_eq!(id(r#"{"eventId":"evt_1","timestamp":7}"#).as_deref(), Some("evt_1"));
    assert_eq!(id(&format!("{{\"eventId\":\"{}\"}}", "x".repeat(300))), Some(format!("{}…", "x".repeat(40))));
    assert_eq!((id("{}"), id("[]"), id(r#"{"eventId":1}"#), id(r#"{"eventId":"\ud800"}"#)), (None, None, None, None));
}

#[test]
fn no_event_whatever_its_bytes_makes_the_host_fail() {
    let mut random = fastrand::Rng::with_seed(11);
    let whole = fs::read_to_string(folder().join("every-field-is-given.json")).unwrap();
    let case: Case = serde_json::from_str(&whole).unwrap();
    let mut accepted = 0;
    for _ in 0..20_000 {
        let mut bytes = case.event.get().as_bytes().to_vec();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..bytes.len());
            match random.u8(..3) {
                0 => bytes[at] = random.u8(..128),
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, *random.choice(b"\"\\{}[]:,0u\0 ").unwrap()),
            }
        }
        let mutated = String::from_utf8_lossy(&bytes).into_owned();
        if let Ok(event) = RawValue::from_string(mutated) {
            accepted += usize::from(judge(&event).is_ok());
        }
    }
    assert!(accepted > 1_000, "{accepted}");
}
