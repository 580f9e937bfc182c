//! Tokens, links and sessions.

use jiff::Timestamp;
use switchbell::inbox::{OPERATOR_TOKENS_KEPT, Scope, TOKENS_MAX, Token, TokenKind, WORKSPACE_TOKENS_MAX};

use super::stage::{HOUR, Place, Stage, at, name};

const DAY: u64 = 24 * HOUR;

fn hash(number: u32) -> [u8; 32] {
    let mut hash = [7; 32];
    hash[..4].copy_from_slice(&number.to_be_bytes());
    hash
}

fn token(kind: TokenKind, number: u32) -> Token {
    Token {
        id: 0,
        kind,
        hash: hash(number),
        label: None,
        scope: Scope::Operator,
        parent: None,
        created_at: at(0),
        expires_at: None,
        revoked_at: None,
        used_at: None,
    }
}

async fn stage(place: Place) -> Stage {
    Stage::new(place, Vec::new()).await
}

async fn add(stage: &Stage, token: Token) -> i64 {
    stage.inbox().add_token(token).await.unwrap()
}

async fn find(stage: &Stage, number: u32) -> Option<Token> {
    stage.inbox().token(hash(number)).await.unwrap()
}

async fn redeem(stage: &Stage, link: u32, session: u32, now: Timestamp) -> Option<Token> {
    stage.inbox().redeem(hash(link), token(TokenKind::Session, session), now).await.unwrap()
}

pub async fn a_token_comes_back_as_it_was(place: Place) {
    let mut stage = stage(place).await;
    let (workspace, consumer) = (name("acme"), name("triage"));
    let member = Scope::Member { workspace: workspace.clone(), member: "admin@example.com".to_owned(), is_admin: true };
    let reader = Scope::Member { workspace: workspace.clone(), member: "ops@example.com".to_owned(), is_admin: false };
    let agent = |may_read, may_ack| Scope::Agent {
        workspace: workspace.clone(),
        consumer: consumer.clone(),
        may_read,
        may_ack,
    };
    let scopes = [Scope::Operator, member, reader, agent(true, false), agent(false, true), agent(true, true)];
    let mut tokens = Vec::new();
    for (number, scope) in (1..).zip(scopes) {
        let mut token = Token {
            scope,
            label: (number % 2 == 0).then(|| "for the dashboard".to_owned()),
            expires_at: (number % 3 == 0).then(|| at(900)),
            ..token(TokenKind::Bearer, number)
        };
        token.id = add(&stage, token.clone()).await;
        tokens.push(token);
    }
    stage.reopen(at(1)).await;
    for (number, token) in (1..).zip(&tokens) {
        assert_eq!(find(&stage, number).await.as_ref(), Some(token));
    }
    assert_eq!(stage.inbox().tokens(at(2)).await.unwrap(), tokens);
    assert_eq!(find(&stage, 99).await, None);
    let twice = stage.inbox().add_token(token(TokenKind::Bearer, 1)).await;
    assert!(twice.is_err(), "a hash is kept once");
}

pub async fn what_was_made_from_a_revoked_token_is_revoked(place: Place) {
    let stage = stage(place).await;
    let root = add(&stage, token(TokenKind::Bearer, 1)).await;
    add(&stage, Token { parent: Some(root), ..token(TokenKind::Link, 2) }).await;
    let session = redeem(&stage, 2, 3, at(5)).await.unwrap();
    let below = add(&stage, Token { parent: Some(session.id), ..token(TokenKind::Link, 4) }).await;
    let other = add(&stage, token(TokenKind::Bearer, 5)).await;
    assert!(stage.inbox().revoke_token(root, at(10)).await.unwrap());
    for number in [1, 3, 4] {
        assert_eq!(find(&stage, number).await.unwrap().revoked_at, Some(at(10)), "{number}");
    }
    assert!(find(&stage, 5).await.unwrap().is_good(at(11)));
    // Whatever is made from it even later is no good.
    add(&stage, Token { parent: Some(below), ..token(TokenKind::Session, 6) }).await;
    assert!(!find(&stage, 6).await.unwrap().is_good(at(12)));
    assert!(!stage.inbox().revoke_token(root, at(20)).await.unwrap(), "it was not good");
    assert!(!stage.inbox().revoke_token(999, at(20)).await.unwrap(), "there is none");
    assert_eq!(find(&stage, 1).await.unwrap().revoked_at, Some(at(10)), "the first time counts");
    let listed: Vec<i64> = stage.inbox().tokens(at(21)).await.unwrap().iter().map(|token| token.id).collect();
    assert_eq!(listed, [root, other], "of links and sessions only those that are good");
}

pub async fn nothing_outlives_what_it_was_made_from(place: Place) {
    let stage = stage(place).await;
    let root = add(&stage, Token { expires_at: Some(at(100)), ..token(TokenKind::Bearer, 1) }).await;
    add(&stage, Token { expires_at: Some(at(50)), parent: Some(root), ..token(TokenKind::Link, 2) }).await;
    let session = redeem(&stage, 2, 3, at(5)).await.unwrap();
    add(&stage, Token { expires_at: Some(at(900)), parent: Some(session.id), ..token(TokenKind::Bearer, 4) }).await;
    add(&stage, Token { parent: Some(999), ..token(TokenKind::Bearer, 5) }).await;
    assert_eq!(session.expires_at, Some(at(100)));
    for number in [3, 4] {
        assert_eq!(find(&stage, number).await.unwrap().expires_at, Some(at(100)), "{number}");
    }
    assert!(!find(&stage, 5).await.unwrap().is_good(at(1)), "what it was made from is forgotten");
}

pub async fn a_link_is_redeemed_once(place: Place) {
    let stage = stage(place).await;
    let scope = Scope::Member { workspace: name("acme"), member: "admin@example.com".to_owned(), is_admin: true };
    let parent = add(&stage, token(TokenKind::Bearer, 1)).await;
    add(&stage, Token { scope: scope.clone(), parent: Some(parent), ..token(TokenKind::Link, 2) }).await;
    let all = futures_util::future::join_all((10..18).map(|number| redeem(&stage, 2, number, at(3)))).await;
    let got: Vec<Token> = all.into_iter().flatten().collect();
    assert_eq!(got.len(), 1, "{got:?}");
    assert_eq!((&got[0].scope, got[0].parent, got[0].kind), (&scope, Some(parent), TokenKind::Session));
    let number = u32::from_be_bytes(got[0].hash[..4].try_into().unwrap());
    assert_eq!(find(&stage, number).await.as_ref(), got.first());
    assert!(got[0].is_good(at(4)), "the session stands though its link is spent");
    assert_eq!(find(&stage, 2).await.unwrap().revoked_at, Some(at(3)));
}

pub async fn a_link_that_is_over_or_revoked_is_not_redeemed(place: Place) {
    let stage = stage(place).await;
    let parent = add(&stage, token(TokenKind::Bearer, 1)).await;
    add(&stage, Token { expires_at: Some(at(600)), ..token(TokenKind::Link, 2) }).await;
    add(&stage, Token { parent: Some(parent), ..token(TokenKind::Link, 3) }).await;
    stage.inbox().revoke_token(parent, at(1)).await.unwrap();
    assert_eq!(redeem(&stage, 2, 10, at(600)).await, None, "it is over");
    assert_eq!(redeem(&stage, 3, 11, at(2)).await, None, "what it was made from is revoked");
    assert_eq!(redeem(&stage, 1, 12, at(2)).await, None, "no link");
    assert_eq!(redeem(&stage, 99, 13, at(2)).await, None, "unknown");
    for number in 10..14 {
        assert_eq!(find(&stage, number).await, None, "nothing is kept");
    }
    assert!(redeem(&stage, 2, 14, at(599)).await.is_some());
}

pub async fn what_is_over_is_forgotten_but_for_bearer_tokens(place: Place) {
    let stage = stage(place).await;
    let used = add(&stage, token(TokenKind::Bearer, 1)).await;
    let expires_at = Some(at(100));
    for (number, kind) in [(2, TokenKind::Bearer), (3, TokenKind::Link), (4, TokenKind::Session)] {
        add(&stage, Token { expires_at, ..token(kind, number) }).await;
    }
    stage.inbox().tokens_used(vec![(used, at(100 + DAY))]).await.unwrap();
    assert!(find(&stage, 3).await.is_some(), "a day is not over");
    stage.inbox().tokens_used(vec![(used, at(101 + DAY))]).await.unwrap();
    assert!(find(&stage, 3).await.is_none() && find(&stage, 4).await.is_none());
    assert!(find(&stage, 2).await.is_some());
}

pub async fn the_last_use_is_kept(place: Place) {
    let stage = stage(place).await;
    let (one, other) = (add(&stage, token(TokenKind::Bearer, 1)).await, add(&stage, token(TokenKind::Bearer, 2)).await);
    stage.inbox().tokens_used(vec![(one, at(120)), (other, at(60)), (999, at(60))]).await.unwrap();
    stage.inbox().tokens_used(vec![(one, at(60))]).await.unwrap();
    stage.inbox().tokens_used(Vec::new()).await.unwrap();
    assert_eq!(find(&stage, 1).await.unwrap().used_at, Some(at(120)), "what comes late takes nothing back");
    assert_eq!(find(&stage, 2).await.unwrap().used_at, Some(at(60)));
}

pub async fn there_are_so_many_at_most(place: Place) {
    let stage = stage(place).await;
    let inbox = stage.inbox();
    let some = (0..TOKENS_MAX).map(|number| {
        let expires_at = (number == 7).then(|| at(100));
        inbox.add_token(Token { expires_at, ..token(TokenKind::Bearer, number) })
    });
    let added = futures_util::future::join_all(some).await;
    assert!(added.iter().all(Result::is_ok));
    let one_more = |created_at| inbox.add_token(Token { created_at, ..token(TokenKind::Bearer, TOKENS_MAX) });
    let refused = one_more(at(99)).await.unwrap_err().to_string();
    assert!(refused.contains("revoke"), "{refused}");
    assert!(one_more(at(100)).await.is_ok(), "what is over makes room");
}

pub async fn a_workspace_has_its_share_and_the_operator_what_workspaces_leave(place: Place) {
    let stage = stage(place).await;
    let inbox = stage.inbox();
    let of = |workspace: u32, number: u32| {
        let (workspace, consumer) = (name(&format!("w{workspace}")), name("triage"));
        let scope = Scope::Agent { workspace, consumer, may_read: true, may_ack: true };
        Token { scope, ..token(TokenKind::Bearer, number) }
    };
    let workspaces = (TOKENS_MAX - OPERATOR_TOKENS_KEPT) / WORKSPACE_TOKENS_MAX;
    let most = workspaces * WORKSPACE_TOKENS_MAX;
    let share = (0..WORKSPACE_TOKENS_MAX).map(|number| inbox.add_token(of(0, number)));
    assert!(futures_util::future::join_all(share).await.iter().all(Result::is_ok));
    let refused = inbox.add_token(of(0, most)).await.unwrap_err().to_string();
    assert!(refused.contains("workspace w0 has 1000"), "{refused}");
    let first = find(&stage, 0).await.unwrap().id;
    inbox.revoke_token(first, at(0)).await.unwrap();
    assert!(inbox.add_token(of(0, most)).await.is_ok(), "what is revoked makes room at once");
    let others = (WORKSPACE_TOKENS_MAX..most).map(|number| inbox.add_token(of(number / WORKSPACE_TOKENS_MAX, number)));
    assert!(futures_util::future::join_all(others).await.iter().all(Result::is_ok));
    let refused = inbox.add_token(of(workspaces, most + 1)).await.unwrap_err().to_string();
    assert!(refused.contains("there are 9000"), "{refused}");
    assert!(inbox.add_token(token(TokenKind::Bearer, most + 1)).await.is_ok(), "the operator is not locked out");
}
