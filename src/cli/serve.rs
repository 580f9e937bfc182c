//! `switchbell serve`: runs the router until it is told to stop.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::COULD_NOT_RUN;
use super::output::{fail, tell};
use crate::app::{App, Origin};
use crate::clock::Clock;
use crate::config::process_environment;
use crate::serve::auth::LINK;
use crate::telemetry::{Nobody, log_to_stderr};

/// Said when a part of the server ended by itself, which it never should.
pub(super) const BROKEN: &str = "a part of the server ended by itself; please report it with the log. Nothing accepted is \
                                 lost: start it again";

pub(super) async fn run(file: &Path) -> ExitCode {
    log_to_stderr("info");
    let (mut signals, mut hangups) = match Signals::listen().and_then(|signals| Ok((signals, Hangups::listen()?))) {
        Ok(signals) => signals,
        Err(error) => return fail(error),
    };
    let origin = match Origin::read(file, Arc::new(process_environment)) {
        Ok((origin, warnings)) => {
            warnings.iter().for_each(|warning| tell(format_args!("warning: {warning}")));
            origin
        }
        Err(problems) => {
            tell(problems);
            return ExitCode::from(COULD_NOT_RUN);
        }
    };
    let config = Arc::clone(origin.config());
    let mut app = match App::start(origin, Clock::system(), Arc::new(Nobody)).await {
        Ok(app) => app,
        Err(error) => return fail(error),
    };
    let outboxes: usize = config.workspaces.values().map(|workspace| workspace.outboxes().count()).sum();
    let (listen, store) = (app.address(), config.store.display());
    tracing::info!(%listen, workspaces = config.workspaces.len(), outboxes, %store, "ready");
    if listen.ip().is_loopback() {
        tell_first_link(&app).await;
    }
    let reload = app.reload().clone();
    loop {
        tokio::select! {
            () = signals.stop_asked() => break,
            () = hangups.asked() => reload.ask(),
            () = app.broken() => return fail(BROKEN),
        }
    }
    tracing::info!("stopping");
    app.stop().await;
    tracing::info!("stopped");
    ExitCode::SUCCESS
}

/// Shows a link to sign in by, where nobody could sign in so far: whoever reads this runs the server.
async fn tell_first_link(app: &App) {
    match app.gate().first_link().await {
        Ok(Some(link)) => {
            let minutes = LINK.as_secs() / 60;
            tell(format_args!(
                "Nobody can sign in yet. This link signs the operator in, once, within {minutes} minutes:\n  {link}\n\
                 `switchbell token create --role operator --link` makes another."
            ));
        }
        Ok(None) => {}
        Err(problem) => tracing::warn!(%problem, "no link to sign in by was made"),
    }
}

/// The signal that asks for a reload: SIGHUP, as `kill -HUP` and systemd's `ExecReload` send it.
#[derive(Debug)]
struct Hangups(Signal);

impl Hangups {
    /// Listens from now on, so that no such signal ends the process any more; one that comes while the server starts is
    /// heard once it has started.
    fn listen() -> std::io::Result<Self> {
        signal(SignalKind::hangup()).map(Self)
    }

    /// Ready when one has come.
    async fn asked(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending().await
        }
    }
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
