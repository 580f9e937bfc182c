//! What a version at fault failed, over the SQLite store.

use super::super::reopening::Server;
use super::*;
use crate::inbox::delivery::{Outcome, State as DeliveryState};
use crate::inbox::{DeliveryView, Page, Which};
use crate::send::upgrade::probation::retry;

/// A server whose one plugin is swapped.
async fn server(plugin: &str, old: &Plugin, path: &str) -> (Server, tempfile::TempDir) {
    let (folder, sink) = (tempfile::tempdir().unwrap(), Sink::open().await);
    let settings = json!({"url": format!("http://{}{path}", sink.address)});
    let routes = vec![route("news", "domain.*", vec![target("target", plugin, settings)])];
    let config = Arc::new(config(routes, sink.address));
    let catalog = catalog().await.with(old.clone());
    let server = Server::start_with(catalog, &folder.path().join("bell.db"), &config, &Clock::manual(start())).await;
    (server, folder)
}

impl Server {
    async fn runs(&self, plugin: &Plugin) {
        let catalog = self.means.live.get().catalog.with(plugin.clone());
        assert_eq!(self.dispatcher.change(catalog, &plugin.manifest().name).await.unwrap(), []);
    }

    async fn deliveries(&self) -> Vec<DeliveryView> {
        let page = Page { workspace: name("acme"), before: None, limit: 100 };
        self.means.inbox.deliveries(page, Which::default()).await.unwrap()
    }

    /// The states of all deliveries once so many are in this one.
    async fn until_so_many(&self, count: usize, state: DeliveryState) -> Vec<DeliveryView> {
        loop {
            let deliveries = self.deliveries().await;
            if deliveries.iter().filter(|delivery| delivery.state == state).count() == count {
                return deliveries;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn retried(&self, fault: &Fault) -> usize {
        retry(&*self.means.inbox, fault, self.means.clock.now()).await.unwrap()
    }
}

#[tokio::test]
async fn what_a_version_at_fault_failed_is_made_again_once_on_the_one_before() {
    let old = version("scripted", "1.0.0", "plain", "tolerable").await;
    let new = version("scripted", "1.1.0", "rejects", "tolerable").await;
    let (server, _folder) = server("scripted", &old, "/200").await;
    server.runs(&new).await;
    let probation = Arc::clone(server.dispatcher.probation());
    probation.begin(new.clone(), old.clone());
    for number in 1..=3 {
        server.take_in_number(number).await;
        server.until_so_many(usize::try_from(number).unwrap(), DeliveryState::Dead).await;
    }
    let fault = probation.at_fault().await;
    server.runs(&old).await;
    assert_eq!(server.retried(&fault).await, 3);
    for delivery in server.until_so_many(3, DeliveryState::Delivered).await {
        let ran: Vec<_> = delivery.attempts.iter().map(|attempt| attempt.plugin_version.as_deref()).collect();
        assert_eq!((ran, delivery.retry_of), (vec![Some("1.1.0"), Some("1.0.0")], None));
    }
    assert_eq!(server.retried(&fault).await, 0, "once");
    server.stop().await;
}

#[tokio::test]
async fn what_may_have_happened_is_not_made_again_where_that_does_harm() {
    let old = version("riskyone", "1.0.0", "plain", "harmful").await;
    let new = version("riskyone", "1.1.0", "traps-after", "harmful").await;
    let (server, _folder) = server("riskyone", &old, "/200").await;
    server.runs(&new).await;
    let probation = Arc::clone(server.dispatcher.probation());
    probation.begin(new.clone(), old.clone());
    server.take_in_number(1).await;
    let unknown = server.until_so_many(1, DeliveryState::Unknown).await;
    assert_eq!(unknown[0].attempts[0].outcome, Outcome::Unknown);
    let mut fault = probation.at_fault().await;
    server.runs(&old).await;
    assert_eq!(server.retried(&fault).await, 0);
    // Where nothing was accepted, a delivery that names it takes its place, once.
    fault.failed[0].accepted = false;
    fault.failed[0].may_repeat = true;
    assert_eq!(server.retried(&fault).await, 1);
    let deliveries = server.until_so_many(1, DeliveryState::Delivered).await;
    assert_eq!(deliveries.iter().filter(|again| again.retry_of.as_ref() == Some(&unknown[0].id)).count(), 1);
    assert_eq!(server.retried(&fault).await, 0, "once");
    server.stop().await;
}
