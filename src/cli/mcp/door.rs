//! The server that is relayed to: one by its URL, or the one on this machine by its control socket, where a token counts as it
//! does everywhere else.

use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use url::{Host, Url};

use crate::cli::control::root;
use crate::cli::output::tell;
use crate::serve::control;
use crate::serve::mcp::PATH;

/// How long a connection may take.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// How long a server may be silent: one that has a stream open says every fifteen seconds that it is there.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// A server, and the token to ask it with.
#[derive(Clone, Debug)]
pub(super) struct Server {
    client: reqwest::Client,
    url: Url,
    authorization: HeaderValue,
    /// The control socket, where that is the way.
    socket: Option<PathBuf>,
}

impl Server {
    /// The server at a URL.
    pub(super) fn at(url: &str, token: &str) -> Result<Self, String> {
        let url = endpoint(url).map_err(|why| format!("--server {url}: {why}; give one such as https://bell.example.com"))?;
        if url.scheme() == "http" && !is_this_machine(&url) {
            tell("switchbell: the token goes to this server without encryption; use its https URL where it has one");
        }
        Self::new(reqwest::Client::builder(), url, token, None)
    }

    /// The server of a store on this machine, whether or not one runs.
    pub(super) fn of_store(store: &Path, token: &str) -> Result<Self, String> {
        let socket = control::path(store);
        let url = Url::parse(&format!("http://switchbell{PATH}")).map_err(|error| error.to_string())?;
        Self::new(reqwest::Client::builder().unix_socket(socket.clone()).no_proxy(), url, token, Some(socket))
    }

    fn new(
        builder: reqwest::ClientBuilder,
        url: Url,
        token: &str,
        socket: Option<PathBuf>,
    ) -> Result<Self, String> {
        let client = builder
            .user_agent(concat!("switchbell/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIME_MAX)
            .read_timeout(SILENCE_MAX)
            .build()
            .map_err(|error| error.to_string())?;
        let mut authorization = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
            .map_err(|_| "SWITCHBELL_TOKEN holds what is no token: set it to the token alone".to_owned())?;
        authorization.set_sensitive(true);
        Ok(Self { client, url, authorization, socket })
    }

    /// Posts a message.
    pub(super) async fn post(&self, message: &str, headers: HeaderMap) -> Result<reqwest::Response, String> {
        let request = self.client.post(self.url.clone()).headers(headers).body(message.to_owned());
        let request = request
            .header(AUTHORIZATION, self.authorization.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        request.send().await.map_err(|error| self.unreached(&error))
    }

    fn unreached(&self, error: &reqwest::Error) -> String {
        let why = root(error);
        match &self.socket {
            Some(socket) => format!(
                "no server answers at {} ({why}): start `switchbell serve`, name its file with --config, or name a server with \
                 --server URL",
                socket.display()
            ),
            None => format!("the server at {} cannot be reached: {why}", self.url),
        }
    }
}

/// Where MCP is served under a server's URL.
fn endpoint(url: &str) -> Result<Url, String> {
    let mut url = Url::parse(url).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("it must be http or https".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it must not hold a credential".to_owned());
    }
    if !url.path().ends_with(PATH) {
        let path = format!("{}{PATH}", url.path().trim_end_matches('/'));
        url.set_path(&path);
    }
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_is_found_under_the_url_of_a_server() {
        let check = |url: &str, expected: Result<&str, &str>| {
            let found = endpoint(url).map(|url| url.to_string());
            assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned), "{url}");
        };
        check("https://bell.example.com", Ok("https://bell.example.com/mcp"));
        check("https://bell.example.com/", Ok("https://bell.example.com/mcp"));
        check("https://bell.example.com/mcp", Ok("https://bell.example.com/mcp"));
        check("http://127.0.0.1:7420/base/?a#b", Ok("http://127.0.0.1:7420/base/mcp"));
        check("ftp://bell.example.com", Err("it must be http or https"));
        check("https://a:b@bell.example.com", Err("it must not hold a credential"));
        check("bell.example.com", Err("relative URL without a base"));
    }
}
