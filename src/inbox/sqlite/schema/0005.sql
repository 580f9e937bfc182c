-- Which version of a plugin an attempt goes on with, and which wrote what is kept for later.
-- `plugin_digest` is set once something of an attempt is kept or it rests, and null once it has ended. The versions are
-- null for what was written before they were kept. One more of `flags`: 32 the attempt is told what its target remembers.
ALTER TABLE delivery ADD COLUMN plugin_digest  TEXT;
ALTER TABLE delivery ADD COLUMN resume_version TEXT;
ALTER TABLE memory   ADD COLUMN plugin_version TEXT;

CREATE INDEX delivery_plugin_digest ON delivery (plugin, plugin_digest) WHERE plugin_digest IS NOT NULL;

UPDATE delivery SET flags = flags | 32 WHERE started_at IS NOT NULL;
