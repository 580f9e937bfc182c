//! What is told about the work while it happens: log lines, and the same facts for those who watch and count.

pub mod metrics;

use std::fmt;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use crate::inbox::DeliveryId;
use crate::inbox::delivery::{Outcome, State};
use crate::notification::{Event, Level, Name};
use crate::route::Decision;

/// Something that happened, told after it is durable.
#[derive(Clone, Debug)]
pub enum Happening {
    /// An outbox was read.
    Read {
        /// The workspace.
        workspace: Name,
        /// The connector.
        source: Name,
        /// Events in the answer.
        events: usize,
        /// Whether it was the first read, which only finds the place to start from.
        bootstrap: bool,
        /// When it will be read again.
        next_in: Duration,
    },
    /// A read failed; the position is where it was.
    ReadFailed {
        /// The workspace.
        workspace: Name,
        /// The connector.
        source: Name,
        /// Why, and what to do.
        reason: String,
        /// Failures in a row, this one included.
        failures: u32,
        /// When it will be tried again.
        next_in: Duration,
    },
    /// A read waits because the workspace's budget of reads has run out.
    Deferred {
        /// The workspace.
        workspace: Name,
        /// The connector.
        source: Name,
    },
    /// Events were missed: the outbox skipped some, or it did not know the position any more.
    Gap {
        /// The workspace.
        workspace: Name,
        /// The connector.
        source: Name,
    },
    /// An event broke a rule and was dropped.
    Dropped {
        /// The workspace.
        workspace: Name,
        /// The connector.
        source: Name,
        /// Which rule, and the event's id where it has one.
        reason: String,
    },
    /// An event is in the inbox.
    Accepted {
        /// The workspace.
        workspace: Name,
        /// Its number there.
        seq: u64,
        /// The connector.
        source: Name,
        /// What it said.
        event: Arc<Event>,
        /// Its level after the ceiling.
        effective_level: Level,
        /// What was decided about each route; empty for events of a first read, which owe nothing.
        decisions: Vec<Decision>,
    },
    /// An attempt of a delivery ended.
    Attempted {
        /// The workspace.
        workspace: Name,
        /// The notification; of a digest, the first.
        seq: u64,
        /// How many more it stands for.
        more: u64,
        /// The delivery.
        delivery: DeliveryId,
        /// Its route.
        route: Name,
        /// Its plugin.
        plugin: Name,
        /// The number of the attempt.
        attempt: u32,
        /// How it ended.
        outcome: Outcome,
        /// Why, or the destination's reference.
        reason: Option<String>,
        /// Where the delivery stands now.
        state: State,
        /// How long the attempt took.
        took: Duration,
        /// When the next attempt comes due, if one does.
        next_in: Option<Duration>,
    },
    /// An attempt rests: the same one goes on later.
    Paused {
        /// The workspace.
        workspace: Name,
        /// The notification; of a digest, the first.
        seq: u64,
        /// The delivery.
        delivery: DeliveryId,
        /// Its route.
        route: Name,
        /// Its plugin.
        plugin: Name,
        /// The number of the attempt.
        attempt: u32,
        /// When it goes on, where its plugin asked to wait or its lane is paused; none when the server stops.
        next_in: Option<Duration>,
    },
    /// A delivery that was due came to something else than an attempt.
    Moved {
        /// The workspace.
        workspace: Name,
        /// The notification; of a digest, the first.
        seq: u64,
        /// The delivery.
        delivery: DeliveryId,
        /// Its route.
        route: Name,
        /// Its plugin.
        plugin: Name,
        /// Where it stands now.
        state: State,
    },
}

/// Who is told of each [`Happening`]. It must return at once.
pub trait Observer: Send + Sync + fmt::Debug {
    /// Called after the fact.
    fn happened(&self, what: &Happening);
}

/// For those who do not watch: the log tells failures where they are handled.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl Observer for Nobody {
    fn happened(&self, _what: &Happening) {}
}

/// Tells two observers.
#[derive(Clone, Debug)]
pub struct Both(pub Arc<dyn Observer>, pub Arc<dyn Observer>);

impl Observer for Both {
    fn happened(&self, what: &Happening) {
        self.0.happened(what);
        self.1.happened(what);
    }
}

/// A duration as people read it: `12 ms`, `2.7 s`, `4 min`, `6.0 h`.
pub fn rounded(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        ..1.0 => format!("{} ms", duration.as_millis()),
        ..120.0 => format!("{seconds:.1} s"),
        ..7200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// Starts logging to standard error: `level` and above, or what `SWITCHBELL_LOG` asks for, which filters as `RUST_LOG`
/// does elsewhere. The MCP library is silent unless asked: it logs whole messages.
pub fn log_to_stderr(level: &str) {
    use tracing_subscriber::EnvFilter;
    let filter =
        EnvFilter::try_from_env("SWITCHBELL_LOG").unwrap_or_else(|_| EnvFilter::new(format!("{level},rmcp=off")));
    // Colours are for people who watch (and have not asked for none: no-color.org).
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A log that cannot be written (a full disk, a reader that went away) must not stop the work that it tells of.
    let subscriber = subscriber.with_target(false).with_ansi(colours).log_internal_errors(false);
    // A second call in one process keeps the first.
    let _ = subscriber.try_init();
}
