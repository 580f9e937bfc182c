//! The lines of a configuration that grant what a plugin wants.

use std::collections::BTreeSet;

use crate::config::{Grant, HttpGrant};
use crate::notification::Name;
use crate::send::wants::{Reach, host_text, tool_text};

/// The lines that make the operator's file grant what is missing: each key that changes, whole, with what stands there
/// already. None when nothing is missing.
pub(super) fn lines(plugin: &Name, grant: &Grant, missing: &Reach, workspaces: &BTreeSet<&Name>) -> Option<String> {
    if missing.is_empty() {
        return None;
    }
    let mut text = format!("plugins:\n  grants:\n    {plugin}:\n");
    if !missing.http.is_empty() {
        let hosts = grant.http.iter().map(entry).chain(missing.http.iter().map(|host| quoted(host)));
        text.push_str(&format!("      http: [{}]\n", joined(hosts)));
    }
    if missing.mail {
        text.push_str("      mail: true\n");
    }
    if !missing.tools.is_empty() {
        let mut places: Vec<&str> = workspaces.iter().map(|name| name.as_str()).collect();
        if places.is_empty() {
            places.push("WORKSPACE");
        }
        let place = |tool: &String| places.iter().map(|place| quoted(&format!("{place}:{tool}"))).collect::<Vec<_>>();
        let granted = grant.tools.iter().map(|tool| quoted(&tool_text(tool)));
        text.push_str(&format!("      tools: [{}]\n", joined(granted.chain(missing.tools.iter().flat_map(place)))));
    }
    Some(text)
}

fn joined(entries: impl Iterator<Item = String>) -> String {
    entries.collect::<Vec<_>>().join(", ")
}

/// An entry of `http:`, with its limits.
fn entry(grant: &HttpGrant) -> String {
    let host = quoted(&host_text(grant));
    if !grant.private && grant.workspaces.is_empty() {
        return host;
    }
    let private = if grant.private { ", private: true" } else { "" };
    let names = grant.workspaces.iter().map(Name::as_str).collect::<Vec<_>>().join(", ");
    let workspaces = if names.is_empty() { String::new() } else { format!(", workspaces: [{names}]") };
    format!("{{ host: {host}{private}{workspaces} }}")
}

/// A JSON string, which is a quoted text of YAML, too.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::send::wants::difference;
    use crate::send::wants::samples::{grant, name, wants};

    #[test]
    fn the_lines_hold_what_stands_there_already() {
        let mut granted = grant(&["slack.com", "http://10.0.0.1:8080"], false, &[("acme", "registrar", "look")]);
        granted.http[1].private = true;
        granted.http[1].workspaces = vec![name("acme"), name("beta")];
        let wanted = wants(&["hooks.slack.com", "slack.com"], true, &["registrar/restart"]);
        let missing = difference(&wanted, &granted).missing;
        let (acme, beta) = (name("acme"), name("beta"));
        let text = lines(&name("slack"), &granted, &missing, &BTreeSet::from([&acme, &beta])).unwrap();
        assert_eq!(
            text,
            r#"plugins:
  grants:
    slack:
      http: ["slack.com", { host: "http://10.0.0.1:8080", private: true, workspaces: [acme, beta] }, "hooks.slack.com"]
      mail: true
      tools: ["acme:registrar/look", "acme:registrar/restart", "beta:registrar/restart"]
"#
        );
        assert_eq!(lines(&name("slack"), &granted, &Reach::default(), &BTreeSet::new()), None);
        let unused = lines(&name("slack"), &Grant::default(), &missing, &BTreeSet::new()).unwrap();
        assert!(unused.contains(r#"tools: ["WORKSPACE:registrar/restart"]"#), "{unused}");
    }
}
