//! The page to sign in.

use maud::{DOCTYPE, Markup, html};

/// The whole page.
pub(super) fn document(back: &str, why: Option<&str>) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="robots" content="noindex";
                title { "Sign in · Switchbell" }
                link rel="stylesheet" href="/sign-in.css";
                script src="/sign-in.js" defer {}
            }
            body { (body(back, why)) }
        }
    }
}

/// What stands on the page. `back` is a path of this server to go on to, `why` says why the last try failed.
pub fn body(back: &str, why: Option<&str>) -> Markup {
    html! {
        main class="sign-in" {
            h1 { "Switchbell" }
            form #sign-in method="post" action="/sign-in" {
                input type="hidden" name="back" value=(back);
                label for="token" { "Token" }
                input #token name="token" type="password" required autofocus autocomplete="current-password" spellcheck="false"
                    aria-describedby="token-help";
                p #token-help .help { "It begins with " code { "swb_" } ". Your admin or the operator makes one." }
                p #said role="alert" { @if let Some(why) = why { (why) } }
                button type="submit" { "Sign in" }
            }
            details {
                summary { "No token?" }
                p {
                    "On the machine of the server, " code { "switchbell token create --role operator --link" }
                    " prints a link that signs you in. It works once, within ten minutes."
                }
            }
            noscript { p { "A link that signs you in needs JavaScript; a token does not." } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_text() {
        let page = document("/\"><script>", Some("<b>no</b>")).into_string();
        assert!(
            page.contains("value=\"/&quot;&gt;&lt;script&gt;\"") && page.contains("&lt;b&gt;no&lt;/b&gt;"),
            "{page}"
        );
        assert!(!page.contains("style=") && !page.contains("onclick"), "{page}");
    }
}
