//! Whether one pattern over names matches all that another matches, as far as their texts tell.

/// A part of a name pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Literal(char),
    /// Any text within one segment.
    Star,
    /// Any text.
    Stars,
}

/// Whether every name that `inner` matches is matched by `outer`. A yes is certain; a no may be wrong where several stars of
/// the one would have to stand for a star and its surroundings of the other. It takes as many steps as the product of their
/// lengths.
pub fn name_covers(outer: &str, inner: &str) -> bool {
    let (outer, inner) = (parts(outer), parts(inner));
    // Of the end of `inner` from each part on: whether what is left of `outer` covers it.
    let mut covered = vec![false; inner.len() + 1];
    if let Some(end) = covered.last_mut() {
        *end = true;
    }
    for part in outer.iter().rev() {
        covered = preceded(*part, &inner, &covered);
    }
    covered.first().copied().unwrap_or_default()
}

/// As [`name_covers`] keeps it, with one more part before what is left of `outer`.
fn preceded(part: Part, inner: &[Part], rest: &[bool]) -> Vec<bool> {
    let mut covered = vec![false; rest.len()];
    for at in (0..rest.len()).rev() {
        let (after, after_here) = (rest.get(at + 1) == Some(&true), covered.get(at + 1) == Some(&true));
        let here = rest.get(at) == Some(&true);
        let found = inner.get(at);
        let is_covered = match part {
            Part::Stars => here || (found.is_some() && after_here),
            Part::Star => here || (found.is_some_and(|found| stays_in_segment(*found)) && after_here),
            literal @ Part::Literal(_) => found == Some(&literal) && after,
        };
        if let Some(cell) = covered.get_mut(at) {
            *cell = is_covered;
        }
    }
    covered
}

fn stays_in_segment(part: Part) -> bool {
    !matches!(part, Part::Literal('.') | Part::Stars)
}

fn parts(pattern: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = pattern.chars().peekable();
    while let Some(next) = rest.next() {
        let mut is_double = false;
        while next == '*' && rest.next_if_eq(&'*').is_some() {
            is_double = true;
        }
        parts.push(match next {
            '*' if is_double => Part::Stars,
            '*' => Part::Star,
            literal => Part::Literal(literal),
        });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notification::Level;
    use crate::route::{Decision, Facts, Matcher, Router};

    #[test]
    fn a_pattern_covers_what_it_matches_all_of() {
        for (outer, inner) in [
            ("**", "**"),
            ("**", "a.*"),
            ("domain.**", "domain.*"),
            ("domain.*", "domain.active"),
            ("*", "a*b"),
            ("**.failed", "a.*.failed"),
            ("a**b", "a.x.b"),
            ("a", "a"),
            ("***", "**"),
        ] {
            assert!(name_covers(outer, inner), "{outer} covers {inner}");
        }
        for (outer, inner) in [
            ("*", "**"),
            ("domain.*", "domain.**"),
            ("domain.*", "domain"),
            ("domain", "domain.*"),
            ("a.*", "a.b.c"),
            ("*", "a.b"),
            ("", "a"),
        ] {
            assert!(!name_covers(outer, inner), "{outer} does not cover {inner}");
        }
    }

    #[test]
    fn what_is_said_to_be_covered_is_matched_on_generated_names() {
        let mut random = fastrand::Rng::with_seed(5);
        let matches = |pattern: &str, name: &str| {
            let router = Router::new(vec![Matcher { name: vec![pattern.to_owned()], ..Matcher::default() }]).unwrap();
            let source = "x".parse().unwrap();
            let facts = Facts { source: &source, name, effective_level: Level::Info, subject: None };
            router.select(&facts).iter().all(Decision::matches)
        };
        let mut covered = 0;
        for _ in 0..2_000 {
            let mut pattern =
                || (0..random.usize(1..6)).map(|_| random.choice(['a', '.', '*', '*']).unwrap()).collect::<String>();
            let (outer, inner) = (pattern(), pattern());
            if !name_covers(&outer, &inner) {
                continue;
            }
            covered += 1;
            for _ in 0..10 {
                let name: String = (0..random.usize(0..7)).map(|_| random.choice(['a', 'b', '.']).unwrap()).collect();
                assert!(!matches(&inner, &name) || matches(&outer, &name), "{outer} {inner} {name}");
            }
        }
        assert!(covered > 200, "the generator makes too few pairs: {covered}");
    }
}
