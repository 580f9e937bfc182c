//! What agents report: notices that start no chain.

use super::notices::finished;
use super::*;
use crate::inbox::Entry;

/// The notices of an agent's run that reports something, with these routes besides.
async fn reported(claim: Claim, more: impl FnOnce() -> Vec<Route>) -> Vec<Entry> {
    let runs = || vec![route("news", "**", vec![target("target", "an-agent", json!("@#ops finding all is well"))])];
    let stand = Stand::routing(|_| runs().into_iter().chain(more()).collect()).await;
    finished(&stand, vec![claim]).await.remove(0).notices
}

fn of_an_agent() -> Claim {
    Claim { plugin: name("an-agent"), ..claim() }
}

#[tokio::test]
async fn what_an_agent_found_is_written_with_the_end_of_its_delivery() {
    let mut claim = of_an_agent();
    claim.notifications[0].event.subject = Some("a.example".to_owned());
    let notices = reported(claim, Vec::new).await;
    let [notice] = notices.as_slice() else { panic!("{notices:?}") };
    let event = &notice.event;
    assert_eq!((event.name.as_str(), event.event_id.as_str()), ("agent.report", "agent.report:0badcafe-1"));
    assert_eq!((event.title.as_str(), event.body.as_deref()), ("all is well", Some("what was found")));
    assert_eq!(
        (event.level, notice.effective_level, event.subject.as_deref()),
        (Level::Info, Level::Info, Some("a.example"))
    );
    let data: Value = serde_json::from_str(&event.data).unwrap();
    let expected = json!({
        "delivery": "0badcafe-1", "route": "news", "target": "target", "plugin": "an-agent", "reference": "run-7",
        "notifications": [1],
    });
    assert_eq!(data, expected);
}

#[tokio::test]
async fn a_report_starts_no_agent_whatever_the_routes_say() {
    let routes = || {
        let deliver = vec![
            target("again", "an-agent", json!("finding more")),
            target("same-chat", "scripted", json!("@#ops done")),
            target("chat", "scripted", json!("@#dev done")),
            target("gone", "not-loaded", json!("done")),
            target("plain", "riskyone", json!("done")),
        ];
        let agents = target("another", "an-agent", json!("@#dev finding more"));
        vec![route("watch", "agent.*", deliver), route("all", "**", vec![agents])]
    };
    let notices = reported(of_an_agent(), routes).await;
    let owed: Vec<&str> = notices[0].owed.iter().map(|owed| owed.target.as_str()).collect();
    // `chat` shares the name of a lane, not the lane: lanes are a plugin's own.
    assert_eq!(owed, ["same-chat", "chat", "plain"]);
}

#[tokio::test]
async fn a_run_for_notices_alone_reports_nothing() {
    let notices = |sources: &[&str]| {
        let notifications = sources.iter().map(|source| notification(source)).collect();
        reported(Claim { notifications, ..of_an_agent() }, Vec::new)
    };
    assert!(notices(&["switchbell"]).await.is_empty());
    assert!(notices(&["switchbell", "switchbell"]).await.is_empty());
    assert_eq!(notices(&["switchbell", "registrar"]).await.len(), 1);
}

#[tokio::test]
async fn only_a_plugin_that_starts_agents_reports_and_the_reference_is_kept() {
    let stand = Stand::new("finding nothing much").await;
    let finished = finished(&stand, vec![claim()]).await.remove(0);
    assert!(finished.notices.is_empty());
    assert_eq!(finished.attempt.reason.as_deref(), Some("run-7: found"));
}
