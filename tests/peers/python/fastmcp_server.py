"""The outbox on FastMCP 2.14, 3.x and 4.x.

None of them serves hints: they advertise `resources.subscribe: false` in every revision, and have no way of their own
to take a subscription. Over HTTP, 2.14 and 3.x keep sessions, 4.x keeps them for revisions before 2026-07-28 only.
"""

from fastmcp import FastMCP

from outbox import TEMPLATE, Outbox, http_port, serve_http

outbox = Outbox()
mcp = FastMCP("peer")


@mcp.resource(TEMPLATE, mime_type="application/json")
def notifications(cursor: str | None = None, maxEvents: int = 100, maxAgeMs: int | None = None) -> str:
    return outbox.read(cursor, maxEvents, maxAgeMs)


port = http_port()
if port is None:
    mcp.run(transport="stdio", show_banner=False, log_level="CRITICAL")
else:
    serve_http(outbox, mcp.http_app(path="/mcp"), port)
