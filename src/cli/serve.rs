//! `switchbell serve`: runs the router until it is told to stop.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::load;
use super::output::fail;
use crate::app::App;
use crate::clock::Clock;
use crate::telemetry::{Nobody, log_to_stderr};

/// Said when a part of the server ended by itself, which it never should.
pub(super) const BROKEN: &str = "a part of the server ended by itself; please report it with the log. Nothing accepted is \
                                 lost: start it again";

pub(super) async fn run(file: &Path) -> ExitCode {
    log_to_stderr("info");
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => return fail(error),
    };
    let config = match load(file) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let mut app = match App::start(Arc::clone(&config), Clock::system(), Arc::new(Nobody)).await {
        Ok(app) => app,
        Err(error) => return fail(error),
    };
    let outboxes: usize = config.workspaces.values().map(|workspace| workspace.outboxes().count()).sum();
    let (listen, store) = (app.address(), config.store.display());
    tracing::info!(%listen, workspaces = config.workspaces.len(), outboxes, %store, "ready");
    tokio::select! {
        () = signals.stop_asked() => {}
        () = app.broken() => return fail(BROKEN),
    }
    tracing::info!("stopping");
    app.stop().await;
    tracing::info!("stopped");
    ExitCode::SUCCESS
}

/// The signals that ask for a stop: Ctrl-C and SIGTERM.
#[derive(Debug)]
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Listens from now on: a signal that comes while the server starts is heard once it has started.
    pub(super) fn listen() -> std::io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Ready when one has come.
    pub(super) async fn stop_asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
