//! From the command line to a connector: the server under test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use reqwest::header::{HeaderName, HeaderValue};
use url::Url;

use super::Arguments;
use crate::clock::Clock;
use crate::config::{Auth, Connector, Poll, Secret, SecretPlace, Transport};
use crate::fetch::mcp::{Clients, Common, McpOutbox, Times};
use crate::notification::{Level, Name};

/// Who the server is read for: the workspace and the connector it hears of.
const NAME: &str = "outbox-check";

/// The secret that holds the bearer token.
const BEARER: &str = "bearer";

/// The outbox to check. An error names the argument and the remedy.
pub(super) fn outbox(asked: &Arguments, clock: &Clock) -> Result<McpOutbox, String> {
    let name: Name = NAME.parse().map_err(|error| format!("{NAME}: {error}"))?;
    let mut secrets = BTreeMap::new();
    let transport = match &asked.url {
        Some(url) => http(asked, url, &mut secrets)?,
        None => stdio(asked)?,
    };
    let outbox = Some(asked.resource.clone());
    let connector = Connector {
        is_of_catalog: false,
        name: name.clone(),
        transport,
        outbox,
        push: None,
        not_polled: None,
        ceiling: Level::Urgent,
        poll: Poll::default(),
    };
    let usual = Times::default();
    let times = Times { connect: usual.connect.max(asked.timeout), read: asked.timeout, ..usual };
    // It signs in with what it was given on the command line, never with a sign-in that is kept.
    let credentials = Path::new("credentials");
    let common = Common { secrets: &secrets, times, clock: clock.clone(), clients: Clients::new(), credentials };
    McpOutbox::new(&name, &connector, &common).map_err(|error| error.to_string())
}

fn stdio(asked: &Arguments) -> Result<Transport, String> {
    if asked.bearer_env.is_some() || !asked.header_env.is_empty() {
        return Err("--bearer-env and --header-env are for --url; give a program its variables with --env".to_owned());
    }
    let mut run = asked.command.clone();
    if let [only] = run.as_slice()
        && only.contains(char::is_whitespace)
        && !Path::new(only).exists()
    {
        run = words(only).map_err(|why| format!("--command {only:?}: {why}"))?;
    }
    run.extend(asked.run.iter().cloned());
    if run.iter().all(String::is_empty) {
        return Err("name the server: `-- PROGRAM ARGUMENT…` at the end, or --url URL".to_owned());
    }
    let pair = |text: &String| {
        let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty())?;
        Some((name.to_owned(), value.to_owned()))
    };
    let wrong = "--env wants NAME=VALUE, with a name";
    let env = asked.env.iter().map(pair).collect::<Option<_>>().ok_or(wrong)?;
    let directory = match &asked.directory {
        Some(directory) if directory.is_dir() => directory.clone(),
        Some(directory) => return Err(format!("--directory {}: there is no such folder", directory.display())),
        None => PathBuf::from("."),
    };
    Ok(Transport::Stdio { run, env, directory })
}

fn http(asked: &Arguments, url: &str, secrets: &mut BTreeMap<Name, Secret>) -> Result<Transport, String> {
    let url = endpoint(url)?;
    let mut keep = |name: &str, variable: &str| {
        let name: Name = name.parse().map_err(|error| format!("{name}: {error}"))?;
        let secret = Secret::new(value_of(variable)?, SecretPlace::Connector);
        secrets.insert(name.clone(), secret);
        Ok::<Name, String>(name)
    };
    let auth = match &asked.bearer_env {
        Some(variable) => Auth::Bearer(keep(BEARER, variable).map_err(|why| format!("--bearer-env: {why}"))?),
        None => Auth::None,
    };
    let mut headers = BTreeMap::new();
    for (text, number) in asked.header_env.iter().zip(1..) {
        let wrong = |why: &str| format!("--header-env {text}: {why}");
        let (header, variable) = header_and_variable(text).map_err(|why| wrong(&why))?;
        let secret = keep(&format!("header-{number}"), variable).map_err(|why| wrong(&why))?;
        headers.insert(header.as_str().to_owned(), secret);
    }
    // Whoever sits at the keyboard chooses what is reached.
    Ok(Transport::Http { url, auth, headers, private: true })
}

/// The URL of an endpoint that is checked.
pub(in crate::cli) fn endpoint(url: &str) -> Result<Url, String> {
    let url = Url::parse(url).map_err(|error| format!("--url: {error}; give one such as http://127.0.0.1:8000/mcp"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("--url: the scheme is {}; it must be http or https", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("--url: it must not hold a credential; put the token into a variable, for --bearer-env".to_owned());
    }
    Ok(url)
}

/// The parts of `HEADER=VARIABLE`.
pub(in crate::cli) fn header_and_variable(text: &str) -> Result<(HeaderName, &str), String> {
    let (header, variable) = text.split_once('=').ok_or("give HEADER=VARIABLE")?;
    let header = HeaderName::try_from(header).map_err(|_| "this is no name of a header")?;
    Ok((header, variable))
}

/// The value of a variable, for a header.
pub(in crate::cli) fn value_of(variable: &str) -> Result<String, String> {
    let value = std::env::var(variable)
        .map_err(|_| format!("the variable {variable} is not set, or no text; set it to the value itself"))?;
    HeaderValue::from_str(&value)
        .map(|_| value)
        .map_err(|_| format!("the value of {variable} cannot stand in a header; is there a line end in it?"))
}

/// The words of a command, as a shell splits them: white space ends a word, quotes and a backslash keep it.
fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(next) = characters.next() {
        match (next, quote) {
            (end, Some(open)) if end == open => quote = None,
            ('\\', None | Some('"')) => {
                let kept = characters.next().ok_or("it ends in a backslash")?;
                word.get_or_insert_default().push(kept);
            }
            ('"' | '\'', None) => {
                quote = Some(next);
                word.get_or_insert_default();
            }
            (space, None) if space.is_whitespace() => words.extend(word.take()),
            (kept, _) => word.get_or_insert_default().push(kept),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed".to_owned());
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_in_one_text_is_split_as_a_shell_does() {
        let check = |text: &str, expected: &[&str]| assert_eq!(words(text).unwrap(), expected, "{text}");
        check("python3 server.py --flag", &["python3", "server.py", "--flag"]);
        check("  a\t b\n", &["a", "b"]);
        check("'a b' \"c d\"e f\\ g \"h\\\"i\" 'j\\k'", &["a b", "c de", "f g", "h\"i", "j\\k"]);
        check("a '' \"\"", &["a", "", ""]);
        assert_eq!(words("a 'b"), Err("a quote is not closed".to_owned()));
        assert_eq!(words("a\\"), Err("it ends in a backslash".to_owned()));
    }
}
