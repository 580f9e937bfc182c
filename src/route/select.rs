//! Which routes match a notification, and why the others do not.

use globset::GlobSet;

use super::glob::{self, PatternError};
use crate::notification::{Level, Name};

/// What a route asks of a notification. Conditions left out hold for every notification; those given must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matcher {
    /// Patterns over the dotted name, one of which must match; any name when empty.
    pub name: Vec<String>,
    /// Patterns over the dotted name, none of which may match.
    pub not: Vec<String>,
    /// The least effective level.
    pub level: Option<Level>,
    /// Patterns over the source, one of which must match; any source when empty.
    pub source: Vec<String>,
    /// Patterns over the subject, one of which must match; a notification without a subject matches none.
    pub subject: Vec<String>,
}

/// One matcher, ready to match.
#[derive(Clone, Debug)]
pub struct PreparedMatcher {
    matcher: Matcher,
    router: Router,
}

impl PreparedMatcher {
    /// Prepares it.
    ///
    /// # Errors
    /// Names what is wrong with a pattern.
    pub fn new(matcher: Matcher) -> Result<Self, PatternError> {
        Ok(Self { router: Router::new(vec![matcher.clone()])?, matcher })
    }

    /// What is asked.
    pub fn matcher(&self) -> &Matcher {
        &self.matcher
    }

    /// Whether this notification is meant.
    pub fn matches(&self, facts: &Facts<'_>) -> bool {
        self.router.select(facts).iter().all(Decision::matches)
    }
}

/// What routes may know of a notification. The payload is not among it.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The connector.
    pub source: &'a Name,
    /// The dotted name.
    pub name: &'a str,
    /// The level after the ceiling.
    pub effective_level: Level,
    /// The subject.
    pub subject: Option<&'a str>,
}

/// What a condition looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `when.source`
    Source,
    /// `when.name`
    Name,
    /// `when.not`
    Not,
    /// `when.subject`
    Subject,
    /// `when.level`
    Level,
}

impl Field {
    /// The key it is written under.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Name => "name",
            Self::Not => "not",
            Self::Subject => "subject",
            Self::Level => "level",
        }
    }
}

/// One condition of a route on one notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What it looks at.
    pub field: Field,
    /// What the route asks, as written.
    pub asked: String,
    /// What the notification has.
    pub found: String,
    /// Whether it holds.
    pub holds: bool,
}

/// What was decided about one route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The route's index.
    pub route: usize,
    /// The first condition that does not hold; none when the route matches.
    pub failed: Option<Field>,
}

impl Decision {
    /// Whether the route fires.
    pub fn matches(&self) -> bool {
        self.failed.is_none()
    }
}

/// All routes of a workspace, ready to match at once.
#[derive(Clone, Debug, Default)]
pub struct Router {
    matchers: Vec<Matcher>,
    source: Patterns,
    name: Patterns,
    not: Patterns,
    subject: Patterns,
}

#[derive(Clone, Debug, Default)]
struct Patterns {
    set: GlobSet,
    /// The route of each pattern in `set`.
    routes: Vec<usize>,
}

impl Patterns {
    fn new<'a>(
        matchers: &'a [Matcher],
        field: impl Fn(&'a Matcher) -> &'a Vec<String>,
        translate: impl Fn(&str) -> Result<globset::Glob, PatternError>,
    ) -> Result<Self, PatternError> {
        let mut globs = Vec::new();
        let mut routes = Vec::new();
        for (route, matcher) in matchers.iter().enumerate() {
            for pattern in field(matcher) {
                globs.push(translate(pattern)?);
                routes.push(route);
            }
        }
        Ok(Self { set: glob::set(globs)?, routes })
    }

    /// For each route, whether one of its patterns matches.
    fn hits(&self, text: &str, routes: usize) -> Vec<bool> {
        let mut hits = vec![false; routes];
        if !self.routes.is_empty() {
            for pattern in self.set.matches(text) {
                let route = self.routes.get(pattern).and_then(|&route| hits.get_mut(route));
                if let Some(hit) = route {
                    *hit = true;
                }
            }
        }
        hits
    }
}

impl Router {
    /// Prepares the routes with these conditions; a route keeps its index.
    ///
    /// # Errors
    /// Names what is wrong with a pattern.
    pub fn new(matchers: Vec<Matcher>) -> Result<Self, PatternError> {
        Ok(Self {
            source: Patterns::new(&matchers, |matcher| &matcher.source, glob::text_glob)?,
            name: Patterns::new(&matchers, |matcher| &matcher.name, glob::name_glob)?,
            not: Patterns::new(&matchers, |matcher| &matcher.not, glob::name_glob)?,
            subject: Patterns::new(&matchers, |matcher| &matcher.subject, glob::text_glob)?,
            matchers,
        })
    }

    /// Decides every route, in the order given. Every route that matches fires.
    pub fn select(&self, facts: &Facts<'_>) -> Vec<Decision> {
        let name = glob::name_text(facts.name);
        let routes = self.matchers.len();
        let hits = Hits {
            source: self.source.hits(&glob::free_text(facts.source.as_str()), routes),
            name: self.name.hits(&name, routes),
            not: self.not.hits(&name, routes),
            subject: facts
                .subject
                .map_or_else(Vec::new, |subject| self.subject.hits(&glob::free_text(subject), routes)),
        };
        let failed = |(route, matcher)| {
            let fails = |&field: &Field| !holds(matcher, field, facts, &hits, route);
            asked_fields(matcher).find(fails)
        };
        self.matchers.iter().enumerate().map(|at| Decision { route: at.0, failed: failed(at) }).collect()
    }

    /// Every condition of one route, with what was asked and what was found; none when it matches everything or there
    /// is no such route.
    pub fn explain(&self, route: usize, facts: &Facts<'_>) -> Vec<Condition> {
        let Some(matcher) = self.matchers.get(route) else {
            return Vec::new();
        };
        let condition = |field| Condition {
            field,
            asked: asked(matcher, field),
            found: found(facts, field),
            // One route alone, through the very code that decides.
            holds: Self::new(vec![only(matcher, field)])
                .is_ok_and(|router| router.select(facts).iter().all(Decision::matches)),
        };
        asked_fields(matcher).map(condition).collect()
    }
}

/// For each route, whether a pattern of its field matches.
struct Hits {
    source: Vec<bool>,
    name: Vec<bool>,
    not: Vec<bool>,
    subject: Vec<bool>,
}

/// The conditions a route has, in the order they are decided.
fn asked_fields(matcher: &Matcher) -> impl Iterator<Item = Field> {
    let fields = [
        (Field::Source, !matcher.source.is_empty()),
        (Field::Name, !matcher.name.is_empty()),
        (Field::Not, !matcher.not.is_empty()),
        (Field::Subject, !matcher.subject.is_empty()),
        (Field::Level, matcher.level.is_some()),
    ];
    fields.into_iter().filter_map(|(field, asked)| asked.then_some(field))
}

fn holds(matcher: &Matcher, field: Field, facts: &Facts<'_>, hits: &Hits, route: usize) -> bool {
    let hit = |hits: &[bool]| hits.get(route).copied().unwrap_or_default();
    match field {
        Field::Source => hit(&hits.source),
        Field::Name => hit(&hits.name),
        Field::Not => !hit(&hits.not),
        Field::Subject => hit(&hits.subject),
        Field::Level => matcher.level.is_none_or(|least| facts.effective_level >= least),
    }
}

fn only(matcher: &Matcher, field: Field) -> Matcher {
    let mut one = Matcher::default();
    match field {
        Field::Source => one.source.clone_from(&matcher.source),
        Field::Name => one.name.clone_from(&matcher.name),
        Field::Not => one.not.clone_from(&matcher.not),
        Field::Subject => one.subject.clone_from(&matcher.subject),
        Field::Level => one.level = matcher.level,
    }
    one
}

fn asked(matcher: &Matcher, field: Field) -> String {
    match field {
        Field::Source => matcher.source.join(", "),
        Field::Name => matcher.name.join(", "),
        Field::Not => format!("none of {}", matcher.not.join(", ")),
        Field::Subject => matcher.subject.join(", "),
        Field::Level => matcher.level.map_or_else(String::new, |least| format!("{least} or above")),
    }
}

fn found(facts: &Facts<'_>, field: Field) -> String {
    match field {
        Field::Source => facts.source.to_string(),
        Field::Name | Field::Not => facts.name.to_owned(),
        Field::Subject => facts.subject.unwrap_or("no subject").to_owned(),
        Field::Level => facts.effective_level.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(patterns: &[&str]) -> Vec<String> {
        patterns.iter().map(|&pattern| pattern.to_owned()).collect()
    }

    fn router() -> Router {
        Router::new(vec![
            Matcher { name: strings(&["domain.*"]), not: strings(&["domain.test"]), ..Matcher::default() },
            Matcher { level: Some(Level::Attention), ..Matcher::default() },
            Matcher { source: strings(&["reg*"]), subject: strings(&["*.example"]), ..Matcher::default() },
            Matcher::default(),
        ])
        .unwrap()
    }

    fn check(name: &str, level: Level, subject: Option<&str>, expected: [Option<Field>; 4]) {
        let source = "registrar".parse().unwrap();
        let facts = Facts { source: &source, name, effective_level: level, subject };
        let decisions = router().select(&facts);
        assert_eq!(decisions.iter().map(|decision| decision.failed).collect::<Vec<_>>(), expected, "{facts:?}");
        for decision in decisions {
            let all_hold = router().explain(decision.route, &facts).iter().all(|condition| condition.holds);
            assert_eq!(all_hold, decision.matches(), "explain and select disagree on {decision:?}");
        }
    }

    #[test]
    fn every_route_that_matches_fires() {
        check("domain.active", Level::Urgent, Some("a.example"), [None, None, None, None]);
    }

    #[test]
    fn exclusion_wins_over_inclusion() {
        check("domain.test", Level::Info, None, [Some(Field::Not), Some(Field::Level), Some(Field::Subject), None]);
    }

    #[test]
    fn the_first_condition_that_fails_is_named() {
        check("mail.bounced", Level::Attention, Some("a.test"), [Some(Field::Name), None, Some(Field::Subject), None]);
    }

    #[test]
    fn an_explanation_says_what_was_asked_and_what_was_found() {
        let source = "registrar".parse().unwrap();
        let facts = Facts { source: &source, name: "x", effective_level: Level::Info, subject: None };
        let condition = |field, asked: &str, found: &str, holds| Condition {
            field,
            asked: asked.to_owned(),
            found: found.to_owned(),
            holds,
        };
        assert_eq!(
            router().explain(0, &facts),
            [condition(Field::Name, "domain.*", "x", false), condition(Field::Not, "none of domain.test", "x", true)]
        );
        assert_eq!(router().explain(1, &facts), [condition(Field::Level, "attention or above", "info", false)]);
        assert_eq!(router().explain(9, &facts), []);
    }
}
