//! Tokens and browsers that sign in, through the program.

mod revoked;

use reqwest::header::{CACHE_CONTROL, CONTENT_TYPE, COOKIE, HOST, LOCATION, ORIGIN, SET_COOKIE};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

use crate::support::{Server, Sink, World, run};

/// A running server, and how it is reached.
struct Stage {
    sink: Sink,
    world: World,
    server: Server,
    address: String,
    client: Client,
}

impl Stage {
    async fn start(operator: &str) -> Self {
        // Every client needs it, whatever it speaks.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let sink = Sink::start().await;
        let world = World::new(&sink, "{ outbox: { run: [cat], workspaces: [acme] } }", &World::stdio_connector());
        let file = std::fs::read_to_string(world.config()).unwrap();
        world.write("switchbell.yaml", &format!("{file}{operator}"));
        let mut server = Server::spawn_serving(&world, &sink);
        let ready = server.wait_for(" ready ");
        let address = ready.split_once("listen=").unwrap().1.split_whitespace().next().unwrap().to_owned();
        let client = Client::builder().redirect(Policy::none()).no_proxy().build().unwrap();
        Self { sink, world, server, address, client }
    }

    /// What a `token` command prints as JSON.
    fn token(&self, arguments: &[&str]) -> Value {
        self.world.json(&self.sink, &[&["token"], arguments].concat())
    }

    /// The text of a new token.
    fn made(&self, arguments: &[&str]) -> String {
        self.token(&[&["create"], arguments].concat())["token"].as_str().unwrap().to_owned()
    }

    /// The link's text and the whole link.
    fn link(&self, arguments: &[&str]) -> (String, String) {
        let made = self.token(&[&["create", "--link"], arguments].concat());
        let link = made["link"].as_str().unwrap().to_owned();
        (link.split_once("#link=").unwrap().1.to_owned(), link)
    }

    fn to(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("http://{}{path}", self.address))
    }

    async fn get(&self, path: &str, token: &str) -> Response {
        self.to(Method::GET, path).bearer_auth(token).send().await.unwrap()
    }

    /// As a script of our page sends it.
    fn ours(&self, path: &str) -> RequestBuilder {
        self.to(Method::POST, path).header(ORIGIN, format!("http://{}", self.address)).header("switchbell-request", "1")
    }

    async fn sign_in(&self, with: Value) -> Response {
        let request = self.ours("/sign-in").header(CONTENT_TYPE, "application/json");
        request.body(with.to_string()).send().await.unwrap()
    }
}

/// The cookie that an answer sets, as it is sent back, and its attributes.
fn cookie(answer: &Response) -> (String, String) {
    let text = answer.headers()[SET_COOKIE].to_str().unwrap();
    let (cookie, attributes) = text.split_once("; ").unwrap();
    (cookie.to_owned(), attributes.to_owned())
}

async fn problem(answer: Response, status: u16) -> Value {
    assert_eq!(answer.status().as_u16(), status);
    assert_eq!(answer.headers()[CONTENT_TYPE], "application/problem+json");
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}

#[tokio::test]
async fn a_token_is_shown_once_works_at_once_and_is_gone_at_once_when_it_is_revoked() {
    let stage = Stage::start("").await;
    let made = stage.token(&["create", "--role", "operator", "--label", "ci", "--expires", "90d"]);
    let (text, id) = (made["token"].as_str().unwrap(), made["made"]["id"].as_i64().unwrap().to_string());
    let me: Value = serde_json::from_str(&stage.get("/v1/me", text).await.text().await.unwrap()).unwrap();
    assert_eq!(me["role"], "operator");
    let listed = stage.token(&["list"]);
    let of_it = listed.as_array().unwrap().iter().find(|token| token["id"] == made["made"]["id"]).unwrap();
    assert_eq!((&of_it["label"], &of_it["revokedAt"]), (&json!("ci"), &Value::Null));
    assert!(!listed.to_string().contains(text));
    let (code, out, _) = run(&stage.world, &stage.sink, &["token", "list"]);
    assert!(code == 0 && out.contains("the operator") && out.contains("ci") && !out.contains("swb_"), "{out}");

    assert_eq!(stage.token(&["revoke", &id])["id"], made["made"]["id"]);
    let refused = problem(stage.get("/v1/me", text).await, 401).await;
    assert!(refused["detail"].as_str().unwrap().contains("was revoked"), "{refused}");
    let (code, _, error) = run(&stage.world, &stage.sink, &["token", "revoke", "4711"]);
    assert!(code == 2 && error.contains("no token 4711"), "{code}: {error}");
    let (_, _, log) = stage.server.stop(rustix::process::Signal::TERM);
    assert!(log.contains("token made") && log.contains("token revoked") && !log.contains(text), "{log}");
}

#[tokio::test]
async fn a_token_is_printed_alone_so_that_scripts_can_take_it() {
    let stage = Stage::start("").await;
    let arguments = ["token", "create", "--role", "agent", "--consumer", "triage", "--scopes", "read"];
    let (code, out, error) = run(&stage.world, &stage.sink, &arguments);
    assert_eq!((code, out.len()), (0, 52), "{error}");
    assert!(out.starts_with("swb_") && error.contains("triage (agent of acme: read)"), "{error}");
    let notifications = stage.get("/v1/workspaces/acme/notifications", out.trim()).await;
    assert_eq!(notifications.status(), StatusCode::OK);
    let acknowledge = stage.to(Method::POST, "/v1/workspaces/acme/notifications/acknowledge").bearer_auth(out.trim());
    let acknowledge =
        acknowledge.header(CONTENT_TYPE, "application/json").body(r#"{"seqs":[1]}"#).send().await.unwrap();
    problem(acknowledge, 403).await;
}

#[tokio::test]
async fn without_a_server_tokens_are_made_in_the_store_itself() {
    let stage = Stage::start("").await;
    let Stage { sink, world, server, .. } = stage;
    server.stop(rustix::process::Signal::TERM);
    let made = world.json(&sink, &["token", "create", "--role", "admin"]);
    assert_eq!((&made["made"]["member"], &made["made"]["workspaceId"]), (&json!("admin@example.com"), &json!("acme")));
    let (code, _, error) = run(&world, &sink, &["token", "create", "--role", "operator", "--link"]);
    assert!(code == 2 && error.contains("public_url"), "{code}: {error}");

    let mut server = Server::spawn_serving(&world, &sink);
    let ready = server.wait_for(" ready ");
    let address = ready.split_once("listen=").unwrap().1.split_whitespace().next().unwrap().to_owned();
    let request = Client::new().get(format!("http://{address}/v1/me")).bearer_auth(made["token"].as_str().unwrap());
    let me: Value = serde_json::from_str(&request.send().await.unwrap().text().await.unwrap()).unwrap();
    assert_eq!(me["role"], "admin");
    let id = made["made"]["id"].to_string();
    server.stop(rustix::process::Signal::TERM);
    assert!(world.json(&sink, &["token", "revoke", &id])["revokedAt"].is_string());
}

#[tokio::test]
async fn the_first_start_on_loopback_prints_a_link_that_signs_in_once() {
    let mut stage = Stage::start("").await;
    let link = stage.server.wait_for("/sign-in#link=");
    let (url, text) = link.trim().split_once("#link=").unwrap();
    assert_eq!(url, format!("http://{}/sign-in", stage.address));
    // Whoever looks at the link spends nothing.
    for method in [Method::GET, Method::HEAD, Method::GET] {
        assert_eq!(stage.to(method, "/sign-in").send().await.unwrap().status(), StatusCode::OK);
    }
    for query in [format!("/sign-in?link={text}"), format!("/sign-in?token={text}")] {
        assert!(stage.to(Method::GET, &query).send().await.unwrap().headers().get(SET_COOKIE).is_none());
    }
    let (one, other) = tokio::join!(stage.sign_in(json!({ "link": text })), stage.sign_in(json!({ "link": text })));
    let (good, bad) = if one.status().is_success() { (one, other) } else { (other, one) };
    assert_eq!(good.status(), StatusCode::OK);
    let (session, attributes) = cookie(&good);
    assert!(session.starts_with("__Host-switchbell=sws_"));
    assert_eq!(attributes, "Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=2592000");
    assert_eq!(good.text().await.unwrap(), r#"{"back":"/"}"#);
    let refused = problem(bad, 401).await;
    assert!(refused["detail"].as_str().unwrap().contains("used before"), "{refused}");

    let me = stage.to(Method::GET, "/v1/me").header(COOKIE, &session).send().await.unwrap();
    assert_eq!(me.status(), StatusCode::OK);
    let form = stage.to(Method::GET, "/sign-in?back=/w/acme/inbox").header(COOKIE, &session).send().await.unwrap();
    assert_eq!((form.status(), &form.headers()[LOCATION]), (StatusCode::SEE_OTHER, &"/w/acme/inbox".parse().unwrap()));

    // Somebody could sign in now: the next start says nothing.
    let Stage { sink, world, server, .. } = stage;
    server.stop(rustix::process::Signal::TERM);
    let mut server = Server::spawn_serving(&world, &sink);
    server.wait_for(" ready ");
    let (_, _, said) = server.stop(rustix::process::Signal::TERM);
    assert!(!said.contains("#link="), "{said}");
}

#[tokio::test]
async fn a_browser_without_scripts_signs_in_by_the_form_and_a_wrong_token_is_told_on_the_page() {
    let stage = Stage::start("").await;
    let token = stage.made(&["--role", "operator"]);
    let form = async |token: &str, origin: &str, back: &str| {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("token", token)
            .append_pair("back", back)
            .finish();
        let request = stage.to(Method::POST, "/sign-in").header(ORIGIN, origin);
        request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(body).send().await.unwrap()
    };
    let ours = format!("http://{}", stage.address);
    let good = form(&token, &ours, "/w/acme/inbox?unread=true").await;
    assert_eq!(
        (good.status(), &good.headers()[LOCATION]),
        (StatusCode::SEE_OTHER, &"/w/acme/inbox?unread=true".parse().unwrap())
    );
    let elsewhere = form(&token, &ours, "https://evil.example/").await;
    assert_eq!(elsewhere.headers()[LOCATION], "/");
    let wrong = form("<b>swb_wrong</b>", &ours, "/").await;
    assert_eq!(
        (wrong.status(), &wrong.headers()[CONTENT_TYPE]),
        (StatusCode::UNAUTHORIZED, &"text/html; charset=utf-8".parse().unwrap())
    );
    assert_eq!(wrong.headers()["referrer-policy"], "same-origin");
    let page = wrong.text().await.unwrap();
    assert!(page.contains("this token is not known") && !page.contains("swb_wrong"), "{page}");
    for foreign in ["https://evil.example", "null"] {
        problem(form(&token, foreign, "/").await, 403).await;
    }
}

#[tokio::test]
async fn a_session_writes_only_from_our_pages_and_ends_when_it_signs_out() {
    let stage = Stage::start("").await;
    let (link, _) = stage.link(&["--role", "admin"]);
    let (session, _) = cookie(&stage.sign_in(json!({ "link": link })).await);
    let acknowledge = "/v1/workspaces/acme/notifications/acknowledge";
    let body = |request: RequestBuilder| {
        request.header(COOKIE, &session).header(CONTENT_TYPE, "application/json").body(r#"{"seqs":[1]}"#).send()
    };
    assert_eq!(body(stage.ours(acknowledge)).await.unwrap().status(), StatusCode::OK);
    let bare = stage.to(Method::POST, acknowledge);
    problem(body(bare).await.unwrap(), 403).await;
    let foreign =
        stage.to(Method::POST, acknowledge).header(ORIGIN, "https://evil.example").header("switchbell-request", "1");
    problem(body(foreign).await.unwrap(), 403).await;
    let without_header = stage.to(Method::POST, acknowledge).header(ORIGIN, format!("http://{}", stage.address));
    problem(body(without_header).await.unwrap(), 403).await;

    let foreign =
        stage.to(Method::POST, "/sign-out").header(ORIGIN, "https://evil.example").header("switchbell-request", "1");
    problem(foreign.header(COOKIE, &session).send().await.unwrap(), 403).await;
    let session_of = async || stage.to(Method::GET, "/session").header(COOKIE, &session).send().await.unwrap().status();
    assert_eq!(session_of().await, StatusCode::NO_CONTENT);
    let out = stage.ours("/sign-out").header(COOKIE, &session).send().await.unwrap();
    assert_eq!((out.status(), cookie(&out).0.as_str()), (StatusCode::NO_CONTENT, "__Host-switchbell="));
    assert!(cookie(&out).1.ends_with("Max-Age=0"));
    assert_eq!(session_of().await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_foreign_host_is_refused_everywhere_but_where_machines_ask_how_the_server_does() {
    let stage = Stage::start("public_url: https://bell.example.com\n").await;
    let port = stage.address.split_once(':').unwrap().1;
    let local = format!("localhost:{port}");
    for (host, is_ours) in [
        (stage.address.as_str(), true),
        (local.as_str(), true),
        ("bell.example.com", true),
        ("evil.example", false),
        ("bell.example.com.evil.example", false),
        ("127.0.0.1", false),
    ] {
        for path in ["/v1/me", "/v1/openapi.json", "/sign-in", "/mcp", "/", "/nowhere"] {
            let answer = stage.to(Method::GET, path).header(HOST, host).send().await.unwrap();
            assert_eq!(answer.status() == StatusCode::MISDIRECTED_REQUEST, !is_ours, "{host} {path}");
        }
        for path in ["/healthz", "/readyz"] {
            let answer = stage.to(Method::GET, path).header(HOST, host).send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::OK, "{host} {path}");
        }
    }
}

#[tokio::test]
async fn the_counters_are_for_this_machine_and_for_the_operators_token() {
    let stage = Stage::start("public_url: https://bell.example.com\ntrusted_proxies: [127.0.0.1]\n").await;
    let (operator, admin) = (stage.made(&["--role", "operator"]), stage.made(&["--role", "admin"]));
    let asked = || stage.to(Method::GET, "/metrics");
    assert_eq!(asked().send().await.unwrap().status(), StatusCode::OK);
    let as_others_ask = || {
        [
            asked().header(HOST, "evil.example"),
            asked().header("x-forwarded-for", "127.0.0.1"),
            asked().header("forwarded", "for=127.0.0.1"),
        ]
    };
    for request in as_others_ask() {
        let refused = problem(request.send().await.unwrap(), 401).await;
        assert!(!refused.to_string().contains("acme"), "{refused}");
    }
    for request in as_others_ask() {
        problem(request.bearer_auth(&admin).send().await.unwrap(), 403).await;
    }
    for request in as_others_ask() {
        assert_eq!(request.bearer_auth(&operator).send().await.unwrap().status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn every_answer_has_the_headers_that_browsers_need() {
    let stage = Stage::start("public_url: https://bell.example.com\n").await;
    let token = stage.made(&["--role", "operator"]);
    for path in ["/v1/me", "/v1/nowhere", "/v1/openapi.json", "/sign-in", "/sign-in.js", "/sign-in.css", "/nowhere"] {
        let answer = stage.get(path, &token).await;
        let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        let policy = header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{path}: {policy}");
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(header("cross-origin-opener-policy"), "same-origin", "{path}");
        assert_eq!(header("strict-transport-security"), "max-age=31536000", "{path}");
        assert_eq!(header("referrer-policy"), if path == "/sign-in" { "same-origin" } else { "no-referrer" }, "{path}");
        assert!(["no-store", "no-cache"].contains(&answer.headers()[CACHE_CONTROL].to_str().unwrap()), "{path}");
    }
    let plain = Stage::start("").await;
    assert!(plain.get("/v1/me", "no").await.headers().get("strict-transport-security").is_none());
}

#[tokio::test]
async fn who_guesses_tokens_is_told_to_wait_while_a_good_one_passes() {
    let stage = Stage::start("trusted_proxies: [127.0.0.1]\n").await;
    let token = stage.made(&["--role", "operator"]);
    let guess = async |client: &str| {
        let request = stage.to(Method::GET, "/v1/me").bearer_auth("swb_guess").header("x-forwarded-for", client);
        request.send().await.unwrap()
    };
    for _ in 0..10 {
        problem(guess("198.51.100.1").await, 401).await;
    }
    let limited = guess("198.51.100.1").await;
    let seconds: u64 = limited.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds), "{seconds}");
    problem(limited, 429).await;
    problem(guess("203.0.113.9, 198.51.100.1, 127.0.0.1").await, 429).await;
    problem(guess("198.51.100.2").await, 401).await;
    let good = stage.to(Method::GET, "/v1/me").bearer_auth(&token).header("x-forwarded-for", "198.51.100.1");
    assert_eq!(good.send().await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn an_unknown_and_a_foreign_workspace_are_answered_byte_for_byte_alike() {
    let stage = Stage::start("").await;
    stage.world.write("workspaces/globex.yaml", "members: { admin@example.com: admin }\n");
    assert_eq!(run(&stage.world, &stage.sink, &["reload"]).0, 0);
    let token = stage.made(&["--workspace", "globex", "--role", "admin"]);
    assert_eq!(stage.get("/v1/workspaces/globex/notifications", &token).await.status(), StatusCode::OK);
    for rest in ["notifications", "deliveries", "routes", "connectors"] {
        let mut told = Vec::new();
        for name in ["acme", "nope"] {
            let answer = stage.get(&format!("/v1/workspaces/{name}/{rest}"), &token).await;
            let status = answer.status();
            let mut headers: Vec<String> = answer.headers().keys().map(ToString::to_string).collect();
            headers.sort();
            told.push((status, headers, answer.text().await.unwrap().replace(name, "NAME")));
        }
        assert_eq!(told[0], told[1]);
        assert_eq!(told[0].0, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn a_member_who_is_taken_out_of_the_file_is_out_with_the_reload() {
    let stage = Stage::start("").await;
    let file = std::fs::read_to_string(stage.world.path("workspaces/acme.yaml")).unwrap();
    let with = |member: &str| file.replace("members: { ", &format!("members: {{ {member}"));
    stage.world.write("workspaces/acme.yaml", &with("reader@example.com: member, "));
    assert_eq!(run(&stage.world, &stage.sink, &["reload"]).0, 0);
    let token = stage.made(&["--role", "member", "--member", "reader@example.com"]);
    assert_eq!(stage.get("/v1/workspaces/acme/notifications", &token).await.status(), StatusCode::OK);
    stage.world.write("workspaces/acme.yaml", &file);
    assert_eq!(run(&stage.world, &stage.sink, &["reload"]).0, 0);
    let gone = problem(stage.get("/v1/workspaces/acme/notifications", &token).await, 401).await;
    assert!(gone["detail"].as_str().unwrap().contains("reader@example.com"), "{gone}");
}

#[tokio::test]
async fn a_message_links_to_the_inbox_where_it_is_known_how_the_server_is_reached() {
    let sink = Sink::start().await;
    let world = World::new(&sink, "{ outbox: { run: [cat], workspaces: [acme] } }", &World::stdio_connector());
    let file = std::fs::read_to_string(world.config()).unwrap();
    let body = || {
        let preview = world.json(&sink, &["preview", "--source", "registrar", "--name", "domain.active"]);
        preview["targets"][0]["steps"][0]["action"]["http"]["body"].as_str().unwrap().to_owned()
    };
    assert!(!body().contains("Open the inbox"), "a port that the system chooses is not known before");
    world.write("switchbell.yaml", &format!("{file}public_url: https://bell.example.com\n"));
    let with_link = body();
    assert!(with_link.contains("https://bell.example.com/w/acme/inbox\""), "{with_link}");
}
