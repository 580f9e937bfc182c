//! `public_url` and `trusted_proxies`.

use std::net::IpAddr;

use ipnet::IpNet;
use url::Url;

use super::super::read::FromText;
use super::super::schema::Form;
use super::address::{HTTP_URL, IPV4};

/// Where the server is reached from outside.
#[derive(Debug, Clone)]
pub(in crate::config) struct PublicUrl(pub Url);

impl FromText for PublicUrl {
    const WANTED: &'static str = "a URL such as `https://bell.example.com`";

    /// Never quotes the text: a URL may hold a credential.
    fn from_text(text: &str, _: &str) -> Result<Self, String> {
        let url = Url::parse(text)
            .map_err(|error| format!("this is no URL ({error}): write one such as `https://bell.example.com`"))?;
        let objection = if !matches!(url.scheme(), "http" | "https") {
            "the public URL begins with https:// or http://"
        } else if text.contains('@') {
            "the public URL holds no user and no password: remove what stands before the `@`"
        } else if url.path() != "/" {
            "the server has a host name to itself: remove the path"
        } else if url.query().is_some() || url.fragment().is_some() {
            "the public URL is a host alone: remove the `?` or `#` and what follows"
        } else if text.contains(char::is_whitespace) {
            "a URL has no white space"
        } else {
            return Ok(Self(url));
        };
        Err(objection.to_owned())
    }

    fn form() -> Form {
        Form::pattern(format!(r"(?![^?]*\?){HTTP_URL}"), &["https://bell.example.com", "http://bell.internal:7420"])
    }
}

/// The network of a proxy.
#[derive(Debug, Clone)]
pub(in crate::config) struct Network(pub IpNet);

impl FromText for Network {
    const WANTED: &'static str = "a network such as `10.0.0.0/8`, or one address";
    const SEES_NUMBERS: bool = true;

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        let form = "write a network such as `10.0.0.0/8`, or one address such as `10.0.0.7`";
        let network = match text.parse::<IpAddr>() {
            Ok(address) => IpNet::from(address),
            Err(_) => text.parse::<IpNet>().map_err(|_| format!("{quoted} is no network of IP addresses: {form}"))?,
        };
        if network.prefix_len() == 0 {
            return Err(format!("{quoted} is everybody, whose word on an address counts nothing: name your proxies"));
        }
        if network.trunc() != network {
            return Err(format!("{quoted} names an address inside a network: write {}", network.trunc()));
        }
        Ok(Self(network))
    }

    fn form() -> Form {
        let v6 = r"[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*";
        Form::pattern(format!(r"(?:{IPV4}|{v6})(?:\/0*[1-9]\d*)?"), &["10.0.0.0/8", "10.0.0.7", "fd00::/8"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_url_is_a_host_alone() {
        for (text, expected) in [
            ("https://bell.example.com", Ok("https://bell.example.com/")),
            ("http://Bell.internal:7420/", Ok("http://bell.internal:7420/")),
            ("https://bell.example.com:443", Ok("https://bell.example.com/")),
            ("https://bell.example.com/bell", Err("remove the path")),
            ("https://bell.example.com?a", Err("remove the `?`")),
            ("https://bell.example.com/#a", Err("remove the `?`")),
            ("https://user:s3cret@bell.example.com", Err("no user and no password")),
            ("ftp://bell.example.com", Err("begins with https://")),
            ("bell.example.com", Err("no URL")),
        ] {
            match (PublicUrl::from_text(text, ""), expected) {
                (Ok(url), Ok(expected)) => assert_eq!(url.0.as_str(), expected),
                (Err(why), Err(expected)) => assert!(why.contains(expected) && !why.contains("s3cret"), "{why}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_proxy_is_named_by_its_network() {
        for (text, expected) in [
            ("10.0.0.0/8", Ok("10.0.0.0/8")),
            ("10.0.0.7", Ok("10.0.0.7/32")),
            ("fd00::/8", Ok("fd00::/8")),
            ("10.0.0.7/8", Err("write 10.0.0.0/8")),
            ("0.0.0.0/0", Err("everybody")),
            ("proxy.example", Err("no network")),
            ("10.0.0.0/33", Err("no network")),
        ] {
            match (Network::from_text(text, text), expected) {
                (Ok(network), Ok(expected)) => assert_eq!(network.0.to_string(), expected),
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{why}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }
}
