//! Signatures, verified by other people's programs with keys that no plugin ever saw.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use super::stage::{Stage, verified};
use crate::support::Arrived;

/// A target of the webhook plugin that signs.
fn target(path: &str, keys: &str) -> String {
    format!("{{ plugin: webhook, with: {{ url: \"AT/{path}\", format: standard, signing_key: {keys} }} }}")
}

fn whsec(byte: u8) -> String {
    format!("whsec_{}", STANDARD.encode([byte; 32]))
}

#[track_caller]
fn check_refused(how: &str, arrived: &Arrived, key: &str, more: &Value, why: &str) {
    let complaint = verified(how, arrived, key, more).expect_err(how);
    assert!(complaint.contains(why), "{how}: {complaint}");
}

fn tampered(arrived: &Arrived) -> Arrived {
    let body = arrived.body.replacen("a title", "A title", 1);
    assert_ne!(body, arrived.body);
    Arrived { body, ..arrived.clone() }
}

const TITLE: [&str; 2] = ["--title", "a title, größer 🔔"];

#[tokio::test]
async fn standard_webhooks_are_verified_with_each_of_their_keys() {
    const SECRETS: &str = "  old: { file: old, in: sign, workspaces: [acme] }
  new: { file: new, in: sign, workspaces: [acme] }
";
    let targets = [target("one", "{ secret: new }"), target("two", "[ { secret: new }, { secret: old } ]")];
    let mut stage = Stage::new(&["webhook"], SECRETS, &targets).await;
    stage.world.write("old", &whsec(1));
    stage.world.write("new", &whsec(2));
    let _server = stage.begin();
    stage.add(&TITLE);
    let arrived = stage.endpoint.next_by_path(2).await;
    let (one, two, more) = (&arrived["/one"], &arrived["/two"], json!({}));
    for (arrived, key) in [(one, whsec(2)), (two, whsec(2)), (two, whsec(1))] {
        let payload = verified("verified", arrived, &key, &more).unwrap();
        assert_eq!(payload["data"]["title"], TITLE[1]);
    }
    let no_match = "No matching signature found";
    check_refused("verified", one, &whsec(1), &more, no_match);
    check_refused("verified", two, &whsec(3), &more, no_match);
    check_refused("verified", &tampered(one), &whsec(2), &more, no_match);
}

#[tokio::test]
async fn standard_webhooks_are_verified_with_public_keys() {
    const SECRETS: &str = "  seed: { file: seed, in: sign, workspaces: [acme] }
  pair: { file: pair, in: sign, workspaces: [acme] }
  pem: { file: key.pem, in: sign, workspaces: [acme] }
";
    let signed = |path: &str, keys: &str| target(path, keys).replace("signing_key", "algorithm: ed25519, signing_key");
    let both = signed("both", "[ { secret: seed }, { secret: pem } ]");
    let targets = [signed("seed", "{ secret: seed }"), signed("pair", "{ secret: pair }"), both];
    let mut stage = Stage::new(&["webhook"], SECRETS, &targets).await;
    let public = |pair: &Ed25519KeyPair| format!("whpk_{}", STANDARD.encode(pair.public_key()));
    let pair = |byte| Ed25519KeyPair::from_seed_unchecked(&[byte; 32]).unwrap();
    let document = Ed25519KeyPair::generate_pkcs8(&ring::rand::SystemRandom::new()).unwrap();
    let of_document = Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();
    let whole = [&[6; 32], pair(6).public_key().as_ref()].concat();
    stage.world.write("seed", &format!("whsk_{}", STANDARD.encode([5; 32])));
    stage.world.write("pair", &format!("whsk_{}", STANDARD.encode(whole)));
    let pem = STANDARD.encode(document.as_ref());
    stage.world.write("key.pem", &format!("-----BEGIN PRIVATE KEY-----\n{pem}\n-----END PRIVATE KEY-----\n"));
    let _server = stage.begin();
    stage.add(&TITLE);
    let arrived = stage.endpoint.next_by_path(3).await;
    let (seed, pair_of_6, both, more) = (&arrived["/seed"], &arrived["/pair"], &arrived["/both"], json!({}));
    for (arrived, key) in [(seed, &pair(5)), (pair_of_6, &pair(6)), (both, &pair(5)), (both, &of_document)] {
        let payload = verified("verified-ed25519", arrived, &public(key), &more).unwrap();
        assert_eq!(payload["data"]["title"], TITLE[1]);
    }
    check_refused("verified-ed25519", seed, &public(&pair(6)), &more, "no signature");
    check_refused("verified-ed25519", &tampered(seed), &public(&pair(5)), &more, "no signature");
}

#[tokio::test]
async fn stripes_library_verifies_what_is_signed_after_secrets_were_put_in() {
    const SECRETS: &str = "  old: { file: old, in: sign, workspaces: [acme] }
  new: { file: new, in: sign, workspaces: [acme] }
  token: { file: token, in: \"body:/token\", hosts: [127.0.0.1], workspaces: [acme] }
";
    const KEYS: [&str; 2] = ["whsec of no form, the new one", "whsec of no form, the old one"];
    let with =
        "like: stripe, url: \"AT/stripe\", key: { secret: new }, old_key: { secret: old }, token: { secret: token }";
    let targets = [format!("{{ plugin: signing, with: {{ {with} }} }}")];
    let mut stage = Stage::new(&["signing"], SECRETS, &targets).await;
    stage.world.write("new", KEYS[0]);
    stage.world.write("old", KEYS[1]);
    stage.world.write("token", "a \"token\" of 0123456789");
    let _server = stage.begin();
    stage.add(&TITLE);
    let (arrived, more) = (stage.endpoint.next().await, json!({}));
    for key in KEYS {
        let event = verified("stripe", &arrived, key, &more).unwrap();
        assert_eq!((&event["titles"][0], &event["token"]), (&json!(TITLE[1]), &json!("a \"token\" of 0123456789")));
    }
    let no_match = "No signatures found matching the expected signature";
    check_refused("stripe", &arrived, "another key of no form", &more, no_match);
    check_refused("stripe", &tampered(&arrived), KEYS[0], &more, no_match);
}

#[tokio::test]
async fn a_request_is_signed_as_by_the_library_of_aws() {
    const SECRETS: &str = "  aws: { file: aws, in: sign, workspaces: [acme] }\n";
    const KEY: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    let with = "like: aws, url: \"AT/stage/events?a=1&b=2%203\", id: AKIDEXAMPLE, key: { secret: aws }";
    let targets = [format!("{{ plugin: signing, with: {{ {with} }} }}")];
    let mut stage = Stage::new(&["signing"], SECRETS, &targets).await;
    stage.world.write("aws", &format!("AWS4{KEY}"));
    let _server = stage.begin();
    stage.add(&TITLE);
    let arrived = stage.endpoint.next().await;
    let more = json!({ "id": "AKIDEXAMPLE", "region": "eu-central-1", "service": "execute-api" });
    let signed = verified("aws", &arrived, KEY, &more).unwrap();
    assert_eq!(signed["authorization"], arrived.headers["authorization"]);
    check_refused("aws", &tampered(&arrived), KEY, &more, "the hash of the body");
    check_refused("aws", &arrived, "another", &more, "another signature");
    let elsewhere = Arrived { target: arrived.target.replace("a=1", "a=2"), ..arrived };
    check_refused("aws", &elsewhere, KEY, &more, "another signature");
}
