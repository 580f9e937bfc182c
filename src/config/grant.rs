//! What the operator lets plugins reach.

use std::net::IpAddr;

use crate::notification::Name;

/// What the operator lets one plugin reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grant {
    /// HTTP origins.
    pub http: Vec<HttpGrant>,
    /// Whether it may send mail through the operator's relay.
    pub mail: bool,
    /// Tools of workspaces' connectors.
    pub tools: Vec<ToolGrant>,
    /// Only for these workspaces; for all when empty. Holds for everything above.
    pub workspaces: Vec<Name>,
}

impl Grant {
    /// Whether anything of it holds for deliveries of this workspace.
    pub fn allows_in(&self, workspace: &Name) -> bool {
        self.workspaces.is_empty() || self.workspaces.contains(workspace)
    }
}

/// One entry of a grant's `tools` list, `workspace:connector/tool`: each part is spelled out, none is a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolGrant {
    /// Whose connector it is, and in whose deliveries alone it may be called.
    pub workspace: Name,
    /// The connector.
    pub connector: Name,
    /// The tool's name on that server.
    pub tool: String,
}

/// One entry of a grant's `http` list: `host`, `host:port`, `*.suffix`, each https unless it begins with `http://`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpGrant {
    /// `https`, or `http` where the entry says so.
    pub scheme: &'static str,
    /// A host name in lower case, an IP literal (IPv6 without brackets), or a suffix that begins with a dot.
    pub host: HostPattern,
    /// The port; the scheme's own when the entry names none.
    pub port: u16,
    /// Whether a name may resolve to a private address.
    pub private: bool,
    /// Only for these workspaces; for all when empty.
    pub workspaces: Vec<Name>,
}

/// Which hosts a grant covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPattern {
    /// Exactly this host.
    Exact(String),
    /// Every host that ends in this text, which begins with a dot.
    Suffix(String),
}

impl HostPattern {
    /// Whether this covers a host: a name in lower case, or an IP literal without brackets.
    pub fn covers(&self, host: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == host,
            Self::Suffix(suffix) => {
                host.len() > suffix.len() && host.ends_with(suffix.as_str()) && host.parse::<IpAddr>().is_err()
            }
        }
    }

    /// Whether some host is covered by both.
    pub fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(host), pattern) | (pattern, Self::Exact(host)) => pattern.covers(host),
            (Self::Suffix(one), Self::Suffix(other)) => one.ends_with(other.as_str()) || other.ends_with(one.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_without_workspaces_holds_for_all() {
        let name = |text: &str| text.parse::<Name>().unwrap();
        assert!(Grant::default().allows_in(&name("acme")));
        let grant = Grant { workspaces: vec![name("acme")], ..Grant::default() };
        assert!(grant.allows_in(&name("acme")) && !grant.allows_in(&name("beta")));
    }

    #[test]
    fn patterns_meet_where_both_cover_a_host() {
        let exact = |host: &str| HostPattern::Exact(host.to_owned());
        let suffix = |host: &str| HostPattern::Suffix(host.to_owned());
        for (one, other, expected) in [
            (exact("a.example"), exact("a.example"), true),
            (exact("a.example"), exact("b.example"), false),
            (exact("a.example"), suffix(".example"), true),
            (exact("example"), suffix(".example"), false),
            (suffix(".a.example"), suffix(".example"), true),
            (suffix(".a.example"), suffix(".b.example"), false),
        ] {
            assert_eq!((one.meets(&other), other.meets(&one)), (expected, expected), "{one:?} {other:?}");
        }
    }
}
