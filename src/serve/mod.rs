//! What others read over HTTP, and what commands on this machine ask of a running server.
//!
//! Two listeners serve the same routes: the address of `listen:`, where a [`Caller`](auth::Caller) is who its token says, and
//! the control socket, where it is the operator of this machine.

pub mod api;
pub mod auth;
mod body;
mod connection;
pub mod control;
pub mod desk;
mod door;
mod health;
pub mod inquiry;
pub mod mcp;
pub mod pages;
pub mod problem;
mod room;
pub mod seat;
pub mod shapes;
pub mod stream;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::Config;
use crate::inbox::Store;
use crate::reload;
use crate::send::upgrade;
use crate::telemetry::metrics::Metrics;
use door::Door;
use room::Room;

/// Every connector of a configuration.
pub type Seats = Arc<Vec<seat::Seat>>;

/// What is served from.
#[derive(Debug)]
pub struct Served {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Clock,
    /// The configuration, as of now.
    pub config: watch::Receiver<Arc<Config>>,
    /// The counters.
    pub metrics: Arc<Metrics>,
    /// Who may.
    pub gate: auth::Gate,
    /// Live readers.
    pub hub: stream::Hub,
    /// Consumers that are told live.
    pub lives: mcp::Lives,
    /// Every connector, as of now.
    pub seats: watch::Receiver<Seats>,
    /// Changes what is in the store.
    pub desk: desk::Desk,
    /// Changes versions of plugins.
    pub plugins: upgrade::Handle,
    /// Says what would happen, and why.
    pub inquiry: inquiry::Inquiry,
    /// Reloads the configuration.
    pub reload: reload::Handle,
    /// Streams end when it is cancelled.
    pub stop: CancellationToken,
}

/// Serves the address of `listen:` until told to stop.
pub async fn serve(listener: TcpListener, served: Arc<Served>) {
    let (clock, metrics, room) = (served.clock.clone(), Arc::clone(&served.metrics), Room::of_this_process());
    let (stop, config) = (served.stop.clone(), served.config.clone());
    let door = Door { listener, clock, metrics, room };
    door.serve(routes(served), stop, |address| config.borrow().access.is_trusted(address)).await;
}

fn routes(served: Arc<Served>) -> Router {
    Router::new()
        .merge(health::routes())
        .merge(auth::routes())
        .merge(api::routes())
        .merge(mcp::routes(&served))
        .merge(pages::routes())
        .layer(from_fn_with_state(Arc::clone(&served), auth::protect))
        .with_state(served)
}
