//! Patterns of routes that matched nothing that came in the last days.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::Findings;
use crate::config::{Code, Config, Problem, Workspace};
use crate::inbox::{Inbox, InboxError, KNOWN_MAX, Known};
use crate::notification::{HOST_SOURCE, Level, Name};
use crate::route::{Decision, Facts, Matcher, Router};

/// How far back is looked: what comes once a month was there.
const DAYS: i64 = 30;
/// Most notifications of one workspace that are gone through: some seconds.
const READ_MAX: u64 = 1_000_000;
/// Most notifications before those that are gone through to learn which connectors were there already.
const BEFORE_MAX: u64 = 100_000;
/// Most patterns of one workspace that are looked for.
const PATTERNS_MAX: usize = 200;

/// A pattern that is looked for.
struct Asked {
    /// Where it stands, without the index in its list.
    path: String,
    /// The index in its list.
    index: usize,
    text: String,
    /// What kind of text it reads.
    what: What,
    /// The pattern, from the sources of its route.
    matcher: Matcher,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Name,
    Subject,
    Source,
}

impl What {
    fn says(self) -> &'static str {
        match self {
            Self::Name => "no notification with such a name came",
            Self::Subject => "no notification with such a subject came",
            Self::Source => "no notification came from such a source",
        }
    }
}

/// Warns of such patterns of every workspace whose inbox reaches back so far, and only where every connector that a pattern
/// is meant for was there before: a pattern for what is new has seen nothing yet.
pub(super) async fn look(config: &Config, inbox: &dyn Inbox, now: Timestamp, found: &mut Findings) {
    let since = now.checked_sub(SignedDuration::from_hours(24 * DAYS)).unwrap_or(Timestamp::MIN);
    for workspace in config.workspaces.values() {
        let asked = asked(workspace);
        if asked.is_empty() {
            continue;
        }
        let what = format!("whether the patterns of {} match anything", workspace.name);
        match unseen(workspace, asked, (inbox, since)).await {
            Ok(Ok(unseen)) => found.warnings.extend(unseen.into_iter().map(|asked| problem(workspace, asked))),
            Ok(Err(why)) => found.leave_out(what, why),
            Err(error) => found.leave_out(what, error.to_string()),
        }
    }
}

fn problem(workspace: &Workspace, asked: Asked) -> Problem {
    let (code, file, text) = (Code::PatternUnseen, workspace.file.clone(), &asked.text);
    let message = format!(
        "{text:?} matched nothing: {} in the last {DAYS} days; is it written as it should be?",
        asked.what.says()
    );
    // A single pattern may stand without a list around it, whose place then is the nearest.
    let path = format!("{}[{}]", asked.path, asked.index);
    Problem { code, file, place: None, path, message, source_line: None }
}

/// The globs of a workspace's routes. A literal text is no guess, and may be rare.
fn asked(workspace: &Workspace) -> Vec<Asked> {
    let mut asked = Vec::new();
    for (number, route) in workspace.routes.iter().enumerate() {
        let when = &route.when;
        for (what, key, patterns) in [
            (What::Name, "name", &when.name),
            (What::Subject, "subject", &when.subject),
            (What::Source, "source", &when.source),
        ] {
            for (index, text) in patterns.iter().enumerate().filter(|(_, text)| is_glob(what, text)) {
                let only = || vec![text.clone()];
                let source = || when.source.clone();
                let matcher = match what {
                    What::Name => Matcher { name: only(), source: source(), ..Matcher::default() },
                    What::Subject => Matcher { subject: only(), source: source(), ..Matcher::default() },
                    What::Source => Matcher { source: only(), ..Matcher::default() },
                };
                let path = format!("routes[{number}].when.{key}");
                asked.push(Asked { path, index, text: text.clone(), what, matcher });
            }
        }
    }
    asked.truncate(PATTERNS_MAX);
    asked
}

/// Whether a pattern is one, and not one for everything.
fn is_glob(what: What, text: &str) -> bool {
    let is_everything = text.chars().all(|c| c == '*');
    !is_everything && (text.contains('*') || (what != What::Name && text.contains('?')))
}

type Store<'a> = (&'a dyn Inbox, Timestamp);

/// The patterns that nothing matched; why that is not known, where it is not.
async fn unseen(
    workspace: &Workspace,
    mut asked: Vec<Asked>,
    (inbox, since): Store<'_>,
) -> Result<Result<Vec<Asked>, String>, InboxError> {
    let name = &workspace.name;
    let first = inbox.known(name, 1, 1).await?;
    if first.first().is_none_or(|first| first.received_at > since) {
        return Ok(Err(format!("its inbox does not reach back {DAYS} days")));
    }
    let from = inbox.seq_since(name, since).await?;
    let mut next = from;
    loop {
        let page = inbox.known(name, next, KNOWN_MAX).await?;
        let Some(last) = page.last() else { break };
        if last.seq - from > READ_MAX {
            return Ok(Err(format!("more than {READ_MAX} notifications came in the last {DAYS} days")));
        }
        next = last.seq + 1;
        let page: Vec<&Known> = page.iter().filter(|known| known.received_at >= since).collect();
        asked = still_unseen(asked, &page);
        if asked.is_empty() {
            return Ok(Ok(asked));
        }
    }
    let there = sources_before(name, from, inbox).await?;
    asked.retain(|asked| {
        let mut meant = meant_for(asked, workspace).peekable();
        meant.peek().is_some() && meant.all(|source| there.contains(source))
    });
    Ok(Ok(asked))
}

/// The patterns that none of these match.
fn still_unseen(asked: Vec<Asked>, page: &[&Known]) -> Vec<Asked> {
    let Ok(router) = Router::new(asked.iter().map(|asked| asked.matcher.clone()).collect()) else { return Vec::new() };
    let mut is_seen = vec![false; asked.len()];
    let mut told = BTreeSet::new();
    for known in page {
        if !told.insert((&known.source, &known.name, &known.subject)) {
            continue;
        }
        let subject = known.subject.as_deref();
        let facts = Facts { source: &known.source, name: &known.name, effective_level: Level::Urgent, subject };
        for decision in router.select(&facts).iter().filter(|decision| decision.matches()) {
            if let Some(seen) = is_seen.get_mut(decision.route) {
                *seen = true;
            }
        }
    }
    asked.into_iter().zip(is_seen).filter(|(_, is_seen)| !is_seen).map(|(asked, _)| asked).collect()
}

/// The connectors with an outbox that a pattern is meant for; the host's own notices where nothing else is.
fn meant_for<'a>(asked: &Asked, workspace: &'a Workspace) -> impl Iterator<Item = &'a Name> {
    let matcher = Matcher { source: asked.matcher.source.clone(), ..Matcher::default() };
    let router = Router::new(vec![matcher]).ok();
    workspace.outboxes().map(|connector| &connector.name).filter(move |source| {
        let facts = Facts { source, name: "", effective_level: Level::Urgent, subject: None };
        router.as_ref().is_some_and(|router| router.select(&facts).iter().all(Decision::matches))
    })
}

/// The sources of what came right before this number.
async fn sources_before(workspace: &Name, end: u64, inbox: &dyn Inbox) -> Result<BTreeSet<Name>, InboxError> {
    let mut there = BTreeSet::new();
    let mut next = end.saturating_sub(BEFORE_MAX).max(1);
    while next < end {
        let page = inbox.known(workspace, next, KNOWN_MAX).await?;
        let Some(last) = page.last() else { break };
        next = last.seq + 1;
        there.extend(page.into_iter().filter(|known| known.seq < end).map(|known| known.source));
    }
    there.retain(|source| source.as_str() != HOST_SOURCE);
    Ok(there)
}
