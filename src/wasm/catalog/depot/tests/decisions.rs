//! Which versions are kept, gone back to and found, as tables.

use super::*;

fn kept(active: Option<u8>, versions: Vec<Version>) -> Kept {
    Kept { active: active.map(digest), folder: None, watched: None, versions }
}

#[test]
fn the_active_version_the_last_that_ran_or_are_held_and_those_in_use_are_kept() {
    let ran = |numbers: std::ops::RangeInclusive<u8>| {
        numbers.map(|number| version(number, Some(i64::from(number)), Standing::Good)).collect::<Vec<_>>()
    };
    let with = |mut versions: Vec<Version>, more: Vec<Version>| {
        versions.extend(more);
        versions
    };
    for (what, kept, in_use, expected) in [
        ("nothing", kept(None, vec![]), set(&[1]), set(&[])),
        ("one", kept(Some(1), ran(1..=1)), set(&[]), set(&[1])),
        ("the active one and five", kept(Some(9), ran(1..=9)), set(&[]), set(&[4, 5, 6, 7, 8, 9])),
        ("an old one that is active", kept(Some(1), ran(1..=9)), set(&[]), set(&[1, 5, 6, 7, 8, 9])),
        ("none is active", kept(None, ran(1..=7)), set(&[]), set(&[3, 4, 5, 6, 7])),
        ("those in use besides", kept(Some(9), ran(1..=9)), set(&[1, 3, 8, 15]), set(&[1, 3, 4, 5, 6, 7, 8, 9])),
        (
            "what never ran is not kept",
            kept(Some(1), with(ran(1..=1), vec![version(2, None, Standing::Good)])),
            set(&[]),
            set(&[1]),
        ),
        ("what is held is", kept(Some(1), with(ran(1..=1), vec![version(2, None, held())])), set(&[]), set(&[1, 2])),
        (
            "what was at fault ran, too",
            kept(Some(1), with(ran(1..=1), vec![version(2, Some(2), quarantined())])),
            set(&[]),
            set(&[1, 2]),
        ),
        (
            "what ran again counts by then",
            kept(Some(9), with(vec![version(1, Some(50), Standing::Good)], ran(2..=9))),
            set(&[]),
            set(&[1, 5, 6, 7, 8, 9]),
        ),
    ] {
        assert_eq!(kept.to_keep(&in_use), expected, "{what}");
    }
}

#[test]
fn of_those_in_use_only_the_newest_are_kept() {
    let numbered = |number: usize, last_active_at: Option<i64>| Version {
        digest: format!("{number:064x}"),
        first_at: at(number as i64),
        last_active_at: last_active_at.map(at),
        ..version(0, None, Standing::Good)
    };
    let versions: Vec<Version> = (0..IN_USE_KEPT_MAX + 2).map(|number| numbered(number, None)).collect();
    let in_use: BTreeSet<String> = versions.iter().map(|version| version.digest.clone()).collect();
    let kept = kept(None, versions.clone());
    let keep = kept.to_keep(&in_use);
    assert_eq!(keep.len(), IN_USE_KEPT_MAX);
    assert!(!keep.contains(&versions[0].digest) && !keep.contains(&versions[1].digest));
}

#[test]
fn what_is_forgotten_leaves_the_list() {
    let mut kept = history().plugins["slack"].clone();
    kept.forget_others(&set(&[1, 3]));
    assert_eq!(kept.versions.iter().map(|version| &version.digest).collect::<Vec<_>>(), [&digest(1), &digest(3)]);
    assert_eq!((kept.active.clone(), kept.folder.clone()), (Some(digest(1)), Some(digest(9))));
    assert_eq!(kept.active().unwrap().version, "1.1.0");
}

#[test]
fn one_goes_back_to_the_good_version_that_ran_last() {
    let good = |number, ran| version(number, ran, Standing::Good);
    for (what, kept, expected) in [
        ("nothing", kept(None, vec![]), None),
        ("only the active one", kept(Some(1), vec![good(1, Some(1))]), None),
        ("the one before", kept(Some(3), vec![good(1, Some(1)), good(2, Some(2)), good(3, Some(3))]), Some(2)),
        ("the one that ran after it", kept(Some(1), vec![good(1, Some(5)), good(2, Some(6))]), Some(2)),
        ("not what never ran", kept(Some(2), vec![good(1, Some(1)), good(2, Some(2)), good(3, None)]), Some(1)),
        (
            "not what was at fault",
            kept(Some(3), vec![good(1, Some(1)), version(2, Some(2), quarantined()), good(3, Some(3))]),
            Some(1),
        ),
        ("not what is held", kept(Some(3), vec![version(2, Some(2), held()), good(3, Some(3))]), None),
        ("when none is active", kept(None, vec![good(1, Some(1)), good(2, Some(2))]), Some(2)),
        ("of equals the later", kept(Some(3), vec![good(1, Some(2)), good(2, Some(2)), good(3, Some(3))]), Some(2)),
    ] {
        assert_eq!(kept.previous().map(|version| version.digest.clone()), expected.map(digest), "{what}");
    }
}

#[test]
fn a_version_is_found_by_its_version_or_its_digest() {
    let twin = Version { digest: format!("1{}", "f".repeat(63)), ..version(2, None, Standing::Good) };
    let kept = kept(Some(1), vec![version(1, Some(1), Standing::Good), twin.clone(), version(3, None, held())]);
    for (asked, expected) in [
        ("1.1.0", digest(1)),
        ("11", digest(1)),
        ("1F", twin.digest.clone()),
        (" 3 ", digest(3)),
        (&digest(3), digest(3)),
    ] {
        assert_eq!(kept.find(asked).unwrap().digest, expected, "{asked}");
    }
    let there = "1.1.0 (111111111111), 1.2.0 (1fffffffffff), 1.3.0 (333333333333)";
    for (asked, expected) in [
        ("9.9.9", format!("unknown version \"9.9.9\" (there are: {there})")),
        ("", format!("unknown version \"\" (there are: {there})")),
        (
            "1",
            "\"1\" is more than one version (1.1.0 (111111111111), 1.2.0 (1fffffffffff)): name it by more of its \
               digest"
                .to_owned(),
        ),
    ] {
        assert_eq!(kept.find(asked).unwrap_err().to_string(), expected);
    }
    let none = Kept::default().find("1.0.0").unwrap_err().to_string();
    assert_eq!(none, "unknown version \"1.0.0\": no version of this plugin is kept");
    let many = (1..=12).map(|number| version(number, None, Standing::Good)).collect();
    let text = Kept { versions: many, ..Kept::default() }.find("x").unwrap_err().to_string();
    assert!(text.contains("1.12.0 (cccccccccccc) and 2 older"), "{text}");
}
