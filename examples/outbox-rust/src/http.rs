//! Streamable HTTP: rmcp's service behind a listener on loopback that asks for a token.

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;

use crate::server::AcmeServer;

/// Serves at http://127.0.0.1:`port`/mcp until the process ends; 0 picks a free port. A token, where there is one, is
/// required of every request.
pub async fn serve(
    port: u16,
    token: Option<String>,
    server: impl Fn() -> AcmeServer + Send + Sync + 'static,
) -> std::io::Result<()> {
    // By default rmcp answers loopback names only, so that no page in somebody's browser reaches it under a name of its
    // own. Pages of other origins are refused as well: no browser is expected here.
    let config = StreamableHttpServerConfig::default().enforce_origin_validation();
    let mcp = StreamableHttpService::new(move || Ok(server()), LocalSessionManager::default().into(), config);
    let wanted = token.map(|token| digest(format!("Bearer {token}").as_bytes()));
    let router = Router::new()
        .route_service("/mcp", mcp)
        .fallback((StatusCode::NOT_FOUND, "the endpoint is /mcp\n"))
        .layer(from_fn(move |request, next| authorize(wanted, request, next)));
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, router).await
}

async fn authorize(wanted: Option<[u8; 32]>, request: Request, next: Next) -> Response {
    let given = request.headers().get(header::AUTHORIZATION).map(|value| value.as_bytes()).unwrap_or_default();
    // Digests are compared, in a time that tells nothing about where the texts differ.
    if wanted.is_none_or(|wanted| wanted == digest(given)) {
        return next.run(request).await;
    }
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], "give the bearer token\n").into_response()
}

fn digest(text: &[u8]) -> [u8; 32] {
    Sha256::digest(text).into()
}
