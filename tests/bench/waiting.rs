//! Memory that attempts take which all wait at once for a destination that answers late.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use switchbell::clock::Clock;
use switchbell::config;
use switchbell::inbox::delivery::Outcome;
use switchbell::inbox::{Ended, Inbox, Intake};
use switchbell::route::entry;
use switchbell::send::{Dispatcher, Stop};
use switchbell::telemetry::{Happening, Observer};
use switchbell::wasm::{Catalog, Sandbox, Settings};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Notify, watch};
use tokio_rustls::TlsAcceptor;

use crate::deliver::means;
use crate::world::{World, name, notification, slack};

/// One workspace, or one queue, alone may not have so many attempts at once.
const WORKSPACES: usize = 8;
const ROUTES: usize = 20;
const EVENTS: usize = 63;
const WAITING: usize = WORKSPACES * ROUTES * EVENTS;

/// Set for a process of a measurement: what it is of it. Each has a process of its own, for its memory's sake.
const ROLE: &str = "SWITCHBELL_BENCH_WAITING";
/// The folder of the certificate and the key; with plaintext there is none.
const CERTIFICATE: &str = "SWITCHBELL_BENCH_CERTIFICATE";

/// Is the engine or the destination, in the process that was started for that.
pub async fn role_if_asked() {
    let Some(role) = std::env::var_os(ROLE) else { return };
    allow_open_files();
    if role == "destination" {
        late().await;
    }
    measure().await;
    std::process::exit(0);
}

pub async fn run() {
    for tls in [false, true] {
        let kind = if tls { "TLS" } else { "plaintext" };
        println!("\n{WAITING} attempts that wait at once for a {kind} destination");
        let mut engine = own_process("engine");
        let folder = tempfile::tempdir().expect("a folder");
        if tls {
            let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
            let (certificate, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
            std::fs::write(&certificate, made.cert.pem()).expect("a file");
            std::fs::write(key, made.signing_key.serialize_pem()).expect("a file");
            // What the system trusts, in that process.
            engine.env(CERTIFICATE, folder.path()).env("SSL_CERT_FILE", certificate);
        }
        assert!(engine.status().await.expect("a process").success());
    }
}

fn own_process(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.arg("--bench").env(ROLE, role).kill_on_drop(true);
    command
}

async fn measure() {
    let mut late = Late::start().await;
    let world = world(late.address);
    let inbox: Arc<dyn Inbox> = Arc::new(world.inbox("waiting.db"));
    let sandbox = Sandbox::new(Settings::new(world.config.plugins.limits)).expect("a sandbox");
    let catalog = Catalog::open(&sandbox, &world.config.plugins.directory).await.0;
    slack(&catalog).await;
    let means = means(&world, &catalog, Arc::clone(&inbox)).await;
    let (counter, stop) = (Arc::new(Counter::default()), Stop::default());
    let dispatcher = Dispatcher::start(means, counter.clone()).await.expect("a dispatcher");
    let running = tokio::spawn(dispatcher.run(stop.clone()));
    let before = resident_mib();
    let began = Instant::now();
    for workspace in 0..WORKSPACES {
        inbox.accept(intake(&world, workspace)).await.expect("a write");
    }
    late.has_them_all().await;
    let took = began.elapsed().as_secs_f64();
    // Each lets go of its instance a little later.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let all = resident_mib();
    println!(
        "  {before:.0} MiB before, {:.0} MiB more with all of them waiting ({:.1} KiB each) after {took:.1} s; {} instances kept",
        all - before,
        (all - before) * 1024.0 / WAITING as f64,
        sandbox.kept_instances(),
    );
    late.answer().await;
    counter.all.notified().await;
    println!("  all delivered; {:.0} MiB more afterwards", resident_mib() - before);
    stop.soon.cancel();
    running.await.expect("the dispatcher");
    late.child.kill().await.expect("an end");
}

/// Counts deliveries, and says when all are made.
#[derive(Debug, Default)]
struct Counter {
    delivered: AtomicUsize,
    all: Notify,
}

impl Observer for Counter {
    fn happened(&self, what: &Happening) {
        if let Happening::Attempted { outcome: Outcome::Delivered, .. } = what
            && self.delivered.fetch_add(1, Ordering::Relaxed) + 1 == WAITING
        {
            self.all.notify_one();
        }
    }
}

/// Workspaces with many routes, each to a destination of its own as far as the engine knows.
fn world(sink: SocketAddr) -> World {
    let (grant, scheme) = if std::env::var_os(CERTIFICATE).is_some() { ("", "https") } else { ("http://", "http") };
    let folder = tempfile::tempdir().expect("a folder");
    let plugins = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("dist/plugins");
    let names: Vec<String> = (0..WORKSPACES).map(|number| format!("w{number}")).collect();
    let names = names.join(", ");
    let operator = format!(
        "listen: 127.0.0.1:0\nplugins: {{ directory: {plugins:?}, grants: {{ slack: {{ http: [\"{grant}{sink}\"] }} }} }}\n\
         commands: {{ none: {{ run: [\"true\"], workspaces: [{names}] }} }}\n\
         secrets: {{ hook: {{ env: HOOK, in: url, workspaces: [{names}] }} }}\n"
    );
    let mut workspace =
        "members: { a@example.com: admin }\nconnectors: { registrar: { command: none, ceiling: urgent, \
                         notifications: { resource: \"acme://n\" } } }\nroutes:\n"
            .to_owned();
    for number in 0..ROUTES {
        let _ = writeln!(
            workspace,
            "  - {{ name: r{number}, owner: a@example.com, when: {{ name: \"domain.*\" }}, deliver: [ {{ plugin: slack, \
             with: {{ webhook: {{ secret: hook }} }} }} ] }}"
        );
    }
    std::fs::create_dir_all(folder.path().join("workspaces")).expect("a folder");
    std::fs::write(folder.path().join("switchbell.yaml"), operator).expect("a file");
    for number in 0..WORKSPACES {
        std::fs::write(folder.path().join(format!("workspaces/w{number}.yaml")), &workspace).expect("a file");
    }
    let environment =
        |name: &str| (name == "HOOK").then(|| format!("{scheme}://{sink}/services/T00000000/B00000000/x").into());
    let loaded = config::load(&folder.path().join("switchbell.yaml"), &environment).expect("a configuration");
    World { config: Arc::new(loaded.config), folder, sink }
}

fn intake(world: &World, number: usize) -> Intake {
    let workspace = world.config.workspaces.get(&name(&format!("w{number}"))).expect("a workspace");
    let source = name("registrar");
    let entry = |number: usize| {
        let one = notification(number as u64);
        entry(one.event, one.effective_level, (workspace, &source)).0
    };
    Intake {
        is_first: false,
        workspace: workspace.name.clone(),
        source: source.clone(),
        received_at: Clock::system().now(),
        entries: (0..EVENTS).map(entry).collect(),
        notices: Vec::new(),
        cursor: None,
        ended: Ended::Answered { revision: None, is_backlog: false },
    }
}

/// The destination: a process of its own that answers when it is told to.
struct Late {
    address: SocketAddr,
    child: Child,
    says: Lines<BufReader<ChildStdout>>,
    hears: ChildStdin,
}

impl Late {
    async fn start() -> Self {
        let mut command = own_process("destination");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let mut says = BufReader::new(child.stdout.take().expect("its output")).lines();
        let hears = child.stdin.take().expect("its input");
        let address = says.next_line().await.expect("a line").expect("a line").parse().expect("an address");
        Self { address, child, says, hears }
    }

    async fn has_them_all(&mut self) {
        self.says.next_line().await.expect("a line").expect("a line");
    }

    async fn answer(&mut self) {
        self.hears.write_all(b"\n").await.expect("a write");
    }
}

/// Says its address, then that all have come, and answers them once it hears a line.
async fn late() -> ! {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    println!("{}", listener.local_addr().expect("an address"));
    let (answers, come) = (Arc::new(watch::Sender::new(false)), Arc::new(AtomicUsize::new(0)));
    let told = Arc::clone(&answers);
    let tls = std::env::var_os(CERTIFICATE).map(|folder| acceptor(folder.as_ref()));
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_line(&mut String::new());
        told.send_replace(true);
    });
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        let (tls, answers, come) = (tls.clone(), Arc::clone(&answers), Arc::clone(&come));
        tokio::spawn(async move {
            match tls {
                None => keep_waiting(stream, answers, come).await,
                Some(tls) => keep_waiting(tls.accept(stream).await.expect("a handshake"), answers, come).await,
            }
        });
    }
}

fn acceptor(folder: &Path) -> TlsAcceptor {
    let certificate = CertificateDer::from_pem_file(folder.join("certificate.pem")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(folder.join("key.pem")).expect("a key");
    let tls = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key);
    TlsAcceptor::from(Arc::new(tls.expect("a configuration")))
}

async fn keep_waiting<S>(mut stream: S, answers: Arc<watch::Sender<bool>>, come: Arc<AtomicUsize>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut buffer = [0; 4096];
    while stream.read(&mut buffer).await.is_ok_and(|bytes| bytes > 0) {
        if come.fetch_add(1, Ordering::Relaxed) + 1 == WAITING {
            println!("all");
        }
        let _ = answers.subscribe().wait_for(|answers| *answers).await;
        if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.is_err()
            || stream.flush().await.is_err()
        {
            return;
        }
    }
}

pub fn allow_open_files() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("more open files");
}

fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()).map_or(f64::NAN, |kib| kib / 1024.0)
}
