"""The server that the notifications guide prints for Python, with what it leaves out."""

from collections import namedtuple
from datetime import datetime, timezone
from fastmcp import FastMCP

mcp = FastMCP("acme")

# What the guide leaves out: three rows, and positions in them.
Row = namedtuple("Row", "position id name occurred_at payload subject level title body")
ROWS = [
    Row(str(n), f"evt_{n}", "domain.active", at, {"n": n}, "acme", "info", f"t{n}", "b")
    for n in range(1, 4)
    for at in [datetime(2026, 9, 1, 18, 42, n, tzinfo=timezone.utc)]
]


def current_position():
    return str(len(ROWS))


def read_outbox_after(cursor, limit, max_age_ms):
    return ROWS[int(cursor):][:limit]


def has_pending_work():
    return False


# From here on it is as printed.

@mcp.resource("acme://notifications")
def notifications(cursor: str | None = None, maxEvents: int = 100, maxAgeMs: int | None = None) -> dict:
    # A first read bootstraps from "now": no events, a fresh cursor.
    if cursor is None:
        return {"events": [], "cursor": current_position(), "truncated": False, "hasMore": False}

    rows = read_outbox_after(cursor, limit=maxEvents, max_age_ms=maxAgeMs)
    events = [
        {
            "eventId": row.id,
            "name": row.name,
            "timestamp": row.occurred_at.astimezone(timezone.utc).isoformat(),
            "data": row.payload,
            "_meta": {
                "ai.nimblebrain/notification": {
                    "subject": row.subject,
                    "level": row.level,
                    "title": row.title,
                    "body": row.body,
                }
            },
        }
        for row in rows
    ]
    return {
        "events": events,
        "cursor": rows[-1].position if rows else cursor,
        "truncated": False,
        "hasMore": len(rows) == maxEvents,
        # Ask to be read sooner while something is still changing.
        "nextPollMs": 15000 if has_pending_work() else 60000,
    }


mcp.run()
