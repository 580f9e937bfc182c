//! Who a request is from.

use super::*;

#[tokio::test]
async fn a_token_is_what_its_scope_says_as_far_as_the_file_still_allows_it() {
    let stage = Stage::new();
    let operator = stage.made(Scope::Operator).await;
    let admin = stage.made(member("admin@example.com", true)).await;
    let reader = stage.made(member("reader@example.com", false)).await;
    let careful = stage.made(member("admin@example.com", false)).await;
    let triage = stage.made(agent()).await;
    for (made, role, name) in [
        (&operator, Role::Operator, "operator"),
        (&admin, Role::Admin, "admin@example.com"),
        (&reader, Role::Member, "reader@example.com"),
        (&careful, Role::Member, "admin@example.com"),
        (&triage, Role::Agent { may_read: true, may_ack: false }, "triage"),
    ] {
        let caller = stage.caller(&made.text).await.unwrap();
        assert_eq!((caller.token, caller.role, &*caller.actor.name), (Some(made.token.id), role, name));
        assert_eq!(caller.actor.is_agent, name == "triage");
        assert_eq!(caller.workspace.is_none(), name == "operator");
    }

    stage.configure("", &[("acme", "members: { admin@example.com: member }\n")]);
    assert_eq!(stage.caller(&admin.text).await.unwrap().role, Role::Member);
    says(stage.caller(&reader.text).await, 401, "member reader@example.com of workspace acme, which is gone");

    stage.configure("", &[("acme", "members: [\n"), ("globex", ACME)]);
    says(stage.caller(&admin.text).await, 503, "the file of workspace acme has mistakes");
    assert!(stage.caller(&triage.text).await.is_ok() && stage.caller(&operator.text).await.is_ok());

    stage.configure("", &[("globex", ACME)]);
    says(stage.caller(&admin.text).await, 401, "workspace acme, which is gone");
    says(stage.caller(&triage.text).await, 401, "workspace acme, which is gone");
    assert!(stage.caller(&operator.text).await.is_ok());
}

#[tokio::test]
async fn a_request_without_a_token_or_with_something_else_is_told_what_is_needed() {
    let stage = Stage::new();
    let of =
        async |headers: &[(&str, &str)]| stage.gate.caller(&request(Method::GET, headers), Some(from()), true).await;
    says(of(&[]).await, 401, "switchbell token create");
    says(of(&[("authorization", "Basic YTpi")]).await, 401, "Bearer TOKEN");
    says(of(&[("authorization", "Bearer swb_no")]).await, 401, "not known");
    says(of(&[("cookie", "__Host-switchbell=no")]).await, 401, "not known");
}

#[tokio::test]
async fn a_session_is_no_token_and_a_token_no_session() {
    let stage = Stage::new();
    let token = stage.made(Scope::Operator).await.text;
    let session = stage.signed_in(&token).await;
    says(stage.caller(&session).await, 401, "not known");
    says(stage.browser(&token).await, 401, "not known");
    let link = stage.link(Scope::Operator).await;
    says(stage.caller(&link).await, 401, "not known");
    says(stage.browser(&link).await, 401, "not known");
    let request = with_cookie(Method::GET, &session, &[]);
    says(stage.gate.caller(&request, Some(from()), false).await, 401, "a token is needed");
}

#[tokio::test]
async fn a_session_changes_things_only_by_our_own_pages() {
    let stage = Stage::new();
    let session = stage.signed_in(&stage.made(Scope::Operator).await.text).await;
    const OURS: (&str, &str) = ("origin", "http://127.0.0.1:7420");
    const HEADER: (&str, &str) = ("switchbell-request", "1");
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS] {
        let of = async |headers: &[(&str, &str)]| {
            stage.gate.caller(&with_cookie(method.clone(), &session, headers), Some(from()), true).await
        };
        assert!(of(&[OURS, HEADER]).await.is_ok());
        says(of(&[OURS]).await, 403, "switchbell-request");
        says(of(&[OURS, ("switchbell-request", "0")]).await, 403, "switchbell-request");
        says(of(&[HEADER]).await, 403, "`Origin`");
        for foreign in
            ["null", "http://evil.example", "http://127.0.0.1:7421", "http://localhost:7420", "https://127.0.0.1:7420"]
        {
            says(of(&[("origin", foreign), HEADER]).await, 403, "`Origin`");
        }
    }
    assert!(stage.browser(&session).await.is_ok());
}

#[tokio::test]
async fn who_guesses_is_told_to_wait_and_a_good_token_passes_all_the_same() {
    let stage = Stage::new();
    let token = stage.made(Scope::Operator).await.text;
    let guess = async || stage.gate.caller(&bearer("swb_guess"), Some(from()), true).await;
    for _ in 0..FAILURES_MAX {
        says(guess().await, 401, "not known");
    }
    let limited = guess().await.unwrap_err();
    assert!(matches!(limited, Problem::TooMany(_, 60)), "{limited:?}");
    assert!(stage.caller(&token).await.is_ok());
    let other = Some("192.0.2.2:1".parse().unwrap());
    says(stage.gate.caller(&bearer("swb_guess"), other, true).await, 401, "not known");
    stage.clock.advance(FAILURES_WINDOW);
    says(guess().await, 401, "not known");
}

#[tokio::test]
async fn behind_a_proxy_each_client_has_its_own_failures() {
    let stage = Stage::new();
    stage.configure("trusted_proxies: [192.0.2.0/24]\n", &[("acme", ACME)]);
    let guess = async |client: &str| {
        let headers = [("authorization", "Bearer swb_guess"), ("x-forwarded-for", client)];
        stage.gate.caller(&request(Method::GET, &headers), Some(from()), true).await.unwrap_err().json().status
    };
    for _ in 0..FAILURES_MAX {
        assert_eq!(guess("198.51.100.1").await, 401);
    }
    assert_eq!(guess("198.51.100.1").await, 429);
    assert_eq!(guess("198.51.100.2, 198.51.100.1").await, 429, "what a client says of itself counts nothing");
    assert_eq!(guess("198.51.100.2").await, 401);
}

#[tokio::test]
async fn an_unknown_workspace_and_one_of_others_are_answered_alike() {
    let stage = Stage::new();
    stage.configure("", &[("acme", ACME), ("globex", ACME), ("broken", "members: [\n")]);
    let caller = stage.caller(&stage.made(member("admin@example.com", true)).await.text).await.unwrap();
    let of = |name: &str| {
        let problem = stage.gate.workspace(&caller, name, Right::ReadInbox).unwrap_err();
        assert_eq!(problem.json().status, 404);
        serde_json::to_string(&problem.json()).unwrap().replace(name, "NAME")
    };
    assert_eq!(of("globex"), of("nowhere"));
    assert_eq!(of("globex"), of("broken"));
    assert!(stage.gate.workspace(&caller, "acme", Right::ChangeWork).is_ok());
    let operator = Caller::local();
    assert!(["globex", "broken"].iter().all(|name| stage.gate.workspace(&operator, name, Right::Operate).is_ok()));
}

#[tokio::test]
async fn the_last_use_of_a_token_is_written_down_to_the_minute_and_not_with_each_request() {
    let stage = Stage::new();
    let token = stage.made(Scope::Operator).await;
    let stop = tokio_util::sync::CancellationToken::new();
    let tending = tokio::spawn(stage.gate.clone().tend(stop.clone()));
    for _ in 0..3 {
        stage.caller(&token.text).await.unwrap();
    }
    let used = async || stage.store.token(token.token.hash).await.unwrap().unwrap().used_at.map(|at| at.to_string());
    assert_eq!(used().await, None);
    stage.clock.advance(Duration::from_secs(20));
    stage.caller(&token.text).await.unwrap();
    stop.cancel();
    tending.await.unwrap();
    assert_eq!(used().await.as_deref(), Some("2026-11-30T12:00:00Z"));
}
