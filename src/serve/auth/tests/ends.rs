//! When a token is good no more.

use std::pin::pin;

use futures_util::FutureExt;

use super::*;

#[tokio::test]
async fn a_revoked_token_is_refused_at_once_with_every_session_begun_with_it() {
    let stage = Stage::new();
    let (kept, gone) = (stage.made(Scope::Operator).await, stage.made(Scope::Operator).await);
    let (kept_session, gone_session) = (stage.signed_in(&kept.text).await, stage.signed_in(&gone.text).await);
    assert_eq!(stage.gate.revoke(&Caller::local(), gone.token.id).await.unwrap().made_from_it, 1);
    says(stage.caller(&gone.text).await, 401, "was revoked");
    says(stage.browser(&gone_session).await, 401, "was revoked");
    assert!(stage.caller(&kept.text).await.is_ok() && stage.browser(&kept_session).await.is_ok());
    // Again changes nothing.
    let again = stage.gate.revoke(&Caller::local(), gone.token.id).await.unwrap();
    assert_eq!((again.token.revoked_at, again.made_from_it), (Some(stage.now()), 0));
    assert!(stage.gate.revoke(&Caller::local(), 4_711).await.unwrap_err().to_string().contains("no token 4711"));
}

#[tokio::test]
async fn a_token_ends_by_itself_and_its_sessions_with_it() {
    let stage = Stage::new();
    let hour = Duration::from_secs(3_600);
    let token = stage.made_for(Scope::Operator, Some(hour)).await.text;
    let session = stage.signed_in(&token).await;
    stage.clock.advance(hour - Duration::from_secs(1));
    assert!(stage.caller(&token).await.is_ok() && stage.browser(&session).await.is_ok());
    stage.clock.advance(Duration::from_secs(1));
    says(stage.caller(&token).await, 401, "is over");
    says(stage.browser(&session).await, 401, "is over");
}

#[tokio::test]
async fn a_session_lasts_thirty_days() {
    let stage = Stage::new();
    let session = stage.signed_in(&stage.made(Scope::Operator).await.text).await;
    stage.clock.advance(SESSION - Duration::from_secs(1));
    assert!(stage.browser(&session).await.is_ok());
    stage.clock.advance(Duration::from_secs(1));
    says(stage.browser(&session).await, 401, "is over");
}

/// A caller's end comes by what `happens`, and by nothing before.
async fn ends_by(stage: &Stage, text: &TokenText, happens: impl AsyncFnOnce()) {
    let caller = stage.caller(text).await.unwrap();
    let mut ended = pin!(stage.gate.ended(&caller));
    // Another token, and a configuration that is the same.
    let other = stage.made(Scope::Operator).await;
    tokio::select! {
        biased;
        () = &mut ended => panic!("it ended before anything happened"),
        () = async {
            stage.gate.revoke(&Caller::local(), other.token.id).await.unwrap();
            stage.configure("", &[("acme", ACME)]);
            stage.caller(text).await.unwrap();
        } => {}
    }
    assert!(ended.as_mut().now_or_never().is_none());
    happens().await;
    tokio::time::timeout(Duration::from_secs(60), ended).await.unwrap();
}

#[tokio::test]
async fn who_reads_for_long_is_told_when_its_token_is_revoked() {
    let stage = Stage::new();
    let made = stage.made(Scope::Operator).await;
    ends_by(&stage, &made.text, async || drop(stage.gate.revoke(&Caller::local(), made.token.id).await.unwrap())).await;
}

#[tokio::test]
async fn who_reads_for_long_is_told_when_its_token_is_over() {
    let stage = Stage::new();
    let hour = Duration::from_secs(3_600);
    let made = stage.made_for(Scope::Operator, Some(hour)).await;
    ends_by(&stage, &made.text, async || stage.clock.advance(hour)).await;
}

#[tokio::test]
async fn who_reads_for_long_is_told_when_its_member_is_gone_or_is_another() {
    for (name, after) in [
        ("admin@example.com", "members: { other@example.com: admin }\n"),
        ("admin@example.com", "members: { admin@example.com: member }\n"),
    ] {
        let stage = Stage::new();
        let made = stage.made(member(name, true)).await;
        ends_by(&stage, &made.text, async || stage.configure("", &[("acme", after)])).await;
    }
}

#[tokio::test]
async fn who_signs_out_has_no_session_any_more() {
    let stage = Stage::new();
    let token = stage.made(Scope::Operator).await.text;
    let (left, kept) = (stage.signed_in(&token).await, stage.signed_in(&token).await);
    stage.gate.sign_out(left.as_str()).await.unwrap();
    says(stage.browser(&left).await, 401, "was revoked");
    assert!(stage.browser(&kept).await.is_ok() && stage.caller(&token).await.is_ok());
    for unknown in ["", "no", token.as_str()] {
        stage.gate.sign_out(unknown).await.unwrap();
    }
    assert!(stage.caller(&token).await.is_ok(), "only a session is signed out");
}

#[tokio::test]
async fn who_was_let_in_is_judged_again_once_its_request_has_come() {
    let stage = Stage::new();
    let hour = Duration::from_secs(3_600);
    let (kept, revoked) = (stage.made(Scope::Operator).await, stage.made(Scope::Operator).await);
    let over = stage.made_for(Scope::Operator, Some(hour)).await;
    let admin = stage.made(member("admin@example.com", true)).await;
    let reader = stage.made(member("reader@example.com", false)).await;
    let mut callers = Vec::new();
    for made in [&kept, &revoked, &over, &admin, &reader] {
        callers.push(stage.caller(&made.text).await.unwrap());
    }
    let judged = async || {
        let mut statuses = Vec::new();
        for caller in &callers {
            statuses.push(stage.gate.still(caller).await.map_or_else(|problem| problem.json().status, |()| 200));
        }
        statuses
    };
    assert_eq!(judged().await, [200; 5]);
    stage.gate.revoke(&Caller::local(), revoked.token.id).await.unwrap();
    stage.configure("", &[("acme", "members: { admin@example.com: member }\n")]);
    stage.clock.advance(hour);
    assert_eq!(judged().await, [200, 401, 401, 403, 401]);
    assert!(stage.gate.still(&Caller::local()).await.is_ok());
}
