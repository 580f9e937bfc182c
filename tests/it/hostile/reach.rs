//! Plugins that reach for places and secrets that are not their own.

use super::stage::{Case, DELIVERED, REJECTED, RETRIED, Stage, case};

const PLACES: &[Case] = &[
    case("by-name", "{ does: ask, url: \"http://localhost:PORT/\" }", REJECTED, "denied private-address"),
    case("by-private-grant", "{ does: ask, url: \"ELSEWHERE/private\" }", REJECTED, "200"),
    case("by-literal", "{ does: ask, url: \"http://FORBIDDEN/\" }", REJECTED, "denied not-granted"),
    case("by-decimal", "{ does: ask, url: \"http://2130706433:PORT/\" }", REJECTED, "denied not-granted"),
    case("by-hex", "{ does: ask, url: \"http://0x7f000001:PORT/\" }", REJECTED, "denied not-granted"),
    case("by-short", "{ does: ask, url: \"http://127.1:PORT/\" }", REJECTED, "denied not-granted"),
    case("by-mapped", "{ does: ask, url: \"http://[::ffff:127.0.0.1]:PORT/\" }", REJECTED, "denied not-granted"),
    case("by-nat64", "{ does: ask, url: \"http://[64:ff9b::7f00:1]:PORT/\" }", REJECTED, "denied not-granted"),
    case("by-zero", "{ does: ask, url: \"http://0.0.0.0:PORT/\" }", REJECTED, "denied not-granted"),
    case("by-loopback-6", "{ does: ask, url: \"http://[::1]:PORT/\" }", REJECTED, "denied not-granted"),
    case("metadata", "{ does: ask, url: \"http://169.254.169.254/latest/\" }", REJECTED, "denied not-granted"),
    case("by-redirect", "{ does: ask, url: \"AT/redirect\" }", REJECTED, "307"),
    case("user-name", "{ does: ask, url: \"http://127.0.0.1@FORBIDDEN/\" }", REJECTED, "denied url"),
    case("fragment", "{ does: ask, url: \"http://FORBIDDEN#@127.0.0.1/\" }", REJECTED, "denied not-granted"),
    case("a-file", "{ does: ask, url: \"file:///etc/passwd\" }", REJECTED, "denied url"),
    case("no-url", "{ does: ask, url: \"//FORBIDDEN/\" }", REJECTED, "denied url"),
    case("tunnel", "{ does: method, method: CONNECT, at: \"AT/\" }", REJECTED, "denied method"),
    case(
        "method",
        "{ does: method, method: \"GET /smuggled HTTP/1.1\\r\\n\", at: \"AT/\" }",
        REJECTED,
        "denied method",
    ),
    case("host-header", "{ does: header, name: Host, value: FORBIDDEN, at: \"AT/\" }", REJECTED, "denied headers"),
    case("cookie", "{ does: header, name: cookie, value: a=b, at: \"AT/\" }", REJECTED, "denied headers"),
    case("proxy", "{ does: header, name: Proxy-Authorization, value: a, at: \"AT/\" }", REJECTED, "denied headers"),
    case("split-header", "{ does: split-header, at: \"AT/\" }", REJECTED, "denied headers"),
    case("split-name", "{ does: split-header-name, at: \"AT/\" }", REJECTED, "denied headers"),
    case("two-requests", "{ does: two-requests, at: \"AT/\" }", REJECTED, "denied headers"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_reaches_for_other_places_gets_nowhere() {
    let mut stage = Stage::start(PLACES).await;
    stage.run(PLACES).await;
    let asked: Vec<String> = stage.destination.asked().into_iter().map(|got| got.path).collect();
    assert_eq!(asked, ["/private", "/redirect"], "what is refused is not sent");
    stage.finish();
}

const BOT: &str = "authorization";

const SECRETS: &[Case] = &[
    case(
        "echo",
        "{ does: header, at: \"AT/echo\", name: authorization, value: PLACEHOLDER, key: { secret: bot } }",
        REJECTED,
        "[secret bot]",
    ),
    case(
        "another-host",
        "{ does: header, at: \"ELSEWHERE/echo\", name: authorization, value: PLACEHOLDER, key: { secret: bot } }",
        REJECTED,
        "denied secret-host",
    ),
    case(
        "another-header",
        "{ does: header, at: \"AT/echo\", name: x-copy, value: PLACEHOLDER, key: { secret: bot } }",
        REJECTED,
        "denied secret-place",
    ),
    case(
        "part-of-header",
        "{ does: header, at: \"AT/echo\", name: authorization, value: \"Basic PLACEHOLDER\", key: { secret: bot } }",
        REJECTED,
        "denied secret-place",
    ),
    case(
        "url-in-header",
        "{ does: header, at: \"AT/echo\", name: authorization, value: PLACEHOLDER, key: { secret: hook } }",
        REJECTED,
        "denied secret-place",
    ),
    case(
        "query",
        "{ does: ask, url: \"AT/echo?key=PLACEHOLDER\", key: { secret: bot } }",
        REJECTED,
        "denied secret-place",
    ),
    case(
        "host-part",
        "{ does: ask, url: \"http://PLACEHOLDER.example:PORT/\", key: { secret: bot } }",
        REJECTED,
        "denied secret-place",
    ),
    case("body", "{ does: body, at: \"AT/echo\", key: { secret: bot } }", REJECTED, "denied secret-place"),
    case("note", "{ does: note, key: { secret: bot } }", DELIVERED, "the key is [secret bot]"),
    case("reference", "{ does: reference, key: { secret: hook } }", DELIVERED, "[secret hook]"),
    case("reason", "{ does: reason, key: { secret: bot } }", REJECTED, "the key is [secret bot]"),
    case("log", "{ does: log, key: { secret: bot } }", RETRIED, "the key is [secret bot]"),
    case("subject", "{ does: subject, key: { secret: bot } }", REJECTED, "denied "),
    case("guess", "{ does: ask, url: \"switchbell-secret.hook.0123456789abcdef\" }", REJECTED, "denied url"),
    case(
        "guess-header",
        "{ does: header, at: \"AT/guessed\", name: authorization, value: \"switchbell-secret.bot.0000000000000000\" }",
        REJECTED,
        "200",
    ),
    case("keep", "{ does: keep-the-placeholder, key: { secret: hook } }", DELIVERED, "kept"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_smuggles_a_secret_gets_it_nowhere() {
    let mut stage = Stage::start(SECRETS).await;
    stage.run(SECRETS).await;
    // What the last attempt kept is no placeholder any more.
    let kept = SECRETS.iter().find(|case| case.name == "keep").unwrap();
    stage.run(&[Case { came: REJECTED, says: "denied url", ..*kept }]).await;
    let asked = stage.destination.asked();
    let paths: Vec<&str> = asked.iter().map(|got| got.path.as_str()).collect();
    assert_eq!(paths, ["/echo", "/guessed"], "what is refused is not sent");
    assert!(asked[0].whole.contains(BOT) && !asked[1].whole.contains("xoxb"), "{asked:?}");
    stage.finish();
}
