-- What an agreement may have other than what it got, as JSON: sizes with their durations, and what its nodes must be.
ALTER TABLE agreements ADD COLUMN leeway TEXT NOT NULL DEFAULT '{}';
