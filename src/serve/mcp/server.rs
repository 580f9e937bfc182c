//! What MCP asks of us. Each request is served by a handler of its own, which knows its caller by the door.

use std::sync::Arc;

use axum::http::request::Parts;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    InitializeRequestParams, InitializeResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceContents,
    ServerCapabilities, ServerConfig, SubscriptionFilter,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use serde_json::Value;

use super::frame::WARNING;
use super::hints::{URIS_MAX, listen};
use super::listeners::Listeners;
use super::outbox::Asked;
use super::push;
use super::verbatim::Fillings;
use super::{list, mark, outbox, page, tools};
use crate::inbox::Deed;
use crate::serve::Served;
use crate::serve::auth::{Caller, Right};
use crate::serve::problem::Problem;

/// Serves one request, or all of them: it keeps nothing of any.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) served: Arc<Served>,
    /// Those who wait for hints.
    pub(super) listeners: Listeners,
}

impl Server {
    pub(super) fn new(served: &Arc<Served>) -> Self {
        Self { served: Arc::clone(served), listeners: Listeners::default() }
    }

    async fn call(&self, name: &str, arguments: Value, context: &RequestContext<RoleServer>) -> Called {
        let caller = caller(context)?;
        let Some(right) = tools::right(name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool {name:?}; list the tools"), None));
        };
        if let Err(problem) = self.served.gate.operate(caller, right) {
            let text = format!("{problem}; ask for a token with the scope that {name} needs");
            return Ok(CallToolResult::error(vec![ContentBlock::text(text)]));
        }
        let result = match name {
            tools::LIST => list::list(&self.served, caller, arguments, fillings(context)?).await,
            tools::ACKNOWLEDGE => mark::mark(&self.served, caller, Deed::Acknowledge, arguments).await,
            _ => mark::mark(&self.served, caller, Deed::Read, arguments).await,
        };
        // Whoever called can do something about it, so it is the tool's answer.
        Ok(result.unwrap_or_else(|problem| CallToolResult::error(vec![ContentBlock::text(problem.to_string())])))
    }

    async fn read(&self, uri: &str, context: &RequestContext<RoleServer>) -> Result<String, ErrorData> {
        let caller = caller(context)?;
        let unknown =
            || ErrorData::resource_not_found(format!("there is no resource {uri:?}; list the resources"), None);
        let asked = Asked::parse(uri).ok_or_else(unknown)?.map_err(|why| ErrorData::invalid_params(why, None))?;
        let named = asked.workspace.as_deref();
        let workspace = tools::workspace(&self.served, caller, named, Right::ReadInbox).map_err(|why| refused(&why))?;
        let page = page::read(&self.served, &workspace, &asked).await;
        let page = page.map_err(|error| refused(&list::unavailable(error)))?;
        serde_json::to_string(&page).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}

type Called = Result<CallToolResult, ErrorData>;

/// The request as it came in by the door.
fn request(context: &RequestContext<RoleServer>) -> Result<&Parts, ErrorData> {
    let missing = || ErrorData::internal_error("the request is not there", None);
    context.extensions.get::<Parts>().ok_or_else(missing)
}

/// Whose request it is.
pub(super) fn caller(context: &RequestContext<RoleServer>) -> Result<&Caller, ErrorData> {
    let missing = || ErrorData::internal_error("nobody has said whose request it is", None);
    request(context)?.extensions.get::<Caller>().ok_or_else(missing)
}

fn fillings(context: &RequestContext<RoleServer>) -> Result<&Fillings, ErrorData> {
    let missing = || ErrorData::internal_error("the answer cannot be filled", None);
    request(context)?.extensions.get::<Fillings>().ok_or_else(missing)
}

fn refused(problem: &Problem) -> ErrorData {
    match problem {
        Problem::Unknown(why) => ErrorData::resource_not_found(why.clone(), None),
        Problem::Unavailable(why) => ErrorData::internal_error(why.clone(), None),
        other => ErrorData::invalid_params(other.to_string(), None),
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_extensions_with(push::capability())
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .build();
        let ourselves = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).with_title("Switchbell");
        let instructions = format!(
            "Switchbell keeps what connected systems reported, the notifications of a workspace, and this server shows them. \
             Where an answer shows notifications: {WARNING} Routes, levels and deliveries are changed by people only, not here."
        );
        ServerConfig::new(capabilities).with_server_info(ourselves).with_instructions(instructions)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut info = self.negotiate_initialize(&request)?;
        // Hints go by `subscriptions/listen`, which the revisions that are initialised do not have.
        if let Some(resources) = &mut info.capabilities.resources {
            resources.subscribe = None;
        }
        Ok(info)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::of(caller(&context)?)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        self.call(&request.name, arguments, &context).await.map(CallToolResponse::from)
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let uris = outbox::of(&self.served, caller(&context)?);
        Ok(ListResourcesResult::with_all_items(uris.iter().map(|uri| outbox::resource(uri)).collect()))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let uris = outbox::of(&self.served, caller(&context)?);
        Ok(ListResourceTemplatesResult::with_all_items(uris.iter().map(|uri| outbox::template(uri)).collect()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let text = self.read(&request.uri, &context).await?;
        let contents = ResourceContents::text(text, request.uri).with_mime_type("application/json");
        Ok(ReadResourceResponse::from(ReadResourceResult::new(vec![contents])))
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let uris = requested.resource_subscriptions.iter().flatten();
        let ours = uris.filter(|uri| Asked::parse(uri).is_some()).take(URIS_MAX);
        Some(SubscriptionFilter::builder().resource_subscriptions(ours.cloned()).build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        listen(self, context).await
    }
}
