//! What is explained of notices is what was written of them, and of targets what their plugins and grants say.

use std::collections::BTreeSet;

use super::notices::finished;
use super::*;
use crate::inbox::Entry;
use crate::route::Acknowledged;
use crate::send::explain::{Explained, Explainer, Question, Target as Shown};
use crate::send::notice;
use crate::wasm::Catalog;

/// What is explained of a notification that is made up, by a stand without a store.
async fn explained(stand: &Stand, notification: &Notification) -> Explained {
    let current = stand.means.live.get();
    let Means { effects, keys, queues, .. } = &*stand.means;
    queues.take_up(&current.book);
    let not_loaded = BTreeMap::new();
    let explainer = Explainer { current: &current, effects, keys, queues, inbox: None, not_loaded: &not_loaded };
    let workspace = &current.config.workspaces[&name("acme")];
    let (now, stored, only) = (start(), None, None);
    let question =
        Question { workspace, notification, acknowledged: Acknowledged::No, stored, now, at: None, only, all: false };
    explainer.explain(question).await.unwrap()
}

/// The targets of routes that match which are owed something, and those that are spared.
fn owed_and_spared(explained: &Explained) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let targets = explained.routes.iter().filter(|route| route.matches).flat_map(|route| &route.targets);
    let (spared, owed): (Vec<&Shown>, Vec<&Shown>) = targets.partition(|target| target.spared.is_some());
    (owed.iter().map(|one| one.id.as_str()).collect(), spared.iter().map(|one| one.id.as_str()).collect())
}

fn stored(entry: &Entry) -> Notification {
    let Entry { event, effective_level, .. } = entry.clone();
    Notification { source: name("switchbell"), effective_level, event, ..notification("switchbell") }
}

/// That what is explained of a notice owes what the notice owed when it was written.
async fn check(stand: &Stand, entry: &Entry, spared: &[&str]) {
    let explained = explained(stand, &stored(entry)).await;
    let found = owed_and_spared(&explained);
    let owed: BTreeSet<&str> = entry.owed.iter().map(|owed| owed.target.as_str()).collect();
    assert_eq!(found, (owed, spared.iter().copied().collect()), "{}", entry.event.name);
}

#[tokio::test]
async fn whom_a_notice_owes_nothing_is_explained_as_it_was_written() {
    let routes = |_: &str| {
        let other = |id: &str, script: &str| target(id, "scripted", json!(script));
        let failing = || other("target", "@bot,#ops reject never");
        let told =
            vec![failing(), other("same-chat", "@#ops done"), other("elsewhere", "@#dev done"), other("plain", "done")];
        vec![route("news", "domain.*", vec![failing()]), route("watch", "delivery.*", told)]
    };
    let stand = Stand::routing(routes).await;
    let notices = finished(&stand, vec![claim()]).await.remove(0).notices;
    check(&stand, &notices[0], &["target", "same-chat"]).await;
}

#[tokio::test]
async fn whom_a_notice_about_a_plugin_owes_nothing_is_explained_as_it_was_written() {
    let stand = Stand::routing(|_| {
        let told = vec![target("its-own", "scripted", json!("done")), target("other", "riskyone", json!("done"))];
        vec![route("news", "domain.*", vec![target("t", "scripted", json!("done"))]), route("watch", "plugin.*", told)]
    });
    let stand = stand.await;
    let workspace = &stand.means.live.get().config.workspaces[&name("acme")];
    let intake = notice::plugin_not_loaded(workspace, &name("scripted"), "it is no file", start()).unwrap();
    check(&stand, &intake.entries[0], &["its-own"]).await;
}

#[tokio::test]
async fn whom_a_report_owes_nothing_is_explained_as_it_was_written() {
    let routes = |_: &str| {
        let told = vec![target("agent", "an-agent", json!("done")), target("chat", "scripted", json!("done"))];
        vec![
            route("news", "domain.*", vec![target("target", "an-agent", json!("finding it is fine"))]),
            route("watch", "agent.*", told),
        ]
    };
    let stand = Stand::routing(routes).await;
    let of_agent = Claim { plugin: name("an-agent"), ..claim() };
    let notices = finished(&stand, vec![of_agent]).await.remove(0).notices;
    check(&stand, &notices[0], &["agent"]).await;
}

#[tokio::test]
async fn a_target_says_its_version_its_lanes_and_what_keeps_it_from_delivering() {
    let stand = Stand::routing(|at| {
        let post = |id: &str, script: String| target(id, "scripted", json!(script));
        let good = post("good", format!("@bot post {at}/200|done"));
        let refused = post("refused", "post https://other.example/|done".to_owned());
        vec![route("news", "domain.*", vec![good, refused, target("nobody", "absent", json!("done"))])]
    });
    let stand = stand.await;
    let explained = explained(&stand, &notification("registrar")).await;
    let [good, refused, nobody] = explained.routes[0].targets.as_slice() else { panic!("{explained:?}") };
    let plugin = Catalog::get(&stand.means.live.get().catalog, &name("scripted")).unwrap();
    let version = (plugin.manifest().version.clone(), plugin.digest().to_owned());
    assert_eq!((good.version.as_ref(), good.lanes[0].key.as_deref()), (Some(&version), Some("bot")));
    assert_eq!((&good.refused, &good.blocked, &good.settings_mistake), (&None, &None, &None));
    assert!(good.outlook.blind.unwrap().contains("no store"));
    assert!(refused.refused.as_ref().unwrap().contains("plugins.grants.scripted.http"), "{refused:?}");
    assert_eq!(nobody.blocked.as_deref(), Some("plugin absent is not loaded"));
    assert!(stand.sink.asked().is_empty(), "an explanation sent something");
}
