//! Browsers that sign in.

use super::*;
use crate::inbox::TokenKind;

async fn with_link(stage: &Stage, link: &TokenText) -> Result<TokenText, Problem> {
    stage.gate.sign_in(Presented::Link(link.as_str()), Some(from().ip())).await
}

#[tokio::test]
async fn of_two_who_spend_a_link_at_once_one_is_signed_in() {
    let stage = Stage::new();
    for _ in 0..10 {
        let link = stage.link(member("admin@example.com", true)).await;
        let (one, other) = tokio::join!(with_link(&stage, &link), with_link(&stage, &link));
        let (session, refused) = match (one, other) {
            (Ok(session), Err(refused)) | (Err(refused), Ok(session)) => (session, refused),
            both => panic!("{both:?}"),
        };
        assert!(refused.json().status == 401 && refused.to_string().contains("used before"), "{refused}");
        assert_eq!(stage.browser(&session).await.unwrap().role, Role::Admin);
        assert!(with_link(&stage, &link).await.is_err());
    }
}

#[tokio::test]
async fn a_link_works_for_ten_minutes() {
    let stage = Stage::new();
    let (used, over) = (stage.link(Scope::Operator).await, stage.link(Scope::Operator).await);
    stage.clock.advance(LINK - Duration::from_secs(1));
    assert!(with_link(&stage, &used).await.is_ok());
    stage.clock.advance(Duration::from_secs(1));
    let refused = with_link(&stage, &over).await.unwrap_err();
    assert!(refused.to_string().contains("link is over"), "{refused}");
}

#[tokio::test]
async fn a_session_of_a_link_ends_with_the_token_that_the_link_was_made_by() {
    let stage = Stage::new();
    let admin = stage.made(member("admin@example.com", true)).await;
    let caller = stage.caller(&admin.text).await.unwrap();
    let wanted = Wanted { scope: member("reader@example.com", false), is_link: true, label: None, life: None };
    let link = stage.gate.make(&caller, wanted).await.unwrap().text;
    let session = with_link(&stage, &link).await.unwrap();
    assert!(stage.browser(&session).await.is_ok());
    stage.gate.revoke(&Caller::local(), admin.token.id).await.unwrap();
    says(stage.browser(&session).await, 401, "was revoked");
}

#[tokio::test]
async fn an_agents_token_signs_no_browser_in() {
    let stage = Stage::new();
    let token = stage.made(agent()).await.text;
    let refused = stage.gate.sign_in(Presented::Token(token.as_str()), None).await.unwrap_err();
    assert_eq!(refused.json().status, 403);
}

#[tokio::test]
async fn a_token_has_so_many_sessions_and_the_oldest_ends_for_a_new_one() {
    let stage = Stage::new();
    let token = stage.made(Scope::Operator).await;
    let oldest = stage.signed_in(&token.text).await;
    let second = stage.signed_in(&token.text).await;
    for _ in 2..SESSIONS_MAX {
        stage.signed_in(&token.text).await;
    }
    assert!(stage.browser(&oldest).await.is_ok());
    stage.signed_in(&token.text).await;
    says(stage.browser(&oldest).await, 401, "was revoked");
    assert!(stage.browser(&second).await.is_ok());
    let sessions = stage.gate.list(&Caller::local()).await.unwrap();
    assert_eq!(sessions.iter().filter(|token| token.kind == TokenKind::Session).count(), SESSIONS_MAX as usize);
}

#[tokio::test]
async fn the_first_link_is_made_as_long_as_nobody_could_sign_in() {
    let stage = Stage::new();
    let first = stage.gate.first_link().await.unwrap().unwrap();
    assert!(first.starts_with("http://127.0.0.1:7420/sign-in#link=swl_"), "{first}");
    // One that nobody used is no reason to be locked out.
    let again = stage.gate.first_link().await.unwrap().unwrap();
    let (_, link) = again.split_once("#link=").unwrap();
    let session = stage.gate.sign_in(Presented::Link(link), None).await.unwrap();
    assert_eq!(stage.browser(&session).await.unwrap().role, Role::Operator);
    assert_eq!(stage.gate.first_link().await.unwrap(), None);
}

#[tokio::test]
async fn a_link_leads_to_the_public_url() {
    let stage = Stage::new();
    stage.configure("public_url: https://bell.example.com\n", &[("acme", ACME)]);
    let link = stage.gate.operator_link().await.unwrap().unwrap();
    assert!(link.starts_with("https://bell.example.com/sign-in#link=swl_"), "{link}");
}

#[tokio::test]
async fn a_session_of_a_link_is_over_with_the_token_that_the_link_was_made_by() {
    let stage = Stage::new();
    let minute = Duration::from_secs(60);
    let operator = stage.made_for(Scope::Operator, Some(minute)).await;
    let caller = stage.caller(&operator.text).await.unwrap();
    let wanted = Wanted { scope: Scope::Operator, is_link: true, label: None, life: None };
    let made = stage.gate.make(&caller, wanted.clone()).await.unwrap();
    assert_eq!(made.token.expires_at, operator.token.expires_at, "the link is over with it, too");
    let session = with_link(&stage, &made.text).await.unwrap();
    // What the session makes is no better.
    let by_session = stage.browser(&session).await.unwrap();
    let below = stage.gate.make(&by_session, Wanted { is_link: false, ..wanted }).await.unwrap();
    assert!(stage.browser(&session).await.is_ok() && stage.caller(&below.text).await.is_ok());
    stage.clock.advance(minute);
    says(stage.caller(&operator.text).await, 401, "is over");
    says(stage.browser(&session).await, 401, "is over");
    says(stage.caller(&below.text).await, 401, "is over");
}

#[tokio::test]
async fn who_signs_in_many_times_at_once_has_no_more_sessions_than_one_by_one() {
    let stage = Stage::new();
    let admin = stage.made(member("admin@example.com", true)).await;
    let caller = stage.caller(&admin.text).await.unwrap();
    let wanted = Wanted { scope: member("reader@example.com", false), is_link: true, label: None, life: None };
    let other = stage.gate.make(&caller, wanted).await.unwrap().text;
    let other = with_link(&stage, &other).await.unwrap();
    let many = (0..2 * SESSIONS_MAX).map(|_| stage.signed_in(&admin.text));
    futures_util::future::join_all(many).await;
    let tokens = stage.gate.list(&Caller::local()).await.unwrap();
    let is_its = |token: &&crate::inbox::Token| token.kind == TokenKind::Session && token.scope == admin.token.scope;
    assert_eq!(tokens.iter().filter(is_its).count(), SESSIONS_MAX as usize);
    assert!(stage.browser(&other).await.is_ok(), "another member's session hangs on the same token");
}
