"""An MCP server with an outbox: one resource, `acme://notifications`, that a host reads on a schedule.

    python server.py                    MCP over stdio
    python server.py --http PORT        streamable HTTP at http://127.0.0.1:PORT/mcp; 0 picks a free port
    python server.py --pretend [SECS]   plays a registrar at which something happens every SECS seconds (3)

OUTBOX_DB names the SQLite file (outbox.db beside this file). With OUTBOX_TOKEN set, HTTP asks for that bearer token.
Runs unchanged on fastmcp 2.14, 3.x and 4.x.
"""

import argparse
import hmac
import json
import os
import re
import signal
import sqlite3
import sys
from contextlib import suppress

import uvicorn
from fastmcp import FastMCP
from fastmcp.exceptions import ResourceError, ToolError
from fastmcp.server.auth import AccessToken, TokenVerifier
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from outbox import Outbox, OutboxError, default_path
from registrar import PretendRegistrar, Registrar

OUTBOX_URI = "acme://notifications"
DOMAIN = re.compile(r"(?=.{1,190}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}")


def build(registrar: Registrar, token: str | None) -> FastMCP:
    """The server, with its resource and its one tool."""
    mcp = FastMCP("acme-registrar", version="1.0.0", auth=BearerToken(token) if token else None)

    # The query is part of the template: FastMCP takes no function with parameters under a URI without them. All three
    # are optional, so the bare URI matches too, which is how a host asks for its first cursor.
    @mcp.resource(
        OUTBOX_URI + "{?cursor,maxEvents,maxAgeMs}",
        description="Domains, replies and bounces.",
        mime_type="application/json",
    )
    def notifications(cursor: str | None = None, maxEvents: int = 100, maxAgeMs: int | None = None) -> str:
        # A poll is a fine moment to look upstream: what changed goes out in this very answer.
        next_poll_ms = registrar.refresh()
        try:
            answer = registrar.outbox.read(cursor, maxEvents, maxAgeMs)
        except OutboxError as error:
            raise ResourceError(str(error)) from None
        if next_poll_ms is not None:
            answer["nextPollMs"] = next_poll_ms
        # The JSON text itself: some releases refuse a dict here.
        return json.dumps(answer, ensure_ascii=False)

    @mcp.tool
    def register_domain(domain: str) -> str:
        """Orders a domain. It becomes active later, which the outbox tells."""
        if not DOMAIN.fullmatch(domain):
            raise ToolError(f"{domain!r} is no domain name; give one such as acme-outreach.test")
        return "ordered" if registrar.register(domain) else "ordered before"

    return mcp


class BearerToken(TokenVerifier):
    """Takes one token that the operator chose."""

    def __init__(self, token: str):
        super().__init__()
        self.token = token.encode()

    async def verify_token(self, token: str) -> AccessToken | None:
        if not hmac.compare_digest(token.encode(), self.token):
            return None
        return AccessToken(token=token, client_id="host", scopes=[])


class AnnouncingServer(uvicorn.Server):
    """Says where it listens once it really does, which a parent that waits for the line relies on."""

    async def startup(self, sockets=None) -> None:
        await super().startup(sockets=sockets)
        for server in getattr(self, "servers", []):
            host, port = server.sockets[0].getsockname()[:2]
            print(f"listening on http://{host}:{port}/mcp", file=sys.stderr, flush=True)


def serve_http(mcp: FastMCP, port: int) -> None:
    # A page in somebody's browser can reach a loopback port under a name of its own: only loopback names are answered.
    only_loopback = Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    # Nothing is kept between requests, so a restart of this server costs a host nothing.
    app = mcp.http_app(path="/mcp", middleware=[only_loopback], stateless_http=True, json_response=True)
    settings = uvicorn.Config(
        app, host="127.0.0.1", port=port, log_level="warning", lifespan="on", timeout_graceful_shutdown=1
    )
    with suppress(KeyboardInterrupt):
        AnnouncingServer(settings).run()


def main() -> None:
    parser = argparse.ArgumentParser(description="An MCP server with an outbox.")
    parser.add_argument("--http", metavar="PORT", type=int, help="serve streamable HTTP; 0 picks a free port")
    parser.add_argument("--pretend", metavar="SECONDS", type=seconds, nargs="?", const=3.0, help="play a registrar")
    arguments = parser.parse_args()
    try:
        outbox = Outbox(default_path())
    except sqlite3.Error as error:
        parser.error(f"cannot open {default_path()}: {error}; name another file in OUTBOX_DB")
    registrar = Registrar(outbox) if arguments.pretend is None else PretendRegistrar(outbox, arguments.pretend)
    mcp = build(registrar, os.environ.get("OUTBOX_TOKEN"))
    if arguments.http is None:
        # Python would wait for the thread that reads standard input. Every row is committed: nothing to save.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        mcp.run(transport="stdio", show_banner=False, log_level="WARNING")
    else:
        serve_http(mcp, arguments.http)


def seconds(text: str) -> float:
    value = float(text)
    if not 0.001 <= value <= 86_400:
        raise argparse.ArgumentTypeError("give 0.001 to 86400 seconds")
    return value


if __name__ == "__main__":
    main()
