//! Attempts of a plugin that follows a script, against a real HTTP server.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::sync::OnceCell;

use super::*;
use crate::clock::Clock;
use crate::config::{
    Config, Grant, HostPattern, HttpGrant, Limits, Plugins, Route, Secret, SecretPlace, Target, Workspace,
};
use crate::inbox::DeliveryId;
use crate::notification::{Event, Level, Name, Notification};
use crate::route::Matcher;
use crate::send::effect::Effects;
use crate::wasm::guests::guest;
use crate::wasm::{Catalog, Sandbox, Settings};

const SECRET: &str = "http://127.0.0.1:9/value-that-nobody-sees";

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// The one plugin, loaded once.
async fn catalog() -> Catalog {
    static CATALOG: OnceCell<Catalog> = OnceCell::const_new();
    let open = async || {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("scripted.wasm"), guest("scripted")).unwrap();
        let sandbox = Sandbox::new(Settings::new(Limits::default())).unwrap();
        let (catalog, problems) = Catalog::open(&sandbox, folder.path()).await;
        assert_eq!(problems, []);
        catalog
    };
    CATALOG.get_or_init(open).await.clone()
}

/// A server whose path says how it answers.
async fn destination() -> SocketAddr {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = Router::new().route("/{how}", any(answer));
    tokio::spawn(async move { axum::serve(listener, service).await });
    address
}

async fn answer(Path(how): Path<String>) -> Response {
    match how.as_str() {
        "never" => std::future::pending().await,
        "redirect" => (StatusCode::FOUND, [(header::LOCATION, "/200")]).into_response(),
        "large" => "x".repeat(300 * 1024).into_response(),
        status => StatusCode::from_u16(status.parse().unwrap()).unwrap().into_response(),
    }
}

fn config(settings: Value, address: SocketAddr) -> Config {
    let matcher = Matcher::default();
    let target = Target { id: "target".to_owned(), plugin: name("scripted"), settings, places: BTreeMap::new() };
    let route = Route {
        name: name("news"),
        owner: "admin@example.com".to_owned(),
        when: matcher.clone(),
        deliver: vec![target],
    };
    let workspace = Workspace {
        name: name("acme"),
        file: "acme.yaml".into(),
        members: BTreeMap::new(),
        connectors: BTreeMap::new(),
        routes: vec![route],
        router: crate::route::Router::new(vec![matcher]).unwrap(),
    };
    let grant = |port| HttpGrant {
        scheme: "http",
        host: HostPattern::Exact("127.0.0.1".to_owned()),
        port,
        private: false,
        workspaces: Vec::new(),
    };
    let grants = Grant { http: vec![grant(address.port()), grant(9)] };
    let secret =
        Secret { value: SECRET.to_owned(), place: SecretPlace::Url, hosts: Vec::new(), workspaces: vec![name("acme")] };
    Config {
        file: "switchbell.yaml".into(),
        listen: ([127, 0, 0, 1], 0).into(),
        store: "switchbell.db".into(),
        plugins: Plugins {
            directory: "plugins".into(),
            grants: BTreeMap::from([(name("scripted"), grants)]),
            limits: Limits { steps_max: 5, ..Limits::default() },
        },
        secrets: BTreeMap::from([(name("hook"), secret)]),
        workspaces: BTreeMap::from([(name("acme"), workspace)]),
        reads_per_minute_max: 60,
    }
}

fn claim() -> Claim {
    let event = Event {
        event_id: "e1".to_owned(),
        name: "domain.active".to_owned(),
        timestamp: Timestamp::UNIX_EPOCH,
        level: Level::Info,
        subject: None,
        title: "a title".to_owned(),
        body: None,
        link: None,
        data: "{}".to_owned(),
    };
    Claim {
        id: DeliveryId { store: "0badcafe".into(), number: 1 },
        route: name("news"),
        target: "target".to_owned(),
        plugin: name("scripted"),
        attempt: NonZeroU32::MIN,
        created_at: Timestamp::UNIX_EPOCH,
        due_at: Timestamp::UNIX_EPOCH,
        last_outcome: None,
        notification: Notification {
            workspace: name("acme"),
            seq: 1,
            source: name("registrar"),
            received_at: Timestamp::UNIX_EPOCH,
            effective_level: Level::Info,
            event,
        },
    }
}

async fn means(settings: Value, address: SocketAddr) -> Means {
    let config = Arc::new(config(settings, address));
    Means { config, catalog: catalog().await, effects: Effects::new().unwrap(), clock: Clock::system() }
}

/// Runs a script, in which `AT` is the address of the destination.
async fn run(script: &str, claim: &Claim, stop: &Stop) -> Ended {
    let address = destination().await;
    let settings = json!(script.replace("AT", &format!("http://{address}")));
    means(settings, address).await.attempt(claim, Timestamp::UNIX_EPOCH, stop).await
}

async fn check(script: &str, outcome: Outcome, says: &str) -> Ended {
    let ended = run(script, &claim(), &Stop::default()).await;
    assert_eq!(ended.outcome, outcome, "{script}: {ended:?}");
    let reason = ended.reason.clone().unwrap_or_default();
    assert!(reason.contains(says), "{script}: {reason:?} does not say {says:?}");
    ended
}

#[tokio::test]
async fn what_the_plugin_answers_is_the_outcome() {
    check("done well", Outcome::Delivered, "well").await;
    check("retry later", Outcome::Retry, "later").await;
    check("reject never", Outcome::Reject, "never").await;
    check("reconnect the token", Outcome::Reconnect, "the token").await;
    check("unknown who knows", Outcome::Unknown, "who knows").await;
    let ended = check("post AT/200|done 2", Outcome::Delivered, "2").await;
    assert_eq!((ended.steps, ended.plugin.unwrap().0.as_str()), (2, "1.0.0"));
    assert_eq!(check("retry x", Outcome::Retry, "x").await.destination_delay, Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn a_plugin_at_fault_is_repeated_unless_something_may_have_happened() {
    check("trap", Outcome::Retry, "stopped itself").await;
    check("post AT/500|trap", Outcome::Retry, "").await;
    check("post AT/204|trap", Outcome::Unknown, "").await;
    check("post http://127.0.0.1:9/|trap", Outcome::Retry, "").await;
    check("post AT/200", Outcome::Unknown, "more than 5 steps").await;
    check("post AT/404", Outcome::Retry, "more than 5 steps").await;
}

#[tokio::test]
async fn effects_that_are_refused_or_fail_are_answers() {
    check("post https://other.example/|report", Outcome::Reject, "plugins.grants.scripted.http").await;
    check("post http://127.0.0.1:9/|report", Outcome::Reject, "Reach::Unsent connect: no connection").await;
    check("post AT/redirect|report", Outcome::Reject, "302").await;
    check("mail|report", Outcome::Reject, "Reach::Denied not-supported").await;
    check("tool|report", Outcome::Reject, "Reach::Denied not-supported").await;
    check("other telepathy|report", Outcome::Reject, "telepathy").await;
    check("wait", Outcome::Reject, "asked to wait").await;
}

#[tokio::test]
async fn an_answer_is_kept_up_to_its_limit() {
    let ended = check("post AT/large|report", Outcome::Reject, "200").await;
    assert!(ended.reason.unwrap().ends_with('…'), "a reason is cut");
}

#[tokio::test]
async fn no_secret_is_in_what_is_kept() {
    let address = destination().await;
    let settings = json!({"secret": "hook"});
    let means = means(settings, address).await;
    // The settings are the placeholder alone, and a word that the plugin does not know is its note.
    let ended = means.attempt(&claim(), Timestamp::UNIX_EPOCH, &Stop::default()).await;
    assert_eq!((ended.outcome, ended.reason.as_deref()), (Outcome::Delivered, Some("[secret hook]")));
}

#[tokio::test]
async fn the_plugin_is_told_why_it_is_asked() {
    let told = async |last_outcome, attempt| {
        let claim = Claim { last_outcome, attempt: NonZeroU32::new(attempt).unwrap(), ..claim() };
        run("cause", &claim, &Stop::default()).await.reason.unwrap()
    };
    assert_eq!(told(None, 1).await, "first 1 0badcafe-1");
    assert_eq!(told(Some(Outcome::Retry), 2).await, "retry 2 0badcafe-1");
    assert_eq!(told(Some(Outcome::Unknown), 3).await, "repeat 3 0badcafe-1");
}

#[tokio::test]
async fn a_stop_interrupts_only_what_has_not_begun() {
    let soon = Stop::default();
    soon.soon.cancel();
    let ended = run("post AT/200|done", &claim(), &soon).await;
    assert_eq!((ended.outcome, ended.steps), (Outcome::Interrupted, 0));
    assert_eq!(cut_off_during_the_effect().await, Outcome::Unknown, "an effect that was cut off may have happened");
}

/// The outcome of an attempt whose effect has reached its destination when the server stops working.
async fn cut_off_during_the_effect() -> Outcome {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = Stop::default();
    let cut = stop.now.clone();
    let destination = async move {
        let (mut connection, _) = listener.accept().await.unwrap();
        connection.read_u8().await.unwrap();
        cut.cancel();
        std::future::pending::<()>().await;
    };
    let means = means(json!(format!("post http://{address}/|done")), address).await;
    let claim = claim();
    tokio::select! {
        ended = means.attempt(&claim, Timestamp::UNIX_EPOCH, &stop) => ended.outcome,
        () = destination => unreachable!("the destination never answers"),
    }
}

#[tokio::test]
async fn what_is_not_there_any_more_ends_or_waits() {
    let address = destination().await;
    let means = means(json!("done"), address).await;
    let attempt = async |claim: Claim| means.attempt(&claim, Timestamp::UNIX_EPOCH, &Stop::default()).await.outcome;
    assert_eq!(attempt(Claim { target: "other".to_owned(), ..claim() }).await, Outcome::Reject);
    assert_eq!(attempt(Claim { route: name("other"), ..claim() }).await, Outcome::Reject);
    let without = Means { catalog: Catalog::default(), ..means_like(&means) };
    let ended = without.attempt(&claim(), Timestamp::UNIX_EPOCH, &Stop::default()).await;
    assert_eq!(ended.outcome, Outcome::Retry, "a plugin that is not loaded may be loaded later");
}

fn means_like(means: &Means) -> Means {
    Means {
        config: Arc::clone(&means.config),
        catalog: means.catalog.clone(),
        effects: means.effects.clone(),
        clock: means.clock.clone(),
    }
}
