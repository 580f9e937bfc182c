//! The page on this machine that a browser comes back to after a sign-in (RFC 8252 §7.3).

use std::io;
use std::net::Ipv4Addr;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderName, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Its path.
const PATH: &str = "/callback";

/// Longest address that is taken, in bytes: codes are short.
pub(super) const ADDRESS_BYTES_MAX: usize = 8 << 10;

/// Nothing is loaded, run, framed, kept or told to others.
const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_TYPE, "text/html; charset=utf-8"),
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (header::CACHE_CONTROL, "no-store"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::CONNECTION, "close"),
];

/// Waits for a browser on a loopback port.
#[derive(Debug)]
pub(super) struct Callback {
    listener: TcpListener,
    address: String,
}

/// A browser that came back.
#[derive(Debug)]
pub(super) struct Visit {
    /// The whole address it came to.
    pub address: String,
    /// What to show there.
    pub answer: oneshot::Sender<Page>,
}

/// What a person reads in the browser.
#[derive(Clone, Copy, Debug)]
pub(super) enum Page {
    /// The sign-in is done.
    Done,
    /// There is none.
    NotDone,
    /// This was another one's.
    NotOurs,
}

impl Callback {
    /// Listens on this port, or on a free one for 0.
    pub(super) async fn bind(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = format!("http://{}{PATH}", listener.local_addr()?);
        Ok(Self { listener, address })
    }

    /// Where a browser comes back to.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Tells of each visit, until `end`.
    pub(super) async fn serve(self, visits: mpsc::Sender<Visit>, end: CancellationToken) {
        let address = self.address;
        let handler = move |request: Request| answer(request, address.clone(), visits.clone());
        let served = axum::serve(self.listener, Router::new().fallback(handler));
        // Accepting goes on after errors; there is no other.
        let _ = served.with_graceful_shutdown(end.cancelled_owned()).await;
    }
}

async fn answer(request: Request, address: String, visits: mpsc::Sender<Visit>) -> Response {
    let uri = request.uri();
    let query = uri.query().unwrap_or_default();
    if uri.path() != PATH {
        return (StatusCode::NOT_FOUND, HEADERS, "").into_response();
    }
    if request.method() != Method::GET {
        return (StatusCode::METHOD_NOT_ALLOWED, HEADERS, [(header::ALLOW, "GET")], "").into_response();
    }
    if query.len() > ADDRESS_BYTES_MAX {
        return (StatusCode::URI_TOO_LONG, HEADERS, "").into_response();
    }
    let (sender, answered) = oneshot::channel();
    let visit = Visit { address: format!("{address}?{query}"), answer: sender };
    let page = match visits.send(visit).await {
        Ok(()) => answered.await.unwrap_or(Page::NotDone),
        Err(_) => Page::NotDone,
    };
    let (status, text) = match page {
        Page::Done => (StatusCode::OK, "Signed in. You can close this page."),
        Page::NotDone => (StatusCode::OK, "Not signed in; the terminal says why. You can close this page."),
        Page::NotOurs => {
            (StatusCode::BAD_REQUEST, "This is not the answer to the sign-in that waits. You can close this page.")
        }
    };
    let page = format!("<!doctype html><html lang=\"en\"><title>Switchbell</title><p>{text}</p></html>\n");
    (status, HEADERS, page).into_response()
}
