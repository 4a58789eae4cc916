-- The audit trail: every line of every timeline in the order in which they were written, each with the hash of the one
-- before and of itself. The lease's row, which every batch locks, knows the last of them.
ALTER TABLE events ADD COLUMN number BIGINT;
ALTER TABLE events ADD COLUMN hash TEXT;
CREATE UNIQUE INDEX events_by_number ON events (number);
ALTER TABLE lease ADD COLUMN trail_number BIGINT NOT NULL DEFAULT 0;
ALTER TABLE lease ADD COLUMN trail_hash TEXT NOT NULL DEFAULT '';
