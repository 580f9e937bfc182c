//! The book.

use std::time::Duration;

use super::*;
use crate::inbox::book::{Book, Rule};
use crate::route::timing::{AtMost, Except, Timing};
use crate::send::{AGENT_COUNT_MAX, AGENT_PER, book_without_plugins};

/// The book of one route `news` to these targets, and the mistakes.
async fn book_of(targets: Vec<Target>) -> (Book, Vec<String>) {
    let config = config(vec![route("news", "domain.*", targets)], ([127, 0, 0, 1], 1).into());
    let (book, mistakes) = book(&config, &catalog().await, &Keys::new(&[7; 32])).await;
    (book, mistakes.into_iter().map(|mistake| format!("{}: {}", mistake.path, mistake.message)).collect())
}

fn rule(book: &Book, target: &str) -> Arc<Rule> {
    Arc::clone(book.get(&queue("news", target)).unwrap())
}

#[tokio::test]
async fn lanes_stand_in_order_and_secrets_do_not_show_in_them() {
    let lanes = |script: Value| async move {
        let (book, mistakes) = book_of(vec![target("one", "scripted", script)]).await;
        assert!(mistakes.is_empty());
        let keys: Vec<String> = rule(&book, "one").lanes.iter().map(|rule| rule.lane.key.to_string()).collect();
        keys
    };
    assert_eq!(lanes(json!("@bot,#ops,bot done")).await, ["#ops", "bot"]);
    assert!(lanes(json!("done")).await.is_empty());
    let of_secret = lanes(json!({"secret": "hook"})).await;
    assert_eq!(of_secret, [format!("secret:{}", Keys::new(&[7; 32]).lane(SECRET))]);
}

#[tokio::test]
async fn a_target_is_blocked_while_its_plugin_is_not_there_or_refuses() {
    let strict = Target { is_strict: true, ..target("good", "scripted", json!("done")) };
    let targets =
        vec![strict, target("missing", "pager", json!("done")), target("bad", "scripted", json!("refuse this"))];
    let (book, mistakes) = book_of(targets).await;
    assert_eq!(mistakes, ["routes[0].deliver[2].with: it is refused"]);
    let good = rule(&book, "good");
    assert_eq!((&good.blocked, good.is_strict, good.by_subject), (&None, true, true));
    assert_eq!(rule(&book, "missing").blocked.as_deref(), Some("plugin pager is not loaded"));
    assert_eq!(rule(&book, "bad").blocked.as_deref(), Some("plugin scripted refuses its settings: it is refused"));
}

#[tokio::test]
async fn a_target_that_starts_agents_is_limited_unless_it_says_how() {
    let own = AtMost { count: 1, per: Duration::from_secs(60), except: Except::Urgent };
    let timing = Timing { at_most: Some(own.clone()), ..Timing::default() };
    let (book, _) = book_of(vec![
        target("agent", "an-agent", json!("done")),
        Target { timing, ..target("own", "an-agent", json!("done")) },
        target("plain", "scripted", json!("done")),
    ])
    .await;
    let default = AtMost { count: AGENT_COUNT_MAX, per: AGENT_PER, except: Except::Nothing };
    assert_eq!(rule(&book, "agent").timing.at_most, Some(default));
    assert_eq!(rule(&book, "own").timing.at_most, Some(own));
    assert_eq!(rule(&book, "plain").timing.at_most, None);
}

#[test]
fn a_book_without_plugins_blocks_nothing() {
    let targets = vec![target("missing", "pager", json!("done"))];
    let config = config(vec![route("news", "domain.*", targets)], ([127, 0, 0, 1], 1).into());
    let rule = rule(&book_without_plugins(&config), "missing");
    assert_eq!((&rule.blocked, rule.lanes.len(), rule.plugin.as_str()), (&None, 0, "pager"));
}
