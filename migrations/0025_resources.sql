-- Resources come, change and go while the service serves, by its operators as by its configuration. A row says what is planned on.
-- Ties among resources go to the lower position.
ALTER TABLE resources ADD COLUMN position BIGINT NOT NULL DEFAULT 0;
-- How fast its nodes work, in millionths of the reference.
ALTER TABLE resources ADD COLUMN rate BIGINT NOT NULL DEFAULT 1000000 CHECK (rate > 0);
-- Attributes, names of nodes, maintenance, and what its executor needs: JSON.
ALTER TABLE resources ADD COLUMN details TEXT NOT NULL DEFAULT '{}';
-- The resource as the configuration file had it when the file was last read, as JSON: only what has changed there since is taken
-- over. Null where the file did not have it; empty for a resource of before this version, of which that is not known.
ALTER TABLE resources ADD COLUMN configured TEXT DEFAULT '';
-- Since when nothing new is placed on it.
ALTER TABLE resources ADD COLUMN retired_us BIGINT;

-- The AgreementId of its offer: unique for a party, except that what takes an agreement's place may keep it. Of agreements from before
-- this version it is in their documents only.
ALTER TABLE agreements ADD COLUMN initiator_id TEXT;
CREATE INDEX agreements_by_initiator_id ON agreements (initiator_id, party, id) WHERE initiator_id IS NOT NULL;
-- What was chosen of an offer that left a choice: a list of JSON.
ALTER TABLE agreements ADD COLUMN choices TEXT NOT NULL DEFAULT '[]';
