-- How the last reads of a source went. `told`: 0 nothing, 1 that it fails, 2 that a person must sign in; `backlog`: whether
-- the next answer belongs to the first.
ALTER TABLE source ADD COLUMN moved_at  INTEGER;
ALTER TABLE source ADD COLUMN read_at   INTEGER;
ALTER TABLE source ADD COLUMN failed_at INTEGER;
ALTER TABLE source ADD COLUMN failure   TEXT;
ALTER TABLE source ADD COLUMN failures  INTEGER NOT NULL DEFAULT 0;
ALTER TABLE source ADD COLUMN told      INTEGER NOT NULL DEFAULT 0;
ALTER TABLE source ADD COLUMN backlog   INTEGER NOT NULL DEFAULT 0;
ALTER TABLE source ADD COLUMN revision  TEXT;
