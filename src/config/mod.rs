//! The checked configuration: what `switchbell.yaml` and `workspaces/*.yaml` say, once every rule holds.
//!
//! A loaded configuration is immutable. [`load`] reads the files, reports every mistake at once, and returns a
//! [`Config`] of the workspaces whose files have none, if the operator's has none. On the way: `source` and `parse` turn a file into a tree of `node`s with their
//! places, `variables` fills in the operator's variables, `raw` mirrors the files key by key, and `check` holds every
//! rule that needs more than one value. `manifest` reads the one foreign file that a configuration may name.

mod access;
mod beside;
mod changes;
mod check;
mod code;
mod consumers;
mod credential;
mod files;
mod grant;
mod granted;
mod load;
mod loaded;
mod located;
mod mail;
mod manifest;
mod mask;
mod node;
mod parse;
mod places;
mod plugins;
mod problem;
mod raw;
mod read;
mod retention;
mod scalar;
mod schema;
mod secret;
mod section;
mod source;
mod suggest;
mod syntax;
mod trial;
mod trust;
mod unused;
mod values;
mod variables;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use url::Url;

use crate::inbox::delivery::{OnUnknown, Schedule};
use crate::notification::{Level, Name};
use crate::route::timing::Timing;
use crate::route::{Matcher, Router};

pub use access::Access;
pub use beside::{FileKind, file_kind, workspace_beside};
pub use changes::{Change, Changes, How, What};
pub use check::end_programs;
pub use code::Code;
pub use consumers::Consumers;
pub use credential::shown_settings;
pub use files::Files;
pub use grant::{Grant, HostPattern, HttpGrant, ToolGrant};
pub use granted::{Granted, Used, granted};
pub use loaded::{
    FilesRead, Loaded, PluginFolder, Reading, Running, Secrets, Texts, load, load_with, process_environment, read_files,
};
pub use located::Located;
pub use mail::{MailRelay, MailTls, Mailbox, RecipientPattern};
pub use places::{Places, places};
pub use plugins::{Limits, Plugins};
pub use problem::{Problem, Problems, Severity, SourceLine, Told, in_order};
pub use retention::{Kept, Retention};
pub use schema::{File as SchemaFile, Schema, reference, schema};
pub use secret::{Secret, SecretPlace, SecretValue, TokenGrant, TokenSource};
pub use suggest::hint;
pub use trial::{Expected, Trial, TrialEvent, TrialFile, TrialMark, trials};
pub use trust::{GateMode, KeyId, TrustedKey};

/// The whole configuration.
#[derive(Debug)]
pub struct Config {
    /// The operator's file, `switchbell.yaml`.
    pub file: PathBuf,
    /// The address that the server listens on.
    pub listen: SocketAddr,
    /// How it is reached from outside.
    pub access: Access,
    /// How long things are kept.
    pub retention: Retention,
    /// The SQLite database.
    pub store: PathBuf,
    /// The folder of plugins, the grants and the limits.
    pub plugins: Plugins,
    /// The relay that mail goes through; no plugin can send mail without.
    pub mail: Option<MailRelay>,
    /// The secrets by name, with their values.
    pub secrets: BTreeMap<Name, Secret>,
    /// The workspaces, by name.
    pub workspaces: BTreeMap<Name, Workspace>,
    /// Those that are left out because their own files have mistakes: what they are owed waits for better ones.
    pub aside: BTreeSet<Name>,
    /// Reads that the connectors of one workspace may make in a minute, all together; at least 1.
    pub reads_per_minute_max: u32,
}

/// One workspace: `workspaces/<name>.yaml`.
#[derive(Debug)]
pub struct Workspace {
    /// The file's stem.
    pub name: Name,
    /// The file.
    pub file: PathBuf,
    /// Members and what they may do.
    pub members: BTreeMap<String, Role>,
    /// The MCP servers it uses, by name, which is the `source` of their events.
    pub connectors: BTreeMap<Name, Connector>,
    /// The routes, in the order of the file.
    pub routes: Vec<Route>,
    /// The same routes, ready to match.
    pub router: Router,
    /// The consumers, with what joins the queue of each.
    pub consumers: Consumers,
    /// What is kept of its inbox.
    pub kept: Kept,
}

impl Workspace {
    /// The connectors that something is fetched from: those that declare an outbox, or have a push queue.
    pub fn outboxes(&self) -> impl Iterator<Item = &Connector> {
        self.connectors.values().filter(|connector| connector.is_fetched_from())
    }
}

/// Why a text is no declaration of an outbox: what breaks the rules and what to write instead; none when it is one. The
/// text itself is not repeated.
///
/// The rules are those of the notifications seed, "Declare the outbox": a scheme, none that a host resolves itself, no
/// query, no fragment; at most 512 characters, no white space, no control characters.
pub fn outbox_uri_mistake(text: &str) -> Option<String> {
    values::outbox_uri_mistake(text)
}

/// A duration as configurations write it: whole numbers with the units d, h, m, s, ms, longest first, as in `1h30m`.
///
/// # Errors
/// Says what is wrong with the text and what to write instead.
pub fn duration(text: &str) -> Result<Duration, String> {
    values::duration(text)
}

/// A duration as it would be written in a configuration: `1h30m`.
pub fn duration_text(duration: Duration) -> String {
    values::show(duration)
}

/// A grant for HTTP as configurations write it: `host`, `host:port` or `*.suffix`, https unless it begins with `http://`.
///
/// # Errors
/// Says what is wrong with the text and what to write instead.
pub fn http_grant(text: &str) -> Result<HttpGrant, String> {
    values::http_grant(text)
}

/// What a member may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Writes routes.
    Admin,
    /// Reads.
    Member,
}

/// One MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connector {
    /// Its name in the workspace.
    pub name: Name,
    /// How to reach it.
    pub transport: Transport,
    /// Whether it is an entry of the operator's catalog, whose address the workspace need not know.
    pub is_of_catalog: bool,
    /// The outbox to poll, where one is declared.
    pub outbox: Option<String>,
    /// How its push queue is followed, where it has one; `outbox` is none then.
    pub push: Option<Push>,
    /// Why an outbox that was asked for is not polled, for people; `outbox` is none then.
    pub not_polled: Option<String>,
    /// Caps the level of what it says.
    pub ceiling: Level,
    /// How it is polled: the operator's settings, with the connector's own over them.
    pub poll: Poll,
}

/// What becomes of what a push queue brings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Push {
    /// The level of an event, by its name; `info` for all others.
    pub levels: BTreeMap<String, Level>,
}

/// How a connector is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// A program that speaks MCP on its standard input and output.
    Stdio {
        /// The program and its arguments; never empty.
        run: Vec<String>,
        /// What it is started with besides the few inherited variables.
        env: BTreeMap<String, String>,
        /// The folder it is started in: that of the operator's file.
        directory: PathBuf,
    },
    /// Streamable HTTP.
    Http {
        /// The endpoint.
        url: Url,
        /// How to sign in.
        auth: Auth,
        /// Headers with the secret that each holds; names in lower case.
        headers: BTreeMap<String, Name>,
        /// Whether the URL's name may resolve to a private address; the operator alone says so.
        private: bool,
    },
}

/// How to sign in to a connector over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// Not at all.
    None,
    /// With this secret as a bearer token.
    Bearer(Name),
    /// With tokens that the host fetches, keeps and renews.
    OAuth(OAuth),
}

/// `auth.oauth` of a connector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuth {
    /// How tokens are had.
    pub grant: OAuthGrant,
    /// The client's id at the authorization server; none registers a client at the first login (RFC 7591).
    pub client_id: Option<String>,
    /// The secret with the client's secret. Its `hosts` are those of authorization servers, which are found out only when
    /// tokens are fetched: whoever sends it holds the token endpoint's host against them.
    pub client_secret: Option<Name>,
    /// The scopes asked for; none asks for what the server names.
    pub scopes: Vec<String>,
}

/// How an access token is had (RFC 6749).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OAuthGrant {
    /// A person signs in once (`switchbell connector login`); the token is renewed from then on.
    AuthorizationCode,
    /// By the client's own id and secret.
    ClientCredentials,
}

/// How outboxes are polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Poll {
    /// The usual wait between two reads.
    pub base: Duration,
    /// No wait is shorter.
    pub floor: Duration,
    /// No wait is longer, but for a server's Retry-After.
    pub ceiling: Duration,
    /// Events asked for in one read, 1–1,000.
    pub events_max: u32,
    /// Reads in a row while the outbox says `hasMore`.
    pub chained_reads_max: u32,
    /// How far back the outbox may replay.
    pub age_max: Duration,
}

impl Default for Poll {
    fn default() -> Self {
        Self {
            base: Duration::from_secs(60),
            floor: Duration::from_secs(15),
            ceiling: Duration::from_secs(300),
            events_max: 100,
            chained_reads_max: 5,
            age_max: Duration::from_secs(90 * 86_400),
        }
    }
}

/// An admin's rule.
#[derive(Debug)]
pub struct Route {
    /// Its name, unique in the workspace.
    pub name: Name,
    /// The admin it acts for.
    pub owner: String,
    /// What it matches.
    pub when: Matcher,
    /// What a match is delivered to.
    pub deliver: Vec<Target>,
}

/// One thing a route delivers to.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its identity: the `id`, else a hash of plugin and settings.
    pub id: String,
    /// The plugin.
    pub plugin: Name,
    /// `with`: settings for the plugin, in which a secret is `{"secret": "<name>"}`.
    pub settings: Value,
    /// Where each value of the settings stands in the file, by JSON Pointer (`""` is the whole).
    pub places: BTreeMap<String, Place>,
    /// When it wants to hear of things.
    pub timing: Timing,
    /// When failed attempts are repeated.
    pub retry: Schedule,
    /// What becomes of a delivery that may or may not have been made; the plugin decides when left out.
    pub on_unknown: Option<OnUnknown>,
    /// `order: strict`: a delivery that fails keeps all later ones back.
    pub is_strict: bool,
}

impl Target {
    /// A target that hears of everything at once, alone.
    pub fn plain(id: String, plugin: Name, settings: Value) -> Self {
        Self {
            id,
            plugin,
            settings,
            places: BTreeMap::new(),
            timing: Timing::default(),
            retry: Schedule::default(),
            on_unknown: None,
            is_strict: false,
        }
    }
}

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
}

impl Place {
    /// Of what stands in no line, such as a key that was left out.
    const NOWHERE: Self = Self { line: 0, column: 0 };
}
