//! Signing in by OAuth, against a real authorization server and the MCP server behind it, over real sockets.

mod secrets;
mod stage;

use std::fs;
use std::time::Duration;

use serde_json::Value;
use switchbell::config::{HostPattern, OAuthGrant, SecretValue};
use switchbell::fetch::mcp::oauth::login::{Login, LoginError};
use switchbell::fetch::outbox::{Outbox, ReadError};

use crate::support::{refuse, sign_in};
use stage::{BACK, LIFE, RESOURCE, Stage, assert_reauthorize, oauth};

#[tokio::test]
async fn a_person_signs_in_once_and_the_token_is_renewed_ahead_of_its_end() {
    let stage = Stage::for_a_person().await;
    let tokens = stage.tokens();
    assert_reauthorize(tokens.token().await, "nobody has signed in yet");
    let granted = stage.log_in().await;
    assert_eq!(granted.by, stage.servers.issuer);
    assert!(granted.is_renewable && granted.scopes.contains(&"outbox:read".to_owned()), "{granted:?}");

    let first = tokens.token().await.unwrap();
    assert_eq!(stage.servers.status_with(&first).await, 200);
    let refresh_token = stage.kept("refresh_token");
    stage.clock.advance(LIFE - Duration::from_secs(61));
    assert_eq!(tokens.token().await.unwrap(), first);
    assert_eq!(stage.servers.given("refresh_token").await, 0);

    stage.clock.advance(Duration::from_secs(1));
    let second = tokens.token().await.unwrap();
    assert_ne!(second, first);
    assert_eq!(stage.servers.status_with(&second).await, 200);
    assert_eq!(stage.kept("access_token"), second.as_str());
    assert_ne!(stage.kept("refresh_token"), refresh_token);
    assert_eq!(stage.servers.given("refresh_token").await, 1);

    stage.log_in().await;
    let newest = tokens.token().await.unwrap();
    assert_ne!(newest, second, "a login counts from now on");
    assert_eq!(stage.kept("access_token"), newest.as_str());
}

#[tokio::test]
async fn whoever_reads_at_once_makes_one_renewal_here_and_elsewhere() {
    let stage = Stage::for_a_person().await;
    stage.log_in().await;
    stage.clock.advance(LIFE);
    let (here, elsewhere) = (stage.tokens(), stage.tokens());
    let (a, b, c, d) = tokio::join!(here.token(), elsewhere.token(), here.token(), elsewhere.token());
    let token = a.unwrap();
    assert_eq!([b, c, d].map(Result::unwrap), [&token; 3].map(String::clone));
    assert_eq!(stage.servers.status_with(&token).await, 200);
    let grants = stage.servers.grants().await;
    assert_eq!(grants.iter().filter(|(grant, _)| grant == "refresh_token").count(), 1, "{grants:?}");
}

#[tokio::test]
async fn a_request_that_is_given_up_does_not_give_up_the_renewal() {
    let stage = Stage::for_a_person().await;
    stage.log_in().await;
    stage.clock.advance(LIFE);
    let tokens = stage.tokens();
    let given_up = tokio::time::timeout(Duration::ZERO, tokens.token()).await;
    assert!(given_up.is_err());
    let token = tokens.token().await.unwrap();
    assert_eq!(stage.servers.status_with(&token).await, 200);
    assert_eq!(stage.servers.grants().await.len(), 2);
}

#[tokio::test]
async fn a_sign_in_that_was_ended_asks_for_a_person_until_one_came() {
    let stage = Stage::for_a_person().await;
    stage.log_in().await;
    let tokens = stage.tokens();
    tokens.token().await.unwrap();
    stage.revoke("refresh_token").await;
    stage.clock.advance(LIFE);
    let why = format!("{} has ended the sign-in", stage.servers.issuer);
    assert_reauthorize(tokens.token().await, &why);
    let asked = stage.servers.grants().await.len();
    assert_reauthorize(tokens.token().await, &why);
    assert_eq!(stage.servers.grants().await.len(), asked, "what is over is not tried again");
    assert!(stage.path().exists(), "nothing is deleted");

    stage.log_in().await;
    let token = tokens.token().await.unwrap();
    assert_eq!(stage.servers.status_with(&token).await, 200);
}

#[tokio::test]
async fn a_token_that_the_server_refuses_is_renewed() {
    let stage = Stage::for_a_person().await;
    stage.log_in().await;
    let tokens = stage.tokens();
    let first = tokens.token().await.unwrap();
    stage.revoke("access_token").await;
    assert_eq!(stage.servers.status_with(&first).await, 401);
    tokens.refused(&first);
    let second = tokens.token().await.unwrap();
    assert_eq!(stage.servers.status_with(&second).await, 200);
    tokens.refused(&first);
    assert_eq!(tokens.token().await.unwrap(), second, "a late refusal of the old one changes nothing");
    assert_eq!(stage.servers.given("refresh_token").await, 1);
}

#[tokio::test]
async fn an_authorization_server_that_is_down_is_a_failed_read() {
    let stage = Stage::for_a_person().await;
    stage.log_in().await;
    let tokens = stage.tokens();
    let first = tokens.token().await.unwrap();
    let before = fs::read(stage.path()).unwrap();
    stage.servers.turn("down").await;
    stage.clock.advance(LIFE - Duration::from_secs(30));
    assert_eq!(tokens.token().await, Ok(first), "the old token is good for half a minute more");
    stage.clock.advance(Duration::from_secs(30));
    match tokens.token().await {
        Err(ReadError::NoToken(why)) => assert!(why.contains("cannot be reached for signing in"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read(stage.path()).unwrap(), before);
    stage.servers.turn("up").await;
    let token = tokens.token().await.unwrap();
    assert_eq!(stage.servers.status_with(&token).await, 200);
}

#[tokio::test]
async fn client_credentials_are_fetched_kept_and_renewed() {
    let stage = Stage::for_a_robot().await;
    let tokens = stage.tokens();
    let first = tokens.token().await.unwrap();
    assert_eq!(stage.servers.status_with(&first).await, 200);
    assert_eq!(tokens.token().await.unwrap(), first);
    stage.clock.advance(LIFE - Duration::from_secs(60));
    let second = tokens.token().await.unwrap();
    assert_ne!(second, first);
    tokens.refused(&second);
    let third = tokens.token().await.unwrap();
    assert_eq!(stage.servers.status_with(&third).await, 200);
    assert_eq!(stage.servers.given("client_credentials").await, 3);
    assert!(!stage.path().exists(), "they stay in memory");
}

#[tokio::test]
async fn a_client_secret_goes_where_the_operator_lets_it_and_is_never_told() {
    let mut stage = Stage::for_a_robot().await;
    let secret = stage.secrets.values_mut().next().unwrap();
    secret.hosts = vec![HostPattern::Exact("login.example.com".to_owned())];
    match stage.tokens().token().await {
        Err(ReadError::NoToken(why)) => assert!(why.contains("may not be sent to 127.0.0.1"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(stage.servers.grants().await, []);
    let secret = stage.secrets.values_mut().next().unwrap();
    (secret.hosts, secret.value) = (Vec::new(), SecretValue::Fixed("another-secret-of-the-robot".to_owned()));
    let (tokens, login) = (stage.tokens(), Login::begin(stage.account(), BACK).await);
    let refused = tokens.token().await.unwrap_err();
    assert!(refused.to_string().contains("invalid_client"), "{refused}");
    assert!(!format!("{refused} {refused:?} {tokens:?}").contains("another-secret"));
    assert!(matches!(login, Err(LoginError::Failed(_))), "there is no person to log in");
}

#[tokio::test]
async fn a_client_that_the_configuration_names_keeps_its_secret_there() {
    let auth = oauth(OAuthGrant::AuthorizationCode, Some("known"));
    let mut stage = Stage::start(auth, "the-secret-of-the-known-client").await;
    stage.log_in().await;
    assert_eq!((stage.kept("client_id"), stage.kept("client_secret")), ("known".into(), Value::Null));
    let tokens = stage.tokens();
    stage.clock.advance(LIFE);
    let token = tokens.token().await.unwrap();
    assert_eq!(stage.servers.status_with(&token).await, 200);
    stage.auth().client_id = None;
    let why = "the sign-in was made with another client than auth.oauth names now";
    assert_reauthorize(stage.tokens().token().await, why);
}

#[tokio::test]
async fn a_credential_of_elsewhere_is_not_used() {
    let stage = Stage::for_a_person().await;
    stage.log_in().await;
    let other = Stage::for_a_person().await;
    fs::create_dir_all(other.path().parent().unwrap()).unwrap();
    let text = fs::read_to_string(stage.path()).unwrap();
    fs::write(other.path(), &text).unwrap();
    assert_reauthorize(other.tokens().token().await, "the sign-in was for another url of this connector");
    // The connector's server leads elsewhere than it did: the refresh token is not for whoever stands there now.
    fs::write(other.path(), text.replace(&stage.servers.mcp, &other.servers.mcp)).unwrap();
    other.clock.advance(LIFE);
    let why = format!("names {} now, where nobody has signed in", other.servers.issuer);
    assert_reauthorize(other.tokens().token().await, &why);
    assert_eq!(other.servers.grants().await, []);
    fs::write(other.path(), "s3cret").unwrap();
    assert_reauthorize(other.tokens().token().await, "it is not a credential");
}

#[tokio::test]
async fn only_the_answer_to_this_sign_in_is_taken_and_a_refusal_is_one() {
    let stage = Stage::for_a_person().await;
    let login = Login::begin(stage.account(), BACK).await.unwrap();
    let came_back = sign_in(login.address(), BACK).await;
    let issuer = url::form_urlencoded::byte_serialize(stage.servers.issuer.as_bytes()).collect::<String>();
    for stranger in [
        BACK.to_owned(),
        "what is no URL".to_owned(),
        came_back.replace("state=", "state=x"),
        came_back.replace(&issuer, "https%3A%2F%2Flogin.example.com"),
        format!("{BACK}?error=access_denied&state=x"),
    ] {
        assert_eq!(login.finish(&stranger).await, Err(LoginError::NotOurs), "{stranger}");
    }
    assert!(login.finish(&came_back).await.is_ok());

    let login = Login::begin(stage.account(), BACK).await.unwrap();
    match login.finish(&refuse(login.address(), BACK).await).await {
        Err(LoginError::Refused(why)) => assert!(why.contains("did not grant it (access_denied)"), "{why}"),
        other => panic!("{other:?}"),
    }
    let login = Login::begin(stage.account(), BACK).await.unwrap();
    let forged = sign_in(login.address(), BACK).await.replace("code=", "code=x");
    assert!(matches!(login.finish(&forged).await, Err(LoginError::Refused(_))));
}

#[tokio::test]
async fn a_running_outbox_is_read_with_the_token_and_heals_by_a_login() {
    let stage = Stage::for_a_person().await;
    let mut outbox = stage.outbox();
    assert_reauthorize(outbox.read(RESOURCE).await, "nobody has signed in yet");
    stage.log_in().await;
    assert!(outbox.read(RESOURCE).await.unwrap().contains("\"events\":[]"));

    // A token that ends before its time costs one request more.
    stage.revoke("access_token").await;
    assert!(outbox.read(RESOURCE).await.is_ok());
    assert_eq!(stage.servers.given("refresh_token").await, 1);

    stage.revoke("refresh_token").await;
    let why = format!("{} has ended the sign-in", stage.servers.issuer);
    assert_reauthorize(outbox.read(RESOURCE).await, &why);
    stage.log_in().await;
    assert!(outbox.read(RESOURCE).await.is_ok());
    outbox.close().await;
}

#[tokio::test]
async fn a_token_that_does_not_do_is_told_apart_from_none() {
    let mut stage = Stage::for_a_robot().await;
    let mut outbox = stage.outbox();
    assert!(outbox.read(RESOURCE).await.is_ok());
    stage.servers.turn("down").await;
    stage.clock.advance(LIFE);
    match outbox.read(RESOURCE).await {
        Err(ReadError::NoToken(why)) => assert!(why.contains("cannot be reached for signing in"), "{why}"),
        other => panic!("{other:?}"),
    }
    stage.servers.turn("up").await;
    assert!(outbox.read(RESOURCE).await.is_ok());
    outbox.close().await;

    // Tokens are had, but the MCP server takes none.
    stage.servers.turn("deaf").await;
    let mut outbox = stage.outbox();
    assert_eq!(outbox.read(RESOURCE).await, Err(ReadError::Http { status: 401, retry_after: None }));
    stage.auth().grant = OAuthGrant::AuthorizationCode;
    (stage.auth().client_id, stage.auth().client_secret) = (None, None);
    stage.log_in().await;
    let mut outbox = stage.outbox();
    assert_reauthorize(outbox.read(RESOURCE).await, "the server refuses the token of this sign-in");
    assert_eq!(stage.servers.given("refresh_token").await, 1, "it was renewed once before");
}

#[tokio::test]
async fn a_renewal_that_cannot_be_written_is_not_used_and_not_lost() {
    let stage = Stage::for_a_person().await;
    stage.log_in().await;
    let before = fs::read(stage.path()).unwrap();
    let tokens = stage.tokens();
    stage.clock.advance(LIFE);
    let in_the_way = stage.path().with_extension("json.new");
    fs::create_dir(&in_the_way).unwrap();
    for _ in 0..2 {
        match tokens.token().await {
            Err(ReadError::NoToken(why)) => assert!(why.contains("cannot be written"), "{why}"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(fs::read(stage.path()).unwrap(), before);
    fs::remove_dir(in_the_way).unwrap();
    let token = tokens.token().await.unwrap();
    assert_eq!((stage.servers.status_with(&token).await, stage.kept("access_token")), (200, token.into()));
    assert_eq!(stage.servers.given("refresh_token").await, 1, "the old refresh token was not used twice");
}
