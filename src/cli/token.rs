//! `switchbell token`: makes tokens and links that sign in, lists and revokes them: by the server when it runs, else in the
//! store itself.

use std::path::Path;
use std::process::ExitCode;

use tokio::sync::watch;

use super::control::{Control, NoAnswer};
use super::inbox::open_places;
use super::output::{fail, print, print_for_people, print_json, tell};
use super::table::aligned;
use super::{load, way, workspace};
use crate::clock::Clock;
use crate::config::Places;
use crate::notification::Name;
use crate::serve::auth::{Caller, Gate, LINK, MadeTokenJson, NewTokenJson, RevokedTokenJson, TokenJson};
use crate::serve::problem::Problem;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Makes a token, which is shown once, or with --link a link that signs a browser in.
    Create(Create),
    /// Lists tokens, signed-in browsers, and links that still work.
    List(List),
    /// Revokes a token at once, with every browser that is signed in by it, and all tokens and links that it made.
    Revoke(Revoke),
}

#[derive(Debug, clap::Args)]
pub(super) struct Create {
    /// What it allows: operator (everything), admin or member (of a workspace), agent (a consumer of a workspace).
    #[arg(long, value_parser = ["operator", "admin", "member", "agent"])]
    role: String,
    /// The workspace; may be left out when there is one.
    #[arg(long, value_name = "NAME")]
    workspace: Option<Name>,
    /// The member, as the workspace's file names it; may be left out when only one has the role.
    #[arg(long, value_name = "NAME")]
    member: Option<String>,
    /// The consumer that the agent is.
    #[arg(long, value_name = "NAME")]
    consumer: Option<Name>,
    /// What the agent may: read, ack or both; both when left out.
    #[arg(long, value_name = "SCOPE,…", value_delimiter = ',', value_parser = ["read", "ack"])]
    scopes: Option<Vec<String>>,
    /// What it is for, to know it by in the list.
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// How long it is good, such as 90d; for ever when left out.
    #[arg(long, value_name = "DURATION", conflicts_with = "link")]
    expires: Option<String>,
    /// Makes a link instead, which signs a browser in once, within ten minutes.
    #[arg(long)]
    link: bool,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Revoke {
    /// Its number in the list.
    #[arg(value_name = "ID")]
    id: i64,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(file: &Path, command: &Command) -> ExitCode {
    let came = match command {
        Command::Create(asked) => create(file, asked).await,
        Command::List(asked) => list(file, asked).await,
        Command::Revoke(asked) => revoke(file, asked).await,
    };
    came.unwrap_or_else(|code| code)
}

async fn create(file: &Path, asked: &Create) -> Result<ExitCode, ExitCode> {
    let places = open_places(file)?;
    let workspace_id = match asked.role.as_str() {
        "operator" => asked.workspace.clone(),
        _ => Some(workspace(&places.workspaces, asked.workspace.as_ref())?),
    };
    let wanted = NewTokenJson {
        role: asked.role.clone(),
        workspace_id: workspace_id.map(|name| name.to_string()),
        member: asked.member.clone(),
        consumer: asked.consumer.as_ref().map(Name::to_string),
        scopes: asked.scopes.clone(),
        label: asked.label.clone(),
        expires_in: asked.expires.clone(),
        link: asked.link,
    };
    let made = Keeper::find(file, &places).await?.create(wanted).await?;
    if asked.json {
        return Ok(print_json(&made));
    }
    Ok(match (&made.token, &made.link) {
        (_, Some(link)) => {
            let minutes = LINK.as_secs() / 60;
            tell(format_args!("this link signs {} in, once, within {minutes} minutes:", whose(&made.made)));
            print(format_args!("{link}\n"))
        }
        (token, None) => {
            tell(format_args!("token {} of {}; it is not shown again:", made.made.id, whose(&made.made)));
            print(format_args!("{}\n", token.as_deref().unwrap_or_default()))
        }
    })
}

async fn list(file: &Path, asked: &List) -> Result<ExitCode, ExitCode> {
    let places = open_places(file)?;
    let tokens = Keeper::find(file, &places).await?.list().await?;
    if asked.json {
        return Ok(print_json(&tokens));
    }
    if tokens.is_empty() {
        tell("there are no tokens: `switchbell token create --role operator` makes one");
        return Ok(ExitCode::SUCCESS);
    }
    let head = ["ID", "KIND", "OF", "MADE", "ENDS", "LAST USED", "LABEL"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(tokens.iter().map(row)).collect();
    Ok(print_for_people(&aligned(&rows)))
}

fn row(token: &TokenJson) -> Vec<String> {
    // To the minute.
    let moment = |at: &String| format!("{}Z", at.get(..16).unwrap_or(at));
    let or_none = |at: &Option<String>| at.as_ref().map_or_else(|| "-".to_owned(), moment);
    let ends = match &token.revoked_at {
        Some(at) => format!("revoked {}", moment(at)),
        None => or_none(&token.expires_at),
    };
    vec![
        token.id.to_string(),
        token.kind.clone(),
        whose(token),
        moment(&token.created_at),
        ends,
        or_none(&token.used_at),
        token.label.clone().unwrap_or_default(),
    ]
}

/// `operator`, `admin@example.com (admin of acme)`, `triage (agent of acme: read, ack)`.
fn whose(token: &TokenJson) -> String {
    let Some(workspace) = &token.workspace_id else { return format!("the {}", token.role) };
    let name = token.member.as_ref().or(token.consumer.as_ref()).cloned().unwrap_or_default();
    let scopes = token.scopes.as_ref().map_or_else(String::new, |scopes| format!(": {}", scopes.join(", ")));
    format!("{name} ({} of {workspace}{scopes})", token.role)
}

async fn revoke(file: &Path, asked: &Revoke) -> Result<ExitCode, ExitCode> {
    let places = open_places(file)?;
    let revoked = Keeper::find(file, &places).await?.revoke(asked.id).await?;
    if asked.json {
        return Ok(print_json(&revoked));
    }
    let RevokedTokenJson { token, made_from_it } = revoked;
    let others = match made_from_it {
        0 => String::new(),
        count => format!(", and {count} made from it (tokens, links and signed-in browsers)"),
    };
    tell(format_args!("revoked: {} {} of {}{others}", token.kind, token.id, whose(&token)));
    Ok(ExitCode::SUCCESS)
}

/// Who keeps the tokens.
enum Keeper {
    /// The server that has the store open.
    Server(Control),
    /// This command, which has the store open until it ends.
    Alone(Box<Gate>),
}

impl Keeper {
    async fn find(file: &Path, places: &Places) -> Result<Self, ExitCode> {
        let control = Control::of(&places.store).map_err(failed)?;
        if control.is_there().await.map_err(failed)? {
            return Ok(Self::Server(control));
        }
        let (clock, config) = (Clock::system(), load(file)?);
        let store = way::open_store(places, &clock)?;
        let listen = config.listen;
        Ok(Self::Alone(Box::new(Gate::new(store, watch::channel(config).1, clock, listen))))
    }

    async fn create(&self, wanted: NewTokenJson) -> Result<MadeTokenJson, ExitCode> {
        match self {
            Self::Server(control) => control.post_json("/v1/tokens", &wanted).await.map_err(failed),
            Self::Alone(gate) => gate.make_asked(&Caller::local(), wanted).await.map_err(refused),
        }
    }

    async fn list(&self) -> Result<Vec<TokenJson>, ExitCode> {
        match self {
            Self::Server(control) => control.list("/v1/tokens").await.map_err(failed),
            Self::Alone(gate) => {
                let tokens = gate.list(&Caller::local()).await.map_err(refused)?;
                Ok(tokens.into_iter().map(TokenJson::from).collect())
            }
        }
    }

    async fn revoke(&self, id: i64) -> Result<RevokedTokenJson, ExitCode> {
        match self {
            Self::Server(control) => control.post(&format!("/v1/tokens/{id}/revoke")).await.map_err(failed),
            Self::Alone(gate) => gate.revoke(&Caller::local(), id).await.map(RevokedTokenJson::from).map_err(refused),
        }
    }
}

fn refused(problem: Problem) -> ExitCode {
    fail(problem)
}

fn failed(no_answer: NoAnswer) -> ExitCode {
    match no_answer {
        NoAnswer::NotRunning => fail("the server has just stopped: run the command again"),
        NoAnswer::Nothing(why) | NoAnswer::Refused(why) => fail(why),
    }
}
