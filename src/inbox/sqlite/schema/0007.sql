-- What changed in each workspace, in order. `id` is workspace * 2^40 + the number of the last of the `count` changes that the
-- row holds. `kind` says what `list` is, numbers with spaces between them: of `created` the first notification of a run; of
-- `read` and `acknowledged` notifications; of `gap` a notice; of `delivery` pairs of a delivery and its first notification; of
-- `joined` triples of a delivery, the one that it became part of, and its first notification. `name` is who marked them (`agent`
-- is 1 for an agent), the connector of a gap, or the plugin of deliveries.
CREATE TABLE change (
    id     INTEGER PRIMARY KEY,
    count  INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    kind   TEXT    NOT NULL,
    list   TEXT    NOT NULL,
    name   TEXT,
    agent  INTEGER,
    target INTEGER REFERENCES target (id),
    state  TEXT
) STRICT;

-- The few among many.
CREATE INDEX notification_unread ON notification (id, effective_level) WHERE read_at IS NULL;
CREATE INDEX notification_level ON notification (effective_level, id) WHERE effective_level > 0;

-- Who may read and change: `hash` is the SHA-256 of the secret, `role` operator, member or agent, `name` the member or the
-- agent's consumer; `flags`: 1 it may do what an admin may, 2 it may read, 4 it may acknowledge.
-- AUTOINCREMENT, because people name tokens by their number.
CREATE TABLE token (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    kind       TEXT    NOT NULL,
    hash       BLOB    NOT NULL UNIQUE,
    label      TEXT,
    role       TEXT    NOT NULL,
    workspace  TEXT,
    name       TEXT,
    flags      INTEGER NOT NULL DEFAULT 0,
    parent     INTEGER,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    used_at    INTEGER
) STRICT;

CREATE INDEX token_parent ON token (parent) WHERE parent IS NOT NULL;
