//! What the host tells of deliveries, and whom it does not tell.

use super::*;
use crate::inbox::Finished;
use crate::send::notice;

/// Runs one claim after the other to their ends.
pub(super) async fn finished(stand: &Stand, claims: Vec<Claim>) -> Vec<Finished> {
    let stop = Stop::default();
    let running = tokio::spawn(dispatcher(&stand.means).await.run(stop.clone()));
    for (number, claim) in (1..).zip(claims) {
        let id = DeliveryId { store: "0badcafe".into(), number };
        stand.store.hand_out(Claim { id, ..claim });
        stand.store.until(|store| i64::try_from(store.finished().len()).unwrap() == number).await;
    }
    stop.soon.cancel();
    running.await.unwrap();
    stand.store.finished()
}

/// The names of the notices about each claim, one after the other.
async fn names(plugin: &str, script: &str, claims: Vec<Claim>) -> Vec<String> {
    let stand = Stand::with(plugin, |_| json!(script)).await;
    let notices = finished(&stand, claims).await.into_iter().flat_map(|finished| finished.notices);
    notices.map(|notice| notice.event.name).collect()
}

#[tokio::test]
async fn an_admin_is_told_of_what_came_to_a_bad_end_only() {
    assert_eq!(names("scripted", "reject never", vec![claim()]).await, ["delivery.dead"]);
    assert_eq!(names("scripted", "reconnect the token", vec![claim()]).await, ["delivery.blocked"]);
    assert_eq!(names("riskyone", "unknown who knows", vec![claim()]).await, ["delivery.unknown"]);
    for script in ["done", "retry later", "unknown who knows"] {
        assert!(names("scripted", script, vec![claim()]).await.is_empty(), "{script}");
    }
}

#[tokio::test]
async fn a_blocked_target_is_told_of_once_and_again_when_a_person_tried_in_vain() {
    let manual = Claim { cause: Cause::Manual, ..claim() };
    let told = async |claims| names("scripted", "reconnect the token", claims).await.len();
    assert_eq!(told(vec![claim(), claim(), claim()]).await, 1);
    assert_eq!(told(vec![claim(), claim(), manual]).await, 2);
}

#[tokio::test]
async fn a_notice_says_what_happened_to_what_and_what_to_do() {
    let stand = Stand::new("reject the address is gone").await;
    let notices: Vec<_> =
        finished(&stand, vec![claim(), claim()]).await.into_iter().flat_map(|finished| finished.notices).collect();
    let [first, second] = notices.as_slice() else { panic!("{notices:?}") };
    // The store takes the first of one id: dead deliveries of one target are told once an hour.
    assert_eq!(first.event.event_id, second.event.event_id);
    assert_eq!(first.event.event_id, "delivery.dead:492324:news:target");
    let event = &first.event;
    assert_eq!((event.level, first.effective_level), (Level::Attention, Level::Attention));
    assert_eq!(
        (event.title.as_str(), event.subject.as_deref()),
        ("news: a delivery through scripted was given up", Some("news"))
    );
    let body = event.body.as_deref().unwrap();
    assert!(
        body.starts_with("the address is gone\n`switchbell deliveries retry 0badcafe-1` tries it again."),
        "{body}"
    );
    assert!(body.contains("perhaps more: `switchbell deliveries list --state dead`"), "{body}");
    let data: Value = serde_json::from_str(&event.data).unwrap();
    assert_eq!(data["delivery"], "0badcafe-1");
    assert_eq!(data["notifications"], json!([1]));
}

#[tokio::test]
async fn nothing_is_told_of_deliveries_of_notices() {
    let notice = Claim { notifications: vec![notification("switchbell")], ..claim() };
    assert!(names("scripted", "reject never", vec![notice]).await.is_empty());
    let both = Claim { notifications: vec![notification("switchbell"), notification("registrar")], ..claim() };
    assert_eq!(names("scripted", "reject never", vec![both]).await.len(), 1);
}

#[tokio::test]
async fn a_notice_owes_nothing_to_what_failed_nor_to_what_shares_a_lane_with_it() {
    let routes = |_: &str| {
        let other = |id: &str, script: &str| target(id, "scripted", json!(script));
        let failing = || other("target", "@bot,#ops reject never");
        let told =
            vec![failing(), other("same-chat", "@#ops done"), other("elsewhere", "@#dev done"), other("plain", "done")];
        vec![route("news", "domain.*", vec![failing()]), route("watch", "delivery.*", told)]
    };
    let stand = Stand::routing(routes).await;
    let notices = finished(&stand, vec![claim()]).await.remove(0).notices;
    let owed: Vec<&str> = notices[0].owed.iter().map(|owed| owed.target.as_str()).collect();
    assert_eq!(owed, ["elsewhere", "plain"]);
}

/// The notice of the one workspace, whose targets are these.
async fn about_plugin(
    targets: fn() -> Vec<Target>,
    notice: impl FnOnce(&Workspace) -> Option<crate::inbox::Intake>,
) -> Option<crate::inbox::Entry> {
    let stand = Stand::routing(|_| {
        let all = Matcher { name: vec!["**".to_owned()], ..Matcher::default() };
        vec![Route { when: all, ..route("all", "x", targets()) }]
    });
    let config = Arc::clone(&stand.await.means.live.get().config);
    let intake = notice(&config.workspaces[&name("acme")])?;
    assert_eq!(
        (intake.workspace.as_str(), intake.source.as_str(), intake.received_at),
        ("acme", "switchbell", start())
    );
    intake.entries.into_iter().next()
}

#[tokio::test]
async fn a_workspace_is_told_of_a_plugin_that_went_back_by_other_plugins() {
    let told = async |targets| {
        let (plugin, versions) = (name("scripted"), ("1.1.0", "1.0.0 (0123456789ab)"));
        let notice = |of: &Workspace| notice::plugin_rolled_back(of, &plugin, versions, "it\u{7} traps\n", start());
        about_plugin(targets, notice).await
    };
    let both = || vec![target("own", "scripted", json!("done")), target("other", "riskyone", json!("done"))];
    let entry = told(both).await.unwrap();
    let owed: Vec<&str> = entry.owed.iter().map(|owed| owed.target.as_str()).collect();
    assert_eq!(owed, ["other"], "it does not go through the plugin that it is about");
    let event = entry.event;
    assert_eq!((event.name.as_str(), event.subject.as_deref()), ("plugin.rolled-back", Some("scripted")));
    assert_eq!(event.title, "plugin scripted went back from 1.1.0 to 1.0.0 (0123456789ab)");
    assert_eq!((event.level, entry.effective_level), (Level::Attention, Level::Attention));
    let body = event.body.unwrap();
    assert!(
        body.starts_with("it  traps\nWhat it failed is made again") && body.contains("`switchbell plugin load FILE`"),
        "{body}"
    );
    let data: Value = serde_json::from_str(&event.data).unwrap();
    assert_eq!((&data["from"], &data["to"]), (&json!("1.1.0"), &json!("1.0.0 (0123456789ab)")));
    assert!(told(|| vec![target("other", "riskyone", json!("done"))]).await.is_none(), "it does not use it");
}

#[tokio::test]
async fn a_plugin_that_is_not_loaded_is_told_once_an_hour() {
    let told = async |at: Timestamp, why: &str| {
        let (plugin, why) = (name("scripted"), why.to_owned());
        let targets = || vec![target("own", "scripted", json!("done")), target("other", "riskyone", json!("done"))];
        let notice = |of: &Workspace| {
            let mut intake = notice::plugin_not_loaded(of, &plugin, &why, at)?;
            assert_eq!(intake.received_at, at);
            intake.received_at = start();
            Some(intake)
        };
        about_plugin(targets, notice).await.unwrap()
    };
    let first = told(start(), "it traps").await;
    assert_eq!(first.event.event_id, "plugin.not-loaded:492324:scripted");
    assert_eq!(first.event.title, "plugin scripted is not loaded");
    assert_eq!(first.owed.len(), 1, "it does not go through the plugin that it is about");
    let later = |minutes: u64| crate::clock::later(start(), std::time::Duration::from_secs(60 * minutes));
    assert_eq!(told(later(59), "it loops").await.event.event_id, first.event.event_id);
    assert_ne!(told(later(60), "it traps").await.event.event_id, first.event.event_id);
    let long = told(start(), &"x".repeat(5_000)).await.event.body.unwrap();
    assert_eq!(long.chars().count(), 2_000);
    assert!(long.ends_with("it goes on from there."), "{long}");
}
