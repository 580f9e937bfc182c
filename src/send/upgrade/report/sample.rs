//! A report to change in tests.

use super::*;

/// Of a version that does nothing otherwise.
pub(in crate::send::upgrade) fn report() -> Report {
    let version = |version: &str, digit: &str| VersionOf { version: version.to_owned(), digest: digit.repeat(64) };
    Report {
        plugin: "slack".parse().unwrap(),
        new: version("1.3.0", "a"),
        old: Some(version("1.2.0", "b")),
        standing: Standing::Forward,
        settings: Settings { targets: 4, ..Settings::default() },
        missing: Reach::default(),
        reads_data_first: false,
        replays: Replays { same: 17, ..Replays::default() },
    }
}

/// A delivery that is made in another way.
pub(in crate::send::upgrade) fn difference(class: Class) -> Difference {
    Difference {
        delivery: "5f3a9c01-17".to_owned(),
        workspace: "acme".to_owned(),
        route: "news".to_owned(),
        class,
        step: 1,
        lines: vec!["- one".to_owned(), "+ two".to_owned()],
        reason: None,
        old_failed: false,
    }
}
