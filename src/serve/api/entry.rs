//! How a request is let in and read: who asks, whether that one may, what stands in the path, the query and the body.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Path, Query, RawPathParams, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use crate::inbox::DeliveryId;
use crate::serve::Served;
use crate::serve::auth::{Admitted, Caller, Right};
use crate::serve::body::{TIME_MAX, asked};
use crate::serve::problem::{Problem, wrong_query};

/// Largest body that names things, in bytes: 1,000 ids or numbers fit in, with room.
pub(super) const NAMING_BYTES_MAX: usize = 64 << 10;

/// Largest question, in bytes: an event and settings.
pub(super) const QUESTION_BYTES_MAX: usize = 256 << 10;

/// Largest question with a file of answers, in bytes.
pub(super) const PREVIEW_BYTES_MAX: usize = 1 << 20;

/// What an operation needs.
pub(super) trait Needs: Send + Sync + 'static {
    /// The right.
    const RIGHT: Right;
}

macro_rules! needs {
    ($($name:ident),*) => {
        $(#[doc = concat!("[`Right::", stringify!($name), "`].")]
        #[derive(Debug)]
        pub(super) struct $name;

        impl Needs for $name {
            const RIGHT: Right = Right::$name;
        })*
    };
}

needs!(ReadInbox, Mark, ReadWork, ChangeWork);

/// A query that has no parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// A request about a workspace whose sender may make it.
#[derive(Debug)]
pub(super) struct Within<N, Q = Nothing> {
    pub(super) caller: Caller,
    pub(super) admitted: Admitted,
    pub(super) query: Q,
    needs: PhantomData<N>,
}

impl<N, Q> Within<N, Q> {
    /// The workspace's name.
    pub(super) fn name(&self) -> &str {
        self.admitted.name().as_str()
    }
}

impl<N: Needs, Q: DeserializeOwned> FromRequestParts<Arc<Served>> for Within<N, Q> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, served: &Arc<Served>) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, served).await?;
        let segments = RawPathParams::from_request_parts(parts, served).await;
        let segments = segments.map_err(|error| Problem::Unknown(error.body_text()))?;
        let workspace = segments.iter().find(|(key, _)| *key == "ws").map_or("", |(_, name)| name);
        let admitted = served.gate.workspace(&caller, workspace, N::RIGHT)?;
        Ok(Self { caller, admitted, query: query(parts, served).await?, needs: PhantomData })
    }
}

/// A request that only the operator may make.
#[derive(Debug)]
pub(super) struct Operating;

impl FromRequestParts<Arc<Served>> for Operating {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, served: &Arc<Served>) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, served).await?;
        served.gate.operate(&caller, Right::Operate)?;
        query::<Nothing>(parts, served).await.map(|_| Self)
    }
}

/// A request that everybody may make who is known.
#[derive(Debug)]
pub(super) struct Anybody(pub(super) Caller);

impl FromRequestParts<Arc<Served>> for Anybody {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, served: &Arc<Served>) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, served).await?;
        query::<Nothing>(parts, served).await.map(|_| Self(caller))
    }
}

/// The query; a parameter that the operation does not have is refused by its name.
async fn query<Q: DeserializeOwned>(parts: &mut Parts, served: &Arc<Served>) -> Result<Q, Problem> {
    let found = Query::<Q>::from_request_parts(parts, served).await;
    found.map(|Query(query)| query).map_err(|error| Problem::Wrong(wrong_query(&error)))
}

/// The path of what belongs to a workspace.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "it only describes the segment that `Within` reads")]
pub(super) struct InWorkspace {
    /// The workspace.
    #[param(pattern = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
    ws: String,
}

/// A notification in a path.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct ASeq {
    /// The number of a notification.
    pub(super) seq: u64,
}

/// A delivery in a path.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct AnId {
    /// The id of a delivery, such as 5f3a9c01-17.
    #[param(pattern = "^[0-9a-f]{8}-[1-9][0-9]{0,17}$")]
    id: String,
}

impl AnId {
    /// The id.
    pub(super) fn parse(&self) -> Result<DeliveryId, Problem> {
        self.id.parse().map_err(|why| Problem::Unknown(format!("{:?}: {why}", self.id)))
    }
}

/// Something that has a name, in a path.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct AName {
    /// Its name.
    #[param(pattern = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
    pub(super) name: String,
}

/// What stands in the path besides the workspace.
#[derive(Debug)]
pub(super) struct Segments<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<Served>> for Segments<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, served: &Arc<Served>) -> Result<Self, Problem> {
        match Path::<T>::from_request_parts(parts, served).await {
            Ok(Path(found)) => Ok(Self(found)),
            Err(error) => Err(Problem::Unknown(format!("there is nothing here: {}", error.body_text()))),
        }
    }
}

/// A body of JSON, of `MAX` bytes at most, whose sender may still do what it was let in for.
#[derive(Debug)]
pub(super) struct Asked<T, const MAX: usize>(pub(super) T);

impl<T: DeserializeOwned, const MAX: usize> FromRequest<Arc<Served>> for Asked<T, MAX> {
    type Rejection = Problem;

    async fn from_request(request: Request, served: &Arc<Served>) -> Result<Self, Problem> {
        let bytes = body(request, served, &["application/json"], MAX, TIME_MAX).await?;
        // A list would be taken for the fields of an object, in their order.
        if bytes.trim_ascii_start().starts_with(b"[") {
            return Err(Problem::Wrong("the body is a list: send an object, `{ … }`".to_owned()));
        }
        let wrong = |error: serde_json::Error| Problem::Wrong(format!("the body is not what this takes: {error}"));
        serde_json::from_slice(&bytes).map(Self).map_err(wrong)
    }
}

/// A body of one of these media types, of so many bytes at most, in so much time. Nothing of it is read before the type is known.
pub(super) async fn body(
    request: Request,
    served: &Arc<Served>,
    media_types: &[&str],
    bytes_max: usize,
    time_max: Duration,
) -> Result<Vec<u8>, Problem> {
    let said = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = said.split(';').next().unwrap_or_default().trim();
    if !media_types.iter().any(|known| essence.eq_ignore_ascii_case(known)) {
        let known = media_types.join(" or ");
        return Err(Problem::MediaType(format!("the body is {essence:?}: send it with `Content-Type: {known}`")));
    }
    asked(request, served, bytes_max, time_max).await
}
