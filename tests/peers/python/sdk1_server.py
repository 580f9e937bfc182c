"""The outbox on the official Python SDK 1.x (`mcp`), as a low-level server: its templates take no query.

It hints by `resources/subscribe`. The SDK takes subscriptions but advertises that it takes none, so the server says so
itself.
"""

from contextlib import asynccontextmanager
from urllib.parse import parse_qs

import anyio
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import Resource
from pydantic import AnyUrl
from starlette.applications import Starlette
from starlette.routing import Route

from outbox import URI, Outbox, http_port, serve_http


class SubscribableServer(Server):
    def get_capabilities(self, notification_options, experimental_capabilities):
        capabilities = super().get_capabilities(notification_options, experimental_capabilities)
        capabilities.resources.subscribe = True
        return capabilities


outbox = Outbox()
server = SubscribableServer("peer")
subscribers = set()


@server.list_resources()
async def list_resources():
    return [Resource(uri=AnyUrl(URI), name="notifications")]


@server.read_resource()
async def read_resource(uri: AnyUrl):
    bare, _, query = str(uri).partition("?")
    if bare != URI:
        raise ValueError(f"unknown resource {bare}")
    asked = {name: values[0] for name, values in parse_qs(query, strict_parsing=bool(query)).items()}
    text = outbox.read(asked.get("cursor"), int(asked.get("maxEvents", 100)), int(asked.get("maxAgeMs", 0)) or None)
    return [ReadResourceContents(content=text, mime_type="application/json")]


@server.subscribe_resource()
async def subscribe_resource(uri: AnyUrl):
    subscribers.add(server.request_context.session)


async def send_hint():
    for session in list(subscribers):
        try:
            await session.send_resource_updated(AnyUrl(URI))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            subscribers.discard(session)


async def serve_stdio():
    async with stdio_server() as (read, write), anyio.create_task_group() as tasks:
        tasks.start_soon(outbox.hint, send_hint)
        await server.run(read, write, server.create_initialization_options())
        tasks.cancel_scope.cancel()


def http_app():
    sessions = StreamableHTTPSessionManager(server)

    @asynccontextmanager
    async def lifespan(_):
        async with sessions.run(), anyio.create_task_group() as tasks:
            tasks.start_soon(outbox.hint, send_hint)
            yield
            tasks.cancel_scope.cancel()

    class Endpoint:
        async def __call__(self, scope, receive, send):
            await sessions.handle_request(scope, receive, send)

    return Starlette(routes=[Route("/mcp", Endpoint())], lifespan=lifespan)


port = http_port()
if port is None:
    anyio.run(serve_stdio)
else:
    serve_http(outbox, http_app(), port)
