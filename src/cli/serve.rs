//! `switchbell serve`: runs the router until it is told to stop.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use super::load;
use super::output::fail;
use crate::app::App;
use crate::clock::Clock;
use crate::telemetry::{Nobody, log_to_stderr};

pub(super) async fn run(file: &Path) -> ExitCode {
    log_to_stderr("info");
    let config = match load(file) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let app = match App::start(Arc::clone(&config), Clock::system(), Arc::new(Nobody)).await {
        Ok(app) => app,
        Err(error) => return fail(error),
    };
    let outboxes: usize = config.workspaces.values().map(|workspace| workspace.outboxes().count()).sum();
    tracing::info!(listen = %app.address(), workspaces = config.workspaces.len(), outboxes, store = %config.store.display(), "ready");
    stop_asked().await;
    tracing::info!("stopping");
    app.stop().await;
    tracing::info!("stopped");
    ExitCode::SUCCESS
}

/// Ready when the process is told to stop: by Ctrl-C or SIGTERM.
pub(super) async fn stop_asked() {
    use tokio::signal::unix::{SignalKind, signal};
    match (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) {
        (Ok(mut interrupt), Ok(mut terminate)) => {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        }
        (Err(error), _) | (_, Err(error)) => {
            tracing::error!(%error, "signals cannot be received: stop the process by killing it");
            std::future::pending::<()>().await;
        }
    }
}
