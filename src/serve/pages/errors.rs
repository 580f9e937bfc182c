//! What people see when something cannot be shown: the same problem, as a page.

use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use maud::html;

use super::frame::{Frame, bare};
use super::parts::said;
use crate::serve::auth::to_sign_in;
use crate::serve::problem::Problem;

/// Turns problems into pages for those who ask for pages. Who is not signed in is sent to where that is done.
pub(super) async fn for_people(request: Request, next: Next) -> Response {
    let is_look = matches!(*request.method(), Method::GET | Method::HEAD);
    let is_page = is_look && wants_html(request.headers());
    let uri = request.uri().clone();
    let response = next.run(request).await;
    let Some(problem) = response.extensions().get::<Problem>().filter(|_| is_page) else { return response };
    if let Problem::Unauthenticated(_) = problem {
        return to_sign_in(&uri);
    }
    let (status, retry) = (response.status(), response.headers().get(header::RETRY_AFTER).cloned());
    let mut page = (status, shown(status, problem)).into_response();
    if let Some(retry) = retry {
        page.headers_mut().insert(header::RETRY_AFTER, retry);
    }
    page
}

/// Whether an answer in HTML is preferred to one in JSON.
fn wants_html(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepts.flat_map(|value| value.split(',')).any(|part| {
        let media = part.split(';').next().unwrap_or_default().trim();
        media.eq_ignore_ascii_case("text/html") || media.eq_ignore_ascii_case("application/xhtml+xml")
    })
}

fn shown(status: StatusCode, problem: &Problem) -> Response {
    let (heading, advice) = match problem {
        Problem::Unknown(_) => (
            "Not here",
            "It may be gone, or it may belong to a workspace that you may not see. Check the address, or go back to the inbox.",
        ),
        Problem::Forbidden(_) => (
            "Not allowed",
            "You are signed in, but your role does not allow this. An admin of the workspace, or the operator, can do it.",
        ),
        Problem::TooMany(..) => ("Too many tries", "Wait a moment, then load this page again."),
        Problem::Unavailable(_) => (
            "Not right now",
            "Nothing is lost: what is accepted is stored. Load this page again in a moment; if it stays so, the operator's log says more.",
        ),
        _ => ("That did not work", "Go back and try again."),
    };
    let body = html! {
        section.empty {
            p.code aria-hidden="true" { (status.as_u16()) }
            h1 { (heading) }
            p { (said(&sentence(&problem.to_string()))) }
            p.muted { (advice) }
            p { a.button href="/" { "Go to the inbox" } }
        }
    };
    bare(&Frame::plain(heading), &body)
}

/// What a problem says, as a sentence of its own.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str().trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_a_sentence() {
        assert_eq!(sentence("there is no such page"), "There is no such page.");
        assert_eq!(sentence("éa."), "Éa.");
        assert_eq!(sentence(""), ".");
    }

    #[test]
    fn browsers_get_pages_and_programs_problems() {
        let asked = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            wants_html(&headers)
        };
        assert!(asked("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"));
        for accept in ["*/*", "application/json", "application/problem+json, text/plain"] {
            assert!(!asked(accept), "{accept}");
        }
        assert!(!wants_html(&HeaderMap::new()));
    }
}
