//! What is said of settings that the grants do not allow.

use super::*;
use crate::config;

/// What is said of the only target of a workspace, by the function, in a configuration with these parts of the operator's
/// file. The target's settings name the secret `key`.
fn said(operator: &str, of: impl Fn(&Placed<'_>, &Config) -> Option<String>) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        std::fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
        std::fs::write(folder.path().join(name), text).unwrap();
    };
    write("plugins/mail.wasm", "");
    write("switchbell.yaml", operator);
    write(
        "workspaces/acme.yaml",
        "members: { a: admin }\nroutes: [{ name: r, owner: a, deliver: [{ plugin: mail, with: { k: { secret: key } } }] }]\n",
    );
    write("workspaces/beta.yaml", "members: { a: admin }\n");
    let environment = |_: &str| Some("a-value-of-some-length".into());
    let loaded = config::load(&folder.path().join("switchbell.yaml"), &environment);
    let config = loaded.unwrap_or_else(|problems| panic!("{problems}")).config;
    let target = placed(&config).next().unwrap();
    of(&target, &config)
}

/// Of the secret, with these `http` grants and other parts of the grant.
fn check_secret(hosts: &str, grant: &str, expected: Option<&[&str]>) {
    let operator = format!(
        "secrets: {{ key: {{ env: K, in: \"header:X-Key\", hosts: {hosts}, workspaces: [acme] }} }}\nplugins: {{ grants: {{ \
         mail: {grant} }} }}\n"
    );
    let said = said(&operator, |target, config| ungranted_secret(target, "key", &config.secrets["key"], config));
    match (&said, expected) {
        (None, None) => {}
        (Some(said), Some(parts)) => parts.iter().for_each(|part| assert!(said.contains(part), "{grant}: {said}")),
        _ => panic!("{hosts} {grant}: {said:?}"),
    }
}

#[test]
fn a_secret_that_may_go_nowhere_the_plugin_may_is_told() {
    check_secret("[api.example.com]", "{ http: [api.example.com] }", None);
    check_secret("[api.example.com]", "{ http: [\"api.example.com:8443\"] }", None);
    check_secret("[\"*.example.com\"]", "{ http: [other.example, api.example.com] }", None);
    check_secret("[api.example.com]", "{ http: [\"*.example.com\"], workspaces: [acme] }", None);
    let none = ["api.example.com, \"*.corp.example\" only", "under plugins.grants.mail.http"];
    check_secret("[api.example.com, \"*.corp.example\"]", "{ http: [corp.example] }", Some(&none));
    check_secret("[\"[::1]\"]", "{}", Some(&["\"[::1]\" only"]));
    let elsewhere = "{ http: [{ host: api.example.com, workspaces: [beta] }] }";
    check_secret("[api.example.com]", elsewhere, Some(&["plugins.grants.mail.http"]));
    let narrowed = "{ http: [api.example.com], workspaces: [beta] }";
    check_secret("[api.example.com]", narrowed, Some(&["acme under plugins.grants.mail.workspaces"]));
}

#[test]
fn a_key_of_signatures_goes_nowhere_and_needs_no_grant() {
    let operator = "secrets: { key: { env: K, in: sign, workspaces: [acme] } }\n";
    let said = said(operator, |target, config| ungranted_secret(target, "key", &config.secrets["key"], config));
    assert_eq!(said, None);
}

#[test]
fn mail_that_cannot_be_sent_is_told_with_the_lines_to_add() {
    let key = "secrets: { key: { env: K, in: sign, workspaces: [acme] } }\n";
    let relay = format!("{}\n", MailRelay::EXAMPLE);
    let check = |operator: &str, parts: Option<&[&str]>, never: &str| {
        let said = said(&format!("{key}{operator}"), ungranted_mail);
        match (&said, parts) {
            (None, None) => {}
            (Some(said), Some(parts)) => {
                parts.iter().for_each(|part| assert!(said.contains(part), "{operator}: {said}"));
                assert!(never.is_empty() || !said.contains(never), "{operator}: {said}");
            }
            _ => panic!("{operator}: {said:?}"),
        }
    };
    let grant = "`plugins: { grants: { mail: { mail: true } } }`";
    check("", Some(&[grant, MailRelay::EXAMPLE]), "");
    check(&relay, Some(&[grant]), "smtp.example.com");
    check("plugins: { grants: { mail: { mail: false } } }\n", Some(&[grant, MailRelay::EXAMPLE]), "");
    check(&format!("{relay}plugins: {{ grants: {{ mail: {{ mail: true }} }} }}\n"), None, "");
    let narrowed = format!("{relay}plugins: {{ grants: {{ mail: {{ mail: true, workspaces: [beta] }} }} }}\n");
    check(&narrowed, Some(&["acme to plugins.grants.mail.workspaces"]), "mail: true");
}
