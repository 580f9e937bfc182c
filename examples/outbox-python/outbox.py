"""A durable outbox: one SQLite table that holds the facts a server has to tell, oldest first.

Nothing in this file knows MCP. `add` writes a row inside a transaction of yours, next to the change it tells about;
`read` answers one poll. `python outbox.py add NAME …` adds a row by hand, also while the server runs.
"""

import argparse
import base64
import json
import os
import re
import secrets
import sqlite3
import sys
import time
import uuid
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

# What hosts take. A row that breaks one of these rules is dropped by the host without a word back, so it is refused
# here, where somebody can still read why.
LEVELS = ("info", "attention", "urgent")
NAME = re.compile(r"[^\s\x00-\x1f\x7f-\x9f]{1,200}")
EVENT_ID = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,200}")
LINK = re.compile(r"(?i)(?!(?:javascript|data|vbscript|file|blob):)[a-z][a-z0-9+.-]*:[^\s\x00-\x1f\x7f-\x9f]+")
LINK_CHARACTERS_MAX = 2048
EVENT_BYTES_MAX = 64 * 1024

# One answer holds at most so many events, whatever the reader asks for: 1,000 of ordinary size are about half a MiB.
EVENTS_MAX = 1000
# Rows are kept as long as the longest replay a host asks for, 90 days; older ones are pruned as new ones are added.
KEEP_MS = 90 * 24 * 3600 * 1000
# How long a writer waits for another process to finish its transaction.
BUSY_SECONDS = 10.0

SCHEMA = (
    """
CREATE TABLE IF NOT EXISTS outbox (
    position       INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice, so a cursor never points at another row
    event_id       TEXT NOT NULL UNIQUE,
    name           TEXT NOT NULL,
    timestamp      TEXT NOT NULL,                      -- when the fact happened
    recorded_at_ms INTEGER NOT NULL,                   -- when the row was written: what maxAgeMs counts from
    level          TEXT,
    subject        TEXT,
    title          TEXT,
    body           TEXT,
    link           TEXT,
    data           TEXT NOT NULL                       -- the JSON text of an object
)
""",
    "CREATE INDEX IF NOT EXISTS outbox_by_age ON outbox (recorded_at_ms)",
    """
CREATE TABLE IF NOT EXISTS outbox_itself (
    tag    TEXT NOT NULL,                              -- drawn once; tells this outbox's cursors from another's
    pruned INTEGER NOT NULL                            -- the newest position that was pruned
)
""",
)


class OutboxError(ValueError):
    """A read or a row that cannot be served as asked. Its text is for the person who reads the other side's log."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def iso(at_ms: int) -> str:
    """The instant in UTC, RFC 3339 with milliseconds."""
    whole_seconds = datetime.fromtimestamp(at_ms // 1000, timezone.utc)
    return f"{whole_seconds:%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03d}Z"


class Outbox:
    """The outbox in the database at `path`, which is created when it is not there."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        self._use_write_ahead_log()
        with self.transaction() as connection:
            for statement in SCHEMA:
                connection.execute(statement)
            connection.execute(
                "INSERT INTO outbox_itself SELECT ?, 0 WHERE NOT EXISTS (SELECT 1 FROM outbox_itself)",
                (secrets.token_hex(4),),
            )

    @contextmanager
    def transaction(self, kind: str = "IMMEDIATE"):
        """A connection in a transaction: committed at the end of the block, rolled back when the block raises."""
        connection = self._connect()
        try:
            connection.execute(f"BEGIN {kind}")
            yield connection
            connection.execute("COMMIT")
        finally:
            connection.close()  # what was not committed is rolled back here

    def add(
        self,
        connection: sqlite3.Connection,
        name: str,
        *,
        data: dict | None = None,
        level: str | None = None,
        subject: str | None = None,
        title: str | None = None,
        body: str | None = None,
        link: str | None = None,
        event_id: str | None = None,
        at_ms: int | None = None,
    ) -> int:
        """Writes one row in the caller's transaction and returns its position.

        `event_id` is the id the fact has upstream, where it has one. A row with an id that is there already is not
        written again; the position of the first one is returned.
        """
        recorded_at_ms = now_ms()
        row = {
            "event_id": f"evt_{uuid.uuid4().hex}" if event_id is None else event_id,
            "name": name,
            "timestamp": iso(recorded_at_ms if at_ms is None else at_ms),
            "recorded_at_ms": recorded_at_ms,
            "level": level,
            "subject": subject,
            "title": title,
            "body": body,
            "link": link,
            "data": json.dumps({} if data is None else data, ensure_ascii=False),
        }
        check(row)
        connection.execute(
            "INSERT INTO outbox (event_id, name, timestamp, recorded_at_ms, level, subject, title, body, link, data)"
            " VALUES (:event_id, :name, :timestamp, :recorded_at_ms, :level, :subject, :title, :body, :link, :data)"
            " ON CONFLICT (event_id) DO NOTHING",
            row,
        )
        prune(connection, recorded_at_ms - KEEP_MS)
        return connection.execute("SELECT position FROM outbox WHERE event_id = :event_id", row).fetchone()["position"]

    def read(self, cursor: str | None = None, max_events: int = 100, max_age_ms: int | None = None) -> dict:
        """Answers one poll: the rows strictly after `cursor`, oldest first.

        Without a cursor it starts from now: no events and a fresh cursor. `max_age_ms` moves the start forward to
        now − max_age_ms where that is later. Raises `OutboxError` for a cursor this outbox never gave.
        """
        if max_events < 1:
            raise OutboxError(f"maxEvents is {max_events}; ask for 1 or more")
        if max_age_ms is not None and max_age_ms < 0:
            raise OutboxError(f"maxAgeMs is {max_age_ms}; give a number of milliseconds, 0 or more")
        limit = min(max_events, EVENTS_MAX)
        # One transaction, so that every question below is answered from the same moment.
        with self.transaction("DEFERRED") as connection:
            tag, pruned = connection.execute("SELECT tag, pruned FROM outbox_itself").fetchone()
            newest = connection.execute("SELECT coalesce(max(position), ?) FROM outbox", (pruned,)).fetchone()[0]
            if not cursor:
                return {"events": [], "cursor": encode(tag, newest), "truncated": False, "hasMore": False}
            asked = decode(cursor, tag, newest)
            too_old = pruned if max_age_ms is None else max(pruned, last_before(connection, now_ms() - max_age_ms))
            start = max(asked, too_old)
            # One row more than asked: it tells whether there is more without an empty read later.
            rows = connection.execute(
                "SELECT * FROM outbox WHERE position > ? ORDER BY position LIMIT ?", (start, limit + 1)
            ).fetchall()
        batch = rows[:limit]
        return {
            "events": [event(row, encode(tag, row["position"])) for row in batch],
            "cursor": encode(tag, batch[-1]["position"] if batch else start),
            "truncated": start > asked,
            "hasMore": len(rows) > limit,
        }

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        connection.row_factory = sqlite3.Row
        return connection

    def _use_write_ahead_log(self) -> None:
        """Readers and one writer, in several processes, do not block each other. The file remembers the setting."""
        give_up = time.monotonic() + BUSY_SECONDS
        while True:
            connection = self._connect()
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                # The very first switch needs the file for itself, and SQLite does not always wait for that.
                if "locked" not in str(error) or time.monotonic() > give_up:
                    raise
                time.sleep(0.01)
            finally:
                connection.close()


def event(row, cursor: str | None = None) -> dict:
    """The row as hosts read it. What a row does not say is left out."""
    notification = {key: row[key] for key in ("subject", "level", "title", "body") if row[key] is not None}
    if row["link"] is not None:
        notification["link"] = {"resource": row["link"]}
    occurrence = {
        "eventId": row["event_id"],
        "name": row["name"],
        "timestamp": row["timestamp"],
        "data": json.loads(row["data"]),
    }
    if cursor is not None:
        occurrence["cursor"] = cursor
    if notification:
        occurrence["_meta"] = {"ai.nimblebrain/notification": notification}
    return occurrence


def check(row: dict) -> None:
    """Refuses a row that a host would drop."""
    if not NAME.fullmatch(row["name"]):
        raise OutboxError(f"name {row['name']!r}: give 1 to 200 characters without white space, such as domain.active")
    if not EVENT_ID.fullmatch(row["event_id"]):
        raise OutboxError(f"event id {row['event_id']!r}: give 1 to 200 characters without control characters")
    if row["level"] is not None and row["level"] not in LEVELS:
        raise OutboxError(f"level {row['level']!r}: choose one of {', '.join(LEVELS)}")
    if row["link"] is not None and not (LINK.fullmatch(row["link"]) and len(row["link"]) <= LINK_CHARACTERS_MAX):
        raise OutboxError(f"link {row['link']!r}: give a URI with a scheme, such as acme://domains/1")
    if not isinstance(json.loads(row["data"]), dict):
        raise OutboxError('data: give a JSON object, such as {"campaign": "autumn"}')
    size_bytes = len(json.dumps(event(row), ensure_ascii=False).encode())
    if size_bytes > EVENT_BYTES_MAX:
        raise OutboxError(f"the event is {size_bytes} bytes; hosts take at most {EVENT_BYTES_MAX}")


def encode(tag: str, position: int) -> str:
    """An opaque cursor. The URL-safe alphabet has no `+`, which some servers read as a space."""
    return base64.urlsafe_b64encode(f"{tag}:{position}".encode()).decode()


def decode(cursor: str, tag: str, newest: int) -> int:
    """The position in a cursor that `encode` made for this outbox."""
    try:
        cursor_tag, _, digits = base64.b64decode(cursor, altchars=b"-_", validate=True).decode("ascii").partition(":")
        position = int(digits) if digits.isdecimal() and len(digits) < 19 else None
    except ValueError:
        cursor_tag, position = None, None
    # A position beyond the newest row is from a life of the database that a restored backup has undone.
    if cursor_tag != tag or position is None or position > newest:
        raise OutboxError(
            f"unknown cursor {cursor!r}: this outbox never gave it; read without a cursor to start from now"
        )
    return position


def last_before(connection: sqlite3.Connection, at_ms: int) -> int:
    """The newest position that was written before that instant, 0 when there is none."""
    row = connection.execute(
        "SELECT position FROM outbox WHERE recorded_at_ms < ? ORDER BY recorded_at_ms DESC, position DESC LIMIT 1",
        (at_ms,),
    ).fetchone()
    return row[0] if row else 0


def prune(connection: sqlite3.Connection, before_ms: int) -> None:
    """Forgets rows written before that instant, and remembers how far, so that a late reader is told of the gap."""
    last = last_before(connection, before_ms)
    if last:
        connection.execute("DELETE FROM outbox WHERE position <= ?", (last,))
        connection.execute("UPDATE outbox_itself SET pruned = ?", (last,))


def default_path() -> Path:
    """The file that OUTBOX_DB names, else outbox.db beside this file."""
    return Path(os.environ.get("OUTBOX_DB") or Path(__file__).with_name("outbox.db"))


def main() -> int:
    parser = argparse.ArgumentParser(description="Adds a row to the outbox; OUTBOX_DB names the database.")
    add = parser.add_subparsers(required=True).add_parser("add", help="add one event")
    add.add_argument("name", metavar="NAME", help="dotted and lower-case, such as domain.active")
    add.add_argument("--level", choices=LEVELS)
    add.add_argument("--title", help="one line of plain text")
    add.add_argument("--subject", help="what the event is about")
    add.add_argument("--body", help="short plain text")
    add.add_argument("--link", metavar="URI", help="where to go")
    add.add_argument("--data", metavar="JSON", default="{}", help="a JSON object")
    add.add_argument("--id", metavar="ID", dest="event_id", help="the id the fact has upstream; drawn when left out")
    fields = vars(parser.parse_args())
    name = fields.pop("name")
    try:
        fields["data"] = json.loads(fields["data"])
        outbox = Outbox(default_path())
        with outbox.transaction() as connection:
            position = outbox.add(connection, name, **fields)
    except json.JSONDecodeError as error:
        print(f"--data is not JSON: {error}", file=sys.stderr)
        return 2
    except OutboxError as error:
        print(error, file=sys.stderr)
        return 2
    except sqlite3.Error as error:
        print(f"{default_path()}: {error}", file=sys.stderr)
        return 2
    print(f"{name} is at position {position} of {outbox.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
