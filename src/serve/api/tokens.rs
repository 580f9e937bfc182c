//! Tokens: made, listed, revoked.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::entry::{Anybody, Asked, NAMING_BYTES_MAX, Segments};
use crate::serve::Served;
use crate::serve::auth::{MadeTokenJson, NewTokenJson, RevokedTokenJson, TokenJson};
use crate::serve::problem::Problem;
use crate::serve::shapes::ListJson;

pub(super) fn routes() -> OpenApiRouter<Arc<Served>> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(revoke))
}

/// A token in a path.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct ATokenId {
    /// The number of a token.
    #[param(minimum = 1)]
    id: i64,
}

/// Lists tokens, signed-in browsers, and links that still work, oldest first.
///
/// The operator sees all, an admin those of the own workspace.
#[utoipa::path(
    get,
    path = "/tokens",
    operation_id = "listTokens",
    tag = "access",
    responses((status = 200, body = ListJson<TokenJson>, description = "All of them; never their texts."))
)]
async fn list(
    State(served): State<Arc<Served>>,
    Anybody(caller): Anybody,
) -> Result<Json<ListJson<TokenJson>>, Problem> {
    let tokens = served.gate.list(&caller).await?;
    Ok(Json(ListJson::whole(tokens.into_iter().map(TokenJson::from).collect())))
}

/// Makes a token, or a link that signs a browser in once.
///
/// The operator makes any, an admin those of members and agents of the own workspace. The text is in this answer and never
/// again. What a token or session makes is revoked with it and never outlives it.
#[utoipa::path(
    post,
    path = "/tokens",
    operation_id = "createToken",
    tag = "access",
    request_body = NewTokenJson,
    responses(
        (status = 201, body = MadeTokenJson, description = "It was made."),
        (status = 404, description = "There is no such workspace."),
        (status = 409, description = "It cannot be made as things stand."),
        (status = 422, description = "It makes no sense: the answer says what is missing or too much."),
    )
)]
async fn create(
    State(served): State<Arc<Served>>,
    Anybody(caller): Anybody,
    Asked(asked): Asked<NewTokenJson, NAMING_BYTES_MAX>,
) -> Result<(StatusCode, Json<MadeTokenJson>), Problem> {
    Ok((StatusCode::CREATED, Json(served.gate.make_asked(&caller, asked).await?)))
}

/// Revokes a token at once, with every token, link and session that was made from it.
#[utoipa::path(
    post,
    path = "/tokens/{id}/revoke",
    operation_id = "revokeToken",
    tag = "access",
    params(ATokenId),
    responses((status = 200, body = RevokedTokenJson, description = "It is revoked."))
)]
async fn revoke(
    State(served): State<Arc<Served>>,
    Anybody(caller): Anybody,
    Segments(ATokenId { id }): Segments<ATokenId>,
) -> Result<Json<RevokedTokenJson>, Problem> {
    Ok(Json(served.gate.revoke(&caller, id).await?.into()))
}
