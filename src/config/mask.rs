//! What of a file is never shown: places and texts that may hold a credential.

use std::collections::BTreeSet;

use super::node::{Entry, Kind, Node};
use super::variables::is_variable_name;
use super::{Place, credential, suggest};

/// A text of this many bytes without white space may be a credential: the shortest that a secret may have.
const CREDENTIAL_BYTES_MIN: usize = 16;

/// Long words of the configuration that stand where credentials may stand.
const WORDS: [&str; 2] = ["authorization_code", "client_credentials"];

/// Keys of `oauth` of a secret whose values are no credentials, but are hidden when they look like one.
const TOKEN_KEYS: [&str; 7] = ["private", "grant", "client_id", "issuer", "subject", "audience", "scopes"];

/// The places of texts that are never shown, in the order of the file. `names` are those of the secrets that are known;
/// those that the file itself declares are known too.
pub(super) fn hidden(root: &Node, names: &BTreeSet<String>) -> Vec<(Place, Place)> {
    let mut names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    if let Kind::Mapping(entries) = &root.kind
        && let Some(Kind::Mapping(secrets)) = entries.iter().find(|it| it.key == "secrets").map(|it| &it.value.kind)
    {
        names.extend(secrets.iter().map(|entry| entry.key.as_str()));
    }
    let mut hider = Hider { names: names.into_iter().collect(), hidden: Vec::new() };
    hider.hide(root, Guard::Open);
    hider.hidden
}

/// How closely what stands under a key is guarded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Guard {
    /// Shown.
    Open,
    /// Shown unless it is long enough to be a credential.
    Long,
    /// A host, shown unless it brings more than a host.
    Host,
    /// An entry of `secrets`, of which only the rules are shown.
    Secret,
    /// `oauth` of such an entry, of which only what is no credential is shown.
    Token,
    /// Where the value of such an entry comes from: a path is shown, and what is plainly none is not.
    Path,
    /// The name of a variable is shown, and what may be its value is not.
    Variable,
    /// The name of a secret, shown unless somebody wrote the secret itself; `true` where even a short one may be that.
    Name(bool),
    /// Never shown.
    Closed,
}

struct Hider<'a> {
    /// The names of secrets.
    names: Vec<&'a str>,
    hidden: Vec<(Place, Place)>,
}

impl Hider<'_> {
    fn hide(&mut self, node: &Node, guard: Guard) {
        match &node.kind {
            Kind::Scalar(scalar) => {
                let text = &scalar.text;
                let is_hidden = match guard {
                    Guard::Open => false,
                    Guard::Long => is_long(text) && !WORDS.contains(&text.as_str()),
                    Guard::Path => !is_path(text),
                    Guard::Variable => !is_variable(text),
                    Guard::Name(is_closed) => (is_closed || is_long(text)) && !self.is_name(text),
                    Guard::Host => !text.contains("://") && text.contains(['/', '?', '@']),
                    Guard::Secret | Guard::Token | Guard::Closed => true,
                };
                // Of a URL its host is shown in any case.
                if is_hidden || !text.contains("://") && credential::is_plain(text) {
                    self.hidden.push((node.at.place, node.end));
                }
            }
            Kind::List(items) => items.iter().for_each(|item| self.hide(item, guard)),
            Kind::Mapping(entries) => {
                entries.iter().for_each(|entry| self.hide(&entry.value, guard_of(entry, guard)));
            }
            Kind::Reported => {}
        }
    }

    /// Whether a text is the name of a secret, or so near to one that it tells nothing else.
    fn is_name(&self, text: &str) -> bool {
        self.names.contains(&text) || suggest::closest(text, &self.names).is_some()
    }
}

fn is_long(text: &str) -> bool {
    text.len() >= CREDENTIAL_BYTES_MIN && !text.contains(char::is_whitespace)
}

/// Whether a text is plainly a path, in which no word may be a credential: words in one case or made of digits, or short.
fn is_path(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '~' | '$' | '{' | '}');
    let is_plain = |word: &str| {
        let has = |kind: fn(&u8) -> bool| word.as_bytes().iter().any(kind);
        let (letters, digits) = (has(u8::is_ascii_alphabetic), has(u8::is_ascii_digit));
        let is_mixed = has(u8::is_ascii_uppercase)
            && word.bytes().skip(1).any(|b| b.is_ascii_uppercase())
            && has(u8::is_ascii_lowercase);
        !is_mixed && (word.len() < CREDENTIAL_BYTES_MIN || !(letters && digits))
    };
    text.contains(['/', '.'])
        && text.chars().all(fits)
        && text.split(|c: char| !c.is_ascii_alphanumeric()).all(is_plain)
}

/// Whether a text is plainly the name of a variable, as most are written.
pub(super) fn is_variable(text: &str) -> bool {
    is_variable_name(text) && text.contains('_') && !text.contains(|c: char| c.is_ascii_lowercase())
}

fn guard_of(entry: &Entry, outer: Guard) -> Guard {
    match (outer, entry.key.as_str()) {
        (Guard::Secret, "in" | "workspaces" | "weak") => Guard::Open,
        (Guard::Secret, "oauth") => Guard::Token,
        (Guard::Secret, "file") => Guard::Path,
        (Guard::Secret, "env") => Guard::Variable,
        (Guard::Token, "token_url") => Guard::Host,
        (Guard::Token, "client_secret" | "refresh_token" | "key") => Guard::Secret,
        (Guard::Token, key) => {
            if TOKEN_KEYS.contains(&key) {
                Guard::Long
            } else {
                Guard::Closed
            }
        }
        (Guard::Secret | Guard::Open, "hosts" | "host" | "http" | "url" | "relay") => Guard::Host,
        (Guard::Closed, "secret") => Guard::Name(true),
        (Guard::Secret | Guard::Closed, _) => outer,
        (_, "secrets") => Guard::Secret,
        (_, "env") => Guard::Closed,
        // The secret key stands near the public one.
        (_, "with" | "auth" | "run" | "trust") => Guard::Long,
        (_, "secret") => Guard::Name(false),
        (_, key) if names_credential(key) => Guard::Closed,
        (Guard::Open, "bearer" | "key" | "secret_key" | "signing_key") => Guard::Long,
        _ => outer,
    }
}

/// Whether a word announces a credential.
pub(super) fn names_credential(word: &str) -> bool {
    let word = word.to_ascii_lowercase().replace(['-', '_'], "");
    ["token", "password", "passwd", "apikey", "authorization", "credential", "privatekey", "webhookurl"]
        .iter()
        .any(|sign| word.contains(sign))
}

pub(super) fn places(masked: &mut [bool], text: &str, line: usize, hidden: &[(Place, Place)]) {
    let first = hidden.partition_point(|(_, end)| end.line < line);
    for (start, end) in hidden.iter().skip(first).take_while(|(start, _)| start.line <= line) {
        let from = if start.line < line { 0 } else { start.column.saturating_sub(1) };
        let to = if end.line > line { masked.len() } else { end.column.saturating_sub(1).min(masked.len()) };
        // The parser counts the white space behind some texts as theirs.
        let behind = text.chars().take(to).skip(from).collect::<Vec<_>>();
        let behind = behind.iter().rev().take_while(|c| c.is_whitespace()).count();
        if let Some(cells) = masked.get_mut(from..to.saturating_sub(behind).max(from)) {
            cells.fill(true);
        }
    }
}

/// Masks what follows the first colon or dash of a line.
pub(super) fn value(masked: &mut [bool], line: &str) {
    let start = line.chars().position(|c| c == ':').or_else(|| line.chars().position(|c| c == '-'));
    let indentation = line.chars().take_while(|c| c.is_whitespace()).count();
    if let Some(cells) = masked.get_mut(start.map_or(indentation, |start| start + 2)..) {
        cells.fill(true);
    }
}

/// Masks what may be a credential in the URLs of a line: user and password, the query, and of web addresses whatever
/// follows the host.
pub(super) fn urls(masked: &mut [bool], line: &str) {
    let chars: Vec<char> = line.chars().collect();
    for scheme_end in (0..chars.len()).filter(|&index| chars.get(index..index + 3) == Some(&[':', '/', '/'])) {
        let before = chars.get(..scheme_end).unwrap_or_default();
        let scheme: Vec<char> = before.iter().rev().take_while(|c| c.is_ascii_alphanumeric()).copied().collect();
        let is_web = matches!(scheme.as_slice(), ['p', 't', 't', 'h'] | ['s', 'p', 't', 't', 'h']);
        let start = scheme_end + 3;
        let rest = chars.get(start..).unwrap_or_default();
        let rest = rest.get(..url_length(rest)).unwrap_or_default();
        let host_end = rest.iter().position(|c| matches!(c, '/' | '?' | '#')).unwrap_or(rest.len());
        let host_start = rest.iter().take(host_end).rposition(|&c| c == '@').unwrap_or(0);
        let shown = if is_web { host_end } else { rest.iter().position(|&c| c == '?').unwrap_or(rest.len()) };
        let shown = (shown + 1).min(rest.len());
        for range in [start..start + host_start, start + shown..start + rest.len()] {
            if let Some(cells) = masked.get_mut(range) {
                cells.fill(true);
            }
        }
    }
}

/// How many characters belong to the URL whose scheme stood before them. A `]` ends it unless it closes an address.
fn url_length(rest: &[char]) -> usize {
    let mut in_brackets = false;
    for (index, &c) in rest.iter().enumerate() {
        let closes_list = c == ']' && !in_brackets;
        if c.is_whitespace() || closes_list || matches!(c, '"' | '\'' | ',' | '}' | '{') {
            return index;
        }
        in_brackets = c == '[' || in_brackets && c != ']';
    }
    rest.len()
}
