//! Loads the files and puts the parts together: a workspace whose own file has mistakes is left out, the others are good
//! without it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::check::{self, Server};
use super::load::{self, Folder, read_file, read_tree};
use super::raw::{RawServer, RawWorkspace};
use super::read::Read as _;
use super::source::Report;
use super::unused::Declared;
use super::{Config, Files, Problem, Problems, Workspace, credential, variables};
use crate::notification::Name;

/// The texts of workspaces' files, by name.
pub type Texts = BTreeMap<Name, Arc<str>>;

/// What is read besides the files themselves.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    /// Looks up environment variables.
    pub environment: &'a dyn Fn(&str) -> Option<OsString>,
    /// Whether the values of secrets are read.
    pub secrets: Secrets,
    /// What of the folder of plugins.
    pub plugins: PluginFolder,
}

/// Whether the values of secrets are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrets {
    /// They are, and each must fit its place.
    Read,
    /// Only what the files say of them is judged: no variable or file of theirs is read, no program is run, and each is
    /// [`SecretValue::NotRead`](super::SecretValue::NotRead). Such a configuration is there to be judged, not to be run.
    NotRead,
}

/// What is expected of the folder of plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginFolder {
    /// It is a mistake when it is not there.
    MustBeThere,
    /// It is a warning when it is not there; then no plugin is unknown.
    MayBeAbsent,
    /// Nobody looks: no plugin is unknown.
    NotAsked,
}

/// What runs while files are read again.
#[derive(Debug, Clone, Copy)]
pub struct Running<'a> {
    /// What the workspaces run on.
    pub texts: &'a Texts,
    /// Where the process listens, whatever the file says: what may be reached depends on it.
    pub listen: SocketAddr,
    /// The plugins that targets use: each is known, also while its file is not there.
    pub plugins: &'a BTreeSet<Name>,
}

/// A configuration, and what in it deserves a look.
#[derive(Debug)]
pub struct Loaded {
    /// The operator's file, which is good, and the workspaces that are.
    pub config: Config,
    /// What is no mistake, but probably not meant.
    pub warnings: Vec<Problem>,
    /// What is wrong with the workspaces that are left out; with the warnings about their files.
    pub aside: BTreeMap<Name, Problems>,
    /// What is wrong with the files of workspaces that go on with the text before.
    pub older: BTreeMap<Name, Problems>,
    /// What each workspace of the configuration was made from.
    pub texts: Texts,
}

/// What came of reading the files.
#[derive(Debug)]
pub struct FilesRead {
    /// The configuration; or, when the operator's file has mistakes, every mistake of all files.
    pub loaded: Result<Loaded, Problems>,
    /// What was read.
    pub files: Files,
}

impl<'a> Reading<'a> {
    /// As a server reads: the values of secrets, and the folder of plugins, which must be there.
    pub fn of_all(environment: &'a dyn Fn(&str) -> Option<OsString>) -> Self {
        Self { environment, secrets: Secrets::Read, plugins: PluginFolder::MustBeThere }
    }
}

impl Loaded {
    /// The configuration with its warnings, where no workspace has to be left out.
    ///
    /// # Errors
    /// Every mistake, and the warnings.
    pub fn whole(self) -> Result<(Config, Vec<Problem>), Problems> {
        let Self { config, mut warnings, aside, older, .. } = self;
        let bad: Vec<Problems> = aside.into_values().chain(older.into_values()).collect();
        if bad.is_empty() {
            return Ok((config, warnings));
        }
        let mut all = Problems { mistakes: Vec::new(), warnings: Vec::new(), omitted: 0, is_unread: false };
        for problems in bad {
            all.mistakes.extend(problems.mistakes);
            warnings.extend(problems.warnings);
            all.omitted += problems.omitted;
            all.is_unread |= problems.is_unread;
        }
        // The operator's file first, then the workspaces by name.
        let place = |problem: &Problem| (problem.file != config.file, problem.file.file_stem().map(OsString::from));
        warnings.sort_by_key(place);
        all.mistakes.sort_by_key(place);
        all.warnings = warnings;
        Err(all)
    }
}

/// The environment of this process, for [`load`].
pub fn process_environment(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Loads the operator's file and, beside it, those of the workspaces. `environment` looks up environment variables.
///
/// Nothing is changed on the way: files and secrets are read, and the programs run that secrets come from. That takes as
/// long as they do, at most 10 s for every eight of them.
///
/// # Errors
/// Every mistake at once, when the operator's file has one. A workspace whose own file has mistakes is left out.
pub fn load(file: &Path, environment: &dyn Fn(&str) -> Option<OsString>) -> Result<Loaded, Problems> {
    load_with(file, &Reading::of_all(environment))
}

/// Loads the files as [`load`] does, and looks at no more around them than `reading` says.
///
/// # Errors
/// Every mistake at once, when the operator's file has one.
pub fn load_with(file: &Path, reading: &Reading<'_>) -> Result<Loaded, Problems> {
    read_files(file, reading, None).loaded
}

/// The same, saying what was read. A workspace whose file has mistakes goes on with what it is `running` on, if that is good
/// beside the operator's file as it is now.
pub fn read_files(file: &Path, reading: &Reading<'_>, running: Option<Running<'_>>) -> FilesRead {
    let mut report = read_file(file);
    let mut declared = Declared::default();
    let raw = read_tree(&mut report).and_then(|mut root| {
        variables::expand(&mut root, reading.environment, &mut report);
        declared = Declared::of(&root);
        credential::in_commands(&root, &mut report);
        RawServer::read(&root, &mut report)
    });
    let folder = Folder::of(file);
    let mut server = raw.map(|raw| check::server(raw, &folder, reading, &mut report));
    let files = match &server {
        Some(server) => load::workspace_files(server.workspaces.as_ref(), &mut report),
        None => Vec::new(),
    };
    let mut parts = Vec::new();
    if let Some(server) = &mut server {
        let listen = server.listen;
        server.listen = running.map_or(listen, |running| running.listen);
        server.plugins_kept.extend(running.into_iter().flat_map(|running| running.plugins).cloned());
        for (name, file) in &files {
            let before = running.and_then(|running| running.texts.get(name));
            parts.push(Part::load((name, file), (server, &mut declared), before));
        }
        server.listen = listen;
        let names = files.iter().map(|(name, _)| name).collect();
        check::mentioned_workspaces(server, &names, &mut report);
        // A workspace whose file has mistakes may seem to lack what it has.
        if parts.iter().all(Part::is_good) {
            let found = parts.iter().filter_map(|part| Some((part.name.clone(), part.workspace.as_ref()?)));
            check::granted_tools(&server.tools, &names, &found.collect(), &mut report);
            if report.mistakes.is_empty() && !parts.is_empty() {
                declared.warn(|plugin| server.has_plugin(plugin), &mut report);
            }
        }
    }
    let mut all = std::mem::take(&mut report.files);
    parts.iter_mut().for_each(|part| all.join(std::mem::take(&mut part.files)));
    let loaded = match server {
        Some(server) if report.mistakes.is_empty() => Ok(finish(file, server, report, parts)),
        _ => Err(load::problems(std::iter::once(report).chain(parts.into_iter().map(|part| part.report)).collect())),
    };
    FilesRead { loaded, files: all }
}

/// A workspace as far as it was loaded.
struct Part {
    name: Name,
    /// About its file.
    report: Report,
    /// As its file says, or the text before; none when neither is good.
    workspace: Option<Workspace>,
    /// Which of the two.
    text: Arc<str>,
    files: Files,
}

impl Part {
    fn load(
        (name, file): (&Name, &Path),
        (server, declared): (&Server, &mut Declared),
        before: Option<&Arc<str>>,
    ) -> Self {
        let mut report = read_file(file);
        let workspace = workspace(name, (server, declared), &mut report);
        let mut files = std::mem::take(&mut report.files);
        let text = Arc::from(report.text());
        let older = before.filter(|_| workspace.is_none()).and_then(|text| {
            let mut older = Report::new(file.to_owned(), String::from(&**text));
            let workspace = self::workspace(name, (server, declared), &mut older)?;
            files.join(older.files);
            Some((workspace, Arc::clone(text)))
        });
        let (workspace, text) = match older {
            Some((workspace, text)) => (Some(workspace), text),
            None => (workspace, text),
        };
        Self { name: name.clone(), report, workspace, text, files }
    }

    fn is_good(&self) -> bool {
        self.report.mistakes.is_empty()
    }
}

/// None when the report has a mistake.
pub(super) fn workspace(
    name: &Name,
    (server, declared): (&Server, &mut Declared),
    report: &mut Report,
) -> Option<Workspace> {
    report.know_secrets(server.secrets.keys().map(Name::as_str));
    let mut root = read_tree(report)?;
    variables::refuse(&mut root, report);
    declared.uses(&root);
    credential::in_workspace(&root, report);
    let raw = RawWorkspace::read(&root, report)?;
    check::workspace(name, raw, server, report).filter(|_| report.mistakes.is_empty())
}

fn finish(file: &Path, server: Server, report: Report, parts: Vec<Part>) -> Loaded {
    let (mut workspaces, mut texts) = (BTreeMap::new(), Texts::new());
    let (mut aside, mut older) = (BTreeMap::new(), BTreeMap::new());
    let mut good = vec![report];
    for part in parts {
        let is_good = part.is_good();
        match (&part.workspace, is_good) {
            (_, true) => good.push(part.report),
            (Some(_), false) => drop(older.insert(part.name.clone(), load::problems(vec![part.report]))),
            (None, false) => drop(aside.insert(part.name.clone(), load::problems(vec![part.report]))),
        }
        if let Some(workspace) = part.workspace {
            texts.insert(part.name.clone(), part.text);
            workspaces.insert(part.name, workspace);
        }
    }
    let config = Config {
        file: PathBuf::from(file),
        listen: server.listen,
        access: server.access,
        retention: server.retention,
        store: server.store,
        plugins: server.plugins,
        mail: server.mail,
        secrets: check::finished_secrets(server.secrets),
        workspaces,
        aside: aside.keys().cloned().collect::<BTreeSet<Name>>(),
        reads_per_minute_max: server.reads_per_minute_max,
    };
    Loaded { config, warnings: load::problems(good).warnings, aside, older, texts }
}
