//! "Did you mean …?"

/// Longest word that is compared, in characters: no name or key is longer.
const WORD_CHARS_MAX: usize = 63;
/// Most candidates that are compared, so that a hostile file cannot make every mistake dear.
const CANDIDATES_MAX: usize = 200;
/// Most candidates that a message lists.
const LISTED_MAX: usize = 20;

/// The end of a message about an unknown word: what was perhaps meant, and what there is, under the heading `known`.
pub fn hint<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>, known: &str) -> String {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let meant = closest(word, &candidates).map_or_else(String::new, |meant| format!(": did you mean {meant:?}?"));
    if candidates.is_empty() {
        return format!("{meant} ({known}: none)");
    }
    let more = candidates.len().saturating_sub(LISTED_MAX);
    let listed = candidates.into_iter().take(LISTED_MAX).collect::<Vec<_>>().join(", ");
    if more > 0 {
        format!("{meant} ({known}: {listed} and {more} more)")
    } else {
        format!("{meant} ({known}: {listed})")
    }
}

/// The candidate that is so near to the word that it was probably meant.
pub(super) fn closest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let word = folded(word);
    if word.is_empty() || word.len() > WORD_CHARS_MAX {
        return None;
    }
    let near = candidates.iter().take(CANDIDATES_MAX).filter_map(|candidate| {
        let other = folded(candidate);
        let far = other.len().abs_diff(word.len()) > 3 || other.len() > WORD_CHARS_MAX;
        let distance = if far { return None } else { distance(&word, &other) };
        (distance <= (word.len().max(other.len()) / 3).clamp(1, 3)).then_some((distance, *candidate))
    });
    near.min_by_key(|&(distance, _)| distance).map(|(_, candidate)| candidate)
}

/// Case and the choice of separator are no difference worth counting.
fn folded(text: &str) -> Vec<char> {
    text.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

/// Insertions, deletions, replacements and swaps of neighbours between two words (optimal string alignment).
fn distance(one: &[char], other: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for (row, &a) in one.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, &b) in other.iter().enumerate() {
            let at = |cells: &[usize], index: usize| cells.get(index).copied().unwrap_or(usize::MAX - 1);
            let replaced = at(&above, column) + usize::from(a != b);
            let mut least = replaced.min(at(&above, column + 1) + 1).min(at(&current, column) + 1);
            let swapped = row > 0 && column > 0 && one.get(row - 1) == Some(&b) && other.get(column - 1) == Some(&a);
            if swapped {
                least = least.min(at(&before, column - 1) + 1);
            }
            current.push(least);
        }
        before = std::mem::replace(&mut above, current);
    }
    above.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_word_is_suggested_and_a_far_one_is_not() {
        let candidates = ["slack", "mail", "webhook", "agent-run", "max_events"];
        for (word, meant) in [
            ("slak", Some("slack")),
            ("Slack", Some("slack")),
            ("lsack", Some("slack")),
            ("web-hook", Some("webhook")),
            ("agentrun", Some("agent-run")),
            ("max-event", Some("max_events")),
            ("mial", Some("mail")),
            ("teams", None),
            ("", None),
            ("m", None),
        ] {
            assert_eq!(closest(word, &candidates), meant, "{word}");
        }
    }
}
