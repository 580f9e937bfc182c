//! Texts that look like credentials, written out where a secret should stand.

use serde_json::Value;

use super::code::Code;
use super::mask::names_credential;
use super::node::{Entry, Kind, Node};
use super::source::Report;

/// A text of this many bytes may be a credential: the shortest that a secret may have.
const BYTES_MIN: usize = 16;

/// How credentials begin that say themselves what they are.
const BEGINNINGS: [(&str, &str); 16] = [
    ("xoxb-", "a token of Slack"),
    ("xoxp-", "a token of Slack"),
    ("xoxe.", "a token of Slack"),
    ("xapp-", "a token of Slack"),
    ("whsec_", "a key for signatures"),
    ("whsk_", "a key for signatures"),
    ("ghp_", "a token of GitHub"),
    ("github_pat_", "a token of GitHub"),
    ("glpat-", "a token of GitLab"),
    ("AKIA", "an access key of AWS"),
    ("sk-", "an API key"),
    ("eyJ", "a token (JWT)"),
    ("Bearer ", "a bearer token"),
    ("Basic ", "a password for HTTP Basic"),
    ("-----BEGIN PRIVATE KEY", "a private key"),
    ("-----BEGIN RSA PRIVATE KEY", "a private key"),
];

/// Addresses that are credentials as a whole.
const WEBHOOKS: [(&str, &str); 7] = [
    ("hooks.slack.com/services/", "a webhook of Slack"),
    ("hooks.slack.com/workflows/", "a webhook of Slack"),
    ("hooks.slack.com/triggers/", "a webhook of Slack"),
    ("discord.com/api/webhooks/", "a webhook of Discord"),
    ("discordapp.com/api/webhooks/", "a webhook of Discord"),
    ("webhook.office.com/", "a webhook of Teams"),
    ("api.telegram.org/bot", "the token of a bot of Telegram"),
];

/// Ends of keys that speak about a credential and do not hold one.
const ABOUT: [&str; 8] = ["url", "uri", "name", "id", "type", "header", "env", "file"];

/// Warns of credentials in the settings of a workspace's targets and in the addresses of its connectors.
pub(super) fn in_workspace(root: &Node, report: &mut Report) {
    const REMEDY: &str = "have the operator declare it under `secrets`, and write `{ secret: NAME }` here";
    for route in field(root, "routes").into_iter().flat_map(items) {
        for target in field(route, "deliver").into_iter().flat_map(items) {
            if let Some(settings) = field(target, "with") {
                walk(settings, "", REMEDY, report);
            }
        }
    }
    const OF_CONNECTOR: &str = "have the operator declare it under `secrets` with `in: connector`, and write `auth: { bearer: { secret: NAME } }`";
    for connector in field(root, "connectors").into_iter().flat_map(entries) {
        if let Some(url) = field(&connector.value, "url") {
            walk(url, "", OF_CONNECTOR, report);
        }
    }
}

/// Warns of credentials in what the operator has programs started with.
pub(super) fn in_commands(root: &Node, report: &mut Report) {
    const REMEDY: &str = "set a variable where the server runs, and write `${NAME}` here";
    for command in field(root, "commands").into_iter().flat_map(entries) {
        for key in ["run", "env"] {
            if let Some(node) = field(&command.value, key) {
                walk(node, "", REMEDY, report);
            }
        }
    }
}

fn walk(node: &Node, key: &str, remedy: &str, report: &mut Report) {
    match &node.kind {
        Kind::Scalar(scalar) => {
            // What stands for a variable is not written here.
            if let Some(what) = credential(scalar.written.as_ref().unwrap_or(&scalar.text), key) {
                let text = format!("this looks like {what}, and whoever reads this file can use it: {remedy}");
                report.warning(&node.at, Code::WrittenCredential.says(text));
            }
        }
        Kind::List(items) => items.iter().for_each(|item| walk(item, key, remedy, report)),
        Kind::Mapping(entries) => {
            // The name of a secret is none, whatever it is called.
            let is_name = |entry: &Entry| entries.len() == 1 && entry.key == "secret";
            for entry in entries.iter().filter(|entry| !is_name(entry)) {
                walk(&entry.value, &entry.key, remedy, report);
            }
        }
        Kind::Reported => {}
    }
}

/// Whether a text says itself that it is a credential, or holds a word that does.
pub(super) fn is_plain(text: &str) -> bool {
    let mut words = text.split([' ', ':']).filter(|word| word.len() < text.len());
    credential(text, "").is_some() || words.any(|word| credential(word, "").is_some())
}

/// What stands in the place of a text that is not shown.
const HIDDEN: &str = "(hidden: it looks like a credential)";

/// Settings of a target, fit to be shown to whoever may read routes: texts that are plainly credentials are hidden.
pub fn shown_settings(settings: &Value) -> Value {
    shown(settings, "")
}

fn shown(value: &Value, key: &str) -> Value {
    match value {
        Value::String(text) if is_plain(text) || credential(text, key).is_some() => Value::from(HIDDEN),
        Value::Array(items) => items.iter().map(|item| shown(item, key)).collect(),
        Value::Object(fields) if fields.len() == 1 && fields.contains_key("secret") => value.clone(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), shown(value, key))).collect(),
        other => other.clone(),
    }
}

/// What a text under a key looks like, if it looks like a credential.
fn credential(text: &str, key: &str) -> Option<&'static str> {
    if text.len() < BYTES_MIN {
        return None;
    }
    if let Some((_, rest)) = text.split_once("://") {
        return in_url(rest);
    }
    let begins = BEGINNINGS.iter().find(|(beginning, _)| text.starts_with(beginning));
    let is_one_word = |text: &str| !text.contains(char::is_whitespace);
    let begins = begins.filter(|(beginning, _)| {
        let rest = text.get(beginning.len()..).unwrap_or_default();
        beginning.starts_with("-----") || rest.len() >= BYTES_MIN - 4 && is_one_word(rest) && is_token(beginning, rest)
    });
    if let Some((_, what)) = begins {
        return Some(what);
    }
    let is_about = ABOUT.iter().any(|end| key.to_ascii_lowercase().ends_with(end));
    (names_credential(key) && !is_about && is_one_word(text)).then_some("a credential")
}

/// Whether what follows the beginning of a credential makes it one: some begin as other words do.
fn is_token(beginning: &str, rest: &str) -> bool {
    match beginning {
        "eyJ" => rest.split('.').count() == 3,
        "AKIA" => rest.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()),
        "sk-" => rest.bytes().any(|byte| byte.is_ascii_digit()) && rest.len() >= BYTES_MIN,
        _ => true,
    }
}

/// A credential in the part of a URL behind its scheme.
fn in_url(rest: &str) -> Option<&'static str> {
    let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
    let host = address.split('/').next().unwrap_or_default();
    if host.split_once('@').is_some_and(|(user, _)| user.contains(':')) {
        return Some("a URL with a password");
    }
    let webhook = WEBHOOKS.iter().find(|(path, _)| {
        let at = address.find(path);
        // A whole host's name, or the end of one.
        at.is_some_and(|at| {
            (at == 0 || address.get(..at).is_some_and(|before| before.ends_with('.')))
                && address.len() > at + path.len()
        })
    });
    if let Some((_, what)) = webhook {
        return Some(what);
    }
    let gives_access = |pair: &str| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let key = key.to_ascii_lowercase();
        value.len() >= BYTES_MIN
            && (names_credential(&key) || matches!(key.as_str(), "key" | "sig" | "signature" | "secret"))
    };
    query.split('&').any(gives_access).then_some("a URL with a credential in its query")
}

fn entries(node: &Node) -> &[Entry] {
    match &node.kind {
        Kind::Mapping(entries) => entries,
        Kind::Scalar(_) | Kind::List(_) | Kind::Reported => &[],
    }
}

fn items(node: &Node) -> &[Node] {
    match &node.kind {
        Kind::List(items) => items,
        Kind::Scalar(_) | Kind::Mapping(_) | Kind::Reported => &[],
    }
}

fn field<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    entries(node).iter().find(|entry| entry.key == key).map(|entry| &entry.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_credential_is_known_by_its_form() {
        for (key, text, what) in [
            ("webhook", "https://hooks.slack.com/services/T0/B0/abcdefgh", Some("a webhook of Slack")),
            ("url", "https://canary.discord.com/api/webhooks/1/abcdefgh", Some("a webhook of Discord")),
            ("url", "https://acme.webhook.office.com/webhookb2/abc", Some("a webhook of Teams")),
            ("url", "https://api.telegram.org/bot123:abc/sendMessage", Some("the token of a bot of Telegram")),
            ("x", "xoxb-1234567890-abcdef", Some("a token of Slack")),
            ("x", "whsec_MfKQ9r8GKYqrTwjU", Some("a key for signatures")),
            ("x", "Bearer abcdefghijklmnop", Some("a bearer token")),
            ("x", "eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl", Some("a token (JWT)")),
            ("x", "sk-proj-1234567890abcdef", Some("an API key")),
            ("x", "-----BEGIN PRIVATE KEY-----\nMC4C\n", Some("a private key")),
            ("api_key", "abcdefghijklmnop", Some("a credential")),
            ("url", "https://user:pass@a.example/", Some("a URL with a password")),
            ("url", "https://a.example/?access_token=abcdefghijklmnop", Some("a URL with a credential in its query")),
            ("url", "https://a.example/?sig=abcdefghijklmnop", Some("a URL with a credential in its query")),
            // What is none.
            ("url", "https://hooks.example.com/services/T0/B0/abcdefgh", None),
            ("url", "https://nothooks.slack.com/services/T0/B0/abcdefgh", None),
            ("url", "https://hooks.slack.com/services/", None),
            ("url", "https://a.example/?page=abcdefghijklmnopqrst", None),
            ("token_url", "https://login.example.com/oauth/token", None),
            ("token_name", "the-name-of-a-token", None),
            ("prompt", "Bearer of bad news, what happened here?", None),
            ("prompt", "eyJust a remark that is long", None),
            ("model", "sk-learn-compatible-model", None),
            ("token", "short", None),
            ("password", "two words are no one", None),
            ("to", "operations-of-the-whole-company@example.com", None),
        ] {
            assert_eq!(credential(text, key), what, "{key}: {text}");
        }
    }
}
