//! Which server a command asks: one elsewhere, by its URL and a token, or the one that runs on this machine.

use std::ffi::OsString;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use reqwest::header::HeaderValue;
use url::{Host, Url};

use super::ask::no_server;
use super::control::Control;
use super::inbox::open_places;
use super::output::fail;
use super::workspace;
use crate::notification::Name;
use crate::serve::shapes::WorkspaceJson;

/// The variable that holds the token.
pub(super) const TOKEN_VARIABLE: &str = "SWITCHBELL_TOKEN";

/// The server that is asked.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Server {
    /// Asks the server at this URL, such as https://bell.example.com, by the token in SWITCHBELL_TOKEN; no file of this machine
    /// is needed. Without a URL: the server that runs on this machine over the same store.
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(super) server: Option<String>,
    /// Takes the token for --server URL from this file.
    #[arg(long, value_name = "FILE", requires = "server")]
    token_file: Option<PathBuf>,
    /// Lets the token go over plain HTTP to another machine, where the network between them is trusted.
    #[arg(long, requires = "server")]
    insecure_http: bool,
}

impl Server {
    /// The way to the server that is asked; none where the command finds its way by itself.
    pub(super) fn control(&self, file: &Path) -> Result<Option<Control>, ExitCode> {
        let control = match self.server.as_deref() {
            None => return Ok(None),
            Some("") => Control::of(&open_places(file)?.store),
            Some(_) => return self.remote(),
        };
        control.map(Some).map_err(|no_answer| no_server(&no_answer))
    }

    /// The way to a server elsewhere; none where none is named.
    pub(super) fn remote(&self) -> Result<Option<Control>, ExitCode> {
        let Some(url) = self.server.as_deref().filter(|url| !url.is_empty()) else { return Ok(None) };
        let base = base(url, self.insecure_http).map_err(|why| fail(format_args!("--server: {why}")))?;
        let (token, place) = self.token()?;
        let mut value = HeaderValue::try_from(format!("Bearer {token}"))
            .map_err(|_| fail(format_args!("{place}: this is no token: it holds characters that no token has")))?;
        value.set_sensitive(true);
        Control::at(&base, value).map(Some).map_err(|no_answer| no_server(&no_answer))
    }

    /// The same, with the workspace that is asked about.
    pub(super) async fn find(&self, file: &Path, named: Option<&Name>) -> Result<Option<(Control, Name)>, ExitCode> {
        match self.control(file)? {
            Some(control) => {
                let name = only(&control, named).await?;
                Ok(Some((control, name)))
            }
            None => Ok(None),
        }
    }

    /// The token, and where it stands.
    fn token(&self) -> Result<(String, String), ExitCode> {
        let (text, place) = match &self.token_file {
            Some(file) => {
                let place = format!("--token-file {}", file.display());
                (fs::read_to_string(file).map_err(|error| fail(format_args!("{place}: cannot be read: {error}")))?, place)
            }
            None => (std::env::var(TOKEN_VARIABLE).unwrap_or_default(), TOKEN_VARIABLE.to_owned()),
        };
        match text.trim() {
            "" => Err(fail(format_args!(
                "{place} holds no token: --server URL needs one, which `switchbell token create` makes where the server runs"
            ))),
            token => Ok((token.to_owned(), place)),
        }
    }
}

/// The workspace that a server is asked about: the one that is named, or the only one that may be seen.
pub(super) async fn only(control: &Control, named: Option<&Name>) -> Result<Name, ExitCode> {
    // Whether a workspace that is named is there, the answer says.
    if let Some(name) = named.filter(|_| control.is_remote()) {
        return Ok(name.clone());
    }
    let found: Vec<WorkspaceJson> = control.list("/v1/workspaces").await.map_err(|error| no_server(&error))?;
    let names = found.iter().filter_map(|one| one.workspace_id.parse().ok()).collect();
    workspace(&names, named)
}

/// The address of a server, without what follows the host. A token does not go over plain HTTP to another machine.
fn base(text: &str, is_insecure: bool) -> Result<String, String> {
    let url = Url::parse(text).map_err(|error| format!("{text:?}: {error}: write it as in https://bell.example.com"))?;
    let Some(host) = url.host().filter(|_| ["http", "https"].contains(&url.scheme())) else {
        return Err(format!("{text:?} is no URL of a server: write it as in https://bell.example.com"));
    };
    let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    if !is_bare || !url.username().is_empty() || url.password().is_some() {
        return Err("a server's URL ends with its host or port, and holds no credentials: the token is taken from \
                    SWITCHBELL_TOKEN"
            .to_owned());
    }
    if url.scheme() == "http" && !is_here(&host) && !is_insecure {
        return Err(format!(
            "{text} would send the token in the clear: use https, or add --insecure-http where the network between is trusted"
        ));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn is_here(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => IpAddr::from(*address).is_loopback(),
        Host::Ipv6(address) => IpAddr::from(*address).is_loopback(),
    }
}

/// Arguments in which a URL that follows `--server` is joined to it: any other word that follows belongs to the command.
pub(super) fn joined(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    for argument in arguments {
        let is_url = argument.to_str().is_some_and(|text| text.starts_with("http://") || text.starts_with("https://"));
        match joined.last_mut() {
            Some(before) if is_url && before == "--server" => {
                before.push("=");
                before.push(argument);
            }
            _ => joined.push(argument),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_only_where_nobody_listens() {
        for (url, insecure, expected) in [
            ("https://bell.example.com", false, Ok("https://bell.example.com")),
            ("https://bell.example.com:8443/", false, Ok("https://bell.example.com:8443")),
            ("http://127.0.0.1:7420", false, Ok("http://127.0.0.1:7420")),
            ("http://[::1]:7420", false, Ok("http://[::1]:7420")),
            ("http://localhost:7420", false, Ok("http://localhost:7420")),
            ("http://bell.example.com", true, Ok("http://bell.example.com")),
            ("http://bell.example.com", false, Err("--insecure-http")),
            ("http://localhost.example.com", false, Err("in the clear")),
            ("https://admin:secret@bell.example.com", false, Err("no credentials")),
            ("https://bell.example.com/v1", false, Err("ends with its host")),
            ("ftp://bell.example.com", false, Err("no URL of a server")),
            ("bell", false, Err("write it as in")),
        ] {
            let found = base(url, insecure);
            match expected {
                Ok(expected) => assert_eq!(found.as_deref(), Ok(expected), "{url}"),
                Err(part) => assert!(found.as_ref().is_err_and(|why| why.contains(part)), "{url}: {found:?}"),
            }
        }
        assert!(!base("https://a:secret@b", false).unwrap_err().contains("secret"));
    }

    #[test]
    fn a_url_that_follows_is_the_servers_and_another_word_is_not() {
        let joined = |words: &[&str]| joined(words.iter().map(OsString::from));
        assert_eq!(joined(&["x", "--server", "https://a", "--json"]), ["x", "--server=https://a", "--json"]);
        assert_eq!(joined(&["x", "--server", "41"]), ["x", "--server", "41"]);
        assert_eq!(joined(&["x", "--link", "https://a"]), ["x", "--link", "https://a"]);
    }
}
