-- The store itself: `tag` tells its delivery ids from another store's, `epoch` counts the times it was opened to write.
CREATE TABLE store (
    only  INTEGER PRIMARY KEY CHECK (only = 1),
    tag   TEXT    NOT NULL,
    epoch INTEGER NOT NULL
) STRICT;

CREATE TABLE workspace (
    id       INTEGER PRIMARY KEY,
    name     TEXT    NOT NULL UNIQUE,
    last_seq INTEGER NOT NULL DEFAULT 0
) STRICT;

-- A connector of a workspace and how far its outbox was read.
CREATE TABLE source (
    id        INTEGER PRIMARY KEY,
    workspace INTEGER NOT NULL REFERENCES workspace (id),
    name      TEXT    NOT NULL,
    cursor    TEXT,
    UNIQUE (workspace, name)
) STRICT;

-- Every event id a source has used: apart from the notification, because it is kept longer.
CREATE TABLE seen (
    source      INTEGER NOT NULL REFERENCES source (id),
    event_id    TEXT    NOT NULL,
    received_at INTEGER NOT NULL,
    PRIMARY KEY (source, event_id)
) STRICT, WITHOUT ROWID;

-- `id` is workspace * 2^40 + seq, so that an inbox is one run of rows in its own order. Levels: 0 info, 1 attention,
-- 2 urgent. Moments that the host stamps are milliseconds since 1970; `timestamp` is RFC 3339, UTC.
CREATE TABLE notification (
    id              INTEGER PRIMARY KEY,
    source          INTEGER NOT NULL REFERENCES source (id),
    event_id        TEXT    NOT NULL,
    name            TEXT    NOT NULL,
    timestamp       TEXT    NOT NULL,
    received_at     INTEGER NOT NULL,
    level           INTEGER NOT NULL,
    effective_level INTEGER NOT NULL,
    subject         TEXT,
    title           TEXT    NOT NULL,
    body            TEXT,
    link            TEXT,
    data            TEXT    NOT NULL
) STRICT;

-- `next_at` is set exactly while the dispatcher should move the delivery; `epoch` and `claimed_at` while it is in flight.
-- AUTOINCREMENT, because a number is never used twice: destinations may tell repeats by it.
CREATE TABLE delivery (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    notification INTEGER NOT NULL REFERENCES notification (id),
    route        TEXT    NOT NULL,
    target       TEXT    NOT NULL,
    plugin       TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    due_at       INTEGER NOT NULL,
    next_at      INTEGER,
    attempts     INTEGER NOT NULL DEFAULT 0,
    last_outcome TEXT,
    epoch        INTEGER,
    claimed_at   INTEGER
) STRICT;

CREATE INDEX delivery_next ON delivery (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX delivery_in_flight ON delivery (epoch) WHERE epoch IS NOT NULL;
CREATE INDEX delivery_notification ON delivery (notification);

CREATE TABLE attempt (
    delivery       INTEGER NOT NULL REFERENCES delivery (id),
    number         INTEGER NOT NULL,
    started_at     INTEGER NOT NULL,
    ended_at       INTEGER NOT NULL,
    outcome        TEXT    NOT NULL,
    reason         TEXT,
    steps          INTEGER NOT NULL,
    plugin_version TEXT,
    plugin_digest  TEXT,
    PRIMARY KEY (delivery, number)
) STRICT, WITHOUT ROWID;
