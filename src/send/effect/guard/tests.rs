//! What the guard lets through, and what it says of the rest.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::config::{Secret, SecretPlace, SecretValue, TokenGrant, TokenSource};
use crate::send::effect::secret::{Occasion, seal};
use crate::send::keys::Keys;
use crate::wasm::Reach;

mod places;
mod signatures;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn grant(scheme: &'static str, host: HostPattern, port: u16) -> HttpGrant {
    HttpGrant { scheme, host, port, private: false, workspaces: Vec::new() }
}

fn exact(host: &str) -> HostPattern {
    HostPattern::Exact(host.to_owned())
}

fn grants() -> Grant {
    let only_acme = HttpGrant { workspaces: vec![name("acme")], ..grant("https", exact("acme-only.example"), 443) };
    let http = vec![
        grant("https", exact("hooks.example"), 443),
        grant("https", HostPattern::Suffix(".wild.example".to_owned()), 8443),
        grant("http", exact("127.0.0.1"), 9000),
        grant("https", exact("::1"), 443),
        only_acme,
    ];
    Grant { http, ..Grant::default() }
}

fn secrets() -> BTreeMap<Name, Secret> {
    let secret = |value: &str, place, hosts: &[&str]| Secret {
        hosts: hosts.iter().map(|&host| HostPattern::Exact(host.to_owned())).collect(),
        workspaces: vec![name("acme")],
        ..Secret::new(value.to_owned(), place)
    };
    let bearer = || SecretPlace::Header { name: "authorization".to_owned(), prefix: Some("Bearer".to_owned()) };
    BTreeMap::from([
        (name("hook"), secret("https://hooks.example/services/T/B/value", SecretPlace::Url, &[])),
        (name("elsewhere"), secret("https://other.example/services/value", SecretPlace::Url, &[])),
        (name("limited"), secret("https://hooks.example/limited", SecretPlace::Url, &["x.example"])),
        (name("bot"), secret("xoxb-0123456789abcdef", bearer(), &["hooks.example"])),
        (name("basic"), secret("robot:pass word 0123", SecretPlace::Basic, &["hooks.example"])),
        (name("query"), secret("a/b&c=d 0123456789", SecretPlace::Query("api key".to_owned()), &["hooks.example"])),
        (name("path"), secret("123:AAE/../x?y#z%41", SecretPlace::Path, &["hooks.example"])),
        (name("dots"), secret("..", SecretPlace::Path, &["hooks.example"])),
        (name("body"), secret("R\"0123456789\\abcdef", SecretPlace::Body("/auth/key".to_owned()), &["hooks.example"])),
        (name("sign"), secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", SecretPlace::Sign, &[])),
        (name("aws"), secret("AWS4wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", SecretPlace::Sign, &[])),
        (name("edwards"), secret("whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=", SecretPlace::Sign, &[])),
        (
            name("crm"),
            Secret { value: SecretValue::Token(Box::new(source())), ..secret("", bearer(), &["hooks.example"]) },
        ),
    ])
}

fn source() -> TokenSource {
    let grant = TokenGrant::ClientCredentials { client_id: "robot".to_owned(), client_secret: "s".to_owned() };
    let token_url = "https://login.example/token".parse().unwrap();
    TokenSource { token_url, private: false, grant, scopes: Vec::new(), audience: None }
}

/// Judges what `build` makes of the placeholders of all secrets.
fn judged(workspace: &str, build: impl Fn(&dyn Fn(&str) -> String) -> Request) -> Result<Sent, Fault> {
    judged_by(&grants(), workspace, build)
}

fn judged_by(
    grant: &Grant,
    workspace: &str,
    build: impl Fn(&dyn Fn(&str) -> String) -> Request,
) -> Result<Sent, Fault> {
    let secrets = secrets();
    let settings: Value =
        secrets.keys().map(|secret| (secret.to_string(), json!({"secret": secret.as_str()}))).collect();
    let occasion = Occasion { keys: &Keys::new(&[7; 32]), delivery: "0badcafe-1", attempt: 1 };
    let sealed = seal(&settings, &secrets, occasion).unwrap();
    let seen: Value = serde_json::from_str(&sealed.settings).unwrap();
    let placeholder = |secret: &str| seen[secret].as_str().unwrap().to_owned();
    let (plugin, workspace, route) = (name("slack"), name(workspace), name("news"));
    let permission = Permission {
        plugin: &plugin,
        workspace: &workspace,
        route: &route,
        grant,
        seals: &sealed.seals,
        delivery: "0badcafe-1",
        due_at: Timestamp::UNIX_EPOCH,
        on_behalf_of: "admin@example.com",
    };
    let fetched = Fetched::from([(name("crm"), TOKEN.to_owned())]);
    let request = build(&placeholder);
    let wanted: Vec<String> = tokens_wanted(&request, &permission).iter().map(|(name, _)| name.to_string()).collect();
    let allowed = judge(request, &permission, &fetched)?;
    Ok(Sent {
        url: allowed.url.to_string(),
        headers: allowed.headers,
        body: String::from_utf8(allowed.body).unwrap(),
        carried: allowed.carried.iter().map(|carried| carried.name.to_string()).collect(),
        wanted,
    })
}

const TOKEN: &str = "token-of-the-moment-0123";

/// What was let through.
#[derive(Debug)]
struct Sent {
    url: String,
    headers: HeaderMap,
    body: String,
    carried: Vec<String>,
    wanted: Vec<String>,
}

fn request(url: impl Into<String>) -> Request {
    Request {
        method: "POST".to_owned(),
        url: url.into(),
        headers: Vec::new(),
        body: b"{}".to_vec(),
        sign: Vec::new(),
        timeout_ms: None,
        response_max: None,
        extras: "{}".to_owned(),
    }
}

fn with_header(url: &str, header: &str, value: impl Into<String>) -> Request {
    Request { headers: vec![(header.to_owned(), value.into())], ..request(url) }
}

fn allowed(url: &str) -> bool {
    judged("acme", |_| request(url)).is_ok()
}

/// The refusal must have this code and say this.
fn refused(code: &str, says: &str, build: impl Fn(&dyn Fn(&str) -> String) -> Request) {
    let fault = judged("acme", build).expect_err(says);
    assert_eq!((fault.reach, fault.code.as_str()), (Reach::Denied, code), "{}", fault.message);
    assert!(fault.message.contains(says), "{:?} does not say {says:?}", fault.message);
    for secret in secrets().values() {
        assert!(
            !fault.message.contains(secret.fixed().filter(|value| value.len() > 2).unwrap_or(TOKEN)),
            "a refusal shows a secret: {}",
            fault.message
        );
    }
}

#[test]
fn granted_origins_are_reached_and_no_others() {
    for url in [
        "https://hooks.example/x?y",
        "https://HOOKS.example:443/",
        "https://a.b.wild.example:8443/",
        "http://127.0.0.1:9000/",
        "https://[::1]/",
    ] {
        assert!(allowed(url), "{url}");
    }
    for url in [
        "http://hooks.example/",
        "https://hooks.example:444/",
        "https://hooks.example.evil.test/",
        "https://xhooks.example/",
        "https://wild.example:8443/",
        "https://xwild.example:8443/",
        "http://127.0.0.1:9001/",
        "http://localhost:9000/",
        "https://other.example/",
    ] {
        assert!(!allowed(url), "{url}");
    }
}

#[test]
fn a_grant_for_some_workspaces_is_none_for_others() {
    let asked = |_: &dyn Fn(&str) -> String| request("https://acme-only.example/");
    assert!(judged("acme", asked).is_ok());
    assert_eq!(judged("other", asked).unwrap_err().code, "not-granted");
}

#[test]
fn a_whole_grant_for_some_workspaces_is_none_for_others() {
    let grant = Grant { workspaces: vec![name("acme")], ..grants() };
    let asked = |_: &dyn Fn(&str) -> String| request("https://hooks.example/");
    assert!(judged_by(&grant, "acme", asked).is_ok());
    let fault = judged_by(&grant, "other", asked).unwrap_err();
    assert!(fault.code == "not-granted" && fault.message.contains("add other in switchbell.yaml"), "{}", fault.message);
}

#[test]
fn a_refusal_names_the_line_to_add() {
    refused("not-granted", "http://other.example:8080", |_| request("http://other.example:8080/x"));
    refused("not-granted", "plugins.grants.slack.http", |_| request("https://other.example/"));
}

#[test]
fn urls_that_could_be_read_in_two_ways_are_refused() {
    refused("url", "user name", |_| request("https://hooks.example@evil.test/"));
    refused("url", "cannot be read", |_| request("not a url"));
    refused("url", "scheme", |_| request("ftp://hooks.example/"));
    refused("url", "at most", |_| request(format!("https://hooks.example/{}", "x".repeat(URL_BYTES_MAX))));
}

#[test]
fn what_is_judged_is_what_is_sent() {
    let sent = judged("acme", |_| request("https://HOOKS.example\\x/../y")).unwrap().url;
    assert_eq!(sent.as_str(), "https://hooks.example/y");
}

#[test]
fn a_url_secret_is_the_whole_url_and_judged_like_any_other() {
    let sent = judged("acme", |placeholder| request(placeholder("hook"))).unwrap();
    assert_eq!(sent.url.as_str(), "https://hooks.example/services/T/B/value");
    refused("not-granted", "other.example", |placeholder| request(placeholder("elsewhere")));
    refused("secret-host", "limited", |placeholder| request(placeholder("limited")));
}

#[test]
fn a_header_secret_is_put_in_with_its_prefix_for_its_hosts_only() {
    let url = "https://hooks.example/";
    let sent = judged("acme", |placeholder| with_header(url, "Authorization", placeholder("bot"))).unwrap();
    assert_eq!(sent.headers["authorization"], "Bearer xoxb-0123456789abcdef");
    assert!(sent.headers["authorization"].is_sensitive());
    let elsewhere = "https://acme-only.example/";
    refused("secret-host", "bot", |placeholder| with_header(elsewhere, "authorization", placeholder("bot")));
}

#[test]
fn a_placeholder_anywhere_else_is_refused() {
    let url = "https://hooks.example/";
    refused("secret-place", "hook may not stand in a body that is no JSON", |placeholder| Request {
        body: format!("x{}y", placeholder("hook")).into_bytes(),
        ..request(url)
    });
    refused("secret-place", "part of the URL", |placeholder| request(format!("{url}{}", placeholder("hook"))));
    refused("secret-place", "bot may not stand in the URL", |placeholder| request(placeholder("bot")));
    refused("secret-place", "header x-other", |placeholder| with_header(url, "x-other", placeholder("bot")));
    refused("secret-place", "part of header", |placeholder| {
        with_header(url, "authorization", format!("Bearer {}", placeholder("bot")))
    });
    refused("secret-place", "header authorization", |placeholder| {
        with_header(url, "authorization", placeholder("hook"))
    });
}

#[test]
fn text_that_only_looks_like_a_placeholder_is_sent_as_it_is() {
    let text = "switchbell-secret.hook.0000000000000000";
    let sent = judged("acme", |_| Request { body: text.into(), ..with_header("https://hooks.example/", "x-a", text) });
    assert_eq!(sent.unwrap().headers["x-a"], text);
}

#[test]
fn headers_that_frame_or_identify_are_the_hosts() {
    for header in ["Host", "cookie", "Content-Length", "Transfer-Encoding", "Proxy-Authorization", "proxy-x", "TE"] {
        refused("headers", "set by the host", |_| with_header("https://hooks.example/", header, "x"));
    }
    refused("headers", "no header name", |_| with_header("https://hooks.example/", "a b", "x"));
    refused("headers", "cannot hold", |_| with_header("https://hooks.example/", "x-a", "x\r\nx-b: y"));
    refused("headers", "at most", |_| Request {
        headers: vec![("x-a".to_owned(), "x".to_owned()); HEADERS_MAX + 1],
        ..request("https://hooks.example/")
    });
    refused("headers", "at most", |_| with_header("https://hooks.example/", "x-a", "x".repeat(HEADER_BYTES_MAX)));
}

#[test]
fn sizes_and_methods_have_limits() {
    let body = |bytes| Request { body: vec![b'x'; bytes], ..request("https://hooks.example/") };
    assert!(judged("acme", |_| body(BODY_BYTES_MAX)).is_ok());
    refused("body-too-large", "at most", |_| body(BODY_BYTES_MAX + 1));
    refused("method", "GET", |_| Request { method: "CONNECT".to_owned(), ..request("https://hooks.example/") });
    refused("method", "GET", |_| Request { method: "get".to_owned(), ..request("https://hooks.example/") });
}
