"""The outbox on the official Python SDK 2.x (`mcp`).

It hints by `subscriptions/listen` of 2026-07-28, which the SDK serves by itself.
"""

from contextlib import asynccontextmanager

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated

from outbox import TEMPLATE, URI, Outbox, http_port, serve_http

outbox = Outbox()
bus = InMemorySubscriptionBus()


@asynccontextmanager
async def lifespan(_):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(outbox.hint, lambda: bus.publish(ResourceUpdated(URI)))
        yield
        tasks.cancel_scope.cancel()


mcp = MCPServer("peer", subscriptions=bus, lifespan=lifespan, log_level="CRITICAL")


@mcp.resource(TEMPLATE, mime_type="application/json")
def notifications(cursor: str | None = None, maxEvents: int = 100, maxAgeMs: int | None = None) -> str:
    return outbox.read(cursor, maxEvents, maxAgeMs)


port = http_port()
if port is None:
    mcp.run("stdio")
else:
    serve_http(outbox, mcp.streamable_http_app(), port)
