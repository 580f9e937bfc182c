//! Who may make which tokens.

use super::*;
use crate::inbox::TokenKind;

fn asked(role: &str) -> NewTokenJson {
    NewTokenJson { role: role.to_owned(), ..NewTokenJson::default() }
}

fn of_acme(role: &str) -> NewTokenJson {
    NewTokenJson { workspace_id: Some("acme".to_owned()), ..asked(role) }
}

fn of_reader() -> NewTokenJson {
    NewTokenJson { member: Some("reader@example.com".to_owned()), ..of_acme("member") }
}

fn of_triage() -> NewTokenJson {
    NewTokenJson { consumer: Some("triage".to_owned()), ..of_acme("agent") }
}

#[tokio::test]
async fn nobody_makes_a_token_above_its_own() {
    let stage = Stage::new();
    stage.configure(
        "",
        &[
            ("acme", "members: { admin@example.com: admin, other@example.com: admin, reader@example.com: member }\n"),
            ("globex", ACME),
        ],
    );
    let caller = async |scope| stage.caller(&stage.made(scope).await.text).await.unwrap();
    let callers = [
        Caller::local(),
        caller(member("admin@example.com", true)).await,
        caller(member("admin@example.com", false)).await,
        caller(agent()).await,
    ];
    let own = NewTokenJson { member: Some("admin@example.com".to_owned()), ..of_acme("admin") };
    let peer = NewTokenJson { member: Some("other@example.com".to_owned()), ..of_acme("admin") };
    let elsewhere = NewTokenJson { workspace_id: Some("globex".to_owned()), ..of_reader() };
    // By the operator, an admin, a member, an agent.
    for (wanted, statuses) in [
        (asked("operator"), [201, 403, 403, 403]),
        (own, [201, 201, 403, 403]),
        (peer, [201, 403, 403, 403]),
        (of_reader(), [201, 201, 403, 403]),
        (of_triage(), [201, 201, 403, 403]),
        (NewTokenJson { link: true, ..of_reader() }, [201, 201, 403, 403]),
        (elsewhere, [201, 404, 404, 404]),
    ] {
        for (by, status) in callers.iter().zip(statuses) {
            let came = stage.gate.make_asked(by, wanted.clone()).await;
            let found = came.as_ref().map_or_else(|problem| problem.json().status, |_| 201);
            assert_eq!(found, status, "{:?} makes {wanted:?}: {came:?}", by.role);
        }
    }
}

#[tokio::test]
async fn an_admin_sees_and_revokes_the_tokens_of_its_workspace_alone() {
    let stage = Stage::new();
    let operator = stage.made(Scope::Operator).await;
    let foreign = Scope::Member {
        workspace: "globex".parse().unwrap(),
        member: "reader@example.com".to_owned(),
        is_admin: false,
    };
    let foreign = stage.made(foreign).await;
    let triage = stage.made(agent()).await;
    let admin = stage.made(member("admin@example.com", true)).await;
    let by = stage.caller(&admin.text).await.unwrap();
    let seen: Vec<i64> = stage.gate.list(&by).await.unwrap().iter().map(|token| token.id).collect();
    assert_eq!(seen, [triage.token.id, admin.token.id]);
    for hidden in [operator.token.id, foreign.token.id, 4_711] {
        let problem = stage.gate.revoke(&by, hidden).await.unwrap_err();
        assert_eq!(problem, Problem::Unknown(problem.to_string()));
        assert!(problem.to_string().starts_with(&format!("there is no token {hidden} ")), "{problem}");
    }
    stage.gate.revoke(&by, triage.token.id).await.unwrap();
    says(stage.caller(&triage.text).await, 401, "was revoked");
    assert!(stage.caller(&operator.text).await.is_ok() && stage.caller(&foreign.text).await.is_ok());
    for scope in [member("reader@example.com", false), agent()] {
        let by = stage.caller(&stage.made(scope).await.text).await.unwrap();
        assert_eq!(stage.gate.list(&by).await.unwrap_err().json().status, 403);
    }
}

#[tokio::test]
async fn a_token_that_makes_no_sense_is_refused_by_name() {
    let stage = Stage::new();
    let check = async |wanted: NewTokenJson, says: &str| {
        let problem = stage.gate.make_asked(&Caller::local(), wanted.clone()).await.unwrap_err();
        assert!(problem.to_string().contains(says), "{wanted:?}: {problem}");
    };
    check(asked("root"), "role: \"root\" is none").await;
    check(asked("admin"), "name it").await;
    check(NewTokenJson { workspace_id: Some("acme".to_owned()), ..asked("operator") }, "workspace: the role").await;
    check(NewTokenJson { workspace_id: Some("nowhere".to_owned()), ..of_triage() }, "no workspace \"nowhere\"").await;
    check(of_acme("member"), "has 2 members with this role").await;
    check(NewTokenJson { member: Some("reader@example.com".to_owned()), ..of_acme("admin") }, "is no admin").await;
    check(NewTokenJson { member: Some("nobody@example.com".to_owned()), ..of_acme("member") }, "is no member").await;
    check(of_acme("agent"), "consumer").await;
    check(NewTokenJson { consumer: Some("No Name".to_owned()), ..of_acme("agent") }, "consumer: \"No Name\"").await;
    check(NewTokenJson { scopes: Some(vec!["write".to_owned()]), ..of_triage() }, "scopes: \"write\"").await;
    check(NewTokenJson { scopes: Some(Vec::new()), ..of_triage() }, "name read, ack or both").await;
    check(NewTokenJson { scopes: Some(Vec::new()), ..asked("operator") }, "scopes: the role").await;
    check(NewTokenJson { link: true, ..of_triage() }, "agents have none").await;
    check(NewTokenJson { expires_in: Some("soon".to_owned()), ..asked("operator") }, "how long it is good").await;
    check(NewTokenJson { expires_in: Some("1s".to_owned()), ..asked("operator") }, "1m to 3650d").await;
    check(NewTokenJson { expires_in: Some("4000d".to_owned()), ..asked("operator") }, "1m to 3650d").await;
    check(NewTokenJson { expires_in: Some("1h".to_owned()), link: true, ..asked("operator") }, "after ten minutes")
        .await;
    check(NewTokenJson { label: Some("x".repeat(101)), ..asked("operator") }, "at most 100 characters").await;
    check(NewTokenJson { label: Some("a\nb".to_owned()), ..asked("operator") }, "one line").await;
    stage.configure("", &[("acme", "members: [\n"), ("globex", ACME)]);
    check(of_acme("admin"), "has mistakes").await;
    assert!(stage.gate.list(&Caller::local()).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_only_member_that_fits_need_not_be_named() {
    let stage = Stage::new();
    let made = stage.gate.make_asked(&Caller::local(), of_acme("admin")).await.unwrap();
    assert_eq!((made.made.member.as_deref(), made.made.role.as_str()), (Some("admin@example.com"), "admin"));
    assert!(made.link.is_none() && made.token.unwrap().starts_with("swb_"));
}

#[tokio::test]
async fn a_token_is_kept_by_its_hash_alone() {
    let stage = Stage::new();
    let wanted = NewTokenJson {
        label: Some("for the dashboard".to_owned()),
        expires_in: Some("90d".to_owned()),
        scopes: Some(vec!["read".to_owned()]),
        ..of_triage()
    };
    let made = stage.gate.make_asked(&Caller::local(), wanted).await.unwrap();
    let text = made.token.unwrap();
    let listed = stage.gate.list(&Caller::local()).await.unwrap();
    let json = serde_json::to_value(listed.into_iter().map(TokenJson::from).collect::<Vec<_>>()).unwrap();
    assert_eq!(
        json,
        serde_json::json!([{
            "id": 1, "kind": "bearer", "role": "agent", "workspaceId": "acme", "member": null, "consumer": "triage",
            "scopes": ["read"], "label": "for the dashboard", "parent": null, "createdAt": "2026-11-30T12:00:30Z",
            "expiresAt": "2027-02-28T12:00:30Z", "revokedAt": null, "usedAt": null,
        }])
    );
    let (store, body) = (std::fs::read(stage.folder.path().join("store.db")).unwrap(), &text.as_bytes()[4..20]);
    let log = std::fs::read(stage.folder.path().join("store.db-wal")).unwrap_or_default();
    assert!(![store, log].iter().any(|bytes| bytes.windows(body.len()).any(|window| window == body)));
    assert_eq!(stage.store.tokens(stage.now()).await.unwrap()[0].kind, TokenKind::Bearer);
}

#[tokio::test]
async fn what_a_token_makes_is_revoked_with_it_and_never_outlives_it() {
    let stage = Stage::new();
    let hour = Duration::from_secs(3_600);
    let root = stage.made_for(Scope::Operator, Some(hour)).await;
    assert_eq!(root.token.parent, None, "made on the server's machine");
    let by = stage.caller(&root.text).await.unwrap();
    let makes = async |by: &Caller, scope, life| {
        stage.gate.make(by, Wanted { scope, is_link: false, label: None, life }).await.unwrap()
    };
    let endless = makes(&by, Scope::Operator, None).await;
    let longer = makes(&by, agent(), Some(2 * hour)).await;
    let shorter = makes(&by, agent(), Some(hour / 2)).await;
    let below = makes(&stage.caller(&endless.text).await.unwrap(), agent(), None).await;
    assert_eq!(endless.token.parent, Some(root.token.id));
    assert_eq!(below.token.parent, Some(endless.token.id));
    for made in [&endless, &longer, &below] {
        assert_eq!(made.token.expires_at, root.token.expires_at);
        let kept = stage.store.token(made.token.hash).await.unwrap().unwrap();
        assert_eq!(kept.expires_at, root.token.expires_at);
    }
    assert!(shorter.token.expires_at < root.token.expires_at);
    let other = stage.made(agent()).await;
    let revoked = stage.gate.revoke(&Caller::local(), root.token.id).await.unwrap();
    assert_eq!(revoked.made_from_it, 4);
    for made in [&root, &endless, &longer, &shorter, &below] {
        says(stage.caller(&made.text).await, 401, "was revoked");
    }
    assert!(stage.caller(&other.text).await.is_ok());
}
