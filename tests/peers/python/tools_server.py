"""The outbox on FastMCP 3.x and 4.x, with tools that behave in one way each."""

import os
from typing import Any

import anyio
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.dependencies import get_http_headers

from outbox import TEMPLATE, Outbox, http_port, serve_http

outbox = Outbox()
mcp = FastMCP("peer")


@mcp.resource(TEMPLATE, mime_type="application/json")
def notifications(cursor: str | None = None, maxEvents: int = 100, maxAgeMs: int | None = None) -> str:
    return outbox.read(cursor, maxEvents, maxAgeMs)


@mcp.tool
async def echo(text: str, times: int, context: Context) -> dict[str, Any]:
    """Answers with structured content, and reports what came with the call."""
    meta = context.request_context.meta
    meta = meta if isinstance(meta, dict) else meta.model_dump() if meta else {}
    ours = {key: value for key, value in meta.items() if key.startswith("switchbell/")}
    names = ["x-tenant-id", "x-workspace-id", "authorization"]
    headers = {name: value for name, value in get_http_headers(include_all=True).items() if name in names}
    outbox.report(called={"meta": ours, "headers": headers, "pid": os.getpid()})
    return {"said": " ".join([text] * times)}


@mcp.tool
async def plain(text: str) -> str:
    """Answers with a text."""
    outbox.report(called={"plain": text})
    return text


@mcp.tool
async def fail() -> str:
    """Says that it failed."""
    raise ToolError("the domain is locked")


@mcp.tool
async def sleep(seconds: float) -> str:
    """Takes its time, and reports when nobody wants the answer any more."""
    outbox.report(sleeping=seconds)
    try:
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        outbox.report(cancelled=seconds)
        raise
    return "awake"


@mcp.tool
async def die() -> str:
    """Takes the server with it."""
    outbox.report(dying=True)
    os._exit(3)


@mcp.tool
async def much() -> str:
    """Answers with more than a plugin is handed."""
    return "x" * (300 << 10)


def refusing_by_protocol():
    """Answers the call of the tool `refuse` with an error of the protocol, which FastMCP makes of no exception."""
    from mcp import types
    from mcp.shared.exceptions import McpError

    handlers = mcp._mcp_server.request_handlers
    call = handlers[types.CallToolRequest]

    async def handler(request):
        if request.params.name == "refuse":
            raise McpError(types.ErrorData(code=types.INVALID_PARAMS, message="Unknown tool: refuse"))
        return await call(request)

    handlers[types.CallToolRequest] = handler


try:
    refusing_by_protocol()
except (ImportError, AttributeError):
    # FastMCP 4.x does so by itself for a tool that it does not know.
    pass

port = http_port()
if port is None:
    mcp.run(transport="stdio", show_banner=False, log_level="CRITICAL")
else:
    serve_http(outbox, mcp.http_app(path="/mcp"), port)
