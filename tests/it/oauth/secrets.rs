//! Secrets that are access tokens: the program fetches them from real authorization servers for requests of plugins.

use serde_json::json;
use switchbell::config::OAuthGrant;

use super::stage::{Stage as SignIn, oauth};
use crate::support::{Arrived, Authorization, Posting, Server};

/// The program, whose one route posts with a token in the header, for each of these secrets.
struct Stage(Posting);

impl Stage {
    /// `secrets` are names and `oauth:` sections.
    async fn new(secrets: &[(&str, String)]) -> Self {
        let secret = |(name, oauth): &(&str, String)| {
            let rest = "in: \"header:Authorization:Bearer\", hosts: [127.0.0.1], workspaces: [acme]";
            format!("  {name}: {{ oauth: {{ {oauth} }}, {rest} }}\n")
        };
        let target = |(name, _): &(&str, String)| {
            let headers = format!("{{ Authorization: {{ secret: {name} }} }}");
            format!("{{ plugin: webhook, with: {{ url: \"AT/{name}\", format: standard, headers: {headers} }} }}")
        };
        let targets: Vec<String> = secrets.iter().map(target).collect();
        Self(Posting::new(&["webhook"], &secrets.iter().map(secret).collect::<String>(), &targets).await)
    }

    fn add(&self) {
        self.0.add(&["--title", "a title"]);
    }

    /// The token of the next request.
    async fn token(&mut self) -> String {
        token(&self.0.endpoint.next().await)
    }

    /// The newest delivery once it is no longer under way: its state, and how many attempts it took.
    fn came_to(&self, server: &mut Server, said: &str) -> (String, usize) {
        server.wait_for(said);
        let delivery = &self.0.world.json(&self.0.sink, &["deliveries", "list"])[0];
        (delivery["state"].as_str().unwrap().to_owned(), delivery["attempts"].as_array().unwrap().len())
    }
}

fn token(arrived: &Arrived) -> String {
    arrived.headers["authorization"].strip_prefix("Bearer ").unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_credentials_are_fetched_once_and_once_more_after_a_refusal() {
    let servers = Authorization::start().await;
    let oauth = format!(
        "token_url: \"{}/token\", grant: client_credentials, client_id: robot, client_secret: {{ file: robot }}, \
         scopes: [\"outbox:read\"]",
        servers.issuer
    );
    let mut stage = Stage::new(&[("crm", oauth)]).await;
    stage.0.world.write("robot", "the-secret-of-the-robot\n");
    let mut server = stage.0.begin();
    stage.add();
    let first = stage.token().await;
    assert_eq!(servers.status_with(&first).await, 200, "the token is the server's own");
    assert_eq!(stage.came_to(&mut server, "INFO delivered"), ("delivered".to_owned(), 1));
    stage.add();
    assert_eq!(stage.token().await, first, "it is kept");
    stage.came_to(&mut server, "INFO delivered");
    assert_eq!(servers.given("client_credentials").await, 1);

    // A refusal drops the token, and the request is made once more with a new one, in the same attempt.
    stage.0.endpoint.refuse_next([401]);
    stage.add();
    let (refused, second) = (stage.token().await, stage.token().await);
    assert_eq!(refused, first);
    assert_ne!(second, first);
    assert_eq!(servers.status_with(&second).await, 200);
    assert_eq!(stage.came_to(&mut server, "INFO delivered"), ("delivered".to_owned(), 1));
    assert_eq!(servers.given("client_credentials").await, 2);

    // A second refusal in a row is for a person to mend.
    stage.0.endpoint.refuse_next([401, 401]);
    stage.add();
    let (refused, third) = (stage.token().await, stage.token().await);
    assert_eq!(refused, second);
    assert_ne!(third, second);
    assert_eq!(stage.came_to(&mut server, "not delivered"), ("blocked".to_owned(), 1));
    assert_eq!((servers.given("client_credentials").await, stage.0.endpoint.left()), (3, 0));
    let said = server.said();
    for told in [&first, &second, &third, "the-secret-of-the-robot"] {
        assert!(!said.contains(told), "the log holds a credential");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_at_once_share_one_token() {
    let servers = Authorization::start().await;
    let oauth = format!(
        "token_url: \"{}/token\", grant: client_credentials, client_id: robot, client_secret: {{ file: robot }}",
        servers.issuer
    );
    let mut stage = Stage::new(&[("crm", oauth)]).await;
    stage.0.world.write("robot", "the-secret-of-the-robot");
    let _server = stage.0.begin();
    (0..6).for_each(|_| stage.add());
    let mut tokens = std::collections::BTreeSet::new();
    for _ in 0..6 {
        tokens.insert(stage.token().await);
    }
    assert_eq!((tokens.len(), servers.given("client_credentials").await), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refresh_token_that_was_replaced_is_kept_over_a_crash() {
    let person = SignIn::start(oauth(OAuthGrant::AuthorizationCode, Some("known")), "the-secret-of-the-known-client");
    let person = person.await;
    person.log_in().await;
    let refresh_token = person.kept("refresh_token").as_str().unwrap().to_owned();
    let servers = &person.servers;
    let oauth = format!(
        "token_url: \"{}/token\", grant: refresh_token, client_id: known, client_secret: {{ file: known }}, \
         refresh_token: {{ file: refresh }}",
        servers.issuer
    );
    let mut stage = Stage::new(&[("calendar", oauth)]).await;
    stage.0.world.write("known", "the-secret-of-the-known-client");
    stage.0.world.write("refresh", &refresh_token);
    let mut server = stage.0.begin();
    stage.add();
    let first = stage.token().await;
    assert_eq!(servers.status_with(&first).await, 200);
    stage.came_to(&mut server, "INFO delivered");
    server.kill();

    // The token of the configuration is void by now: the server would end the whole sign-in if it came again.
    let mut server = stage.0.serve();
    stage.add();
    let second = stage.token().await;
    assert_ne!(second, first);
    assert_eq!(servers.status_with(&second).await, 200);
    stage.came_to(&mut server, "INFO delivered");
    let grants = servers.grants().await;
    assert_eq!(servers.given("refresh_token").await, 2, "{grants:?}");
    assert!(grants.iter().all(|(_, error)| error.is_none()), "{grants:?}");
    let kept = std::fs::metadata(stage.0.world.path("data/credentials/.secrets/calendar.json")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&kept.permissions()) & 0o777, 0o600);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_assertion_by_each_kind_of_key_is_verified_by_another_library() {
    let servers = Authorization::start().await;
    let oauth = |algorithm: &str, name: &'static str| {
        let oauth = format!(
            "token_url: \"{}\", grant: jwt_bearer, issuer: bell@example.com, subject: admin@example.com, \
             key: {{ file: {name}.pem }}, key_id: {algorithm}, scopes: [\"outbox:read\"]",
            servers.assertions
        );
        (name, oauth)
    };
    let kinds = [("RS256", "rsa"), ("ES256", "ecdsa"), ("EdDSA", "edwards")];
    let mut stage = Stage::new(&kinds.map(|(algorithm, name)| oauth(algorithm, name))).await;
    for (algorithm, name) in kinds {
        stage.0.world.write(&format!("{name}.pem"), &servers.key(algorithm).await);
    }
    let mut server = stage.0.begin();
    stage.add();
    let arrived = stage.0.endpoint.next_by_path(3).await;
    for (algorithm, name) in kinds {
        let token = token(&arrived[&format!("/{name}")]);
        assert!(token.starts_with(&format!("token-by-an-assertion-of-{algorithm}-")), "{token}");
    }
    let by_assertion = "urn:ietf:params:oauth:grant-type:jwt-bearer";
    let grants = servers.grants().await;
    assert_eq!(json!(grants), json!([[by_assertion, null], [by_assertion, null], [by_assertion, null]]));

    // A key that the server does not know any more: the refusal is told in its words, and the assertion is not.
    server.wait_for("INFO delivered");
    servers.key("ES256").await;
    stage.0.endpoint.refuse_next([401, 401, 401]);
    stage.add();
    let said = server.wait_for("signature verification failed");
    assert!(said.contains("no access token for the secret ecdsa: invalid_grant") && !said.contains("eyJ"), "{said}");
}
