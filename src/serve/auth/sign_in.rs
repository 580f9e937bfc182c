//! Signing in and out with a browser.
//!
//! ```text
//! GET  /sign-in?back=PATH   a form for a token; its script redeems the link in the fragment, and leads on who is signed in
//! POST /sign-in             a token or a link, as a form or as JSON: the cookie of a session
//! GET  /session             204 for a session that is good, else 401
//! POST /sign-out            ends the session
//! ```

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};
use url::form_urlencoded;

use super::sessions::Presented;
use super::{Caller, cookie, page};
use crate::serve::Served;
use crate::serve::body::{TIME_MAX, read};
use crate::serve::problem::Problem;

/// Bytes of what is posted.
const BODY_BYTES_MAX: usize = 8 << 10;
/// Bytes of a path to go back to.
const BACK_BYTES_MAX: usize = 2_000;

const SCRIPT: &str = include_str!("assets/sign-in.js");
const STYLE: &str = include_str!("assets/sign-in.css");

/// What is posted.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SignInJson {
    token: Option<String>,
    link: Option<String>,
    back: Option<String>,
}

/// Where to go on.
#[derive(Debug, Serialize)]
struct SignedInJson {
    back: String,
}

/// The routes of the address of `listen:`.
pub(in crate::serve) fn routes() -> Router<Arc<Served>> {
    Router::new()
        .route("/sign-in", get(form).post(sign_in))
        .route("/sign-out", post(sign_out))
        .route("/session", get(session))
        .route("/sign-in.js", get(async || asset("text/javascript; charset=utf-8", SCRIPT)))
        .route("/sign-in.css", get(async || asset("text/css; charset=utf-8", STYLE)))
}

/// Leads to the form, and back to this page once signed in.
pub fn to_sign_in(uri: &Uri) -> Response {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let back = form_urlencoded::Serializer::new(String::new()).append_pair("back", local(path)).finish();
    see(&format!("/sign-in?{back}"))
}

async fn form(State(served): State<Arc<Served>>, parts: Parts) -> Response {
    let query = parts.uri.query().unwrap_or_default().as_bytes();
    let back = form_urlencoded::parse(query).find(|(name, _)| name == "back").map(|(_, back)| back.into_owned());
    let back = local(back.as_deref().unwrap_or_default()).to_owned();
    let is_signed_in = cookie::session(&parts.headers).is_some() && caller(&served, &parts).await.is_ok();
    if is_signed_in { see(&back) } else { shown(StatusCode::OK, &back, None) }
}

async fn session(State(served): State<Arc<Served>>, parts: Parts) -> Result<StatusCode, Problem> {
    caller(&served, &parts).await.map(|_| StatusCode::NO_CONTENT)
}

async fn caller(served: &Served, parts: &Parts) -> Result<Caller, Problem> {
    served.gate.caller(parts, peer(parts), true).await
}

fn peer(parts: &Parts) -> Option<SocketAddr> {
    parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0)
}

async fn sign_in(State(served): State<Arc<Served>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = match read(body, BODY_BYTES_MAX, TIME_MAX, &served.clock).await {
        Ok(body) => body,
        Err(problem) => return problem.into_response(),
    };
    let is_form = is_of(&parts.headers, "application/x-www-form-urlencoded");
    let asked = match asked(&served, &parts.headers, is_form, &body) {
        Ok(asked) => asked,
        Err(problem) => return problem.into_response(),
    };
    let back = local(asked.back.as_deref().unwrap_or_default());
    let client = peer(&parts).map(|peer| served.gate.client(&parts.headers, peer.ip()));
    let began = match (&asked.token, &asked.link) {
        (Some(token), None) => served.gate.sign_in(Presented::Token(token), client).await,
        (None, Some(link)) => served.gate.sign_in(Presented::Link(link), client).await,
        _ => Err(Problem::Wrong("sign in with a `token` or with a `link`, one of the two".to_owned())),
    };
    match (began, is_form) {
        (Ok(session), _) => {
            let response = if is_form { see(back) } else { json(&SignedInJson { back: back.to_owned() }) };
            with_cookie(response, cookie::set(&session))
        }
        (Err(problem), true) => {
            let why = problem.to_string();
            let mut refused = problem.into_response();
            let mut response = shown(refused.status(), back, Some(&why));
            if let Some(wait) = refused.headers_mut().remove(header::RETRY_AFTER) {
                response.headers_mut().insert(header::RETRY_AFTER, wait);
            }
            response
        }
        (Err(problem), false) => problem.into_response(),
    }
}

/// What is posted, by a page of ours. A form cannot have the header of our scripts; its origin tells.
fn asked(served: &Served, headers: &HeaderMap, is_form: bool, body: &[u8]) -> Result<SignInJson, Problem> {
    if is_form {
        served.gate.our_origin(headers)?;
        let mut asked = SignInJson::default();
        for (name, value) in form_urlencoded::parse(body) {
            match &*name {
                "token" => asked.token = Some(value.into_owned()),
                "back" => asked.back = Some(value.into_owned()),
                _ => {}
            }
        }
        return Ok(asked);
    }
    if !is_of(headers, "application/json") {
        return Err(Problem::MediaType(
            "sign in with a form or with JSON (`Content-Type: application/json`)".to_owned(),
        ));
    }
    served.gate.our_page(headers)?;
    // What is wrong with it is not repeated: it may hold a token.
    serde_json::from_slice(body)
        .map_err(|_| Problem::Wrong("the body is a JSON object with `token` or `link`, and perhaps `back`".to_owned()))
}

async fn sign_out(State(served): State<Arc<Served>>, headers: HeaderMap) -> Result<Response, Problem> {
    served.gate.our_page(&headers)?;
    if let Some(session) = cookie::session(&headers) {
        served.gate.sign_out(session).await?;
    }
    Ok(with_cookie(StatusCode::NO_CONTENT.into_response(), cookie::forget()))
}

fn is_of(headers: &HeaderMap, media_type: &str) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().is_some_and(|value| value.trim().eq_ignore_ascii_case(media_type))
}

/// A path of this server to go back to; its first page for anything else.
fn local(back: &str) -> &str {
    let is_path = back.starts_with('/') && !back.starts_with("//") && !back.starts_with("/sign-in");
    let is_plain = back.len() <= BACK_BYTES_MAX && back.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_path && is_plain { back } else { "/" }
}

fn see(path: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, path)]).into_response()
}

fn json(value: &impl Serialize) -> Response {
    let text = serde_json::to_string(value).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

fn asset(media_type: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, media_type), (header::CACHE_CONTROL, "no-cache")], text).into_response()
}

fn with_cookie(mut response: Response, cookie: Option<HeaderValue>) -> Response {
    if let Some(cookie) = cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

fn shown(status: StatusCode, back: &str, why: Option<&str>) -> Response {
    // With `no-referrer` a browser would send the form without its origin.
    let headers = [(header::CONTENT_TYPE, "text/html; charset=utf-8"), (header::REFERRER_POLICY, "same-origin")];
    (status, headers, page::document(back, why).into_string()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_goes_back_to_a_path_of_this_server_only() {
        for path in ["/", "/w/acme/inbox/7?unread=true#x", "/plugins"] {
            assert_eq!(local(path), path);
        }
        for path in
            ["", "w/acme", "//evil.example", "/\\evil.example", "https://evil.example", "/a\nb", "/ä", "/sign-in"]
        {
            assert_eq!(local(path), "/", "{path:?}");
        }
        assert_eq!(local(&format!("/{}", "a".repeat(BACK_BYTES_MAX))), "/");
    }

    #[test]
    fn who_is_sent_to_sign_in_comes_back_to_the_same_page() {
        let response = to_sign_in(&"/w/acme/inbox?level=urgent&name=a.b".parse().unwrap());
        assert_eq!(response.status(), StatusCode::SEE_OTHER);
        let expected = "/sign-in?back=%2Fw%2Facme%2Finbox%3Flevel%3Durgent%26name%3Da.b";
        assert_eq!(response.headers()[header::LOCATION], expected);
    }
}
