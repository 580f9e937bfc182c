-- The delivery engine: targets with their queues, digests, attempts that go on, lanes, memory, and who read what.
-- Drawn when the store is opened to write the first time: no plugin knows it.
ALTER TABLE store ADD COLUMN key BLOB;

-- Who read and acknowledged it, and when; `_agent` is 1 for an agent.
ALTER TABLE notification ADD COLUMN read_at            INTEGER;
ALTER TABLE notification ADD COLUMN read_by            TEXT;
ALTER TABLE notification ADD COLUMN read_agent         INTEGER;
ALTER TABLE notification ADD COLUMN acknowledged_at    INTEGER;
ALTER TABLE notification ADD COLUMN acknowledged_by    TEXT;
ALTER TABLE notification ADD COLUMN acknowledged_agent INTEGER;

-- A target of a route: its deliveries stand in one queue. `blocked` says why a person must mend something first.
CREATE TABLE target (
    id        INTEGER PRIMARY KEY,
    workspace INTEGER NOT NULL REFERENCES workspace (id),
    route     TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    blocked   TEXT,
    UNIQUE (workspace, route, name)
) STRICT;

INSERT INTO target (workspace, route, name)
SELECT DISTINCT d.notification >> 40, d.route, d.target FROM delivery d;

-- `notification` is the first it stands for; a digest has all of them in `item`. `next_at` is set exactly while time moves
-- the delivery, `epoch` while it is in flight, `started_at` while an attempt has begun and not ended. `since` is what
-- giving up counts from, `due_at` where it is not set; `cause` that of the next attempt where the last outcome does not say.
-- `gather` names the digest while more may join; `slot` is 1 while it counts for `at_most` without having reached the
-- destination. `flags`: 1 an effect was accepted or may have been, 2 the destination was reached, 4 it goes on after a
-- wait, 8 the next effect may have begun, 16 effects are kept.
-- AUTOINCREMENT, because a number is never used twice: destinations may tell repeats by it.
CREATE TABLE new_delivery (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    target       INTEGER NOT NULL REFERENCES target (id),
    notification INTEGER NOT NULL REFERENCES notification (id),
    plugin       TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    due_at       INTEGER NOT NULL,
    next_at      INTEGER,
    attempts     INTEGER NOT NULL DEFAULT 0,
    epoch        INTEGER,
    started_at   INTEGER,
    last_outcome TEXT,
    since        INTEGER,
    cause        TEXT,
    gather       TEXT,
    level        INTEGER NOT NULL DEFAULT 0,
    items        INTEGER NOT NULL DEFAULT 1,
    bytes        INTEGER NOT NULL DEFAULT 0,
    omitted      INTEGER NOT NULL DEFAULT 0,
    slot         INTEGER,
    resume       TEXT,
    steps        INTEGER NOT NULL DEFAULT 0,
    flags        INTEGER NOT NULL DEFAULT 0,
    why          TEXT,
    retry_of     INTEGER
) STRICT;

INSERT INTO new_delivery (id, target, notification, plugin, state, created_at, due_at, next_at, attempts, epoch, started_at,
                          last_outcome)
SELECT d.id, t.id, d.notification, d.plugin, d.state, d.created_at, d.due_at, d.next_at, d.attempts, d.epoch, d.claimed_at,
       d.last_outcome
FROM delivery d JOIN target t ON t.workspace = d.notification >> 40 AND t.route = d.route AND t.name = d.target;

DROP TABLE delivery;
ALTER TABLE new_delivery RENAME TO delivery;

CREATE INDEX delivery_next ON delivery (target, next_at) WHERE next_at IS NOT NULL;
CREATE INDEX delivery_in_flight ON delivery (epoch) WHERE epoch IS NOT NULL;
CREATE INDEX delivery_notification ON delivery (notification);
CREATE UNIQUE INDEX delivery_gather ON delivery (target, gather) WHERE gather IS NOT NULL;
CREATE INDEX delivery_slot ON delivery (target) WHERE slot IS NOT NULL;
-- Spelled with OR: a list would be built anew for every row that is written.
CREATE INDEX delivery_stuck ON delivery (target, state) WHERE state = 'blocked' OR state = 'dead' OR state = 'unknown';

-- What a digest stands for. `omitted`: 0 handed to the plugin, 1 only counted, 2 acknowledged before it was needed.
CREATE TABLE item (
    delivery     INTEGER NOT NULL REFERENCES delivery (id),
    notification INTEGER NOT NULL REFERENCES notification (id),
    omitted      INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (delivery, notification)
) STRICT, WITHOUT ROWID;

CREATE INDEX item_notification ON item (notification);

-- The effects of an attempt that has begun and not ended.
CREATE TABLE effect (
    delivery INTEGER NOT NULL REFERENCES delivery (id),
    number   INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    digest   TEXT    NOT NULL,
    answer   TEXT    NOT NULL,
    PRIMARY KEY (delivery, number)
) STRICT, WITHOUT ROWID;

-- When attempts of a target with `at_most` reached the destination.
CREATE TABLE reached (
    target INTEGER NOT NULL REFERENCES target (id),
    at     INTEGER NOT NULL,
    times  INTEGER NOT NULL,
    PRIMARY KEY (target, at)
) STRICT, WITHOUT ROWID;

-- What a target was asked to remember of a subject.
CREATE TABLE memory (
    target     INTEGER NOT NULL REFERENCES target (id),
    subject    TEXT    NOT NULL,
    value      TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (target, subject)
) STRICT, WITHOUT ROWID;

CREATE INDEX memory_age ON memory (target, updated_at);

-- Pauses and pace of lanes. `effects` is a list of moments and counts: `1790000000000*2 1790000000500*1`.
CREATE TABLE lane (
    workspace    TEXT NOT NULL,
    plugin       TEXT NOT NULL,
    key          TEXT NOT NULL,
    paused_until INTEGER,
    effects      TEXT NOT NULL,
    PRIMARY KEY (workspace, plugin, key)
) STRICT, WITHOUT ROWID;
