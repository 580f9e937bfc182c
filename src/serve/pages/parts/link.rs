//! The link of a notification.

use maud::{Markup, html};
use url::Url;

use super::said;

/// A link that a person may follow if it leads to the web, with the host that it leads to; else its text. Nothing follows it by
/// itself, and where it leads is not told who sent the reader.
pub(in super::super) fn link(resource: &str) -> Markup {
    let web = Url::parse(resource).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    match web.as_ref().and_then(|url| Some((url, url.host_str()?))) {
        Some((url, host)) => html! {
            a.button href=(url.as_str()) rel="noopener noreferrer nofollow" target="_blank" referrerpolicy="no-referrer" {
                "Open " bdi dir="ltr" { (host) } span.vh { " (in a new tab)" } span.out aria-hidden="true" { "↗" }
            }
            p.address { (said(resource)) }
        },
        None => html! { p.address { (said(resource)) } p.muted.small { "No address of the web: it is shown only." } },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_web_can_be_followed_and_their_host_is_shown() {
        let shown = link("https://bank.example@evil.example/a?b=\"c\"").into_string();
        assert!(shown.contains("rel=\"noopener noreferrer nofollow\" target=\"_blank\""), "{shown}");
        assert!(shown.contains("Open <bdi dir=\"ltr\">evil.example</bdi>"), "{shown}");
        assert!(shown.contains("href=\"https://bank.example@evil.example/a?b=%22c%22\""), "{shown}");
        // Letters of another script are spelled so that they cannot pass for others.
        assert!(link("https://аpple.example/").into_string().contains("xn--"));
        for other in [
            "acme://campaigns/cmp_8f2a",
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "data:text/html,x",
            "mailto:admin@example.com",
            "//evil.example",
            "https:",
            "file:///etc/passwd",
        ] {
            let shown = link(other).into_string();
            assert!(!shown.contains("href") && !shown.contains("<a"), "{shown}");
        }
    }
}
