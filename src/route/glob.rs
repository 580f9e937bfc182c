//! The glob patterns of routes, translated for globset and matched many at once.
//!
//! A name pattern reads dotted names: `*` is any text within one segment, `**` any text at all. A text pattern (for
//! `source` and `subject`) knows `*` for any text and `?` for one character. Everything else is literal.
//!
//! globset separates by `/`, reads `**` as a whole segment only, and has fast paths for file names and extensions that
//! treat a final `.` or `/` specially. So a name's dots become slashes, `/` itself becomes a control character (which
//! no name or text contains), and pattern and text end in one more control character.

use std::fmt;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

/// Longest pattern, in characters: that of the longest name and subject.
pub const PATTERN_CHARS_MAX: usize = 200;

const SLASH: char = '\u{1}';
const END: char = '\u{2}';

/// What is wrong with a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// It has no characters.
    Empty,
    /// It is longer than any text it could match.
    TooLong,
    /// A name pattern has a character that names should not have.
    Character(char),
    /// The matcher refused it.
    Refused(String),
}

impl fmt::Display for PatternError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => out.write_str("an empty pattern matches nothing; leave the key out to match everything"),
            Self::TooLong => write!(out, "a pattern has at most {PATTERN_CHARS_MAX} characters"),
            Self::Character(found) => write!(
                out,
                "{found:?} may not stand in a name pattern: use letters, digits, `.`, `_`, `-`, `*` (within one segment) \
                 and `**` (across dots)"
            ),
            Self::Refused(why) => write!(out, "the pattern cannot be used: {why}"),
        }
    }
}

impl std::error::Error for PatternError {}

/// Checks a pattern over dotted names.
///
/// # Errors
/// Says what is wrong with it.
pub fn check_name_pattern(pattern: &str) -> Result<(), PatternError> {
    name_glob(pattern).map(drop)
}

/// Checks a pattern over free text (`source`, `subject`).
///
/// # Errors
/// Says what is wrong with it.
pub fn check_text_pattern(pattern: &str) -> Result<(), PatternError> {
    text_glob(pattern).map(drop)
}

pub(super) fn name_glob(pattern: &str) -> Result<Glob, PatternError> {
    bounds(pattern)?;
    let stands = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '*');
    if let Some(found) = pattern.chars().find(|&c| !stands(c)) {
        return Err(PatternError::Character(found));
    }
    let mut translated = String::with_capacity(pattern.len() * 2);
    let mut rest = pattern.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '*' => {
                let mut crosses = false;
                while rest.next_if_eq(&'*').is_some() {
                    crosses = true;
                }
                translated.push_str(if crosses { "{*,*/**/*}" } else { "*" });
            }
            '.' => translated.push('/'),
            literal => translated.push(literal),
        }
    }
    build(translated, true)
}

pub(super) fn text_glob(pattern: &str) -> Result<Glob, PatternError> {
    bounds(pattern)?;
    let mut translated = String::with_capacity(pattern.len() * 2);
    for next in pattern.chars() {
        match next {
            '/' => translated.push(SLASH),
            '[' | ']' | '{' | '}' | '\\' | ',' | '!' => translated.extend(['\\', next]),
            other => translated.push(other),
        }
    }
    build(translated, false)
}

fn bounds(pattern: &str) -> Result<(), PatternError> {
    match pattern.chars().count() {
        0 => Err(PatternError::Empty),
        1..=PATTERN_CHARS_MAX => Ok(()),
        _ => Err(PatternError::TooLong),
    }
}

fn build(mut translated: String, by_segment: bool) -> Result<Glob, PatternError> {
    translated.push(END);
    GlobBuilder::new(&translated)
        .literal_separator(by_segment)
        .backslash_escape(true)
        .build()
        .map_err(|error| PatternError::Refused(error.kind().to_string()))
}

/// A dotted name as [`name_glob`] reads it.
pub(super) fn name_text(name: &str) -> String {
    let swapped = name.chars().map(|c| match c {
        '.' => '/',
        '/' => SLASH,
        other => other,
    });
    swapped.chain([END]).collect()
}

/// A free text as [`text_glob`] reads it.
pub(super) fn free_text(text: &str) -> String {
    let swapped = text.chars().map(|c| if c == '/' { SLASH } else { c });
    swapped.chain([END]).collect()
}

pub(super) fn set(globs: impl IntoIterator<Item = Glob>) -> Result<GlobSet, PatternError> {
    let mut builder = GlobSetBuilder::new();
    for glob in globs {
        builder.add(glob);
    }
    builder.build().map_err(|error| PatternError::Refused(error.kind().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules of name patterns, spelled out by recursion.
    fn by_the_rules(pattern: &[char], name: &[char]) -> bool {
        match pattern {
            [] => name.is_empty(),
            ['*', '*', rest @ ..] => {
                let rest = &rest[rest.iter().take_while(|&&c| c == '*').count()..];
                (0..=name.len()).any(|skip| by_the_rules(rest, &name[skip..]))
            }
            ['*', rest @ ..] => {
                let segment = name.iter().take_while(|&&c| c != '.').count();
                (0..=segment).any(|skip| by_the_rules(rest, &name[skip..]))
            }
            [literal, rest @ ..] => name.first() == Some(literal) && by_the_rules(rest, &name[1..]),
        }
    }

    fn matches(pattern: &str, name: &str) -> bool {
        set([name_glob(pattern).unwrap()]).unwrap().is_match(name_text(name))
    }

    fn text_matches(pattern: &str, text: &str) -> bool {
        set([text_glob(pattern).unwrap()]).unwrap().is_match(free_text(text))
    }

    #[test]
    fn stars_stay_within_a_segment_and_double_stars_cross() {
        for (pattern, yes, no) in [
            ("domain.*", &["domain.active", "domain."][..], &["domain", "domain.a.b"][..]),
            ("domain.**", &["domain.active", "domain.a.b", "domain."], &["domain", "domains.a"]),
            ("**.failed", &["a.failed", "a.b.failed", ".failed"], &["failed", "a.failed.b"]),
            ("a**b", &["ab", "a.b", "axb", "a.x.y.b"], &["a.bc"]),
            ("*", &["a", ""], &["a.b"]),
            ("**", &["a", "a.b", ""], &[]),
            ("***", &["a", "a.b.c"], &[]),
            ("a.*.c", &["a.b.c", "a..c"], &["a.b.b.c", "a.c"]),
            ("Domain", &["Domain"], &["domain"]),
        ] {
            for name in yes {
                assert!(matches(pattern, name), "{pattern} should match {name}");
            }
            for name in no {
                assert!(!matches(pattern, name), "{pattern} should not match {name}");
            }
        }
    }

    #[test]
    fn translated_patterns_agree_with_the_rules_on_generated_names() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut matched = 0;
        for _ in 0..4_000 {
            let pattern: String =
                (0..random.usize(1..9)).map(|_| random.choice(['a', 'b', '.', '*', '*']).unwrap()).collect();
            let set = set([name_glob(&pattern).unwrap()]).unwrap();
            for _ in 0..25 {
                let name: String =
                    (0..random.usize(0..9)).map(|_| random.choice(['a', 'b', '.', '/']).unwrap()).collect();
                let expected = by_the_rules(&pattern.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>());
                assert_eq!(set.is_match(name_text(&name)), expected, "{pattern} on {name}");
                matched += usize::from(expected);
            }
        }
        assert!(matched > 1_000, "the generator makes too few matches: {matched}");
    }

    #[test]
    fn text_patterns_cross_everything_and_know_no_classes() {
        for (pattern, text) in [
            ("*.example", "a.b.example"),
            ("*.example", ".example"),
            ("a?c", "a/c"),
            ("[x]{y,z}", "[x]{y,z}"),
            ("a*", "a/b."),
            ("*.", "a."),
        ] {
            assert!(text_matches(pattern, text), "{pattern} should match {text}");
        }
        for (pattern, text) in [("*.example", "example"), ("[x]", "x"), ("a?", "a"), ("{a,b}", "a"), ("\\*", "x")] {
            assert!(!text_matches(pattern, text), "{pattern} should not match {text}");
        }
    }

    #[test]
    fn hostile_patterns_are_matched_in_linear_time() {
        let set = set([name_glob(&"*a".repeat(100)).unwrap()]).unwrap();
        assert!(!set.is_match(name_text(&"a".repeat(99))));
        assert!(set.is_match(name_text(&"a".repeat(100))));
    }

    #[test]
    fn odd_patterns_are_refused_with_their_reason() {
        assert_eq!(check_name_pattern(""), Err(PatternError::Empty));
        assert_eq!(check_name_pattern(&"a".repeat(201)), Err(PatternError::TooLong));
        assert_eq!(check_name_pattern("domain.[ab]"), Err(PatternError::Character('[')));
        assert_eq!(check_name_pattern("domain.ä"), Err(PatternError::Character('ä')));
        assert_eq!(check_text_pattern("anything [goes] {here}"), Ok(()));
    }
}
