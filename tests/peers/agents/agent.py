"""What the agents of the tests share: an agent does what the test tells it, and tells the test what it was asked.

It prints one JSON object on each line: `url` when it listens, `asked` for each request, `began` for each run. Each line
of its standard input ends the oldest run that waits: `complete WORDS`, `fail WORDS`, `reject WORDS`, `ask WORDS` or
`authorise WORDS`. Two are said in advance, of the next request that begins a run, and told back: `lose` drops its
connection instead of answering, `hold` never answers. It ends when its standard input does.
"""

import asyncio
import json
import os
import socket
import sys
import threading

# What libraries print goes where errors go: standard output is the test's.
REPORTS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

HEADERS = ("a2a-version", "authorization", "idempotency-key", "x-on-behalf-of")


def say(**report):
    print(json.dumps(report), file=REPORTS, flush=True)


class Orders:
    """What the test tells the agent to do."""

    def __init__(self):
        self.queue = asyncio.Queue()
        self.mishap = None
        threading.Thread(target=self._read, args=(asyncio.get_running_loop(),), daemon=True).start()

    def _read(self, loop):
        for line in sys.stdin:
            loop.call_soon_threadsafe(self._take, line.strip())
        os._exit(0)

    def _take(self, line):
        if line in ("lose", "hold"):
            self.mishap = line
            say(told=line)
        else:
            self.queue.put_nowait(line)

    async def next(self):
        order, _, words = (await self.queue.get()).partition(" ")
        return order, words


class Watched:
    """An ASGI application whose requests are told."""

    def __init__(self, app, orders, begins):
        self.app, self.orders, self.begins = app, orders, begins

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        told = json.loads(body) if body else None
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        headers = {name: headers[name] for name in HEADERS if name in headers}
        say(asked={"path": scope["path"], "headers": headers, "body": told})
        mishap = None
        if self.begins(scope, told):
            mishap, self.orders.mishap = self.orders.mishap, None
        is_given = False

        async def again():
            nonlocal is_given
            if is_given:
                return await receive()
            is_given = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def kept(message):
            if mishap == "hold":
                await asyncio.Event().wait()
            # An answer that promises more than it sends: whoever asked knows that it was cut off.
            if message["type"] == "http.response.start":
                message = {**message, "headers": [(b"content-length", b"1000000")]}
            if message["type"] == "http.response.body":
                raise ConnectionAbortedError("told to lose this answer")
            await send(message)

        await self.app(scope, again, kept if mishap else send)


def listening():
    """A socket on a free port, and its URL."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", 0))
    listener.listen(100)
    return listener, f"http://127.0.0.1:{listener.getsockname()[1]}"


async def serve_uvicorn(app):
    import uvicorn

    listener, url = listening()
    say(url=url)
    await uvicorn.Server(uvicorn.Config(app, log_level="critical")).serve(sockets=[listener])
