//! Where values go in, how they are written there, and that they go in nowhere else.

use super::*;

const URL: &str = "https://hooks.example/";

fn with_body(body: impl Into<Vec<u8>>) -> Request {
    Request { body: body.into(), ..request(URL) }
}

#[test]
fn basic_credentials_are_composed_by_the_host() {
    let sent = judged("acme", |placeholder| with_header(URL, "Authorization", placeholder("basic"))).unwrap();
    assert_eq!(sent.headers["authorization"], "Basic cm9ib3Q6cGFzcyB3b3JkIDAxMjM=");
    assert_eq!(sent.carried, ["basic"]);
    refused("secret-place", "header x-auth", |placeholder| with_header(URL, "x-auth", placeholder("basic")));
}

#[test]
fn a_value_in_a_query_is_one_parameters_whole_value() {
    let sent = judged("acme", |placeholder| request(format!("{URL}x?a=1&api+key={}&b", placeholder("query")))).unwrap();
    assert_eq!(sent.url, "https://hooks.example/x?a=1&api+key=a%2Fb%26c%3Dd%200123456789&b");
    let sent = judged("acme", |placeholder| request(format!("{URL}?api%20key={}", placeholder("query")))).unwrap();
    assert!(sent.url.ends_with("?api%20key=a%2Fb%26c%3Dd%200123456789"));
    refused("secret-place", "the URL's query", |placeholder| request(format!("{URL}?other={}", placeholder("query"))));
    refused("secret-place", "the URL's query", |placeholder| {
        request(format!("{URL}?api+key=x{}", placeholder("query")))
    });
    refused("secret-place", "the URL's query", |placeholder| request(format!("{URL}?{}=1", placeholder("query"))));
    refused("secret-place", "the URL's query", |placeholder| request(format!("{URL}?{}", placeholder("query"))));
    refused("secret-place", "the URL's path", |placeholder| request(format!("{URL}{}", placeholder("query"))));
    refused("secret-place", "the URL's query", |placeholder| request(format!("{URL}?api+key={}", placeholder("path"))));
}

#[test]
fn a_value_in_a_path_stays_in_its_segment() {
    let sent =
        judged("acme", |placeholder| request(format!("{URL}bot{}/sendMessage?x=1", placeholder("path")))).unwrap();
    assert_eq!(sent.url, "https://hooks.example/bot123%3AAAE%2F..%2Fx%3Fy%23z%2541/sendMessage?x=1");
    assert_eq!(sent.carried, ["path"]);
    refused("url", "mean something else", |placeholder| request(format!("{URL}a/{}/b", placeholder("dots"))));
}

#[test]
fn no_value_ever_changes_where_a_request_goes() {
    for secret in ["hook", "path", "query", "bot", "body"] {
        refused("secret-place", "the host of a URL", |placeholder| {
            request(format!("https://{}.hooks.example/", placeholder(secret)))
        });
        refused("secret-place", "the fragment", |placeholder| request(format!("{URL}#{}", placeholder(secret))));
        refused("url", "user name", |placeholder| request(format!("https://{}@hooks.example/", placeholder(secret))));
        refused("url", "cannot be read", |placeholder| {
            request(format!("https://hooks.example:{}/", placeholder(secret)))
        });
    }
}

#[test]
fn a_value_in_a_body_is_one_string_of_its_json() {
    let key = |placeholder: &dyn Fn(&str) -> String| placeholder("body");
    let sent = judged("acme", |placeholder| {
        with_body(format!(r#"{{"n": 1.50, "auth":{{"key": "{}"}}, "a":"switchbell-secret.body.0"}}"#, key(placeholder)))
    });
    let sent = sent.unwrap();
    assert_eq!(sent.body, r#"{"n": 1.50, "auth":{"key": "R\"0123456789\\abcdef"}, "a":"switchbell-secret.body.0"}"#);
    assert_eq!(sent.carried, ["body"]);
    for body in [
        r#"{"auth":{"key":"x@"}}"#,
        r#"{"auth":"@"}"#,
        r#"{"@":1,"auth":{"key":"x"}}"#,
        r#"["@"]"#,
        r#"{"auth":{"key":"@"},"again":"@"}"#,
        r#"{"auth":{"key":"@","key":"other"}}"#,
        r#"{"auth":{"key":"@"}} @"#,
        "key=@",
    ] {
        refused("secret-place", "secret", |placeholder| with_body(body.replace('@', &key(placeholder))));
    }
    refused("secret-place", "in the body", |placeholder| {
        with_body(format!(r#"{{"auth":{{"key":"{}"}}}}"#, placeholder("path")))
    });
    refused("secret-place", "in the body", |placeholder| {
        let escaped = placeholder("body").replacen('s', r"\u0073", 1);
        with_body(format!(r#"{{"auth":{{"key":"{escaped}"}}}}"#))
    });
    refused("secret-host", "body may not be sent to acme-only.example", |placeholder| Request {
        body: format!(r#"{{"auth":{{"key":"{}"}}}}"#, key(placeholder)).into_bytes(),
        ..request("https://acme-only.example/")
    });
}

#[test]
fn a_token_stands_where_its_secret_may() {
    let sent = judged("acme", |placeholder| with_header(URL, "authorization", placeholder("crm"))).unwrap();
    assert_eq!(sent.headers["authorization"], format!("Bearer {TOKEN}"));
}

#[test]
fn only_tokens_that_a_request_names_are_fetched() {
    let sent = judged("acme", |placeholder| with_header(URL, "authorization", placeholder("crm"))).unwrap();
    assert_eq!((sent.wanted, sent.carried), (vec!["crm".to_owned()], vec!["crm".to_owned()]));
    assert!(judged("acme", |placeholder| request(placeholder("hook"))).unwrap().wanted.is_empty());
}

#[test]
fn keys_of_signatures_stand_nowhere() {
    for build in [
        |key: String| with_header(URL, "authorization", key),
        |key| request(format!("{URL}{key}")),
        |key| request(format!("{URL}?k={key}")),
        |key| with_body(format!(r#"{{"auth":{{"key":"{key}"}}}}"#)),
    ] {
        refused("secret-place", "sign may not stand in", |placeholder| build(placeholder("sign")));
    }
}
