//! An MCP server with an outbox: one resource, `acme://notifications`, that a host reads on a schedule.
//!
//! OUTBOX_DB names the SQLite file. With OUTBOX_TOKEN set, HTTP asks for that bearer token.

mod http;
mod outbox;
mod server;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use lexopt::prelude::*;
use rmcp::ServiceExt;
use rusqlite::TransactionBehavior;
use tokio::sync::watch;

use outbox::{Fact, Outbox};
use server::AcmeServer;

const USAGE: &str = "\
usage: outbox-rust [--http PORT] [--next-poll MILLISECONDS]
       outbox-rust add NAME [--level info|attention|urgent] [--title T] [--subject S] [--body B] [--link URI]
                            [--data JSON] [--id ID]
Without --http it speaks MCP over stdio. OUTBOX_DB names the SQLite file.";

/// How often it looks for rows that other processes added, to tell readers that subscribed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

enum Command {
    Serve { http_port: Option<u16>, next_poll_ms: Option<u64> },
    Add(Box<Fact>),
    Help,
}

#[tokio::main]
async fn main() -> ExitCode {
    let command = match arguments(lexopt::Parser::from_env()) {
        Ok(command) => command,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(command).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

async fn run(command: Command) -> Result<(), Box<dyn Error>> {
    match command {
        Command::Help => println!("{USAGE}"),
        Command::Add(fact) => {
            let outbox = open()?;
            let mut connection = outbox.connect()?;
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let position = outbox::add(&transaction, &fact)?;
            transaction.commit()?;
            println!("{} is at position {position} of {}", fact.name, outbox.path().display());
        }
        Command::Serve { http_port, next_poll_ms } => {
            let outbox = open()?;
            let newest = watch_newest(outbox.clone(), outbox.newest()?);
            let server = move || AcmeServer::new(outbox.clone(), newest.clone(), next_poll_ms);
            match http_port {
                Some(port) => http::serve(port, std::env::var("OUTBOX_TOKEN").ok(), server).await?,
                // Ends when the host closes standard input.
                None => drop(server().serve(rmcp::transport::stdio()).await?.waiting().await?),
            }
        }
    }
    Ok(())
}

/// The outbox in the file that OUTBOX_DB names, else in outbox.db beside this program.
fn open() -> Result<Outbox, Box<dyn Error>> {
    let named = std::env::var_os("OUTBOX_DB").filter(|path| !path.is_empty()).map(PathBuf::from);
    let path = named.map_or_else(|| std::env::current_exe().map(|program| program.with_file_name("outbox.db")), Ok)?;
    Outbox::open(&path)
        .map_err(|error| format!("cannot open {}: {error}; name another file in OUTBOX_DB", path.display()).into())
}

/// Follows the newest position in the database, whichever process moves it.
fn watch_newest(outbox: Outbox, newest: i64) -> watch::Receiver<i64> {
    let (sender, receiver) = watch::channel(newest);
    tokio::spawn(async move {
        while !sender.is_closed() {
            tokio::time::sleep(LOOK_EVERY).await;
            let outbox = outbox.clone();
            // A look that fails is made up for by the next one.
            if let Ok(Ok(newest)) = tokio::task::spawn_blocking(move || outbox.newest()).await {
                sender.send_if_modified(|known| std::mem::replace(known, newest) != newest);
            }
        }
    });
    receiver
}

fn arguments(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut http_port, mut next_poll_ms) = (None, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("http") => http_port = Some(parser.value()?.parse_with(port)?),
            Long("next-poll") => next_poll_ms = Some(parser.value()?.parse_with(at_least_one)?),
            Short('h') | Long("help") => return Ok(Command::Help),
            Value(word) if word == "add" => return Ok(Command::Add(Box::new(fact(parser)?))),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Command::Serve { http_port, next_poll_ms })
}

fn port(text: &str) -> Result<u16, &'static str> {
    text.parse().map_err(|_| "give a port, 0 to 65535")
}

fn at_least_one(text: &str) -> Result<u64, &'static str> {
    text.parse().ok().filter(|number| *number > 0).ok_or("give a whole number, 1 or more")
}

fn fact(mut parser: lexopt::Parser) -> Result<Fact, lexopt::Error> {
    let (mut name, mut fact) = (None, Fact::default());
    while let Some(argument) = parser.next()? {
        match argument {
            Long("level") => fact.level = Some(parser.value()?.parse()?),
            Long("title") => fact.title = Some(parser.value()?.string()?),
            Long("subject") => fact.subject = Some(parser.value()?.string()?),
            Long("body") => fact.body = Some(parser.value()?.string()?),
            Long("link") => fact.link = Some(parser.value()?.string()?),
            Long("data") => fact.data = parser.value()?.parse_with(json)?,
            Long("id") => fact.event_id = Some(parser.value()?.string()?),
            Value(word) if name.is_none() => name = Some(word.string()?),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Fact { name: name.ok_or("give the NAME of the event, such as domain.active")?, ..fact })
}

fn json(text: &str) -> Result<serde_json::Value, String> {
    serde_json::from_str(text).map_err(|error| format!("--data is not JSON: {error}"))
}
