//! References to artifacts: `oci://REGISTRY/REPOSITORY:TAG` and `oci://REGISTRY/REPOSITORY@sha256:DIGEST`, as the OCI
//! distribution specification 1.1 allows their parts.

use std::net::IpAddr;
use std::str::FromStr;

use url::Url;

use super::SCHEME;

/// Characters of a tag.
const TAG_LENGTH_MAX: usize = 128;

/// Characters of a repository's name together with its registry.
const NAME_LENGTH_MAX: usize = 255;

/// A checked reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    /// A host, and a port where it is not the usual one.
    registry: String,
    repository: String,
    tag: Option<String>,
    /// `sha256:` and 64 hexadecimal digits.
    digest: Option<String>,
}

impl FromStr for Reference {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let usage = || format!("write {SCHEME}REGISTRY/REPOSITORY:TAG, such as {SCHEME}ghcr.io/example/slack:1.2.0");
        let (registry, name) = text.strip_prefix(SCHEME).and_then(|rest| rest.split_once('/')).ok_or_else(usage)?;
        let (name, digest) = match name.split_once('@') {
            Some((name, digest)) => (name, Some(checked_digest(digest)?.to_owned())),
            None => (name, None),
        };
        let (repository, tag) = match name.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (name, None),
        };
        if !is_repository(repository) || registry.len() + repository.len() > NAME_LENGTH_MAX {
            return Err(format!("the repository's name is none; {}", usage()));
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(format!(
                "the tag is none: it has 1 to {TAG_LENGTH_MAX} letters, digits and . _ -; {}",
                usage()
            ));
        }
        if tag.is_none() && digest.is_none() {
            return Err("a tag or a digest is missing at its end, such as :1.2.0".into());
        }
        let reference = Self {
            registry: registry.to_owned(),
            repository: repository.to_owned(),
            tag: tag.map(str::to_owned),
            digest,
        };
        let base = reference.base()?;
        let is_registry = base.username().is_empty() && base.password().is_none() && base.path() == "/v2/";
        if is_registry { Ok(reference) } else { Err(format!("the registry is none; {}", usage())) }
    }
}

impl Reference {
    pub(super) fn registry(&self) -> &str {
        &self.registry
    }

    pub(super) fn repository(&self) -> &str {
        &self.repository
    }

    /// What is asked for: the digest, which says more than a tag, or the tag.
    pub(super) fn pointer(&self) -> &str {
        self.digest.as_deref().or(self.tag.as_deref()).unwrap_or_default()
    }

    pub(super) fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// The tag to push to.
    ///
    /// # Errors
    /// When it names what is there already.
    pub(super) fn tag_to_push(&self) -> Result<&str, String> {
        let tag = self.tag.as_deref().filter(|_| self.digest.is_none());
        tag.ok_or_else(|| "a digest names what is there already: push to a tag, such as :1.2.0".into())
    }

    /// The same repository, at a digest.
    pub(super) fn by_digest(&self, digest: &str) -> String {
        format!("{SCHEME}{}/{}@{digest}", self.registry, self.repository)
    }

    /// Where the registry's API begins: over HTTPS, but on this machine, where registries are run to try them.
    ///
    /// # Errors
    /// When the registry is no host.
    pub(super) fn base(&self) -> Result<Url, String> {
        // The best-known registry is reached by another name than it is known by.
        let host = if self.registry == "docker.io" { "registry-1.docker.io" } else { &self.registry };
        let url = |scheme: &str| Url::parse(&format!("{scheme}://{host}/v2/"));
        let base = url("https").map_err(|error| format!("the registry {:?} is none: {error}", self.registry))?;
        if !is_this_machine(&base) {
            return Ok(base);
        }
        url("http").map_err(|error| format!("the registry {:?} is none: {error}", self.registry))
    }
}

/// Whether a URL is of `localhost` or a loopback address.
pub(super) fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// A digest, if it is one that can be verified here.
pub(super) fn checked_digest(digest: &str) -> Result<&str, String> {
    let hex = digest.strip_prefix("sha256:").unwrap_or_default();
    let is_hex = hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_hex { Ok(digest) } else { Err("a digest is sha256: and 64 hexadecimal digits in lower case".into()) }
}

fn is_repository(name: &str) -> bool {
    let is_part = |part: &str| {
        let is_inner = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
        let is_outer = |byte: Option<u8>| byte.is_some_and(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9'));
        part.bytes().all(is_inner) && is_outer(part.bytes().next()) && is_outer(part.bytes().last())
    };
    name.split('/').all(|part| is_part(part) && !part.contains(".."))
}

fn is_tag(tag: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let starts = tag.bytes().next().is_some_and(is_word);
    starts && tag.len() <= TAG_LENGTH_MAX && tag.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:6289f8f76b96acdb5699d8bae18bca212963e4027215b98a175608cc8a2f2038";

    #[test]
    fn a_reference_says_where_and_what() {
        for (text, base, repository, pointer) in [
            ("oci://ghcr.io/example/slack:1.2.0", "https://ghcr.io/v2/", "example/slack", "1.2.0"),
            ("oci://r.example:8443/a/b-c/d_e.f:v1", "https://r.example:8443/v2/", "a/b-c/d_e.f", "v1"),
            ("oci://localhost:5000/slack:latest", "http://localhost:5000/v2/", "slack", "latest"),
            ("oci://127.0.0.1:5000/slack:latest", "http://127.0.0.1:5000/v2/", "slack", "latest"),
            ("oci://[::1]:5000/slack:latest", "http://[::1]:5000/v2/", "slack", "latest"),
            ("oci://localhost.example/slack:latest", "https://localhost.example/v2/", "slack", "latest"),
            ("oci://docker.io/example/slack:1", "https://registry-1.docker.io/v2/", "example/slack", "1"),
        ] {
            let reference: Reference = text.parse().unwrap();
            assert_eq!(reference.base().unwrap().as_str(), base);
            assert_eq!((reference.repository(), reference.pointer()), (repository, pointer));
            assert_eq!(reference.tag_to_push(), Ok(pointer));
        }
    }

    #[test]
    fn a_digest_says_more_than_a_tag() {
        for text in [format!("oci://ghcr.io/example/slack@{DIGEST}"), format!("oci://ghcr.io/example/slack:1@{DIGEST}")]
        {
            let reference: Reference = text.parse().unwrap();
            assert_eq!((reference.pointer(), reference.digest()), (DIGEST, Some(DIGEST)));
            assert!(reference.tag_to_push().is_err());
        }
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        for text in [
            "ghcr.io/example/slack:1",
            "oci://ghcr.io",
            "oci://ghcr.io/slack",
            "oci://ghcr.io/Slack:1",
            "oci://ghcr.io/a//b:1",
            "oci://ghcr.io/../b:1",
            "oci://ghcr.io/a:",
            "oci://ghcr.io/a:-x",
            "oci://ghcr.io/a@sha256:12",
            "oci://ghcr.io/a@md5:d41d8cd98f00b204e9800998ecf8427e",
            "oci:///a:1",
            "oci://user:password@ghcr.io/a:1",
            "oci://ghcr.io?x/a:1",
            "oci://ghcr.io#x/a:1",
            "oci://a b/a:1",
        ] {
            assert!(text.parse::<Reference>().is_err(), "{text}");
        }
    }
}
