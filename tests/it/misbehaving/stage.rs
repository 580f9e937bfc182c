//! A poller before one server, with the real connection and the real store. Its clock is moved by hand, so that nothing
//! waits but for the server.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use switchbell::clock::Clock;
use switchbell::config::{self, Config};
use switchbell::fetch::budget::Budget;
use switchbell::fetch::mcp::{Clients, Common, McpOutbox, Times};
use switchbell::fetch::poller::{Handle, Poller, Shared};
use switchbell::inbox::Inbox;
use switchbell::inbox::sqlite::SqliteInbox;
use switchbell::notification::HOST_SOURCE;
use switchbell::telemetry::{Happening, Observer};
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::PATIENCE;
use crate::support::misbehaving::{Site, Wayward};

/// When the clock starts.
pub const START: &str = "2026-09-01T18:42:10Z";

/// No wait is shorter, by default.
pub const FLOOR: Duration = Duration::from_secs(15);
/// No wait is longer, by default.
pub const CEILING: Duration = Duration::from_secs(300);

/// Requests that one read may cost: those of a connection made anew, and of another when its session is dead.
pub const REQUESTS_A_READ_MAX: usize = 8;

/// For servers that answer in the end, however loaded the machine is.
pub fn patient() -> Times {
    let again = Duration::from_millis(20);
    Times { stop: Duration::from_millis(100), again, again_max: again * 4, ..Times::default() }
}

/// For servers that never answer.
pub fn hasty() -> Times {
    Times { read: Duration::from_millis(1_500), ..patient() }
}

/// How the connector is reached, and how often.
#[derive(Clone, Debug)]
pub struct Setting {
    /// `commands:` of the operator's file.
    pub commands: String,
    /// How the connector is reached, in the workspace's file.
    pub server: String,
    /// `poll:` of the operator's file.
    pub poll: &'static str,
    pub times: Times,
}

impl Setting {
    pub fn over_http(site: &Site, times: Times) -> Self {
        Self { commands: "{}".to_owned(), server: format!("url: \"{}\"", site.url), poll: "{}", times }
    }

    /// Writes the files and reads them as the server would.
    fn load(&self, folder: &Path) -> Config {
        let Self { commands, server, poll, .. } = self;
        let operator =
            format!("listen: 127.0.0.1:0\nstore: sqlite:switchbell.db\npoll: {poll}\ncommands: {commands}\n");
        let workspace = format!(
            "members: {{ admin@example.com: admin }}\nconnectors:\n  registrar:\n    {server}\n    ceiling: urgent\n    \
             notifications: {{ resource: \"acme://notifications\" }}\n"
        );
        for name in ["workspaces", "plugins"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        fs::write(folder.join("switchbell.yaml"), operator).unwrap();
        fs::write(folder.join("workspaces/acme.yaml"), workspace).unwrap();
        config::load(&folder.join("switchbell.yaml"), &|_| None).unwrap_or_else(|problems| panic!("{problems}")).config
    }
}

#[derive(Debug)]
struct Told(mpsc::UnboundedSender<Happening>);

impl Observer for Told {
    fn happened(&self, what: &Happening) {
        let _ = self.0.send(what.clone());
    }
}

/// One read, and all that was told of it.
#[derive(Debug, Default)]
pub struct Turn {
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// Failures in a row.
    pub failures: u32,
    pub bootstrap: bool,
    pub events: usize,
    /// Until the next read.
    pub wait: Duration,
    pub gaps: usize,
    pub dropped: Vec<String>,
    /// The titles of events.
    pub accepted: Vec<String>,
    /// The host's own notices: names and bodies.
    pub notices: Vec<(String, String)>,
}

impl Turn {
    pub fn notice_names(&self) -> Vec<&str> {
        self.notices.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// It brought an answer.
    #[track_caller]
    pub fn worked(self) -> Self {
        assert!(self.failure.is_none(), "{self:?}");
        self
    }

    /// It failed, and the reason says all of this.
    #[track_caller]
    pub fn failed(self, says: &[&str]) -> Self {
        let reason = self.failure.as_deref().unwrap_or_else(|| panic!("it did not fail: {self:?}"));
        assert!(says.iter().all(|says| reason.contains(says)), "{reason:?} does not say {says:?}");
        self
    }

    fn add(&mut self, what: Happening) {
        match what {
            Happening::Gap { .. } => self.gaps += 1,
            Happening::Dropped { reason, .. } => self.dropped.push(reason),
            Happening::Accepted { source, event, .. } if source.as_str() == HOST_SOURCE => {
                self.notices.push((event.name.clone(), event.body.clone().unwrap_or_default()));
            }
            Happening::Accepted { event, .. } => self.accepted.push(event.title.clone()),
            other => panic!("{other:?}"),
        }
    }
}

/// A poller that runs. It must be stopped.
pub struct Stage {
    pub clock: Clock,
    pub handle: Handle,
    inbox: Arc<SqliteInbox>,
    told: mpsc::UnboundedReceiver<Happening>,
    ahead: Option<Happening>,
    wait: Duration,
    /// Reads that had to wait for the budget.
    pub deferred: usize,
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
    folder: Option<TempDir>,
}

impl Stage {
    pub fn start(setting: &Setting) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), setting)
    }

    /// Starts where another was stopped.
    pub fn start_in(folder: TempDir, setting: &Setting) -> Self {
        let config = Arc::new(setting.load(folder.path()));
        let start: Timestamp = START.parse().unwrap();
        let clock = Clock::manual(start);
        let (workspace, source) = ("acme".parse().unwrap(), "registrar".parse().unwrap());
        let connector = &config.workspaces[&workspace].connectors[&source];
        let (secrets, times) = (&config.secrets, setting.times);
        let (clients, credentials) = (Clients::new(), std::path::Path::new("credentials"));
        let common = Common { secrets, times, clock: clock.clone(), clients, credentials };
        let outbox = McpOutbox::new(&workspace, connector, &common).unwrap();
        let inbox = Arc::new(SqliteInbox::open(&config.store, start).unwrap());
        let (sender, told) = mpsc::unbounded_channel();
        let budget = Arc::new(Budget::new(config.reads_per_minute_max, clock.clone()));
        let observer = Arc::new(Told(sender));
        let shared = Shared {
            config: watch::channel(config).1,
            inbox: inbox.clone(),
            clock: clock.clone(),
            observer,
            pollers: 1,
        };
        let poller = Poller::new(shared, &workspace, &source, Box::new(outbox), budget).unwrap();
        let (handle, stop) = (poller.handle(), CancellationToken::new());
        let task = Some(tokio::spawn(poller.run(stop.clone())));
        let (ahead, wait, deferred) = (None, Duration::ZERO, 0);
        Self { clock, handle, inbox, told, ahead, wait, deferred, stop, task, folder: Some(folder) }
    }

    /// What happens next.
    pub async fn next(&mut self) -> Happening {
        if let Some(ahead) = self.ahead.take() {
            return ahead;
        }
        let next = tokio::time::timeout(PATIENCE, self.told.recv()).await.expect("nothing happened");
        next.expect("the poller ended")
    }

    /// Moves the clock to the next read, and waits for what it brings. What is told of one read is told in one go.
    pub async fn turn(&mut self) -> Turn {
        self.clock.advance(std::mem::take(&mut self.wait));
        let mut turn = Turn::default();
        loop {
            match self.next().await {
                Happening::Read { events, bootstrap, next_in, .. } => {
                    (turn.events, turn.bootstrap, turn.wait) = (events, bootstrap, next_in);
                    break;
                }
                Happening::ReadFailed { reason, failures, next_in, .. } => {
                    (turn.failure, turn.failures, turn.wait) = (Some(reason), failures, next_in);
                    break;
                }
                Happening::Deferred { .. } => {
                    self.deferred += 1;
                    self.clock.advance(Duration::from_secs(60));
                }
                other => panic!("{other:?}"),
            }
        }
        while let Ok(next) = self.told.try_recv() {
            if matches!(next, Happening::Read { .. } | Happening::ReadFailed { .. } | Happening::Deferred { .. }) {
                self.ahead = Some(next);
                break;
            }
            turn.add(next);
        }
        self.wait = turn.wait;
        turn
    }

    /// Reads on until so much time has passed; all turns.
    pub async fn turns_of(&mut self, time: Duration) -> Vec<Turn> {
        let end = switchbell::clock::later(self.clock.now(), time);
        let mut turns = Vec::new();
        while switchbell::clock::later(self.clock.now(), self.wait) <= end {
            turns.push(self.turn().await);
        }
        turns
    }

    pub async fn position(&self) -> Option<String> {
        self.inbox.reading(&self.handle.workspace, &self.handle.source).await.unwrap().cursor
    }

    /// The first read, of a server that behaves.
    pub async fn begins(&mut self) {
        let first = self.turn().await.worked();
        assert!(first.bootstrap && first.notices.is_empty(), "{first:?}");
        assert_eq!(self.position().await.as_deref(), Some("c-0"));
    }

    /// Reads that fail, of a server that goes on misbehaving, after `before` other failures in a row. Each says what
    /// happened, moves nothing and costs little; with the third the admin is told.
    pub async fn fails(&mut self, server: &impl Wayward, times: u32, says: &[&str]) {
        let (position, asked) = (self.position().await, server.asked());
        for number in 1..=times {
            let turn = self.turn().await.failed(says);
            assert_eq!(turn.failures, number);
            assert!((FLOOR..=CEILING).contains(&turn.wait), "{turn:?}");
            match (number, &turn.notices[..]) {
                (3, [(name, body)]) if name == "connector.failing" => {
                    assert!(body.starts_with("3 reads in a row failed"), "{body}");
                    assert!(says.iter().all(|says| body.contains(says)), "{body}");
                }
                (3, other) => panic!("{other:?}"),
                (_, notices) => assert!(notices.is_empty(), "{number}: {notices:?}"),
            }
            assert_eq!(self.position().await, position, "a failed read moves nothing");
        }
        let asked = server.asked() - asked;
        let calls = server.calls();
        let last = calls.get(calls.len().saturating_sub(asked)..).unwrap_or_default();
        assert!(asked <= times as usize * REQUESTS_A_READ_MAX, "{asked} requests for {times} reads: {last:?}");
    }

    /// The next read, of a server that behaves again, brings `title`, once; the admin is told if there was bad news.
    pub async fn recovers(&mut self, failures: u32, title: &str, position: &str) {
        let turn = self.turn().await.worked();
        assert_eq!(turn.accepted, [title], "{turn:?}");
        assert_eq!((turn.gaps, turn.dropped.len(), turn.bootstrap), (0, 0, false));
        assert_eq!(turn.notice_names(), if failures >= 3 { &["connector.recovered"][..] } else { &[] });
        assert_eq!(self.position().await.as_deref(), Some(position));
        let turn = self.turn().await.worked();
        assert!(turn.events == 0 && turn.notices.is_empty(), "{turn:?}");
    }

    pub async fn stop(mut self) -> TempDir {
        self.stop.cancel();
        let task = self.task.take().unwrap();
        tokio::time::timeout(PATIENCE, task).await.expect("it does not stop").unwrap();
        self.folder.take().unwrap()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        assert!(self.task.is_none() || std::thread::panicking(), "the poller was not stopped");
    }
}
