//! Who looks at a page, and where.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};

use crate::config::{Config, Workspace};
use crate::inbox::InboxError;
use crate::notification::Name;
use crate::serve::Served;
use crate::serve::auth::{Admitted, Caller, Right};
use crate::serve::body::{self, TIME_MAX};
use crate::serve::problem::Problem;

/// Largest form, in bytes: a thousand ids of deliveries.
const FORM_BYTES_MAX: usize = 64 << 10;

/// Unread notifications that are counted.
pub(super) const UNREAD_MAX: u32 = 999;

/// Who looks.
pub(super) struct Visitor(pub(super) Caller);

/// Why a page cannot be shown, or something cannot be done.
#[derive(Debug)]
pub(super) struct Refused(pub(super) Problem);

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<InboxError> for Refused {
    fn from(error: InboxError) -> Self {
        Self(Problem::Unavailable(error.to_string()))
    }
}

impl IntoResponse for Refused {
    /// The problem goes along, for [`for_people`](super::errors::for_people).
    fn into_response(self) -> Response {
        let mut response = self.0.clone().into_response();
        response.extensions_mut().insert(self.0);
        response
    }
}

impl FromRequestParts<Arc<Served>> for Visitor {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, served: &Arc<Served>) -> Result<Self, Refused> {
        Ok(Self(Caller::from_request_parts(parts, served).await?))
    }
}

/// The form that a visitor sends, who may still do then what it was let in for.
pub(super) struct Posted(pub(super) Vec<u8>);

impl FromRequest<Arc<Served>> for Posted {
    type Rejection = Refused;

    async fn from_request(request: Request, served: &Arc<Served>) -> Result<Self, Refused> {
        Ok(Self(body::asked(request, served, FORM_BYTES_MAX, TIME_MAX).await?))
    }
}

/// A visitor in a workspace.
pub(super) struct Place {
    pub(super) served: Arc<Served>,
    pub(super) caller: Caller,
    pub(super) admitted: Admitted,
    /// How many notifications nobody has read, [`UNREAD_MAX`] and one more at most.
    pub(super) unread: u32,
    /// The number of the last change, before anything else was read: what comes later is told live.
    pub(super) change: u64,
}

impl Place {
    /// Lets a visitor in.
    ///
    /// # Errors
    /// What the gate says; a store that cannot be read.
    pub(super) async fn enter(
        served: Arc<Served>,
        Visitor(caller): Visitor,
        workspace: &str,
        right: Right,
    ) -> Result<Self, Refused> {
        let admitted = served.gate.workspace(&caller, workspace, right)?;
        let change = *served.store.follow(admitted.name()).await?.borrow();
        let unread = served.store.unread(admitted.name(), UNREAD_MAX + 1).await?;
        Ok(Self { served, caller, admitted, unread, change })
    }

    /// The workspace's name.
    pub(super) fn name(&self) -> &Name {
        self.admitted.name()
    }

    /// The workspace as configured.
    ///
    /// # Errors
    /// While its file has mistakes.
    pub(super) fn workspace(&self) -> Result<&Workspace, Refused> {
        self.admitted.workspace().ok_or_else(|| {
            let name = self.name();
            let why =
                "is set aside: its file has mistakes. Its inbox can be read meanwhile; `switchbell check` shows them";
            Problem::Unavailable(format!("workspace {name} {why}")).into()
        })
    }

    /// The path of a page of this workspace.
    pub(super) fn path(&self, rest: &str) -> String {
        format!("/w/{}/{rest}", self.name())
    }
}

/// The workspaces that a caller may look into, by name.
pub(super) fn workspaces_of(config: &Config, caller: &Caller) -> Vec<Name> {
    let mut names: Vec<Name> = config.workspaces.keys().chain(&config.aside).cloned().collect();
    names.retain(|name| caller.workspace.as_ref().is_none_or(|own| own == name));
    names.sort();
    names.dedup();
    names
}
