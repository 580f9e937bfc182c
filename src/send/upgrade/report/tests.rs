//! What a person and a program read.

use expect_test::expect;
use serde_json::json;

use super::*;

fn full() -> Report {
    let mut report = sample::report();
    report.standing = Standing::Back;
    let said = "acme.yaml:7:9: routes[0].deliver[0].with.url: write a URL".to_owned();
    report.settings.mistakes =
        vec![Mistake { said: said.clone(), old_takes: true }, Mistake { said, old_takes: false }];
    report.settings.unchecked = 1;
    report.missing = Reach { http: vec!["new.example".to_owned()], mail: true, tools: vec![] };
    report.reads_data_first = true;
    let failed = Difference { reason: Some("the plugin trapped".to_owned()), ..sample::difference(Class::Failed) };
    let before = Difference { old_failed: true, ..sample::difference(Class::Steps) };
    report.replays.different = vec![sample::difference(Class::Content), failed, before];
    report.replays.at_limits = 2;
    report
}

#[test]
fn a_person_sees_at_a_glance_what_changes() {
    expect![[r#"
        slack 1.3.0 (sha256:aaaaaaaaaaaa…), instead of 1.2.0 (sha256:bbbbbbbbbbbb…)
        version goes back from 1.2.0 to 1.3.0
        settings: 1 of 4 targets taken, 1 not checked
          acme.yaml:7:9: routes[0].deliver[0].with.url: write a URL
          (not by the old version either) acme.yaml:7:9: routes[0].deliver[0].with.url: write a URL
        wants what is not granted: http: new.example; mail
        reads payloads, which the old version did not: no recording holds them
        22 recorded deliveries made again: 17 the same, 1 content, 1 steps, 1 failed, 2 left out at a limit

        5f3a9c01-17 (acme/news): content at step 1
          - one
          + two

        5f3a9c01-17 (acme/news): failed at step 1
          the plugin trapped
          - one
          + two

        5f3a9c01-17 (acme/news): steps at step 1, compared with what is recorded, since the old version fails there
          - one
          + two
    "#]]
    .assert_eq(&full().told());
    let mut plain = sample::report();
    plain.old = None;
    plain.replays.same = 0;
    expect![[r#"
        slack 1.3.0 (sha256:aaaaaaaaaaaa…)
        settings: 4 of 4 targets taken
        no recorded deliveries to compare
    "#]]
    .assert_eq(&plain.told());
}

#[test]
fn many_differences_are_counted_and_some_are_shown() {
    let mut report = sample::report();
    report.replays.different = vec![sample::difference(Class::Target); TOLD_MAX + 3];
    let told = report.told();
    assert_eq!(told.matches("5f3a9c01-17").count(), TOLD_MAX);
    assert!(told.ends_with("\nand 3 more that differ\n"), "{told}");
    report.replays.different.truncate(TOLD_MAX + 1);
    assert!(report.told().ends_with("\nand 1 more that differs\n"));
    report.replays.different.truncate(TOLD_MAX);
    assert!(!report.told().contains("more that"));
}

#[test]
fn a_program_reads_the_same() {
    let mut report = full();
    report.replays.different.truncate(1);
    let said = "acme.yaml:7:9: routes[0].deliver[0].with.url: write a URL";
    let expected = json!({
        "plugin": "slack",
        "new": {"version": "1.3.0", "digest": "a".repeat(64)},
        "old": {"version": "1.2.0", "digest": "b".repeat(64)},
        "standing": "back",
        "settings": {
            "targets": 4,
            "unchecked": 1,
            "mistakes": [{"said": said, "oldTakes": true}, {"said": said, "oldTakes": false}],
        },
        "missing": {"http": ["new.example"], "mail": true, "tools": []},
        "readsDataFirst": true,
        "counts": {
            "same": 17, "content": 1, "target": 0, "steps": 0, "outcome": 0, "failed": 0, "atLimits": 2, "notInTime": 0,
            "unreadable": 0,
        },
        "differences": [{
            "delivery": "5f3a9c01-17", "workspace": "acme", "route": "news", "class": "content", "step": 1,
            "reason": null, "oldFailed": false, "lines": ["- one", "+ two"],
        }],
    });
    assert_eq!(report.to_json(), expected);
}
