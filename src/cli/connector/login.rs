//! `switchbell connector login`: a person signs in to a connector, once.

use std::fmt::Write as _;
use std::io::{BufRead, IsTerminal, Read};
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::super::output::{fail, show, tell};
use super::super::{COULD_NOT_RUN, FOUND_WRONG, load, workspace_in};
use super::callback::{ADDRESS_BYTES_MAX, Callback, Page, Visit};
use crate::clock::Clock;
use crate::config::{Config, Workspace};
use crate::fetch::mcp::oauth::login::{Granted, Login, LoginError};
use crate::fetch::mcp::oauth::{Account, Credentials};
use crate::fetch::mcp::{Clients, Common, Times};
use crate::notification::Name;

/// How long a person may take.
const PERSON_TIME_MAX: Duration = Duration::from_secs(600);
/// How long the browser's last page may take to reach it.
const PAGE_TIME_MAX: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct LoginArguments {
    /// The connector.
    name: Name,
    /// The workspace; may be left out when there is one.
    #[arg(long, value_name = "NAME")]
    workspace: Option<Name>,
    /// The port of this machine that the browser comes back to; 0 takes a free one. A client that was registered by
    /// hand may need a certain one.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// Opens no browser; only prints the address.
    #[arg(long)]
    no_browser: bool,
    /// For a browser on another machine: also takes the address that it was sent to, pasted here.
    #[arg(long)]
    manual: bool,
}

pub(super) async fn run(file: &Path, arguments: &LoginArguments) -> ExitCode {
    let config = match load(file) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let account = match account(&config, arguments) {
        Ok(account) => account,
        Err(code) => return code,
    };
    let callback = match Callback::bind(arguments.port).await {
        Ok(callback) => callback,
        Err(error) => return fail(format_args!("--port {}: cannot listen on it: {error}", arguments.port)),
    };
    let login = match Login::begin(account, callback.address()).await {
        Ok(login) => login,
        Err(error) => return failed(&error),
    };
    show(invitation(&login, callback.address(), arguments.manual));
    if !arguments.no_browser && !arguments.manual {
        open_browser(login.address());
    }
    match until_back(&login, callback, arguments.manual).await {
        Ok(granted) => {
            show(thanks(&granted));
            ExitCode::SUCCESS
        }
        Err(error) => failed(&error),
    }
}

/// The account of the connector that the arguments name.
fn account(config: &Config, arguments: &LoginArguments) -> Result<Account, ExitCode> {
    let Workspace { name, connectors, .. } = workspace_in(config, arguments.workspace.as_ref())?;
    let connector = connectors.get(&arguments.name).ok_or_else(|| {
        let there: Vec<&str> = connectors.keys().map(Name::as_str).collect();
        let (asked, there) = (arguments.name.as_str(), there.join(", "));
        fail(format_args!("workspace {name} has no connector {asked:?} (there are: {there})"))
    })?;
    let common = Common {
        secrets: &config.secrets,
        times: Times::default(),
        clock: Clock::system(),
        clients: Clients::new(),
        credentials: &Credentials::folder_of(&config.store),
    };
    let account = Account::of(name, connector, &common).map_err(fail)?;
    account.ok_or_else(|| {
        let asked = &arguments.name;
        fail(format_args!("connector {asked} does not sign in by OAuth: write `auth: {{ oauth: … }}` for it first"))
    })
}

fn failed(error: &LoginError) -> ExitCode {
    tell(format_args!("switchbell: {error}"));
    ExitCode::from(match error {
        LoginError::Refused(_) | LoginError::NotOurs => FOUND_WRONG,
        LoginError::Failed(_) => COULD_NOT_RUN,
    })
}

fn invitation(login: &Login, back: &str, is_manual: bool) -> String {
    let mut text = format!("Open this address to sign in at {}:\n\n  {}\n\n", login.server(), login.address());
    // Writing to a string cannot fail.
    let _ = match login.scopes() {
        [] => Ok(()),
        scopes => writeln!(text, "It asks for: {}", scopes.join(" ")),
    };
    let minutes = PERSON_TIME_MAX.as_secs() / 60;
    let _ = write!(text, "The browser comes back to {back}, within {minutes} minutes.");
    if is_manual {
        text.push_str(
            "\nOn another machine it cannot show that page: copy the page's whole address, paste it here, and press \
             Enter.",
        );
    }
    text
}

fn thanks(granted: &Granted) -> String {
    let scopes = match granted.scopes.as_slice() {
        [] => String::new(),
        scopes => format!(" Granted: {}.", scopes.join(" ")),
    };
    let end = match (granted.is_renewable, granted.until) {
        (true, _) => "The token is renewed by itself.".to_owned(),
        (false, Some(until)) => format!("The token ends at {until} and cannot be renewed: sign in again before that."),
        (false, None) => "The token cannot be renewed; no end was named.".to_owned(),
    };
    format!("Signed in at {}.{scopes} {end}", granted.by)
}

/// Waits for the browser, or for what is pasted.
async fn until_back(login: &Login, callback: Callback, is_manual: bool) -> Result<Granted, LoginError> {
    let (visits, mut visited) = mpsc::channel(1);
    let end = CancellationToken::new();
    let served = callback.serve(visits, end.clone());
    let mut pasted = is_manual.then(pasted_lines);
    let answered = async {
        let answered = tokio::time::timeout(PERSON_TIME_MAX, answer(login, &mut visited, &mut pasted)).await;
        end.cancel();
        let minutes = PERSON_TIME_MAX.as_secs() / 60;
        answered.unwrap_or_else(|_| Err(LoginError::Failed(format!("nobody came back within {minutes} minutes"))))
    };
    let last_page = async {
        end.cancelled().await;
        tokio::time::sleep(PAGE_TIME_MAX).await;
    };
    let served = async {
        tokio::select! {
            () = served => {}
            () = last_page => {}
        }
    };
    tokio::join!(answered, served).0
}

async fn answer(
    login: &Login,
    visited: &mut mpsc::Receiver<Visit>,
    pasted: &mut Option<mpsc::Receiver<String>>,
) -> Result<Granted, LoginError> {
    let nothing_pasted = || LoginError::Failed("the browser's page is gone".to_owned());
    loop {
        tokio::select! {
            visit = visited.recv() => {
                let visit = visit.ok_or_else(nothing_pasted)?;
                let finished = login.finish(&visit.address).await;
                let page = match &finished {
                    Ok(_) => Page::Done,
                    Err(LoginError::NotOurs) => Page::NotOurs,
                    Err(_) => Page::NotDone,
                };
                // A browser that has gone needs no page.
                let _ = visit.answer.send(page);
                if !matches!(finished, Err(LoginError::NotOurs)) {
                    return finished;
                }
            }
            Some(line) = next(pasted) => match login.finish(line.trim()).await {
                Err(LoginError::NotOurs) => {
                    tell("This is not the address of the page that the browser was sent to. Paste it whole:");
                }
                finished => return finished,
            },
        }
    }
}

/// The next line; never when nothing is pasted.
async fn next(pasted: &mut Option<mpsc::Receiver<String>>) -> Option<String> {
    let line = match pasted {
        Some(lines) => lines.recv().await,
        None => std::future::pending().await,
    };
    if line.is_none() {
        *pasted = None;
    }
    line
}

/// The lines of standard input that are not empty.
fn pasted_lines() -> mpsc::Receiver<String> {
    let (lines, pasted) = mpsc::channel(1);
    // The end of the process ends it.
    tokio::task::spawn_blocking(move || {
        loop {
            let mut line = Vec::new();
            let mut input = std::io::stdin().lock().take(ADDRESS_BYTES_MAX as u64);
            match input.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let line = String::from_utf8_lossy(&line).into_owned();
            if !line.trim().is_empty() && lines.blocking_send(line).is_err() {
                return;
            }
        }
    });
    pasted
}

/// Opens the person's browser where there is a desktop. That it does not open is no failure: the address is printed.
fn open_browser(address: &str) {
    let has_desktop = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if has_desktop && std::io::stdout().is_terminal() {
        let mut command = tokio::process::Command::new("xdg-open");
        command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let _ = command.spawn();
    }
}
