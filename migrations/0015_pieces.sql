-- The pieces in which an agreement's work is done, as JSON in order of time; an empty list where it is done in one.
ALTER TABLE agreements ADD COLUMN pieces TEXT NOT NULL DEFAULT '[]';
