//! The way to an answer: by the running server, or by the same code from the files, beside whatever runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::control::{Control, NoAnswer as NoServer};
use super::output::{fail, tell};
use super::remote::Server;
use super::{FOUND_WRONG, load, workspace_in};
use crate::clock::Clock;
use crate::config::Config;
use crate::inbox::sqlite::SqliteInbox;
use crate::inbox::{Adopted, Inbox};
use crate::notification::Name;
use crate::send::effect::Effects;
use crate::send::keys::Keys;
use crate::send::queue::Queues;
use crate::send::{Current, IN_FLIGHT_MAX, book};
use crate::serve::inquiry::{
    ExplainAskedJson, ExplainedJson, Inquiry, Loading, NoAnswer, PreviewAskedJson, PreviewedJson, Sight,
};
use crate::wasm::catalog::{PluginProblem, depot};
use crate::wasm::{Catalog, Sandbox, Settings};

/// Who answers.
pub(super) enum Asker {
    /// The server.
    Server(Control, Name),
    /// This command.
    Alone(Box<Inquiry>, Name),
}

impl Asker {
    /// Who answers about this workspace, or the only one.
    pub(super) async fn find(file: &Path, server: &Server, named: Option<&Name>) -> Result<Self, ExitCode> {
        match server.find(file, named).await? {
            Some((control, workspace)) => Ok(Self::Server(control, workspace)),
            None => {
                let config = load(file)?;
                let name = workspace_in(&config, named)?.name.clone();
                Ok(Self::Alone(Box::new(alone(config).await?), name))
            }
        }
    }

    pub(super) async fn explain(&self, asked: &ExplainAskedJson) -> Result<ExplainedJson, ExitCode> {
        match self {
            Self::Server(control, workspace) => {
                ask(control, &format!("/v1/workspaces/{workspace}/explain"), asked).await
            }
            Self::Alone(inquiry, workspace) => inquiry.explain(workspace.as_str(), asked).await.map_err(no_answer),
        }
    }

    pub(super) async fn preview(&self, asked: &PreviewAskedJson) -> Result<PreviewedJson, ExitCode> {
        match self {
            Self::Server(control, workspace) => {
                ask(control, &format!("/v1/workspaces/{workspace}/preview"), asked).await
            }
            Self::Alone(inquiry, workspace) => inquiry.preview(workspace.as_str(), asked).await.map_err(no_answer),
        }
    }
}

async fn ask<T: DeserializeOwned>(control: &Control, path: &str, asked: &impl Serialize) -> Result<T, ExitCode> {
    control.post_json(path, asked).await.map_err(|error| no_server(&error))
}

pub(super) fn no_server(error: &NoServer) -> ExitCode {
    match error {
        NoServer::NotRunning => fail("--server: no server runs over this store; leave it out to ask the files"),
        NoServer::Nothing(why) => nothing(why),
        NoServer::Refused(why) => fail(why),
    }
}

fn no_answer(why: NoAnswer) -> ExitCode {
    match why {
        NoAnswer::Nothing(why) | NoAnswer::Dropped(why) => nothing(&why),
        other => fail(other),
    }
}

fn nothing(why: &str) -> ExitCode {
    tell(format_args!("switchbell: {why}"));
    ExitCode::from(FOUND_WRONG)
}

/// Everything that a server answers by, from the files; the store is only read.
async fn alone(config: Arc<Config>) -> Result<Inquiry, ExitCode> {
    let clock = Clock::system();
    let inbox =
        if config.store.exists() { Some(SqliteInbox::open_to_read(&config.store).map_err(fail)?) } else { None };
    let keys = inbox.as_ref().map_or_else(Keys::of_nothing, |inbox| Keys::new(&inbox.key()));
    let settings = Settings { key: Some(keys.sandbox()), ..Settings::new(config.plugins.limits) };
    let sandbox = Sandbox::new(settings).map_err(fail)?;
    let (catalog, problems) = Catalog::running(&sandbox, &config.plugins, depot::root(&config.store)).await;
    let (book, _) = book(&config, &catalog, &keys).await;
    let queues = Queues::new(clock.clone(), IN_FLIGHT_MAX);
    queues.take_up(&book);
    if let Some(inbox) = &inbox {
        let lanes = inbox.lanes().await.map_err(fail)?;
        queues.restore(&Adopted { lanes, ..Adopted::default() });
    }
    let effects = Effects::new(&config, &clock).map_err(fail)?;
    Ok(Inquiry {
        sight: Sight::Fixed(Arc::new(Current { config, catalog, book: Arc::new(book) })),
        effects,
        clock,
        queues,
        keys,
        inbox: inbox.map(|inbox| Arc::new(inbox) as Arc<dyn Inbox>),
        loading: Loading::Known(by_plugin(&problems)),
    })
}

/// Why plugins are not loaded, by the names of their files.
fn by_plugin(problems: &[PluginProblem]) -> BTreeMap<Name, String> {
    let named = |problem: &PluginProblem| {
        let name = problem.path.file_stem()?.to_str()?.parse().ok()?;
        Some((name, problem.to_string()))
    };
    problems.iter().filter_map(named).collect()
}
