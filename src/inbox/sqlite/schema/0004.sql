-- Recorded attempts. `outcome` is null for one that went on to wait, `content` JSON that the sender reads.
CREATE TABLE recording (
    id       INTEGER PRIMARY KEY,
    plugin   TEXT    NOT NULL,
    version  TEXT    NOT NULL,
    digest   TEXT    NOT NULL,
    delivery INTEGER NOT NULL,
    attempt  INTEGER NOT NULL,
    outcome  TEXT,
    at       INTEGER NOT NULL,
    content  TEXT    NOT NULL
) STRICT;

CREATE INDEX recording_plugin ON recording (plugin);

-- What a recording is about.
CREATE TABLE recorded (
    recording    INTEGER NOT NULL REFERENCES recording (id),
    notification INTEGER NOT NULL REFERENCES notification (id),
    PRIMARY KEY (recording, notification)
) STRICT, WITHOUT ROWID;

CREATE INDEX recorded_notification ON recorded (notification);

-- Triggers, because keys are not enforced in a store in use.
CREATE TRIGGER recording_goes BEFORE DELETE ON recording
BEGIN
    DELETE FROM recorded WHERE recording = OLD.id;
END;

CREATE TRIGGER recording_goes_with_its_notification BEFORE DELETE ON notification
BEGIN
    DELETE FROM recording WHERE id IN (SELECT recording FROM recorded WHERE notification = OLD.id);
END;
