"""What the Python servers share: the rows of the outbox, what they report to the test, and how they are started.

    python SERVER.py                stdio
    python SERVER.py --http PORT    streamable HTTP at http://127.0.0.1:PORT/mcp

OUTBOX_ROWS names a file with one row a line, `{"cursor", "event", "hint"}`, which is read again at each request; the
last line counts once it ends. OUTBOX_REPORTS is the `host:port` that takes a line of JSON for everything of note; when
that connection ends, so does the server, so that none outlives its test.
"""

import argparse
import json
import os
import socket
import threading

import anyio

URI = "acme://notifications"
TEMPLATE = URI + "{?cursor,maxEvents,maxAgeMs}"
# How often the file is looked at for rows that want a hint.
LOOK_SECONDS = 0.02


class Outbox:
    def __init__(self):
        self.file = os.environ["OUTBOX_ROWS"]
        host, port = os.environ["OUTBOX_REPORTS"].rsplit(":", 1)
        self.reports = socket.create_connection((host, int(port)))
        self.handed_out = 0
        threading.Thread(target=self._end_with_the_test, daemon=True).start()
        self.report(started=os.getpid())

    def report(self, **what):
        self.reports.sendall(json.dumps(what).encode() + b"\n")

    def read(self, cursor, max_events, max_age_ms) -> str:
        self.report(read={"cursor": cursor, "maxEvents": max_events, "maxAgeMs": max_age_ms})
        rows = self._rows()
        cursors = [row["cursor"] for row in rows]
        if cursor is None:
            return json.dumps({"events": [], "cursor": cursors[-1]})
        if cursor not in cursors:
            raise ValueError(f"unknown cursor {cursor!r}")
        start = cursors.index(cursor) + 1
        page = rows[start : start + int(max_events)]
        self.handed_out = max(self.handed_out, start + len(page))
        return json.dumps(
            {
                "events": [row["event"] for row in page],
                "cursor": page[-1]["cursor"] if page else cursor,
                "hasMore": start + len(page) < len(rows),
            }
        )

    async def hint(self, send):
        """Calls `send` again and again while a row that wants a hint was not handed out, for ever."""
        while True:
            await anyio.sleep(LOOK_SECONDS)
            if any(row.get("hint") for row in self._rows()[self.handed_out :]):
                await send()

    def _rows(self):
        with open(self.file, encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.endswith("\n")]

    def _end_with_the_test(self):
        while self.reports.recv(1024):
            pass
        os._exit(0)


def http_port() -> int | None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", metavar="PORT", type=int)
    return parser.parse_args().http


def serve_http(outbox: Outbox, app, port: int):
    import uvicorn

    async def reporting(scope, receive, send):
        async def report(message):
            if message["type"] == "http.response.start":
                outbox.report(http={"method": scope["method"], "status": message["status"]})
            await send(message)

        await app(scope, receive, report if scope["type"] == "http" else send)

    class Server(uvicorn.Server):
        async def startup(self, sockets=None):
            await super().startup(sockets=sockets)
            outbox.report(listening=port)

    Server(uvicorn.Config(reporting, host="127.0.0.1", port=port, log_level="error", lifespan="on")).run()
