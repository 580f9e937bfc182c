-- The content blocks of what came from a push queue: the JSON text of an array.
ALTER TABLE notification ADD COLUMN content TEXT;

-- A consumer whose queue something joined. `last` is the row of the notification that joined last; `losing` is 1 from the first
-- event that left unacknowledged until the queue is empty, and `losses` counts those times.
-- `too_old` are those of `lost` that retention took; the others left because the queue was full.
CREATE TABLE consumer (
    id              INTEGER PRIMARY KEY,
    workspace       INTEGER NOT NULL REFERENCES workspace (id),
    name            TEXT    NOT NULL,
    last            INTEGER NOT NULL DEFAULT 0,
    pending         INTEGER NOT NULL DEFAULT 0,
    joined          INTEGER NOT NULL DEFAULT 0,
    acknowledged    INTEGER NOT NULL DEFAULT 0,
    acknowledged_at INTEGER,
    lost            INTEGER NOT NULL DEFAULT 0,
    lost_at         INTEGER,
    too_old         INTEGER NOT NULL DEFAULT 0,
    losses          INTEGER NOT NULL DEFAULT 0,
    losing          INTEGER NOT NULL DEFAULT 0,
    UNIQUE (workspace, name)
) STRICT;

-- What a consumer has not acknowledged yet. `event_id` is the id beyond the inbox, by which it is acknowledged.
CREATE TABLE pending (
    consumer     INTEGER NOT NULL REFERENCES consumer (id),
    notification INTEGER NOT NULL REFERENCES notification (id),
    event_id     TEXT    NOT NULL,
    PRIMARY KEY (consumer, notification)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX pending_event ON pending (consumer, event_id);
CREATE INDEX pending_notification ON pending (notification);
