//! What a plugin wants against what it is granted.

use serde::Serialize;

use crate::config::{Grant, HostPattern, HttpGrant, ToolGrant, http_grant};
use crate::wasm::Wants;

/// What a plugin wants whose hosts only its targets' settings name.
const ANY_HOST: &str = "*";

/// Hosts, mail and tools, as configurations write them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reach {
    /// Origins.
    pub http: Vec<String>,
    /// Whether mail is sent.
    pub mail: bool,
    /// Tools.
    pub tools: Vec<String>,
}

/// How wants and grants differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Wanted and not granted.
    pub missing: Reach,
    /// Granted and not wanted.
    pub unwanted: Reach,
    /// Wants that are no hosts, and why.
    pub unreadable: Vec<String>,
}

impl Reach {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.http.is_empty() && !self.mail && self.tools.is_empty()
    }

    /// One line for a person.
    pub fn told(&self) -> String {
        let lists = [("http", &self.http), ("tools", &self.tools)];
        let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
        let mut parts: Vec<String> = lists.map(|(kind, list)| format!("{kind}: {}", list.join(", "))).collect();
        if self.mail {
            parts.push("mail".to_owned());
        }
        if parts.is_empty() { "nothing".to_owned() } else { parts.join("; ") }
    }
}

impl From<&Wants> for Reach {
    fn from(wants: &Wants) -> Self {
        let tools = wants.tools.clone();
        Self { http: wants.http.clone(), mail: wants.mail, tools }
    }
}

impl From<&Grant> for Reach {
    fn from(grant: &Grant) -> Self {
        Self {
            http: grant.http.iter().map(host_text).collect(),
            mail: grant.mail,
            tools: grant.tools.iter().map(tool_text).collect(),
        }
    }
}

/// Compares what a plugin wants with what it is granted. Of a tool it is enough that one workspace grants it.
pub fn difference(wants: &Wants, grant: &Grant) -> Difference {
    let (mut wanted, mut unreadable) = (Vec::new(), Vec::new());
    for text in wants.http.iter().filter(|text| *text != ANY_HOST) {
        match http_grant(text) {
            Ok(origin) => wanted.push(origin),
            Err(why) => unreadable.push(format!("wants.http: {text:?}: {why}")),
        }
    }
    let is_wanted_anyhow = wants.http.iter().any(|text| text == ANY_HOST);
    let missing = wanted.iter().filter(|want| !grant.http.iter().any(|granted| takes_in(granted, want)));
    let is_wanted = |granted: &HttpGrant| {
        is_wanted_anyhow || wanted.iter().any(|want| takes_in(want, granted) || takes_in(granted, want))
    };
    let unwanted = grant.http.iter().filter(|granted| !is_wanted(granted));
    let tool = |granted: &ToolGrant| format!("{}/{}", granted.connector, granted.tool);
    let is_granted = |wanted: &&String| grant.tools.iter().any(|granted| tool(granted) == **wanted);
    Difference {
        missing: Reach {
            http: missing.map(host_text).collect(),
            mail: wants.mail && !grant.mail,
            tools: wants.tools.iter().filter(|wanted| !is_granted(wanted)).cloned().collect(),
        },
        unwanted: Reach {
            http: unwanted.map(host_text).collect(),
            mail: grant.mail && !wants.mail,
            tools: grant.tools.iter().filter(|granted| !wants.tools.contains(&tool(granted))).map(tool_text).collect(),
        },
        unreadable,
    }
}

/// Whether every origin of `inner` is one of `outer`.
fn takes_in(outer: &HttpGrant, inner: &HttpGrant) -> bool {
    let hosts = match (&outer.host, &inner.host) {
        (host, HostPattern::Exact(inner)) => host.covers(inner),
        (HostPattern::Suffix(outer), HostPattern::Suffix(inner)) => inner.ends_with(outer.as_str()),
        (HostPattern::Exact(_), HostPattern::Suffix(_)) => false,
    };
    hosts && outer.scheme == inner.scheme && outer.port == inner.port
}

/// An origin as configurations write it.
pub fn host_text(grant: &HttpGrant) -> String {
    let host = match &grant.host {
        HostPattern::Exact(host) if host.contains(':') => format!("[{host}]"),
        HostPattern::Exact(host) => host.clone(),
        HostPattern::Suffix(suffix) => format!("*{suffix}"),
    };
    let (scheme, default) = if grant.scheme == "http" { ("http://", 80) } else { ("", 443) };
    if grant.port == default { format!("{scheme}{host}") } else { format!("{scheme}{host}:{}", grant.port) }
}

/// A tool as configurations write it.
pub fn tool_text(grant: &ToolGrant) -> String {
    format!("{}:{}/{}", grant.workspace, grant.connector, grant.tool)
}

/// What tests of wants and grants are made from.
#[cfg(test)]
pub(crate) mod samples {
    use super::*;
    use crate::notification::Name;

    pub(crate) fn wants(http: &[&str], mail: bool, tools: &[&str]) -> Wants {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Wants { http: owned(http), mail, tools: owned(tools) }
    }

    pub(crate) fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    pub(crate) fn grant(http: &[&str], mail: bool, tools: &[(&str, &str, &str)]) -> Grant {
        let tool = |&(workspace, connector, tool): &(&str, &str, &str)| ToolGrant {
            workspace: name(workspace),
            connector: name(connector),
            tool: tool.to_owned(),
        };
        let http = http.iter().map(|text| http_grant(text).unwrap()).collect();
        Grant { http, mail, tools: tools.iter().map(tool).collect(), ..Grant::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::samples::{grant, wants};
    use super::*;

    fn check_hosts(wanted: &[&str], granted: &[&str], missing: &[&str], unwanted: &[&str]) {
        let found = difference(&wants(wanted, false, &[]), &grant(granted, false, &[]));
        assert_eq!(
            (found.missing.http.as_slice(), found.unwanted.http.as_slice()),
            (
                missing.iter().map(|&host| host.to_owned()).collect::<Vec<_>>().as_slice(),
                unwanted.iter().map(|&host| host.to_owned()).collect::<Vec<_>>().as_slice(),
            ),
            "{wanted:?} {granted:?}"
        );
    }

    #[test]
    fn hosts_are_compared_as_origins() {
        check_hosts(&["slack.com"], &["Slack.com:443"], &[], &[]);
        check_hosts(&["slack.com"], &[], &["slack.com"], &[]);
        check_hosts(&[], &["slack.com"], &[], &["slack.com"]);
        check_hosts(&["slack.com"], &["http://slack.com"], &["slack.com"], &["http://slack.com"]);
        check_hosts(&["a.example"], &["a.example:8443"], &["a.example"], &["a.example:8443"]);
        check_hosts(&["hooks.slack.com"], &["*.slack.com"], &[], &[]);
        check_hosts(&["*.slack.com"], &["hooks.slack.com"], &["*.slack.com"], &[]);
        check_hosts(&["*.hooks.slack.com"], &["*.slack.com"], &[], &[]);
        check_hosts(&["*"], &["bell.example.com", "http://[::1]:9"], &[], &[]);
    }

    #[test]
    fn mail_and_tools_are_compared_too() {
        let found = difference(&wants(&[], true, &["registrar/restart"]), &grant(&[], false, &[]));
        assert_eq!(found.missing, Reach { mail: true, tools: vec!["registrar/restart".into()], ..Reach::default() });
        let granted = grant(&[], true, &[("acme", "registrar", "restart"), ("acme", "crm", "delete")]);
        let found = difference(&wants(&[], false, &["registrar/restart"]), &granted);
        assert!(found.missing.is_empty());
        assert_eq!(found.unwanted, Reach { mail: true, tools: vec!["acme:crm/delete".into()], ..Reach::default() });
    }

    #[test]
    fn a_want_that_is_no_host_is_told() {
        let found = difference(&wants(&["https://a.example/hook"], false, &[]), &Grant::default());
        assert!(found.missing.is_empty());
        assert!(found.unreadable[0].contains("a path cannot be granted"), "{:?}", found.unreadable);
    }
}
