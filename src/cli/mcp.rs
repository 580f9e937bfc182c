//! `switchbell mcp`: the MCP server over standard input and output, for programs that start their servers. It relays each
//! message to a Switchbell server and the answers back, and knows of MCP only what the way over HTTP asks for.

mod answer;
mod door;
mod headers;
mod lines;
mod relay;

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::output::{fail, tell};
use door::Server;
use lines::{Line, Lines};
use relay::Relay;

/// The variable that holds the token.
const TOKEN: &str = "SWITCHBELL_TOKEN";

/// Messages that wait for the program which reads them.
const LINES_MAX: usize = 64;

/// How long what is asked already may go on once nothing more is asked.
const REST_MAX: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The server, such as https://bell.example.com; the one that runs on this machine over the same store when left out.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

pub(super) async fn run(file: &Path, asked: &Arguments) -> ExitCode {
    let server = match server(file, asked) {
        Ok(server) => server,
        Err(code) => return code,
    };
    let (lines, out) = mpsc::channel(LINES_MAX);
    let (said, asked) = mpsc::channel(LINES_MAX);
    // Neither is waited for where it waits itself: for a line, or for somebody who reads.
    spawn_blocking(move || read(&said));
    let writing = spawn_blocking(move || write(out));
    let relay = Relay::new(server, lines);
    tokio::select! {
        // What writes ends once the relay is gone.
        ((), _) = async { tokio::join!(serve(relay, asked), writing) } => ExitCode::SUCCESS,
        _ = tokio::signal::ctrl_c() => ExitCode::SUCCESS,
    }
}

fn server(file: &Path, asked: &Arguments) -> Result<Server, ExitCode> {
    let token = std::env::var(TOKEN).ok().filter(|token| !token.trim().is_empty());
    let Some(token) = token else {
        return Err(fail(format_args!(
            "{TOKEN} is not set: have a token made with `switchbell token create`, and set the variable to it where this \
             program is started"
        )));
    };
    match &asked.server {
        Some(url) => Server::at(url, &token).map_err(fail),
        None => Server::of_store(&super::inbox::open_places(file)?.store, &token).map_err(fail),
    }
}

/// Relays line by line, many at once, until there are no more or nobody reads the answers. While as many as can be are under
/// way, the next lines wait.
async fn serve(relay: Relay, mut lines: mpsc::Receiver<Line>) {
    let mut under_way = FuturesUnordered::new();
    loop {
        tokio::select! {
            line = lines.recv(), if !relay.is_full() => match line {
                Some(Line::Message(line)) => {
                    let message = relay.take(&line).await;
                    under_way.extend(message.map(|message| relay.send(message)));
                }
                Some(Line::TooLong) => relay.refuse_too_long().await,
                None => break,
            },
            Some(()) = under_way.next() => {}
            () = relay.nobody_reads() => return,
        }
    }
    relay.end_streams();
    let rest = async { while under_way.next().await.is_some() {} };
    let _ = tokio::time::timeout(REST_MAX, rest).await;
}

/// Reads standard input to its end.
fn read(lines: &mpsc::Sender<Line>) {
    let mut input = Lines::new(io::stdin().lock());
    loop {
        match input.next() {
            Ok(Some(line)) => {
                if lines.blocking_send(line).is_err() {
                    return;
                }
            }
            Ok(None) => return,
            Err(error) => return tell(format_args!("switchbell: standard input cannot be read: {error}")),
        }
    }
}

/// Writes messages, each on a line of its own, until there are no more or nobody reads them.
fn write(mut messages: mpsc::Receiver<String>) {
    let mut out = io::stdout().lock();
    while let Some(mut message) = messages.blocking_recv() {
        message.push('\n');
        if out.write_all(message.as_bytes()).and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}
