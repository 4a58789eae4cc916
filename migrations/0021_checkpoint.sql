-- Up to which line the audit trail was found whole, and that line's hash: a start checks the lines after it before it is ready, and
-- the rest behind.
ALTER TABLE lease ADD COLUMN checked_number BIGINT NOT NULL DEFAULT 0;
ALTER TABLE lease ADD COLUMN checked_hash TEXT NOT NULL DEFAULT '';
