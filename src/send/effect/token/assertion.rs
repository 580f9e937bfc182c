//! A JSON Web Token that the host signs (RFC 7519, RFC 7523 §3).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Map, Value, json};

use crate::send::effect::key::SigningKey;

/// How long an assertion counts, in seconds. Servers refuse more than an hour.
const LIFE_SECONDS: i64 = 300;

pub(super) struct Claims<'a> {
    pub(super) issuer: &'a str,
    pub(super) subject: &'a str,
    pub(super) audience: &'a str,
    pub(super) scopes: &'a [String],
    pub(super) now: Timestamp,
}

/// The assertion in its compact form (RFC 7515 §3.1).
pub(super) fn signed(claims: &Claims<'_>, key: &str, key_id: Option<&str>) -> Result<String, String> {
    let key = SigningKey::read(key).ok_or("its key is no PKCS#8 private key in PEM (RSA, P-256 or Ed25519)")?;
    let mut header =
        Map::from_iter([("alg".to_owned(), Value::from(key.algorithm())), ("typ".to_owned(), Value::from("JWT"))]);
    header.extend(key_id.map(|id| ("kid".to_owned(), Value::from(id))));
    let mut id = [0; 16];
    SystemRandom::new().fill(&mut id).map_err(|_| "the system gives no random numbers")?;
    let now = claims.now.as_second();
    let mut body = json!({
        "iss": claims.issuer,
        "sub": claims.subject,
        "aud": claims.audience,
        "iat": now,
        "exp": now + LIFE_SECONDS,
        "jti": URL_SAFE_NO_PAD.encode(id),
    });
    // Some servers read the scopes here, and some in the form.
    if let (Some(object), false) = (body.as_object_mut(), claims.scopes.is_empty()) {
        object.insert("scope".to_owned(), claims.scopes.join(" ").into());
    }
    let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", encoded(&Value::Object(header)), encoded(&body));
    let signature = key.sign(message.as_bytes()).ok_or("its key cannot sign")?;
    Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
}
