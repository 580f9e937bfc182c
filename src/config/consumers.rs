//! The consumers of a workspace.

use std::collections::BTreeMap;

use crate::inbox::LOSING_NAME;
use crate::notification::{HOST_SOURCE, Name};
use crate::route::{Decision, Facts, Matcher, PatternError, Router};

/// Consumers, with what joins the queue of each, ready to match at once.
#[derive(Clone, Debug)]
pub struct Consumers {
    whens: BTreeMap<Name, Matcher>,
    /// In the same order.
    router: Router,
}

impl Consumers {
    /// Makes them ready.
    ///
    /// # Errors
    /// When their patterns are too much to be matched at once.
    pub fn new(whens: BTreeMap<Name, Matcher>) -> Result<Self, PatternError> {
        let router = Router::new(whens.values().cloned().collect())?;
        Ok(Self { whens, router })
    }

    /// What each matches, by its name.
    pub fn whens(&self) -> &BTreeMap<Name, Matcher> {
        &self.whens
    }

    /// Whether there is one of this name.
    pub fn has(&self, name: &Name) -> bool {
        self.whens.contains_key(name)
    }

    /// Those whose queues a notification joins, by name. What tells that a queue loses events does not join that one: it would make
    /// room for itself.
    pub fn of(&self, facts: &Facts<'_>) -> Vec<Name> {
        if self.whens.is_empty() {
            return Vec::new();
        }
        let decisions = self.router.select(facts);
        let is_told_of_itself = |name: &Name| {
            facts.name == LOSING_NAME && facts.source.as_str() == HOST_SOURCE && facts.subject == Some(name.as_str())
        };
        let matched = self.whens.keys().zip(&decisions).filter(|(_, decision)| Decision::matches(decision));
        matched.map(|(name, _)| name).filter(|name| !is_told_of_itself(name)).cloned().collect()
    }
}

impl Default for Consumers {
    /// None at all.
    fn default() -> Self {
        Self { whens: BTreeMap::new(), router: Router::default() }
    }
}

impl PartialEq for Consumers {
    fn eq(&self, other: &Self) -> bool {
        self.whens == other.whens
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notification::Level;

    #[test]
    fn a_notification_joins_the_queue_of_each_consumer_that_matches_it() {
        let when = |name: &str, level| Matcher { name: vec![name.to_owned()], level, ..Matcher::default() };
        let named = |name: &str| name.parse::<Name>().unwrap();
        let consumers = Consumers::new(BTreeMap::from([
            (named("all"), Matcher::default()),
            (named("domains"), when("domain.**", Some(Level::Attention))),
            (named("mail"), when("mail.*", None)),
        ]))
        .unwrap();
        let joins = |name: &str, effective_level| {
            let source = named("crm");
            consumers.of(&Facts { source: &source, name, effective_level, subject: None })
        };
        assert_eq!(joins("domain.a.b", Level::Attention), [named("all"), named("domains")]);
        assert_eq!(joins("domain.a.b", Level::Info), [named("all")]);
        assert_eq!(joins("mail.bounced", Level::Info), [named("all"), named("mail")]);
        let losing = |source: &str, subject| {
            let source = named(source);
            consumers.of(&Facts { source: &source, name: LOSING_NAME, effective_level: Level::Attention, subject })
        };
        assert_eq!(losing("switchbell", Some("all")), [], "no queue is told that it loses events");
        assert_eq!(losing("switchbell", Some("mail")), [named("all")]);
        assert_eq!(losing("crm", Some("all")), [named("all")], "the host's own word only");
        assert_eq!(
            Consumers::default().of(&Facts {
                source: &named("crm"),
                name: "a",
                effective_level: Level::Urgent,
                subject: None
            }),
            []
        );
    }
}
