//! Escaping and cutting, over generated texts.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use switchbell_kit::link;

use super::is_harmless;
use crate::escape;

/// Letters of every kind that matters: control characters of Slack's, one and two UTF-16 units, white space.
const LETTERS: [char; 8] = ['&', '<', '>', 'a', 'ß', '🔔', ' ', '\n'];

/// Every text of up to `length` of those letters.
fn generated(length: u32) -> impl Iterator<Item = String> {
    (0..=length).flat_map(|length| (0..8_usize.pow(length)).map(move |number| spelled(number, length)))
}

fn spelled(number: usize, length: u32) -> String {
    (0..length).map(|place| LETTERS[number / 8_usize.pow(place) % 8]).collect()
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[test]
fn any_text_is_harmless_within_its_limit_and_whole_when_it_fits() {
    for text in generated(4) {
        let whole = escape::paragraphs(&text, 100);
        assert_eq!(unescaped(&whole), text);
        for units_max in 0..12 {
            let cut = escape::paragraphs(&text, units_max);
            assert!(is_harmless(&cut) && escape::length(&cut) <= units_max, "{text:?} in {units_max}: {cut:?}");
            match escape::length(&whole) <= units_max {
                true => assert_eq!(cut, whole),
                false => assert!(
                    units_max == 0 || cut.strip_suffix('…').is_some_and(|kept| whole.starts_with(kept)),
                    "{text:?} in {units_max}: {cut:?}"
                ),
            }
        }
    }
}

#[test]
fn parts_hold_the_whole_text_when_it_fits_into_them() {
    for text in generated(5) {
        let parts = escape::split(&text, 10, 10);
        assert_eq!(parts.iter().map(|part| unescaped(part)).collect::<Vec<_>>().concat(), text);
        assert!(parts.iter().all(|part| is_harmless(part) && escape::length(part) <= 10 && !part.is_empty()));
    }
}

#[test]
fn a_text_is_split_at_a_space_and_the_last_part_is_cut() {
    let cases: [(&str, usize, &[&str]); 8] = [
        ("one two three", 8, &["one two ", "three"]),
        ("one\ntwo three", 6, &["one\n", "two ", "three"]),
        ("abcdefghij", 4, &["abcd", "efgh", "ij"]),
        ("a bcdefgh", 6, &["a bcde", "fgh"]),
        ("abcdefghijklmnop", 4, &["abcd", "efgh", "ijk…"]),
        ("abc &&&", 8, &["abc ", "&amp;", "&amp;…"]),
        ("a&b", 4, &["a", "…"]),
        ("", 4, &[]),
    ];
    for (text, units_max, expected) in cases {
        assert_eq!(escape::split(text, units_max, 3), expected, "{text:?} in {units_max}");
    }
}

#[test]
fn lines_are_folded_and_control_characters_removed() {
    assert_eq!(escape::line(" a\n\tb\u{0}c\u{1b}[1m ", 100), "a b c [1m");
    assert_eq!(escape::paragraphs("a\nb\tc\u{0}d\u{85}e", 100), "a\nb c d e");
}

#[test]
fn a_link_is_one_only_if_everybody_reads_the_same_host() {
    let cases = [
        ("https://crm.example.com/a?b=c&d#e", Some("crm.example.com")),
        ("HTTP://crm.example.com:8080", Some("crm.example.com:8080")),
        ("https://user:word@crm.example.com/", Some("crm.example.com")),
        ("https://slack.com@evil.example/", Some("evil.example")),
        ("https://slack.com%2f@evil.example/", Some("evil.example")),
        ("https://evil.example#@slack.com/", Some("evil.example")),
        ("https://evil.example?@slack.com/", Some("evil.example")),
        ("http://[2001:db8::1]:80/", Some("[2001:db8::1]:80")),
        ("https://crm.example.com/größe", Some("crm.example.com")),
        ("https://slаck.com/", None),
        ("https://evil.example\\@slack.com/", None),
        ("https://evil.example|slack.com/", None),
        ("https://evil.example/|label", None),
        ("https://evil.example/><!channel>", None),
        ("https://evil.example/ a", None),
        ("https://evil.example/\na", None),
        ("https://evil.example/\"", None),
        ("https://", None),
        ("https:///path", None),
        ("https://:80/", None),
        ("https:crm.example.com", None),
        ("mailto:ops@example.com", None),
        ("acme://thing", None),
        ("javascript://crm.example.com/%0aalert(1)", None),
        ("ht", None),
        ("ぁぁぁぁ", None),
        ("", None),
    ];
    for (url, expected) in cases {
        assert_eq!(link::host(url), expected, "{url:?}");
    }
}

#[test]
fn nothing_that_escapes_once_is_read_twice() {
    let texts = vec!["&amp;", "&lt;!channel&gt;", "<!channel>", "&#60;", "&amp;amp;"];
    for text in texts {
        let once = escape::line(text, 100);
        assert!(is_harmless(&once));
        assert_eq!(unescaped(&once), text.to_owned());
    }
}
