//! The caller of a request, as handlers ask for it.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;

use super::Caller;
use crate::serve::Served;
use crate::serve::problem::Problem;

impl FromRequestParts<Arc<Served>> for Caller {
    type Rejection = Problem;

    /// The control socket has said already who asks. Whoever is let in is noted with the request, to be judged again once its
    /// body has come.
    async fn from_request_parts(parts: &mut Parts, served: &Arc<Served>) -> Result<Self, Problem> {
        if let Some(caller) = parts.extensions.get::<Self>() {
            return Ok(caller.clone());
        }
        let from = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0);
        let caller = served.gate.caller(parts, from, true).await?;
        parts.extensions.insert(caller.clone());
        Ok(caller)
    }
}
