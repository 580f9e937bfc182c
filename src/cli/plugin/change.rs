//! `switchbell plugin load`, `rollback` and `approve`: which version of a plugin runs. By the running server, or, when none
//! runs, in what it keeps beside its store.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::registry;
use crate::cli::ask::no_server;
use crate::cli::control::{Control, NoAnswer};
use crate::cli::inbox::open_places;
use crate::cli::output::{fail, print_for_people, print_json, tell};
use crate::cli::remote::Server;
use crate::cli::{FOUND_WRONG, load as load_config};
use crate::clock::Clock;
use crate::config::Places;
use crate::inbox::Inbox;
use crate::inbox::sqlite::SqliteInbox;
use crate::notification::Name;
use crate::send::keys::Keys;
use crate::send::upgrade::{Ground, Upgrades};
use crate::serve::shapes::{ChangedJson, PluginJson, VersionDoneJson, VersionRefusedJson, WhichVersionJson};
use crate::wasm::catalog::depot;
use crate::wasm::catalog::read_file;
use crate::wasm::{Compiler, Sandbox, Settings};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Load {
    /// The plugin's file, with its signature in FILE.minisig where there is one; or oci://REGISTRY/REPOSITORY:TAG.
    #[arg(value_name = "FILE")]
    from: String,
    #[command(flatten)]
    server: Server,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Named {
    /// The plugin.
    #[arg(value_name = "NAME")]
    name: Name,
    /// The version, or the beginning of its digest, as `plugin list` shows them.
    #[arg(value_name = "VERSION")]
    version: Option<String>,
    #[command(flatten)]
    server: Server,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// What is done to a named plugin.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    RollBack,
    Approve,
}

impl Change {
    fn as_str(self) -> &'static str {
        match self {
            Self::RollBack => "rollback",
            Self::Approve => "approve",
        }
    }
}

pub(super) async fn load(file: &Path, asked: &Load) -> ExitCode {
    let came = async {
        let (bytes, signature) = content(&asked.from).await?;
        Way::find(file, &asked.server).await?.load(PathBuf::from(&asked.from), bytes, signature).await
    };
    say(came.await, asked.json)
}

pub(super) async fn change(file: &Path, change: Change, asked: &Named) -> ExitCode {
    let came = async { Way::find(file, &asked.server).await?.change(&asked.name, change, asked.version.clone()).await };
    say(came.await, asked.json)
}

/// The plugins of a server.
pub(super) async fn of_server(control: &Control) -> Result<Vec<PluginJson>, ExitCode> {
    control.list("/v1/plugins").await.map_err(|error| no_server(&error))
}

/// The plugins of the running server; none when none runs.
pub(super) async fn listed(places: &Places) -> Result<Option<Vec<PluginJson>>, ExitCode> {
    let control = Control::of(&places.store).map_err(|no_answer| failed(&no_answer))?;
    match control.list("/v1/plugins").await {
        Ok(plugins) => Ok(Some(plugins)),
        Err(NoAnswer::NotRunning) => Ok(None),
        Err(no_answer) => Err(failed(&no_answer)),
    }
}

/// What a file holds, or a registry has, and its signature.
async fn content(from: &str) -> Result<(Vec<u8>, Option<String>), ExitCode> {
    if from.starts_with(registry::SCHEME) {
        let pulled = registry::pull(from).await.map_err(fail)?;
        return Ok((pulled.bytes, pulled.signature));
    }
    let read = |error: io::Error| fail(format_args!("{from}: cannot be read: {error}"));
    let bytes = read_file(Path::new(from)).map_err(read)?;
    let signature = match fs::read_to_string(format!("{from}.minisig")) {
        Ok(signature) => Some(signature),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(fail(format_args!("{from}.minisig: cannot be read: {error}"))),
    };
    Ok((bytes, signature))
}

/// Where versions are changed.
enum Way {
    Server(Control),
    Alone(Box<Upgrades>),
}

impl Way {
    async fn find(file: &Path, server: &Server) -> Result<Self, ExitCode> {
        if let Some(control) = server.control(file)? {
            return Ok(Self::Server(control));
        }
        let places = open_places(file)?;
        let control = Control::of(&places.store).map_err(|no_answer| failed(&no_answer))?;
        match control.is_there().await {
            Ok(true) => Ok(Self::Server(control)),
            Ok(false) => alone(file).await.map(|upgrades| Self::Alone(Box::new(upgrades))),
            Err(no_answer) => Err(failed(&no_answer)),
        }
    }

    async fn load(self, from: PathBuf, bytes: Vec<u8>, signature: Option<String>) -> Result<ChangedJson, ExitCode> {
        match self {
            Self::Server(control) => came(control.load_plugin(&from, bytes, signature.as_deref()).await),
            Self::Alone(mut upgrades) => Ok(upgrades.load(from, bytes, signature).await.into()),
        }
    }

    async fn change(self, name: &Name, change: Change, version: Option<String>) -> Result<ChangedJson, ExitCode> {
        match self {
            Self::Server(control) => {
                let path = format!("/v1/plugins/{name}/{}", change.as_str());
                came(control.post_json_or(&path, &WhichVersionJson { version }).await)
            }
            Self::Alone(mut upgrades) => {
                let came = match change {
                    Change::RollBack => upgrades.roll_back(name, version.as_deref()).await,
                    Change::Approve => upgrades.approve(name, version.as_deref()).await,
                };
                Ok(came.into())
            }
        }
    }
}

/// What a server would begin with.
async fn alone(file: &Path) -> Result<Upgrades, ExitCode> {
    let config = load_config(file)?;
    let clock = Clock::system();
    let inbox = SqliteInbox::open(&config.store, clock.now()).map_err(fail)?;
    let settings = Settings {
        key: Some(Keys::new(&inbox.key()).sandbox()),
        kept_instances_max: 0,
        compiled: Some(depot::root(&config.store).join(depot::COMPILED)),
        compiler: Compiler::of_this_program(),
        ..Settings::new(config.plugins.limits)
    };
    let sandbox = Sandbox::new(settings).map_err(fail)?;
    let ground = Ground { sandbox, config, inbox: std::sync::Arc::new(inbox), clock };
    let upgrades = Upgrades::open(ground).await.map_err(fail)?;
    tell("no server runs: this is kept, and holds when one starts");
    Ok(upgrades)
}

fn came(answer: Result<Result<VersionDoneJson, VersionRefusedJson>, NoAnswer>) -> Result<ChangedJson, ExitCode> {
    match answer.map_err(|no_answer| failed(&no_answer))? {
        Ok(done) => Ok(ChangedJson { done: Some(done), refused: None }),
        Err(refused) => Ok(ChangedJson { done: None, refused: Some(refused) }),
    }
}

fn failed(no_answer: &NoAnswer) -> ExitCode {
    match no_answer {
        NoAnswer::NotRunning => fail("the server has just stopped: run the command again"),
        NoAnswer::Nothing(why) | NoAnswer::Refused(why) => fail(why),
    }
}

fn say(came: Result<ChangedJson, ExitCode>, as_json: bool) -> ExitCode {
    let came = match came {
        Ok(came) => came,
        Err(code) => return code,
    };
    let printed = if as_json { print_json(&came) } else { print_for_people(&told(&came)) };
    let is_held = came.done.as_ref().is_some_and(|done| done.standing == "held");
    if came.refused.is_some() || is_held { ExitCode::from(FOUND_WRONG) } else { printed }
}

fn told(came: &ChangedJson) -> String {
    let mut text = String::new();
    if let Some(VersionDoneJson { name, version, digest, standing, before, why, told, notes, .. }) = &came.done {
        let label = format!("{name} {version} ({})", digest.get(..super::DIGEST_DIGITS).unwrap_or(digest));
        text = match (standing.as_str(), before, why) {
            ("held", _, why) => {
                let why = why.as_deref().unwrap_or("it differs");
                format!("{label} is held: {why}\n`switchbell plugin approve {name}` lets it in\n")
            }
            ("already", ..) => format!("{label} runs already\n"),
            (_, Some(before), _) => format!("{label} runs now; before it {before}\n"),
            (_, None, _) => format!("{label} runs now\n"),
        };
        notes.iter().for_each(|note| text.push_str(&format!("{note}\n")));
        text.push_str(&report(told.as_deref()));
    }
    if let Some(VersionRefusedJson { why, told, .. }) = &came.refused {
        text.push_str(&format!("refused: {why}\n{}", report(told.as_deref())));
    }
    text
}

fn report(told: Option<&str>) -> String {
    told.filter(|told| !told.trim().is_empty()).map_or_else(String::new, |told| format!("\n{}\n", told.trim_end()))
}
