"""Reads an inbox as an agent does, with the official Python SDK 1.x or 2.x, and prints what it got as one JSON value.

Its one argument says how to reach the server: {"url", "token"} or {"command", "environment"}.
"""

import asyncio
import json
import sys
from importlib.metadata import version

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

AFTER_START = "&maxEvents=2&maxAgeMs=7776000000"
IS_NEW = version("mcp").startswith("2.")


def spelled(result) -> dict:
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


async def exercise(call) -> dict:
    """What every client does: `call(method, *arguments)` has the SDK do it, and answers with plain JSON."""
    read = lambda uri: call("read_resource", uri)
    text = lambda found: json.loads(found["contents"][0]["text"])
    start = text(await read("switchbell://notifications"))
    beginning = start["cursor"].rsplit("-", 1)[0] + "-0"
    return {
        "tools": (await call("list_tools"))["tools"],
        "listed": await call("call_tool", "notifications__list", {"order": "oldest"}),
        "acknowledged": await call("call_tool", "notifications__acknowledge", {"ids": [1]}),
        "refused": await call("call_tool", "notifications__list", {"level": "loud"}),
        "resources": (await call("list_resources"))["resources"],
        "templates": (await call("list_resource_templates"))["resourceTemplates"],
        "start": start,
        "page": text(await read(f"switchbell://notifications?cursor={beginning}{AFTER_START}")),
    }


async def with_new(asked: dict) -> dict:
    import httpx2
    from mcp import Client

    if "url" in asked:
        http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {asked['token']}"}, timeout=30)
        server = streamable_http_client(asked["url"], http_client=http)
    else:
        program, *words = asked["command"]
        server = StdioServerParameters(command=program, args=words, env=asked["environment"])
    async with Client(server) as client:

        async def call(method, *arguments):
            return spelled(await getattr(client, method)(*arguments))

        found = await exercise(call)
        return {"revision": client.protocol_version, "server": client.server_info.name, **found}


async def with_old(asked: dict) -> dict:
    import httpx
    from pydantic import AnyUrl

    if "url" in asked:
        http = httpx.AsyncClient(headers={"Authorization": f"Bearer {asked['token']}"}, timeout=30)
        transport = streamable_http_client(asked["url"], http_client=http)
    else:
        program, *words = asked["command"]
        transport = stdio_client(StdioServerParameters(command=program, args=words, env=asked["environment"]))
    async with transport as streams, ClientSession(streams[0], streams[1]) as session:
        began = await session.initialize()

        async def call(method, *arguments):
            if method == "read_resource":
                arguments = [AnyUrl(arguments[0])]
            return spelled(await getattr(session, method)(*arguments))

        found = await exercise(call)
        return {"revision": began.protocolVersion, "server": began.serverInfo.name, **found}


print(json.dumps(asyncio.run((with_new if IS_NEW else with_old)(json.loads(sys.argv[1])))))
